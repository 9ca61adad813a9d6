// SPDX-License-Identifier: Apache-2.0
// The loop of one pool: carries every VM from state to state until what it was started for is done.
// Scale and resumption share it; there is no second way to finish what was begun.
#ifndef NOMAD_HARVESTER_SCALING_POOL_LOOP_H_
#define NOMAD_HARVESTER_SCALING_POOL_LOOP_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/next_step.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "creation.h"
#include "leftovers.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

enum class OutcomeState { kPending, kDone, kFailed };

// What became of one VM of an action.
struct Outcome {
  OutcomeState state = OutcomeState::kPending;
  bool creation = false;
  bool seen = false;   // a creation whose VM was observed
  absl::Status error;  // kFailed
  std::string text;    // the last thing worth saying about it
  std::string action;  // of the mark, as far as it was seen
};

// One run. Used by one thread at a time; the work of a pass is spread over the executor.
class PoolLoop {
 public:
  PoolLoop(PoolDependencies deps, std::optional<config::PoolPolicy> policy);

  // Observes without acting.
  absl::StatusOr<PoolSnapshot> Observe(const runtime::Context& context);
  // Adds what a selection by load needs; one request.
  absl::Status ReadAllocations(const runtime::Context& context, PoolSnapshot* snapshot);

  // Carries out repairs (roll-backs, their drains) until none is due, so that a plan can be made
  // (rule C14). Returns the snapshot that shows none.
  absl::StatusOr<PoolSnapshot> FinishRollBacks(const runtime::Context& context);

  // What this run has to see through, besides everything that is marked.
  void ExpectCreation(const std::string& vm);
  void ExpectRemoval(const std::string& vm);
  void ExpectCancelledRemoval(const std::string& vm);
  void FailCreation(const std::string& vm, const absl::Status& why);
  void FailRemoval(const std::string& vm, const absl::Status& why);

  // VMs that are gone by now: what they left behind is swept.
  void SweepAfter(const std::set<std::string>& vms) { gone_.insert(vms.begin(), vms.end()); }

  // Removals go on although more VMs lost their nodes at once than rule C15 allows: a fresh Scale
  // after its timeout.
  void AllowRemovals(bool despite_mass_loss) { despite_mass_loss_ = despite_mass_loss; }

  // Runs until every expectation has its outcome and every VM that was seen marked is gone or
  // unmarked. `until_accepted`: removals are done once their drain is accepted (scale_in_wait =
  // "false"). Errors: the context's own only; systems that do not answer are waited for.
  absl::Status RunScale(const runtime::Context& context, bool until_accepted);

  // Runs until nothing is left to do in this pool for now: finishes marks, undoes drains, records
  // joins, removes what is broken, sweeps, purges. Ends early if a system does not answer
  // (UNAVAILABLE) or refuses what is to be done: the next Status calls again.
  absl::Status RunResumption(const runtime::Context& context);
  // Reports what RunResumption would begin with, as events that did not happen. Only reads.
  absl::Status Preview(const runtime::Context& context);

  // After a run that ended well: closes the action on the pool's Lease and keeps what failed. One
  // request, or none if nothing changes.
  void CloseRecord(const runtime::Context& context);

  const std::map<std::string, Outcome>& outcomes() const { return outcomes_; }
  // The API server's time of the newest action that took effect in this run.
  std::optional<base::WallTime> last_event() const { return last_event_; }
  const std::optional<PoolSnapshot>& last_snapshot() const { return last_snapshot_; }

 private:
  struct Work {
    std::size_t vm = 0;
    Step step;
  };
  // One look and what followed from it.
  struct PassResult {
    bool acted = false;
    bool readable = false;  // Nomad was
    absl::Status swept;
  };

  PoolSnapshot BaseSnapshot() const;
  Observer MakeObserver() const;
  std::vector<Work> WorkOf(const PoolSnapshot& snapshot) const;
  bool RemovalsWait(const PoolSnapshot& snapshot) const;
  // True if at least one step was carried out or tried. An error: the pool's record, which has to
  // stand first, could not be stored, and nothing was done.
  absl::StatusOr<bool> Act(const runtime::Context& context, const PoolSnapshot& snapshot,
                           const std::vector<Work>& work);
  absl::Status WriteAhead(const runtime::Context& context, const PoolSnapshot& snapshot,
                          const std::vector<Work>& actions);
  bool Purge(const runtime::Context& context, const PoolSnapshot& snapshot);
  void Track(const PoolSnapshot& snapshot);
  void TrackCreation(const std::string& name, const VmView* view, const PoolSnapshot& snapshot,
                     Outcome* outcome);
  void TrackRemoval(const std::string& name, const VmView* view, const PoolSnapshot& snapshot,
                    Outcome* outcome);
  void TrackCancelledRemoval(const VmView* view, const PoolSnapshot& snapshot, Outcome* outcome);
  absl::Status Sweep(const runtime::Context& context);
  bool AwaitsPurge(const PoolSnapshot& snapshot) const;
  bool ScaleIsDone(const PoolSnapshot& snapshot) const;
  bool ResumptionIsDone(const PoolSnapshot& snapshot) const;
  absl::StatusOr<PassResult> Pass(const runtime::Context& context);
  absl::Status Wait(const runtime::Context& context, bool acted, bool readable);
  void LogStep(const Step& step, const VmView& view, const absl::Status& outcome);

  const PoolDependencies deps_;
  const std::optional<config::PoolPolicy> policy_;
  std::map<std::string, Outcome> outcomes_;
  std::set<std::string> cancelled_removals_;  // cancelled removals, a kind of their own
  std::map<std::string, std::string>
      last_logged_;                    // VM → row and text, so that a wait is logged once
  std::set<std::string> marked_seen_;  // names that were seen marked in this run
  std::set<std::string> gone_;         // of those, that no longer exist: to be swept
  std::map<std::string, base::MonoTime> gone_since_;
  std::map<std::string, std::set<std::string>> failed_;  // cause of back_off.h → VMs
  std::optional<base::WallTime> last_event_;
  std::optional<PoolSnapshot> last_snapshot_;
  Observer::BlockingWait next_wait_;
  absl::Status refused_;  // the last pass tried something and nothing of it took effect: why
  int idle_passes_ = 0;
  bool sweep_due_ = false;
  bool despite_mass_loss_ = false;
  bool until_accepted_ = false;
  bool resuming_ = false;
  bool previewing_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_LOOP_H_
