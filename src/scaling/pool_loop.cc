// SPDX-License-Identifier: Apache-2.0
#include "pool_loop.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

#include "back_off.h"
#include "executor.h"
#include "pool_record.h"

namespace nomad_harvester::scaling {
namespace {

// Between two observations: a short pause, so that a spurious wake-up does not spin, then a
// blocking query that ends when a node changes, and at nomad_block-query-wait-time at the latest.
// Load balancers would cut a long wait, because they close a connection that is silent for a minute
// (hashicorp/nomad-autoscaler#754).
constexpr base::Duration kPause = std::chrono::milliseconds(250);
constexpr base::Duration kFirstWait = std::chrono::seconds(1);
constexpr base::Duration kLongestWait = std::chrono::seconds(5);
// How long to wait for the node of a deleted VM that stays ready and is therefore not purged.
constexpr base::Duration kPurgeTimeout = std::chrono::minutes(10);
// Resumption ends after so many consecutive failed observations; the next Status starts it again.
constexpr int kResumptionFailures = 3;
// Repairs end after a few passes: a VM that needs more is left to the loop.
constexpr int kRollBackPasses = 20;

std::string CauseOfBroken(const VmView& view) {
  return std::string(view.start_failure.has_value() ? cause::kStart : cause::kJoin);
}

void FailIfStuck(const VmView& view, const PoolSnapshot& snapshot, Outcome* outcome) {
  if (outcome->state != OutcomeState::kPending || !IsStuckInDeletion(view.vm, snapshot.now())) return;
  outcome->state = OutcomeState::kFailed;
  outcome->error = base::Unavailable("the VM is stuck: it has been terminating for more than " +
                                     base::FormatGoDuration(DeletionTimeout(view.vm)) +
                                     "; its finalizers are Harvester's to remove");
}

}  // namespace

PoolLoop::PoolLoop(PoolDependencies deps, std::optional<config::PoolPolicy> policy)
    : deps_(std::move(deps)), policy_(std::move(policy)) {}

Observer PoolLoop::MakeObserver() const {
  return {deps_.nomad(), deps_.vms, deps_.nodes, deps_.memory, deps_.logger};
}

absl::StatusOr<PoolSnapshot> PoolLoop::Look(const runtime::Context& context,
                                            const Observer::BlockingWait& blocking) {
  NH_ASSIGN_OR_RETURN(
      scaling::Look look,
      MakeObserver().Observe(context, LookFor(deps_.clients.config->nomad.region, policy_),
                             blocking));
  return PoolSnapshot{.key = deps_.key,
                      .seen = std::make_shared<const Snapshot>(std::move(look)),
                      .policy = policy_,
                      .lease_used = deps_.lease.used(),
                      .action = deps_.lease.record().action};
}

absl::StatusOr<PoolSnapshot> PoolLoop::Observe(const runtime::Context& context) {
  return Look(context, {});
}

absl::StatusOr<AllocationList> PoolLoop::ReadAllocations(const runtime::Context& context) {
  return MakeObserver().ReadAllocations(context);
}

absl::StatusOr<PoolSnapshot> PoolLoop::FinishRollBacks(const runtime::Context& context) {
  for (int pass = 0; pass < kRollBackPasses; ++pass) {
    NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
    if (!snapshot.look().nomad_readable) {
      return base::Unavailable("Nomad cannot be read: " + snapshot.look().nomad_problem);
    }
    const Decisions decisions(std::move(snapshot));
    std::vector<Work> repairs = WorkOf(decisions);
    std::erase_if(repairs, [](const Work& work) { return !IsRepair(work.step.kind); });
    if (repairs.empty()) return decisions.snapshot();
    NH_RETURN_IF_ERROR(Act(context, decisions, repairs));
    NH_RETURN_IF_ERROR(context.Sleep(kPause));
  }
  return base::Unavailable("roll-backs of earlier removals do not finish; see the log");
}

void PoolLoop::ExpectCreation(const std::string& vm) { outcomes_[vm].creation = true; }
void PoolLoop::ExpectRemoval(const std::string& vm) { outcomes_.try_emplace(vm); }
void PoolLoop::ExpectCancelledRemoval(const std::string& vm, const std::string& action_id) {
  outcomes_[vm].action = action_id;
  cancelled_removals_.insert(vm);
}

void PoolLoop::FailCreation(const std::string& vm, const absl::Status& why) {
  Outcome& outcome = outcomes_[vm];
  outcome.creation = true;
  outcome.error = why;
  // A request whose outcome is unknown may still create the VM; the next observation shows it. If
  // the VM does not appear, its Secret is garbage.
  outcome.state = OutcomeState::kFailed;
  failed_[std::string(cause::kCreate)].insert(vm);
  sweep_due_ = true;
}

void PoolLoop::FailRemoval(const std::string& vm, const absl::Status& why) {
  outcomes_[vm] = {.state = OutcomeState::kFailed, .error = why};
}

std::vector<PoolLoop::Work> PoolLoop::WorkOf(const Decisions& decisions) const {
  std::vector<Work> work = decisions.all();
  if (!RemovalsWait(decisions)) return work;
  for (Work& item : work) {
    if (!IsRemoval(item.step.kind)) continue;
    item.step.kind = StepKind::kWait;
    item.step.reason += "; it waits, because too many VMs have lost their Nomad nodes at once";
  }
  return work;
}

bool PoolLoop::RemovalsWait(const Decisions& decisions) const {
  return !despite_mass_loss_ && decisions.pool().mass_loss.alarming;
}

void PoolLoop::LogStep(const Step& step, const VmView& view, const absl::Status& outcome) {
  std::string logged = std::string(RowName(step.row)) + outcome.ToString();
  if (last_logged_[view.vm.name] == logged) return;
  last_logged_[view.vm.name] = std::move(logged);
  const std::string action = view.vm.mark.has_value() ? view.vm.mark->action : view.vm.action_id;
  if (!outcome.ok()) {
    deps_.logger.Warn("A step failed; retrying", {{"vm", view.vm.name},
                                                  {"step", StepName(step.kind)},
                                                  {"row", RowName(step.row)},
                                                  {"why", step.reason},
                                                  {"action_id", action},
                                                  {"error", outcome}});
    deps_.Notify({.vm = view.vm.name, .step = step, .outcome = outcome});
    return;
  }
  const log::Level level = step.kind == StepKind::kReport ? log::Level::kWarn
                           : IsAct(step.kind)             ? log::Level::kInfo
                                                          : log::Level::kDebug;
  deps_.logger.Log(level, step.kind == StepKind::kReport ? "A VM needs an operator" : "Next step",
                   {{"vm", view.vm.name},
                    {"step", StepName(step.kind)},
                    {"row", RowName(step.row)},
                    {"why", step.reason},
                    {"node_id", step.node_id},
                    {"action_id", action}});
  // An act is logged once it is done. A VM that has yet to join is not worth a line.
  if (step.kind == StepKind::kReport || (step.kind == StepKind::kWait && view.vm.has_mark)) {
    deps_.Notify({.vm = view.vm.name, .step = step});
  }
}

absl::Status PoolLoop::WriteAhead(const runtime::Context& context, const PoolSnapshot& snapshot,
                                  const std::vector<Work>& actions) {
  std::vector<Intent> intents;
  intents.reserve(actions.size());
  for (const Work& item : actions) intents.push_back({item.view, item.step.kind});
  const PoolRecord before = deps_.lease.record();
  const PoolRecord needed =
      RecordBefore(before, snapshot, intents, resuming_, NewActionId(deps_.random));
  return needed == before ? absl::OkStatus() : deps_.lease.Store(context, needed);
}

absl::StatusOr<bool> PoolLoop::Act(const runtime::Context& context, const Decisions& decisions,
                                   const std::vector<Work>& work) {
  std::vector<Work> actions;
  for (const Work& item : work) {
    if (IsAct(item.step.kind)) {
      actions.push_back(item);
    } else if (item.step.kind != StepKind::kNothing) {
      LogStep(item.step, *item.view, absl::OkStatus());
    }
  }
  NH_RETURN_IF_ERROR(WriteAhead(context, decisions.snapshot(), actions));
  // The step is logged before its effect, in order; the results after it.
  for (const Work& item : actions) LogStep(item.step, *item.view, absl::OkStatus());
  std::vector<Effect> effects(actions.size());
  const std::vector<absl::Status> results = runtime::ForEachBounded(
      context, deps_.executor, actions.size(), deps_.parallelism(), [&](std::size_t i) {
        effects[i] = Execute(context, deps_, decisions, *actions[i].view, actions[i].step);
        return absl::OkStatus();
      });
  bool effective = false;
  bool met_others = false;  // the object was changed meanwhile: decide again immediately
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const VmView& view = *actions[i].view;
    if (!results[i].ok()) continue;
    switch (effects[i].verdict) {
      case Verdict::kDone:
      case Verdict::kNotWanted:
        effective = true;
        deps_.Notify({.vm = view.vm.name, .step = actions[i].step});
        if (actions[i].step.kind == StepKind::kMarkBroken) {
          failed_[CauseOfBroken(view)].insert(view.vm.name);
        }
        break;
      case Verdict::kConflict:
        met_others = true;
        break;
      case Verdict::kFailed:
        LogStep(actions[i].step, view, effects[i].status);
        if (refused_.ok()) refused_ = effects[i].status;
        break;
      case Verdict::kCancelled:
        break;
    }
  }
  if (effective || met_others) refused_ = absl::OkStatus();
  if (effective) last_event_ = decisions.snapshot().now();
  return !actions.empty();
}

