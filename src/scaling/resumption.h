// SPDX-License-Identifier: Apache-2.0
// Background work on one pool under its Lease: what Status wakes, and what harvester gc runs.
#ifndef NOMAD_HARVESTER_SCALING_RESUMPTION_H_
#define NOMAD_HARVESTER_SCALING_RESUMPTION_H_

#include <optional>
#include <set>
#include <string>

#include "pool_dependencies.h"
#include "pool_loop.h"

namespace nomad_harvester::scaling {

struct Resumed {
  // ABORTED: another live process holds the Lease. Not OK: nothing was done.
  absl::Status lease;
  absl::Status outcome;      // of PoolLoop::RunResumption; OK if the Lease was not had
  bool interrupted = false;  // a Scale took over, the Lease was lost, or the caller's context ended
  std::optional<base::WallTime> last_event;
  std::optional<PoolSnapshot> last_snapshot;
};

// Takes the pool's Lease, runs the loop until nothing is left to do, and gives the Lease up.
// `unswept`: VMs that are gone and of which something may be left.
Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   std::optional<config::PoolPolicy> policy,
                   const std::set<std::string>& unswept = {});

// Gives the Lease up unless the caller of the RPC went away: then nothing more happens until the
// next Status.
void EndHold(PoolLease& lease, const runtime::Context& context);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RESUMPTION_H_
