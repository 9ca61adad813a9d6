// SPDX-License-Identifier: Apache-2.0
// The VMs of a pool that are gone, and the sweeps that remove what is left of them (rules C10, L4).
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_GONE_VMS_H_
#define NOMAD_HARVESTER_SCALING_GONE_VMS_H_

#include <set>
#include <string>

#include "nomad_harvester/scaling/rules.h"

#include "execution/leftovers.h"
#include "execution/pool_dependencies.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// Belongs to one run of the loop, and is used by it alone. The pool's backlog, which outlives the
// run, has the VMs that left something, and since when they are gone.
class GoneVms {
 public:
  // `deps` must outlive this object.
  explicit GoneVms(const PoolDependencies& deps) : deps_(deps) {}

  // Records VMs that a look shows to be gone: they were marked, or the Lease names them.
  void Observe(const Decisions& decisions, base::MonoTime now);
  // Lets the background clean up what a creation without a VM may have left, or may leave when a
  // late request lands (rule C10).
  void LeaveToBackground(const Tracker& tracker, const Decisions& decisions, base::MonoTime now);

  // Makes the pass sweep although nothing is known to be gone: a Secret may lack its owner.
  void RequestSweep() { sweep_requested_ = true; }
  // `tracker`: that of a Scale, which waits only for what its own VMs left and leaves the rest to
  // the background (rule L4). Null for the background.
  bool IsSweepDue(const Tracker* tracker) const;
  SweepScope Scope() const;
  // Sweeps once. Blocks. kDone: everything was removed that could be. kRefused, with the last
  // error: an earlier failure still waits for its next attempt.
  Effect Sweep(const runtime::Context& context, const PoolSnapshot& snapshot,
               const Tracker* tracker);

  // True if a clean-up that only needs time goes on.
  bool IsCleanUpInProgress(base::MonoTime now) const;

 private:
  void AddNodesToPurge(const PoolSnapshot& snapshot);

  const PoolDependencies& deps_;
  std::set<std::string> marked_;  // names observed as marked in this run
  bool sweep_requested_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_GONE_VMS_H_
