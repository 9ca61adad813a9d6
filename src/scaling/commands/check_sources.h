// SPDX-License-Identifier: Apache-2.0
// The part of Maintenance::Check that covers the sources of new VMs. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_
#define NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/kube/access.h"

#include "commands/check_parts.h"
#include "execution/creation.h"
#include "execution/rights.h"

namespace nomad_harvester::scaling {

inline constexpr char kDryRunOfVm[] = "harvester.dry_run";

struct SourceReads {
  CreationSources sources;
  absl::StatusOr<std::vector<harvester::Host>> hosts = absl::UnknownError("not read");
  absl::StatusOr<HostRooms> rooms = absl::UnknownError("not read");
};

// Adds the preconditions that CheckSources reports, in order.
void ExpectSources(const config::PoolPolicy& policy, CheckLines* lines);
// Reads everything in parallel and blocks until done.
SourceReads ReadForCheck(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy);
// Sends the dry run and returns its outcome; UNKNOWN: there was none. kube::IsNotFound: no line was
// added, and either the namespace does not exist, or something that Harvester has. `vms`: the
// pool's, as far as they are known.
absl::Status CheckSources(const runtime::Context& context, const PoolDependencies& deps,
                          const config::PoolPolicy& policy, const SourceReads& reads,
                          const std::vector<Right>& missing,
                          const std::vector<const harvester::VirtualMachine*>& vms,
                          CheckLines* lines);

// Sets the results "harvester.rights.…", and returns the rights that the token lacks, or of which
// that is not known: each has a line. Blocks for access reviews where `rules` does not decide.
std::vector<Right> CheckRights(const runtime::Context& context, const PoolDependencies& deps,
                               const config::PoolPolicy& policy, const kube::AccessRules& rules,
                               CheckLines* lines);

bool Lacks(const std::vector<Right>& missing, std::string_view verb, std::string_view resource);
// True if the request was refused because the token lacks the right, as a line about rights says. A
// refusal of what the reviews grant comes from something in between, and is a failure as any other.
bool IsOfMissingRight(const absl::Status& status, const std::vector<Right>& missing,
                      std::string_view verb, std::string_view resource);
// Why a read failed that the token has the right for.
std::string TextOfRead(const absl::Status& status);
inline constexpr char kSeeHarvester[] =
    "see whether Harvester's API is healthy, and what is between it and this machine, such as a "
    "proxy";

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CHECK_SOURCES_H_
