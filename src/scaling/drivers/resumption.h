// SPDX-License-Identifier: Apache-2.0
// Background work on one pool under its Lease: started by Status and by nomad-harvester gc.
#ifndef NOMAD_HARVESTER_SCALING_RESUMPTION_H_
#define NOMAD_HARVESTER_SCALING_RESUMPTION_H_

#include <functional>
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
  std::optional<Decisions> last;
  std::string replacing;  // changes with the set of VMs being replaced; empty: none
};

// Acquires the pool's Lease, runs the loop until no work is left for now, starts the replacement of
// a VM if one is due, and releases the Lease. While it only waits, it releases the Lease, too.
// `may_begin`: false while the agent asks for no Status (rule R2); null: replace nothing.
Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   const SharedPolicy& policy, const std::function<bool()>& may_begin);

// The replacement work that a Status finds, as a text that changes with the work; empty: none.
std::string ReplacementWork(const PoolSnapshot& snapshot, const PoolRecord& record,
                            const KnownTemplate& known, base::MonoTime now);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RESUMPTION_H_