bool PoolLoop::PurgeNodes(const runtime::Context& context, const Decisions& decisions) {
  for (const NodeOfGoneVm& gone : decisions.to_purge()) {
    deps_.logger.Info(
        "Purging the node of a deleted VM",
        {{"vm", gone.mark->vm}, {"node_id", gone.node->id}, {"action_id", gone.mark->action}});
    const Effect purged = Purge(context, deps_, decisions, gone);
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = gone.mark->vm,
                  .object = gone.node->id,
                  .outcome = purged.status});
    if (purged.status.ok()) continue;
    deps_.logger.Warn("Could not purge a node",
                      {{"node_id", gone.node->id}, {"error", purged.status}});
    if (refused_.ok()) refused_ = purged.status;
  }
  return !decisions.to_purge().empty();
}

void PoolLoop::TrackCreation(const std::string& name, const Work* work,
                             const PoolSnapshot& snapshot, Outcome* outcome) {
  const VmView* view = work == nullptr ? nullptr : work->view;
  if (view == nullptr) {
    if (!outcome->seen) return;  // not created yet, or its POST failed: reported by FailCreation
    if (outcome->state == OutcomeState::kPending) {
      outcome->state = OutcomeState::kFailed;
      outcome->error = base::Internal(outcome->text.empty() ? "the VM is gone" : outcome->text);
    }
    return;
  }
  outcome->seen = true;
  if (outcome->state == OutcomeState::kDone) return;
  if (view->vm.has_mark || harvester::IsTerminating(view->vm)) {
    outcome->state = OutcomeState::kFailed;
    if (outcome->error.ok()) {
      outcome->error = base::Internal(outcome->text.empty() ? "the VM is being removed"
                                                            : outcome->text + "; it is removed");
    }
    return;
  }
  if (IsBroken(*view, snapshot)) {
    outcome->text = work->step.reason;
    // It is about to be removed, or kept and reported: in both cases it was not delivered.
    outcome->state = OutcomeState::kFailed;
    failed_[CauseOfBroken(*view)].insert(name);
    outcome->error = view->start_failure.has_value()
                         ? base::FailedPrecondition(outcome->text)
                         : absl::Status(absl::StatusCode::kDeadlineExceeded, outcome->text);
    return;
  }
  const bool no_deadline = view->vm.join_timeout.has_value() && view->vm.join_timeout->none;
  if (harvester::HasJoined(view->vm) || no_deadline) {
    outcome->state = OutcomeState::kDone;
    outcome->error = absl::OkStatus();
    for (auto& [cause, vms] : failed_) vms.erase(name);
    deps_.logger.Info(
        "A new VM is ready",
        {{"vm", name}, {"node_id", view->vm.joined_node_id}, {"action_id", view->vm.action_id}});
    return;
  }
  // It exists although its POST got no reply.
  if (outcome->state == OutcomeState::kFailed) outcome->state = OutcomeState::kPending;
}

