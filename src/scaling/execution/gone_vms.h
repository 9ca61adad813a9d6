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

// Of one run of the loop, which is the only one that uses it. Which VMs have left something, and
// since when, is in the pool's backlog, which outlive the run.
class GoneVms {
 public:
  // `deps` must outlive it.
  explicit GoneVms(const PoolDependencies& deps) : deps_(deps) {}

  // Takes over what a look shows: VMs that were marked, or that the Lease names, and that are gone.
  void Observe(const Decisions& decisions, base::MonoTime now);
  // What a creation without a VM may have left, or may leave when a late request lands, is the
  // background's to clean up (rule C10).
  void LeaveToBackground(const Tracker& tracker, const Decisions& decisions, base::MonoTime now);

  // The pass sweeps although nothing is known to be gone: a Secret may be without its owner.
  void RequestSweep() { sweep_requested_ = true; }
  // `tracker`: of a Scale, which waits for what its own VMs left, the rest is the background's
  // (rule L4); null: of the background.
  bool IsSweepDue(const Tracker* tracker) const;
  SweepScope Scope() const;
  // One sweep. Blocks. kDone: it removed what it could; kRefused, with the last error: what failed
  // before waits for its next attempt.
  Effect Sweep(const runtime::Context& context, const PoolSnapshot& snapshot,
               const Tracker* tracker);

  // Whether a clean-up goes on that only needs time.
  bool IsCleanUpInProgress(base::MonoTime now) const;

 private:
  void AddNodesToPurge(const PoolSnapshot& snapshot);

  const PoolDependencies& deps_;
  std::set<std::string> marked_;  // names observed as marked in this run
  bool sweep_requested_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_GONE_VMS_H_
