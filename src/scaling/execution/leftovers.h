// SPDX-License-Identifier: Apache-2.0
// The VMs of a pool that are gone, and the sweeps that remove what an interrupted action or a
// removed VM has left: claims, Secrets, owners (rules C10, L4).
#ifndef NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
#define NOMAD_HARVESTER_SCALING_LEFTOVERS_H_

#include <string>

#include "nomad_harvester/scaling/rules.h"

#include "absl/status/statusor.h"
#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

struct SweepResult {
  // VMs that no longer exist but still have a claim or Secret, for example a terminating one.
  Leftovers left;
  absl::Status unowned{};  // why a Secret could not be given its VM as owner
};

// Sweeps once, for the VMs that the pool's backlog knows to be gone and for the names of the
// Lease's action. Lists claims and Secrets first and VMs after them, so that a VM created in
// between is observed. Deletes, with a uid precondition, objects that belong to no VM, and sets the
// owner of Secrets whose VM exists. An object that is refused or fails waits for its own next
// attempt and delays nothing else. An error: a list could not be read, and nothing was done.
// `dry_run`: only reports what would be changed.
absl::StatusOr<SweepResult> SweepLeftovers(const runtime::Context& context,
                                           const PoolDependencies& deps, bool dry_run);

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

#endif  // NOMAD_HARVESTER_SCALING_LEFTOVERS_H_