void PoolLoop::TrackRemoval(const std::string& name, const Work* work,
                            const PoolSnapshot& snapshot, Outcome* outcome) {
  if (outcome->state != OutcomeState::kPending) return;
  const VmView* view = work == nullptr ? nullptr : work->view;
  if (view == nullptr) {
    // Its volumes and its Secret must be deleted, too; Sweep then removes it from gone_.
    if (gone_.contains(name)) return;
    outcome->state = OutcomeState::kDone;
    deps_.logger.Info("Removed a VM", {{"vm", name}, {"action_id", outcome->action}});
    return;
  }
  if (harvester::IsTerminating(view->vm)) {
    FailIfStuck(*view, snapshot, outcome);
    return;
  }
  const Step& step = work->step;
  if (view->vm.mark.has_value()) outcome->action = view->vm.mark->action;
  if (view->vm.has_mark) {
    outcome->text = step.reason;
    const nomad::Node* node = LinkedNode(*view, snapshot);
    const bool accepted = view->vm.mark.has_value() && node != nullptr &&
                          nodepool::IsDrainOf(*node, view->vm.mark->action, view->vm.uid);
    if (until_accepted_ && accepted) outcome->state = OutcomeState::kDone;
    return;
  }
  // The mark was removed, by us or by an operator. Wait until its drain is rolled back, too.
  if (IsRepair(step.kind)) return;
  outcome->state = OutcomeState::kFailed;
  outcome->error = base::FailedPrecondition(
      "rolled back" + (outcome->text.empty() ? std::string() : ": " + outcome->text));
  deps_.logger.Warn("Rolled back the removal of a VM",
                    {{"vm", name}, {"why", outcome->text}, {"action_id", outcome->action}});
}

