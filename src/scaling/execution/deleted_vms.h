// SPDX-License-Identifier: Apache-2.0
// The VMs of a pool that are gone, and the sweeps that remove their leftovers (rules C10, L4).
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_DELETED_VMS_H_
#define NOMAD_HARVESTER_SCALING_DELETED_VMS_H_

#include <string>

#include "nomad_harvester/scaling/rules.h"

#include "execution/leftovers.h"
#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// Logs the end of a replacement: the old VM is gone, and the new one was ready.
void LogReplaced(const PoolDependencies& deps, const std::string& old, const std::string& by);

// Belongs to one run of the loop, and only that uses it. The pool's backlog, which outlives the
// run, keeps the marked VMs, those with leftovers, and when they disappeared.
class DeletedVms {
 public:
  // `deps` must outlive this object.
  explicit DeletedVms(const PoolDependencies& deps) : deps_(deps) {}

  // Records VMs that the Observation shows to be gone and that were marked or named by the Lease.
  void Observe(const Decisions& decisions, base::MonoTime now);
  // Makes the pass sweep even if nothing is known to be gone, because a Secret may lack its owner.
  void RequestSweep() { sweep_requested_ = true; }
  bool IsSweepDue() const { return sweep_requested_ || !deps_.backlog.leftovers.empty(); }
  SweepScope Scope() const;
  // Sweeps once. Blocks. kDone: everything removable was removed. kRefused, with the last error: an
  // earlier failure still waits for its next attempt.
  Effect Sweep(const runtime::Context& context, const PoolSnapshot& snapshot);

  // True while a clean-up that only needs time is in progress.
  bool IsCleanUpInProgress(base::MonoTime now) const;

 private:
  void AddNodesToPurge(const PoolSnapshot& snapshot);

  const PoolDependencies& deps_;
  bool sweep_requested_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_DELETED_VMS_H_
