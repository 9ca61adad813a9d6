// SPDX-License-Identifier: Apache-2.0
// The part of Maintenance::Check about what new VMs are made of. Private to module scaling.
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

// Adds the preconditions of CheckSources, in order.
void ExpectSources(const config::PoolPolicy& policy, CheckLines* lines);
// Blocks for all reads at once.
SourceReads ReadForCheck(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy);
// Sends the dry run and returns its outcome. If the namespace does not exist, that is
// kube::IsNotFound, and no line is added.
absl::Status CheckSources(const runtime::Context& context, const PoolDependencies& deps,
                          const config::PoolPolicy& policy, const SourceReads& reads,
                          CheckLines* lines);

// Sets "harvester.rights.…". Blocks for rights reviews where `rules` does not decide.
void CheckRights(const runtime::Context& context, const PoolDependencies& deps,
                 const config::PoolPolicy& policy, const kube::AccessRules& rules,
                 CheckLines* lines);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_