void PoolLoop::TrackCancelledRemoval(const Work* work, Outcome* outcome) {
  if (outcome->state != OutcomeState::kPending) return;
  const VmView* view = work == nullptr ? nullptr : work->view;
  if (view == nullptr || harvester::IsTerminating(view->vm)) {
    outcome->state = OutcomeState::kFailed;
    outcome->error = base::FailedPrecondition("its removal could not be cancelled: it is gone");
    return;
  }
  if (view->vm.has_mark || IsRepair(work->step.kind)) return;
  outcome->state = OutcomeState::kDone;
  deps_.logger.Info("Cancelled the removal of a VM",
                    {{"vm", view->vm.name}, {"action_id", outcome->action}});
}

void PoolLoop::Track(const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  for (const Work& work : decisions.all()) {
    if (work.view->member && work.view->vm.has_mark) marked_seen_.insert(work.view->vm.name);
  }
  for (auto it = marked_seen_.begin(); it != marked_seen_.end();) {
    const Work* work = decisions.Find(*it);
    if (work == nullptr) {
      gone_.insert(*it);
      gone_since_.try_emplace(*it, deps_.clock.Now());
      it = marked_seen_.erase(it);
    } else if (!work->view->vm.has_mark) {
      it = marked_seen_.erase(it);
    } else {
      ++it;
    }
  }
  for (auto& [name, outcome] : outcomes_) {
    const Work* work = decisions.Find(name);
    if (outcome.creation) {
      TrackCreation(name, work, snapshot, &outcome);
      if (work != nullptr && harvester::IsTerminating(work->view->vm)) {
        FailIfStuck(*work->view, snapshot, &outcome);
      }
    } else if (cancelled_removals_.contains(name)) {
      TrackCancelledRemoval(work, &outcome);
    } else {
      TrackRemoval(name, work, snapshot, &outcome);
    }
  }
}

