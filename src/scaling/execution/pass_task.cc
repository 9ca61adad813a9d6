// SPDX-License-Identifier: Apache-2.0
#include "execution/pass_task.h"

#include <algorithm>
#include <optional>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/plan.h"

#include "execution/leftovers.h"
#include "rules/back_off.h"
#include "rules/event_text.h"

namespace nomad_harvester::scaling {
namespace {

// Each VM counts once (rule C12). Another process may have counted it when it marked it.
void AddFailedCreation(const VmView& view, std::string_view cause, const std::string& why,
                       PoolBacklog* backlog) {
  const bool is_first = !view.vm->removal_undone.has_value();
  if (is_first && backlog->counted.insert(view.vm->name).second) {
    backlog->CountFailure(cause, view.vm->action_id);
  }
  backlog->unrecorded.AddError(view.vm->action_id, view.vm->name + ": " + why);
}

void LogFailedCreation(const VmView& view, const std::string& why, const std::string& node_id,
                       const PoolDependencies& deps) {
  deps.logger.Warn("The creation of a VM has failed", {{"vm", view.vm->name},
                                                       {"why", why},
                                                       {"node_id", node_id},
                                                       {"action_id", view.vm->action_id}});
}

// True if its node belongs to another pool of nodes: its creation has failed (rule C15).
bool ConcludeJoinElsewhere(const VmView& view, const Step& step, const PoolSnapshot& snapshot,
                           const PoolDependencies& deps) {
  const nomad::Node* node = LinkedNode(view, snapshot);
  if (node == nullptr || !snapshot.policy.has_value() ||
      BelongsToPool(*node, view, snapshot.policy)) {
    return false;
  }
  if (step.kind != StepKind::kRecordJoin) return true;
  const std::string why = "its node joined another pool: " + WrongPool(*node, snapshot);
  LogFailedCreation(view, why, step.node_id, deps);
  AddFailedCreation(view, cause::kJoin, why, &deps.backlog);
  return true;
}

void ConcludeJoin(const VmView& view, const Step& step, const PoolSnapshot& snapshot,
                  const PoolDependencies& deps) {
  if (ConcludeJoinElsewhere(view, step, snapshot, deps)) return;
  deps.backlog.zone_failures.erase(view.vm->zone);
  const bool ready = step.kind == StepKind::kRecordReady || step.node_is_ready;
  deps.logger.Info(
      ready ? "A new VM is ready" : "The node of a new VM has registered",
      {{"vm", view.vm->name}, {"node_id", step.node_id}, {"action_id", view.vm->action_id}});
  // Its action counts as a failure if another VM of it has failed (rule C12).
  const auto& failed = deps.backlog.failed_actions;
  const bool has_failed = std::any_of(failed.begin(), failed.end(), [&](const auto& of_cause) {
    return of_cause.second.contains(view.vm->action_id);
  });
  deps.backlog.unrecorded.delivered |= ready && !has_failed;
  const std::optional<harvester::Replaces>& replaces = view.vm->replaces;
  if (!ready || !replaces.has_value()) return;
  deps.backlog.unrecorded.replaced = true;
  if (snapshot.seen->FindVmByUid(replaces->uid) == nullptr) {
    LogReplaced(deps, replaces->vm, view.vm->name);
  }
}

// True if another VM is still being removed by this action: it may succeed (rule C12).
bool GoesOn(const std::string& action, const VmView& beside, const Decisions& decisions) {
  const std::vector<Decisions::Entry>& all = decisions.all();
  return std::any_of(all.begin(), all.end(), [&](const Decisions::Entry& entry) {
    const std::optional<harvester::Mark>& mark = entry.view->vm->mark;
    return entry.view != &beside && mark.has_value() && mark->action == action &&
           entry.step.kind != StepKind::kRollBack;
  });
}

// True if what ends the removal is that Nomad or Harvester refuses its drain or its deletion. With
// a short deadline that has passed before the refusals have lasted for long enough (rule C9).
bool IsRefusedRemoval(const Decisions::Entry& entry) {
  const Row row = entry.step.row;
  return (row == Row::kMarkedRefused || row == Row::kMarkedLate) &&
         entry.view->removal_refused_for > base::Duration::zero();
}

// Why a removal has failed, according to its roll-back; unset if it has not: a growth cancels it,
// or the mark is not this VM's or not named by the Lease, and belongs to no action.
std::optional<std::string> WhyRemovalFailed(const Decisions::Entry& entry,
                                            const PoolBacklog& backlog) {
  const Step& step = entry.step;
  const std::optional<harvester::Mark>& mark = entry.view->vm->mark;
  if (!mark.has_value() || mark->reason != harvester::MarkReason::kScaleIn) return std::nullopt;
  if (step.row == Row::kMarkedRemovalCancelled || step.row == Row::kMarkedNotNamed ||
      step.row == Row::kMarkOfAnother) {
    return std::nullopt;
  }
  std::string why = step.reason;
  for (const StepKind kind : {StepKind::kStartDrain, StepKind::kDelete}) {
    const absl::Status last = backlog.retries.LastOf({StepName(kind), entry.view->vm->uid});
    if (IsRefusedRemoval(entry) && !last.ok()) why += ": " + base::Message(last);
  }
  return why;
}

void ConcludeDone(const PassTask& task, const PoolSnapshot& snapshot,
                  const PoolDependencies& deps) {
  const VmView& view = *task.entry->view;
  const Step& step = task.entry->step;
  deps.metrics().Done(step, view, snapshot.now());
  deps.Notify({.vm = task.vm, .step = step});
  if (IsJoin(step.kind)) ConcludeJoin(view, step, snapshot, deps);
  if (step.kind == StepKind::kMarkBroken) {
    LogFailedCreation(view, step.reason, step.node_id, deps);
    ConcludeBroken(view, step.reason, task.ended, &deps.backlog);
  }
  if (step.kind == StepKind::kRollBack) {
    if (const auto why = WhyRemovalFailed(*task.entry, deps.backlog); why.has_value()) {
      deps.logger.Warn("Rolled back the removal of a VM",
                       {{"vm", task.vm}, {"why", *why}, {"action_id", view.vm->mark->action}});
    }
  }
  const std::optional<harvester::Mark>& mark = view.vm->mark;
  if (step.kind == StepKind::kDelete && mark.has_value() &&
      mark->reason == harvester::MarkReason::kScaleIn) {
    deps.backlog.deletions[task.vm] = {mark->action, harvester::WasReady(view.vm)};
  }
}

}  // namespace

void RecordRollBack(const PassTask& task, const Decisions& decisions, PoolBacklog* backlog) {
  const auto why = WhyRemovalFailed(*task.entry, *backlog);
  if (!why.has_value()) return;
  const std::string& action = task.entry->view->vm->mark->action;
  if (backlog->removed_last != action && !GoesOn(action, *task.entry->view, decisions)) {
    backlog->CountFailure(IsRefusedRemoval(*task.entry) ? cause::kRefused : cause::kRemove, action);
  }
  backlog->unrecorded.AddError(action, task.vm + ": its removal was rolled back: " + *why);
}

void ConcludeBroken(const VmView& view, const std::string& reason, base::MonoTime now,
                    PoolBacklog* backlog) {
  const bool lacks_room =
      harvester::LacksRoom(view.vm) || absl::IsResourceExhausted(view.start_refusal);
  if (!lacks_room && !view.start_failure.has_value() && view.start_refusal.ok())
    return AddFailedCreation(view, cause::kJoin, reason, backlog);
  AddFailedCreation(view, lacks_room ? cause::kRoom : cause::kStart, reason, backlog);
  backlog->zone_failures[view.vm->zone] = now;
}

Retries::Key KeyOfStep(const Decisions::Entry& entry) {
  const Step& step = entry.step;
  return {StepName(step.kind), entry.view->vm->uid, step.node_id + " " + step.value};
}

PassTask::PassTask(const Decisions::Entry& next)
    : entry(&next), vm(next.view->vm->name), kind(next.step.kind), key(KeyOfStep(next)) {}

PassTask::PassTask(const OrphanedNode& to_purge)
    : gone(&to_purge), vm(to_purge.mark.vm), key(StepName(kind), to_purge.node->id) {}

void Conclude(const PassTask& task, const PoolDependencies& deps, const Decisions& decisions) {
  const Effect& effect = task.effect;
  if (task.is_trouble() && IsJoin(task.kind) &&
      deps.backlog.retries.IsRefusedForGood(task.key, task.ended) &&
      deps.backlog.awaited.contains(task.vm) && !deps.backlog.counted.contains(task.vm)) {
    AddFailedCreation(*task.entry->view, cause::kJoin, base::Message(effect.status), &deps.backlog);
  }
  if (task.entry == nullptr) {
    if (!task.should_log && !effect.status.ok()) return;
    deps.Notify({.kind = ReconcileEvent::Kind::kPurge,
                 .vm = task.vm,
                 .object = task.gone->node->id,
                 .outcome = effect.status});
  } else if (effect.verdict == Verdict::kDone) {
    ConcludeDone(task, decisions.snapshot(), deps);
  } else if (task.should_log && task.is_trouble()) {
    deps.Notify({.vm = task.vm, .step = task.entry->step, .outcome = effect.status});
    if (IsRemoval(task.kind) && effect.verdict == Verdict::kRefused) {
      deps.PostEvent(
          EventOfRefusal(*task.entry->view->vm, task.key.what, task.what(), effect.status));
    }
  }
}

}  // namespace nomad_harvester::scaling
