// SPDX-License-Identifier: Apache-2.0
// The loop of one pool: observe, decide once, execute in parallel. It moves every VM of the
// pool from state to state, whoever began its action.
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

#include "nomad_harvester/scaling/lease_hold.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/status/statusor.h"
#include "execution/leftovers.h"
#include "execution/pass_task.h"
#include "execution/pool_dependencies.h"
#include "execution/publication.h"

namespace nomad_harvester::scaling {

// One run. Used by one thread at a time; the tasks of a pass run in parallel on the executor.
class Reconciler {
 public:
  Reconciler(PoolDependencies deps, SharedPolicy policy);

  // Observes without acting.
  absl::StatusOr<PoolSnapshot> Observe(const runtime::Context& context,
                                       const Observer::BlockingWait& blocking = {});
  // The pool once no roll-back is due, ready to be planned for (rule C14).
  struct Settled {
    PoolSnapshot snapshot;
    // VMs whose roll-back has been refused or has failed for a minute, and why.
    std::map<std::string, std::string> left_out;
  };
  // UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<Settled> FinishRollBacks(const runtime::Context& context);

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

  // Says why steps of this kind must wait; null if they need not.
  const char* ReasonToWait(const PoolSnapshot& snapshot, StepKind kind) const;
  // Returns `seen` with the current record of the Lease.
  PoolSnapshot WithRecord(PoolSnapshot seen) const;
  // Makes the record's action end with this observation, after which no step was executed.
  void CloseAction(PoolSnapshot last) { closed_at_ = std::move(last); }
  // Stores what is not on the Lease yet (PoolBacklog::unrecorded), and closes the action if it has
  // ended. Sends no request if the record says so already.
  absl::Status StoreRecord(const runtime::Context& context);
  // The same by releasing the Lease. False: it is not known whether that is stored, or the run was
  // cancelled, which stores nothing and leaves PoolBacklog::unrecorded to the next one.
  bool Release(LeaseHold& hold);

  const std::optional<Decisions>& last() const { return last_; }

 private:
  PoolRecord NewRecord() const;
  absl::Status StoreFailures(const runtime::Context& context);
  // The results of one pass.
  struct Pass {
    base::MonoTime began{};  // everything due at this time was tried
    bool readable = false;   // Nomad
    int effects = 0;
    int conflicts = 0;
    absl::Status trouble{};  // the first refusal or failure of this pass
    bool only_refusals = true;

    void Add(const Effect& effect);
  };

  // Decides about the observation, and records what it shows.
  const Decisions& Take(PoolSnapshot observed);
  PassTasks TasksOf(const Decisions& decisions, base::MonoTime now, Pass* pass);
  // If the task was accepted before the observation that asks for it, it is refused.
  void NoteWithoutEffect(PassTask* task, Pass* pass);
  // Likewise all steps but repairs.
  void NoteOthersWithoutEffect(const Decisions& decisions, Pass* pass);
  // Returns whether the task, which the observation asks for, may run now.
  bool MayRun(PassTask* task, base::MonoTime now, Pass* pass);
  absl::Status WriteAhead(const runtime::Context& context, const PassTasks& tasks);
  void CarryOut(const runtime::Context& context, PassTasks* tasks, Pass* pass);
  void Conclude(PassTask* task, Pass* pass);
  absl::StatusOr<Pass> RunPass(const runtime::Context& context);
  bool IsInProgress(base::MonoTime now) const;
  // What the steps that are due wait for.
  struct Waiting {
    absl::Status why{};  // the last error of the first one that was tried
    // When one is tried again that conflicted or failed, if it is soon (rule L2).
    std::optional<base::MonoTime> next{};
    bool has_removal = false;
    // One for a scale-in is refused, but not for long enough to be rolled back (rule L3).
    bool tries_removal = false;
  };
  Waiting WaitingAt(base::MonoTime now) const;
  absl::Status Wait(const runtime::Context& context, const Pass& pass);
  void LogDecision(const Step& step, const VmView& view);
  void LogTroubles(const PassTasks& tasks) const;

  const PoolDependencies deps_;
  const SharedPolicy policy_;
  std::optional<Decisions> last_;  // of the last observation
  DeletedVms gone_{deps_};
  std::map<std::string, std::string> last_logged_;  // VM → row, so that a decision is logged once
  base::MonoTime observed_at_{};                    // when the last Observation began
  std::map<std::string, std::string> held_by_;      // VM → what was logged to hold its drain
  Observer::BlockingWait next_wait_;
  int idle_passes_ = 0;
  base::MonoTime paced_until_{};  // the time that the passes so far take at one per kPause
  std::optional<PoolSnapshot> closed_at_;
  Publications publications_{deps_};  // the last member: they use the others
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RECONCILER_H_