absl::Status PoolLoop::Sweep(const runtime::Context& context) {
  SweepScope scope;
  scope.dry_run = previewing_;
  scope.deleted = gone_;
  for (const auto& [name, outcome] : outcomes_) {
    if (outcome.creation && outcome.state == OutcomeState::kPending) {
      scope.being_created.insert(name);
    }
  }
  if (const auto action = deps_.lease.record().action; action.has_value()) {
    scope.named_by_action = action->names;
    for (const auto& [name, id] : action->create) scope.named_by_action.insert(name);
  }
  NH_ASSIGN_OR_RETURN(SweepResult result, SweepLeftovers(context, deps_, scope));
  std::erase_if(gone_, [&](const std::string& name) { return !result.unfinished.contains(name); });
  return absl::OkStatus();
}

bool PoolLoop::AwaitsPurge(const PoolSnapshot& snapshot) const {
  for (const NodeOfGoneVm& gone : NodesOfGoneVms(snapshot)) {
    if (!gone.mark->purge || gone.mark->pool != deps_.key.ToString()) continue;
    const auto since = gone_since_.find(gone.mark->vm);
    if (since == gone_since_.end()) continue;
    if (deps_.clock.Now() - since->second < kPurgeTimeout) return true;
  }
  return false;
}

bool PoolLoop::ScaleIsDone(const Decisions& decisions) const {
  const PoolSnapshot& snapshot = decisions.snapshot();
  for (const auto& [name, outcome] : outcomes_) {
    if (outcome.state == OutcomeState::kPending) return false;
    // A failed creation is finished when its VM no longer exists, or is kept for an operator.
    if (!outcome.creation || outcome.state != OutcomeState::kFailed || until_accepted_) continue;
    const Work* work = decisions.Find(name);
    if (work == nullptr || work->step.kind == StepKind::kReport) continue;
    if (!IsStuckInDeletion(work->view->vm, snapshot.now())) return false;
  }
  return until_accepted_ || (gone_.empty() && !AwaitsPurge(snapshot));
}

bool PoolLoop::ResumptionIsDone(const Decisions& decisions) const {
  const PoolSnapshot& snapshot = decisions.snapshot();
  if (!gone_.empty() || AwaitsPurge(snapshot)) return false;
  for (const auto& [view, step] : decisions.all()) {
    if (!view->member) continue;
    if (IsAct(step.kind)) return false;
    if (view->vm.has_mark && !IsOtherRegion(view->vm, snapshot.look().region) &&
        !IsStuckInDeletion(view->vm, snapshot.now())) {
      return false;
    }
  }
  return true;
}

// Waits before the next observation: briefly after an act, so that its effect shows; else for a
// change of Nomad's nodes or the end of a growing wait, because VMs change, too.
absl::Status PoolLoop::Wait(const runtime::Context& context, bool acted, bool readable) {
  next_wait_ = {};
  // A refused step is retried, but not immediately.
  const bool effective = acted && refused_.ok();
  idle_passes_ = effective ? 0 : idle_passes_ + 1;
  if (effective) return context.Sleep(kPause);
  const base::Duration wait = std::min(kLongestWait, kFirstWait * idle_passes_);
  // A blocking query needs an index; an empty cluster does not have one yet.
  if (!readable || last_->snapshot().look().nomad_index == 0) return context.Sleep(wait);
  next_wait_.after_index = last_->snapshot().look().nomad_index;
  next_wait_.wait = std::min(wait, deps_.clients.config->nomad.block_query_wait);
  return context.Sleep(kPause);
}

absl::StatusOr<PoolLoop::PassResult> PoolLoop::Pass(const runtime::Context& context) {
  auto snapshot = Look(context, next_wait_);
  NH_RETURN_IF_ERROR(context.Check());
  NH_RETURN_IF_ERROR(snapshot);
  const Decisions& decisions = last_.emplace(*std::move(snapshot));
  Track(decisions);
  refused_ = absl::OkStatus();
  NH_ASSIGN_OR_RETURN(const bool acted, Act(context, decisions, WorkOf(decisions)));
  PassResult result{.acted = acted, .readable = decisions.snapshot().look().nomad_readable};
  if (result.readable && PurgeNodes(context, decisions)) result.acted = true;
  if (!gone_.empty() || sweep_due_) {
    result.swept = Sweep(context);
    sweep_due_ = sweep_due_ && !result.swept.ok();
    Track(decisions);
  }
  NH_RETURN_IF_ERROR(context.Check());
  return result;
}

