// SPDX-License-Identifier: Apache-2.0
// The loop of one pool: observe, decide once, execute in parallel, track. It moves every VM of the
// pool from state to state. A Scale adds the VMs that its action creates, removes and takes back.
#ifndef NOMAD_HARVESTER_SCALING_RECONCILER_H_
#define NOMAD_HARVESTER_SCALING_RECONCILER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/status/statusor.h"
#include "execution/pass_task.h"
#include "execution/pool_dependencies.h"
#include "execution/publication.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// One run. Used by one thread at a time; the tasks of a pass run in parallel on the executor.
class Reconciler {
 public:
  Reconciler(PoolDependencies deps, SharedPolicy policy);

  // Observes without acting.
  absl::StatusOr<PoolSnapshot> Observe(const runtime::Context& context);
  // The pool once no roll-back is due, ready to be planned for (rule C14).
  struct Settled {
    PoolSnapshot snapshot;
    // VMs whose roll-back has been refused or has failed for a minute, and why.
    std::map<std::string, std::string> left_out;
  };
  // `first`: lists that were just read. UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<Settled> FinishRollBacks(const runtime::Context& context,
                                          Observer::BlockingWait first = {});

  // Executes the action of `tracker`, which is already in the Lease's record, until it has ended,
  // and meanwhile serves the pool's other VMs. `first` is the observation on which the plan was
  // based. Because it waits for systems that do not reply, it returns only the context's errors.
  absl::Status RunScale(const runtime::Context& context, PoolSnapshot first, RunningAction action);
  // Leaves it to the background to clean up objects that a creation without a VM may have left, or
  // may still leave when a late request takes effect (rule C10).
  void LeaveToBackground(const Tracker& tracker) {
    run_.gone.LeaveToBackground(tracker, *run_.last, deps_.clock.Now());
  }
  // True if a Secret that this run created has no owner yet.
  bool has_unowned_secret() const { return unowned_; }

  // Runs until no work is left in this pool for now: finishes marks, rolls back drains, records
  // joins, removes broken VMs, sweeps, purges. Ends early if a system does not reply, or if all
  // remaining work is refused or fails; the caller then starts the next round (rule L7).
  // `may_leave` is asked while it only waits for drains and deletions, and told for how long; if
  // true, it returns OK and must be called again.
  using MayLeave = std::function<bool(const PoolSnapshot&, base::Duration waited)>;
  absl::Status RunResumption(const runtime::Context& context, const MayLeave& may_leave = nullptr);
  // Waits, without the Lease, until RunResumption has something to do, or `may_end`. Only reads.
  absl::Status AwaitWork(const runtime::Context& context,
                         const std::function<bool(const PoolSnapshot&)>& may_end);
  // Reports, as events, the first actions that RunResumption would take. Only reads.
  absl::Status Preview(const runtime::Context& context);

  // Closes the action after a successful run, and records failures. Sends no request.
  void CloseRecord(const Tracker* tracker);
  // Records why the action failed, or OK, so that `status` can show it an hour later.
  void RecordOutcome(const std::string& action_id, const absl::Status& outcome);
  // The record to write when the Lease is released. Null if nothing changes or the action
  // continues.
  const PoolRecord* closed_record() const {
    return closed_record_.has_value() ? &*closed_record_ : nullptr;
  }

  // The same, for a caller that stores it itself.
  std::optional<PoolRecord> TakeClosedRecord() {
    return std::exchange(closed_record_, std::nullopt);
  }

  // The API server's time of the newest action that took effect in this run.
  std::optional<base::WallTime> last_event() const { return run_.last_event; }
  const std::optional<Decisions>& last() const { return run_.last; }

 private:
  // The results of one pass.
  struct Pass {
    base::MonoTime began{};  // everything due at this time was tried
    bool readable = false;   // Nomad
    int effects = 0;
    int joins = 0;  // of the effects; they need no further Look
    int conflicts = 0;
    absl::Status trouble{};  // the first refusal or failure of this pass
    bool only_refusals = true;

    void Add(const Effect& effect);
  };

  absl::StatusOr<PoolSnapshot> Look(const runtime::Context& context,
                                    Observer::BlockingWait blocking);
  // Says why steps of this kind must wait; null if they need not.
  const char* ReasonToWait(StepKind kind) const;
  // Says why a due removal must wait; null if none is due or it need not wait.
  const char* ReasonRemovalWaits() const;
  // `publications` receives the entries with a step for which the pass does not wait.
  PassTasks TasksOf(const Decisions& decisions, base::MonoTime now,
                    std::vector<const Decisions::Entry*>* publications, Pass* pass);
  // Returns whether the task may run now. The observation asks for it: if it was accepted before,
  // it is refused.
  bool MayRun(const PassTask& task, base::MonoTime now, Pass* pass);
  absl::Status WriteAhead(const runtime::Context& context, const PassTasks& tasks);
  void CarryOut(const runtime::Context& context, const PassTasks& tasks, Pass* pass);
  void OwnSecrets(const runtime::Context& context, const PassTasks& tasks);
  bool Conclude(const PassTask& task, const Effect& effect, Pass* pass);
  absl::StatusOr<Pass> RunPass(const runtime::Context& context, std::optional<PoolSnapshot> look);
  bool IsInProgress(base::MonoTime now) const;
  absl::Status WaitingForAttempts() const;
  absl::Status Wait(const runtime::Context& context, const Pass& pass);
  void LogDecision(const Step& step, const VmView& view);
  struct Trouble {
    const PassTask* task;
    const Effect* effect;
  };
  void LogTroubles(const std::vector<Trouble>& troubles) const;

  Run run_;
  const PoolDependencies& deps_ = run_.deps;
  const SharedPolicy policy_;
  std::map<std::string, std::string> last_logged_;  // VM → row, so that a decision is logged once
  base::MonoTime observed_at_{};                    // when the last Look began
  std::map<std::string, std::string> held_by_;      // VM → what was logged to hold its drain
  Observer::BlockingWait next_wait_;
  int idle_passes_ = 0;
  base::MonoTime paced_until_{};  // the time that the passes so far take at one per kPause
  std::optional<PoolRecord> closed_record_;
  bool unowned_ = false;
  Publications publications_{deps_};  // the last member: they use the others
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RECONCILER_H_
