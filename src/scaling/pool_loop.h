// SPDX-License-Identifier: Apache-2.0
// The loop of one pool: carries every VM from state to state until the run's goal is reached. Scale
// and resumption share it, so there is only one way to finish what was begun.
#ifndef NOMAD_HARVESTER_SCALING_POOL_LOOP_H_
#define NOMAD_HARVESTER_SCALING_POOL_LOOP_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/step_spec.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/statusor.h"
#include "creation.h"
#include "leftovers.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

enum class OutcomeState { kPending, kDone, kFailed };

// The result for one VM of an action.
struct Outcome {
  OutcomeState state = OutcomeState::kPending;
  bool creation = false;
  bool seen = false;   // a creation whose VM was observed
  absl::Status error;  // kFailed
  std::string text;    // the latest reason
  std::string action;  // of the mark, if observed
};

// One run. Used by one thread at a time; the steps of a pass run in parallel on the executor.
class PoolLoop {
 public:
  PoolLoop(PoolDependencies deps, std::optional<config::PoolPolicy> policy);

  // Observes without acting.
  absl::StatusOr<PoolSnapshot> Observe(const runtime::Context& context);
  // The allocations that a selection by load needs; one request.
  absl::StatusOr<AllocationList> ReadAllocations(const runtime::Context& context);

  // Carries out repairs (roll-backs and their drains) until none is due, so that a plan can be made
  // (rule C14). Returns the snapshot without repairs.
  absl::StatusOr<PoolSnapshot> FinishRollBacks(const runtime::Context& context);

  // VMs that this run waits for, in addition to everything that is marked.
  void ExpectCreation(const std::string& vm);
  void ExpectRemoval(const std::string& vm);
  void ExpectCancelledRemoval(const std::string& vm, const std::string& action_id);
  void FailCreation(const std::string& vm, const absl::Status& why);
  void FailRemoval(const std::string& vm, const absl::Status& why);

  // VMs that no longer exist: their leftovers are swept.
  void SweepAfter(const std::set<std::string>& vms) { gone_.insert(vms.begin(), vms.end()); }

  // Allows removals although more VMs lost their nodes at once than rule C15 permits: a new Scale
  // after the timeout.
  void AllowRemovals(bool despite_mass_loss) { despite_mass_loss_ = despite_mass_loss; }

  // Runs until every expected VM has its outcome and every VM that was observed as marked no longer
  // exists or is unmarked. `until_accepted`: a removal is finished once its drain is accepted
  // (scale_in_wait = "false"). Returns only the context's errors; systems that do not reply are
  // waited for.
  absl::Status RunScale(const runtime::Context& context, bool until_accepted);

  // Runs until no work is left in this pool for now: finishes marks, rolls back drains, records
  // joins, removes broken VMs, sweeps, purges. Ends early if a system does not reply (UNAVAILABLE)
  // or refuses a step: the next Status starts it again.
  absl::Status RunResumption(const runtime::Context& context);
  // Reports as events, without doing them, what RunResumption would do first. Only reads.
  absl::Status Preview(const runtime::Context& context);

  // After a successful run: closes the action on the pool's Lease and stores what failed. One
  // request, or none if nothing changes.
  void CloseRecord(const runtime::Context& context);

  const std::map<std::string, Outcome>& outcomes() const { return outcomes_; }
  // The API server's time of the newest action that took effect in this run.
  std::optional<base::WallTime> last_event() const { return last_event_; }
  const std::optional<Decisions>& last() const { return last_; }

 private:
  using Work = Decisions::Entry;
  // The result of one pass: an observation and the steps that followed.
  struct PassResult {
    bool acted = false;
    bool readable = false;  // whether Nomad could be read
    absl::Status swept;
  };

  Observer MakeObserver() const;
  absl::StatusOr<PoolSnapshot> Look(const runtime::Context& context,
                                    const Observer::BlockingWait& blocking);
  std::vector<Work> WorkOf(const Decisions& decisions) const;
  bool RemovalsWait(const Decisions& decisions) const;
  // True if at least one step was carried out or tried. An error: the pool's record, which must be
  // stored first, could not be, and nothing was done.
  absl::StatusOr<bool> Act(const runtime::Context& context, const Decisions& decisions,
                           const std::vector<Work>& work);
  absl::Status WriteAhead(const runtime::Context& context, const PoolSnapshot& snapshot,
                          const std::vector<Work>& actions);
  bool PurgeNodes(const runtime::Context& context, const Decisions& decisions);
  void Track(const Decisions& decisions);
  void TrackCreation(const std::string& name, const Work* work, const PoolSnapshot& snapshot,
                     Outcome* outcome);
  void TrackRemoval(const std::string& name, const Work* work, const PoolSnapshot& snapshot,
                    Outcome* outcome);
  void TrackCancelledRemoval(const Work* work, Outcome* outcome);
  absl::Status Sweep(const runtime::Context& context);
  bool AwaitsPurge(const PoolSnapshot& snapshot) const;
  bool ScaleIsDone(const Decisions& decisions) const;
  bool ResumptionIsDone(const Decisions& decisions) const;
  absl::StatusOr<PassResult> Pass(const runtime::Context& context);
  absl::Status Wait(const runtime::Context& context, bool acted, bool readable);
  void LogStep(const Step& step, const VmView& view, const absl::Status& outcome);

  const PoolDependencies deps_;
  const std::optional<config::PoolPolicy> policy_;
  std::map<std::string, Outcome> outcomes_;
  std::set<std::string> cancelled_removals_;  // VMs whose removal this run cancels
  std::map<std::string, std::string>
      last_logged_;                    // VM → row and text, so that a wait is logged once
  std::set<std::string> marked_seen_;  // names observed as marked in this run
  std::set<std::string> gone_;         // those that no longer exist: to be swept
  std::map<std::string, base::MonoTime> gone_since_;
  std::map<std::string, std::set<std::string>> failed_;  // cause of back_off.h → VMs
  std::optional<base::WallTime> last_event_;
  std::optional<Decisions> last_;
  Observer::BlockingWait next_wait_;
  absl::Status refused_;  // why none of the last pass' steps took effect
  int idle_passes_ = 0;
  bool sweep_due_ = false;
  bool despite_mass_loss_ = false;
  bool until_accepted_ = false;
  bool resuming_ = false;
  bool previewing_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_LOOP_H_
