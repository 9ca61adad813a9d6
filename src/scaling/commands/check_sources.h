// SPDX-License-Identifier: Apache-2.0
// The part of Maintenance::Check that covers the sources of new VMs. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_
#define NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_

#include <string>
#include <vector>

#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/kube/access.h"

#include "commands/check_parts.h"
#include "execution/creation.h"

namespace nomad_harvester::scaling {

struct SourceReads {
  CreationSources sources;
  absl::StatusOr<std::vector<harvester::Host>> hosts = absl::UnknownError("not read");
};

// Adds the preconditions that CheckSources reports, in order.
void ExpectSources(const config::PoolPolicy& policy, CheckLines* lines);
// Reads everything in parallel and blocks until done.
SourceReads ReadForCheck(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy);
// Sends the dry run and returns its outcome. kube::IsNotFound: the namespace does not exist, and no
// line was added.
absl::Status CheckSources(const runtime::Context& context, const PoolDependencies& deps,
                          const config::PoolPolicy& policy, const SourceReads& reads,
                          CheckLines* lines);

// Sets the results "harvester.rights.…". Blocks for access reviews where `rules` does not decide.
void CheckRights(const runtime::Context& context, const PoolDependencies& deps,
                 const config::PoolPolicy& policy, const kube::AccessRules& rules,
                 CheckLines* lines);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_
