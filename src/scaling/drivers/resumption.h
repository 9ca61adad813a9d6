// SPDX-License-Identifier: Apache-2.0
// Background work on one pool under its Lease: started by Status and by nomad-harvester gc.
#ifndef NOMAD_HARVESTER_SCALING_RESUMPTION_H_
#define NOMAD_HARVESTER_SCALING_RESUMPTION_H_

#include <optional>
#include <string>

#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

struct Resumed {
  // ABORTED: another live process holds the Lease. Not OK: nothing was done.
  absl::Status lease;
  absl::Status outcome;      // of Reconciler::RunResumption; OK if the Lease was not acquired
  bool interrupted = false;  // a Scale took over, the Lease was lost, or the caller's context ended
  std::optional<base::WallTime> last_event;
  std::optional<Decisions> last;
};

// Acquires the pool's Lease, runs the loop until no work is left for now, and releases the Lease.
Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   SharedPolicy policy);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RESUMPTION_H_