absl::Status PoolLoop::RunScale(const runtime::Context& context, bool until_accepted) {
  until_accepted_ = until_accepted;
  for (;;) {
    const auto pass = Pass(context);
    NH_RETURN_IF_ERROR(context.Check());
    if (!pass.ok()) {
      deps_.logger.Warn("Could not observe the pool; retrying", {{"error", pass.status()}});
      NH_RETURN_IF_ERROR(context.Sleep(kLongestWait));
      continue;
    }
    if (!pass->swept.ok()) {
      deps_.logger.Warn("Could not clean up leftovers; retrying", {{"error", pass->swept}});
    }
    if (!pass->acted && ScaleIsDone(*last_)) return absl::OkStatus();
    NH_RETURN_IF_ERROR(Wait(context, pass->acted, pass->readable));
  }
}

void PoolLoop::CloseRecord(const runtime::Context& context) {
  if (!last_.has_value()) return;
  RunSummary run{
      .last = last_->snapshot(), .last_event = last_event_, .remembered = deps_.lease.used()};
  bool removal_failed = false;
  for (const auto& [name, outcome] : outcomes_) {
    const bool done = outcome.state == OutcomeState::kDone;
    const bool failed = outcome.state == OutcomeState::kFailed;
    if (outcome.creation) {
      if (outcome.seen) run.seen.insert(name);
      run.created = run.created || done;
      // The VM appeared and was deleted without a cause that we know.
      const bool explained =
          std::any_of(failed_.begin(), failed_.end(),
                      [&vm = name](const auto& failures) { return failures.second.contains(vm); });
      if (failed && !explained) run.failures.insert(std::string(cause::kCreate));
    } else if (!cancelled_removals_.contains(name)) {
      run.removed = run.removed || done;
      removal_failed = removal_failed || failed;
    }
  }
  for (const auto& [cause, vms] : failed_) {
    if (!vms.empty()) run.failures.insert(cause);
  }
  if (removal_failed && !run.removed) run.failures.insert(std::string(cause::kRemove));
  const PoolRecord before = deps_.lease.record();
  const PoolRecord after = RecordAfter(before, run);
  if (after == before) return;
  const absl::Status stored = deps_.lease.Store(context, after);
  if (!stored.ok()) {
    deps_.logger.Warn("Could not write the pool's record to its Lease", {{"error", stored}});
  }
}

absl::Status PoolLoop::RunResumption(const runtime::Context& context) {
  sweep_due_ = true;
  resuming_ = true;
  for (int failures = 0;;) {
    const auto pass = Pass(context);
    NH_RETURN_IF_ERROR(context.Check());
    const absl::Status trouble = !pass.ok() ? pass.status()
                                 : !pass->readable
                                     ? base::Unavailable(last_->snapshot().look().nomad_problem)
                                 : !refused_.ok() ? refused_
                                                  : pass->swept;
    failures = trouble.ok() ? 0 : failures + 1;
    if (failures >= kResumptionFailures) return trouble;
    if (!pass.ok()) {
      NH_RETURN_IF_ERROR(context.Sleep(kFirstWait));
      continue;
    }
    if (!pass->acted && trouble.ok() && ResumptionIsDone(*last_)) {
      CloseRecord(context);
      return absl::OkStatus();
    }
    if (!pass->acted && RemovalsWait(*last_)) {
      return base::Unavailable(
          "too many VMs have lost their Nomad nodes at once: nothing is removed");
    }
    NH_RETURN_IF_ERROR(Wait(context, pass->acted, pass->readable));
  }
}

}  // namespace nomad_harvester::scaling
