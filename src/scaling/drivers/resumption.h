// SPDX-License-Identifier: Apache-2.0
// Background work on one pool under its Lease: started by Status and by nomad-harvester gc.
#ifndef NOMAD_HARVESTER_SCALING_RESUMPTION_H_
#define NOMAD_HARVESTER_SCALING_RESUMPTION_H_

#include <optional>
#include <string>

#include "drivers/scale_call.h"
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
  std::string replacing;  // a text that changes with the VMs that are being replaced; empty: none
};

// Acquires the pool's Lease, runs the loop until no work is left for now, begins the replacement of
// a VM if one is due, and releases the Lease. `memory`: what the pool's calls remember; null:
// nothing is replaced.
Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   const SharedPolicy& policy, ScaleMemory* memory);

// What a Status finds to do for replacements, as a text that changes with the work; empty: nothing.
std::string ReplacementWork(const PoolSnapshot& snapshot, const PoolRecord& record,
                            const ScaleMemory& memory, base::MonoTime now);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RESUMPTION_H_
