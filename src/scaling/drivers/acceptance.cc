// SPDX-License-Identifier: Apache-2.0
#include "drivers/acceptance.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "execution/executor.h"
#include "rules/back_off.h"
#include "rules/event_text.h"

namespace nomad_harvester::scaling {
namespace {

using Entry = Decisions::Entry;

// The wait before a write that was not answered is repeated; it doubles.
constexpr base::Duration kFirstWait = std::chrono::seconds(1);
constexpr base::Duration kMaxWait = std::chrono::seconds(8);

// True if a failed creation may succeed when repeated under the same name. False for our own
// errors, such as in a template, and for a name that another object has.
bool MayRepeatCreation(const absl::Status& failed) {
  if (kube::IsAlreadyExists(failed)) return false;
  return kube::GetKubeError(failed).has_value() || absl::IsUnavailable(failed) ||
         absl::IsDeadlineExceeded(failed);
}

}  // namespace

Acceptance::Acceptance(const PoolDependencies& deps, Reconciler& reconciler, const ScalePlan& plan,
                       const CreationPlan* creation)
    : deps_(deps),
      reconciler_(reconciler),
      creation_(creation),
      reserve_(plan.reserve),
      passed_over_(plan.passed_over) {
  for (const std::string& vm : plan.cancel_removals) outcomes_[vm] = {.goal = Goal::kCancelRemoval};
  for (const PlannedRemoval& removal : plan.remove) {
    outcomes_[removal.vm] = {.goal = Goal::kRemove, .node_id = removal.node_id};
  }
  for (const PlannedCreation& planned : plan.create) {
    outcomes_[planned.name] = {.goal = Goal::kMake, .creation = planned};
  }
}

absl::Status Acceptance::Run(const runtime::Context& context, PoolSnapshot first) {
  // Nothing is created before each cancelled removal has its outcome (rule L6).
  PoolSnapshot snapshot = reconciler_.WithRecord(std::move(first));
  if (const absl::Status ended = CancelRemovals(context, &snapshot); !ended.ok()) {
    Record(snapshot, ended);
    return FinalStatus(ended);
  }
  base::Duration wait = kFirstWait;
  for (;;) {
    const Decisions decisions(snapshot);
    Observe(decisions);
    if (!IsPending()) break;
    absl::Status ended = NameOnLease(context);
    const bool repeats = ended.ok() && Write(context, decisions);
    ended.Update(context.Check());
    if (ended.ok() && repeats) {
      ended = context.Sleep(wait);
      wait = std::min(wait * 2, kMaxWait);
    }
    absl::StatusOr<PoolSnapshot> next = base::Unavailable("not observed");
    while (ended.ok() && !next.ok()) {
      next = reconciler_.Observe(context);
      if (!next.ok()) {
        ended = base::Annotate(context.Sleep(kFirstWait), base::Message(next.status()));
      }
    }
    if (!ended.ok()) {
      Record(snapshot, ended);
      return FinalStatus(ended);
    }
    snapshot = *std::move(next);
  }
  Record(snapshot, absl::OkStatus());
  reconciler_.CloseAction(std::move(snapshot));
  return FinalStatus(absl::OkStatus());
}

absl::Status Acceptance::CancelRemovals(const runtime::Context& context, PoolSnapshot* snapshot) {
  const auto is_removal_cancelled = [](const auto& entry) {
    return entry.second.goal == Goal::kCancelRemoval;
  };
  if (std::none_of(outcomes_.begin(), outcomes_.end(), is_removal_cancelled))
    return absl::OkStatus();
  NH_ASSIGN_OR_RETURN(const Reconciler::Settled settled, reconciler_.FinishRollBacks(context));
  *snapshot = settled.snapshot;
  for (auto& [vm, outcome] : outcomes_) {
    if (outcome.goal != Goal::kCancelRemoval) continue;
    const VmView* view = snapshot->seen->FindVm(vm);
    const auto left_out = settled.left_out.find(vm);
    outcome.state = State::kFailed;
    if (view == nullptr || harvester::IsTerminating(view->vm)) {
      outcome.error = base::FailedPrecondition("its removal could not be cancelled: it is gone");
    } else if (left_out != settled.left_out.end()) {
      outcome.error = base::FailedPrecondition(left_out->second);
    } else if (view->vm->has_mark) {
      outcome.error =
          base::FailedPrecondition("its removal goes on: its node is not ready any more");
    } else {
      outcome.state = State::kDone;
      deps_.logger.Info("Cancelled the removal of a VM", {{"vm", vm}, {"action_id", deps_.call}});
    }
  }
  return absl::OkStatus();
}

bool Acceptance::IsPending() const {
  return std::any_of(outcomes_.begin(), outcomes_.end(),
                     [](const auto& entry) { return entry.second.state == State::kPending; });
}

void Acceptance::Observe(const Decisions& decisions) {
  ReplaceUnsuitable(decisions);
  for (auto& [vm, outcome] : outcomes_) {
    if (outcome.state != State::kPending) continue;
    if (outcome.goal == Goal::kMake) {
      ObserveMake(decisions.Find(vm), decisions.snapshot(), &outcome);
    } else {
      ObserveRemove(vm, decisions, &outcome);
    }
  }
}

void Acceptance::ObserveMake(const Entry* entry, const PoolSnapshot& snapshot, Outcome* outcome) {
  if (entry == nullptr) {
    if (!outcome->accepted) return;
    outcome->state = State::kFailed;
    outcome->error = base::Internal("its creation was accepted, and the VM is gone");
    return;
  }
  // A VM of a replacement that this Scale has interrupted does not count. The creation is repeated,
  // which takes it over (rule R4).
  if (!outcome->creation.replaces.has_value() && IsPendingReplacement(*entry->view, snapshot) &&
      !entry->view->vm->has_mark) {
    outcome->accepted = false;
    return;
  }
  outcome->accepted = true;
  outcome->state = State::kDone;
  if (!entry->view->vm->has_mark && !harvester::IsTerminating(entry->view->vm)) return;
  outcome->state = State::kFailed;
  outcome->error = base::Internal("the VM is being removed");
}

void Acceptance::ObserveRemove(const std::string& vm, const Decisions& decisions,
                               Outcome* outcome) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  const Entry* entry = decisions.Find(vm);
  const VmView* const standing = snapshot.seen->FindVm(vm);
  const auto fail = [&](absl::Status error) {
    outcome->state = State::kFailed;
    outcome->error = std::move(error);
  };
  if (standing == nullptr || harvester::IsTerminating(standing->vm)) {
    outcome->state = State::kDone;
  } else if (entry == nullptr || !standing->member) {
    fail(base::FailedPrecondition(
        "it stands, and is no VM of the pool any more: its labels or its annotation " +
        std::string(harvester::kSelfAnnotation) +
        " were changed; nothing more is done with it. Restore them, or delete it"));
  } else if (!snapshot.observation().nomad.ok()) {
    return;
  } else if (!standing->vm->has_mark || entry->step.kind == StepKind::kStartDrain) {
    // The background starts a drain that must wait.
    const bool waits =
        standing->vm->has_mark && reconciler_.ReasonToWait(snapshot, entry->step.kind) != nullptr;
    if (waits) outcome->state = State::kDone;
    const bool was_accepted = standing->vm->has_mark ? outcome->drained : outcome->accepted;
    if (waits || !was_accepted) return;
    outcome->refused = true;
    fail(WithoutEffect().status);
  } else if (entry->step.kind == StepKind::kRollBack) {
    fail(base::FailedPrecondition("rolled back: " + entry->step.reason));
  } else {
    outcome->state = State::kDone;
  }
}

// An unsuitable victim is replaced by the next candidate, which the Lease must name before it is
// marked (rule L5). A victim whose mark may still be written is never replaced (rule I2).
void Acceptance::ReplaceUnsuitable(const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  if (!snapshot.observation().nomad.ok()) return;
  std::vector<std::pair<std::string, std::string>> unsuitable;
  const auto find = [&] {
    unsuitable.clear();
    for (const auto& [vm, outcome] : outcomes_) {
      if (outcome.goal != Goal::kRemove || outcome.state != State::kPending) continue;
      const VmView* view = snapshot.seen->FindVm(vm);
      if (view == nullptr || !view->member || harvester::IsTerminating(view->vm)) continue;
      if (view->vm->has_mark || outcome.accepted) continue;
      auto why = ObjectionToRemoval(*view, LinkedNode(*view, snapshot), snapshot);
      if (why.has_value()) unsuitable.emplace_back(vm, *std::move(why));
    }
    return !unsuitable.empty();
  };
  while (find()) {
    for (const auto& [vm, why] : unsuitable) {
      if (!outcomes_.at(vm).unknown && Replace(vm, why)) continue;
      outcomes_.at(vm).state = State::kFailed;
      outcomes_.at(vm).error = base::FailedPrecondition(why);
    }
  }
}

bool Acceptance::Replace(const std::string& vm, const std::string& why) {
  deps_.logger.Info("VM can no longer be removed; choosing another",
                    {{"vm", vm}, {"why", why}, {"action_id", deps_.call}});
  passed_over_.push_back({vm, why});
  if (reserve_.empty()) return false;
  const PlannedRemoval next = std::move(reserve_.front());
  reserve_.erase(reserve_.begin());
  outcomes_.erase(vm);
  outcomes_[next.vm] = {.goal = Goal::kRemove, .node_id = next.node_id};
  deps_.logger.Info("Another victim takes its place",
                    {{"vm", next.vm}, {"why", next.reason}, {"action_id", deps_.call}});
  return true;
}

absl::Status Acceptance::NameOnLease(const runtime::Context& context) {
  const PoolRecord before = deps_.lease.record();
  PoolRecord needed = before;
  for (const auto& [vm, outcome] : outcomes_) {
    const bool is_pending = outcome.state == State::kPending;
    if (is_pending && needed.action.has_value()) needed.action->names.insert(vm);
  }
  return needed == before ? absl::OkStatus() : deps_.lease.Store(context, needed, "");
}

// A write that was not started because the context ended counts as cancelled.
bool Acceptance::Write(const runtime::Context& context, const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  struct Task {
    Outcome* outcome;
    const Entry* entry;  // null: it is created
    Effect effect{};
  };
  std::vector<Task> tasks;
  for (auto& [vm, outcome] : outcomes_) {
    const bool makes = outcome.goal == Goal::kMake;
    if (outcome.state != State::kPending || (!makes && !snapshot.observation().nomad.ok()))
      continue;
    const Entry* const entry = makes ? nullptr : decisions.Find(vm);
    if (makes || entry != nullptr) tasks.push_back({&outcome, entry});
  }
  const PoolSnapshot recorded = reconciler_.WithRecord(snapshot);
  const std::vector<absl::Status> started = runtime::ForEachBounded(
      context, deps_.executor, tasks.size(), deps_.parallelism(), [&](std::size_t i) {
        Task& task = tasks[i];
        if (task.entry == nullptr) {
          task.effect = Make(context, recorded, task.outcome);
        } else if (task.entry->view->vm->has_mark) {
          task.effect = Execute(context, deps_, decisions, *task.entry->view, task.entry->step);
        } else {
          // A node that has registered since the plan was made is drained, too.
          const nomad::Node* node = LinkedNode(*task.entry->view, recorded);
          const bool is_new = task.outcome->node_id.empty() && node != nullptr;
          task.effect = MarkVictim(context, deps_, recorded, *task.entry->view, deps_.call,
                                   is_new ? node->id : task.outcome->node_id);
        }
        return absl::OkStatus();
      });
  OwnSecrets(context);
  bool repeats = tasks.empty();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const Effect effect = started[i].ok() ? task.effect : Effect{Verdict::kCancelled, started[i]};
    deps_.metrics().Troubled(effect.verdict);
    if (effect.verdict == Verdict::kDone) {
      deps_.backlog.unrecorded.last_event = snapshot.earlier_now();
    }
    if (effect.verdict == Verdict::kRefused || effect.verdict == Verdict::kFailed) {
      task.outcome->error = effect.status;
    }
    repeats |= effect.verdict != Verdict::kDone && effect.verdict != Verdict::kUnsuitable;
    if (task.entry == nullptr) {
      ConcludeMake(effect, task.outcome);
    } else {
      ConcludeRemove(*task.entry->view, effect);
    }
  }
  return repeats;
}

Effect Acceptance::Make(const runtime::Context& context, const PoolSnapshot& snapshot,
                        Outcome* outcome) {
  const PlannedCreation& creation = outcome->creation;
  if (!std::exchange(outcome->begun, true)) {
    deps_.logger.Info("Creating a VM", {{"vm", creation.name}, {"action_id", creation.action_id}});
  }
  if (creation.action_id != deps_.call && !outcome->cleared) {
    // Once: a repetition would remove the Secret of a VM whose creation was sent and is only
    // delayed.
    const absl::Status cleared = ClearLeftoverSecret(context, deps_, creation.name);
    if (!cleared.ok()) return EffectOf(cleared);
    outcome->cleared = true;
  }
  auto created = CreateVm(context, deps_, *creation_, creation, snapshot.now());
  if (!created.ok()) return EffectOf(created.status());
  if (created->replacement.has_value()) {
    const absl::Status counted =
        EndReplacement(context, deps_, *created->replacement, /*is_removed=*/false,
                       snapshot.policy->join_timeout, snapshot.now());
    if (!counted.ok()) return EffectOf(counted);
    deps_.logger.Info("A Scale takes over a VM that was made to replace another one",
                      {{"vm", creation.name},
                       {"replaces", created->replacement->replaces->vm},
                       {"action_id", deps_.call}});
  }
  deps_.PostEvent(EventOfAction(Direction::kOut, creation.name, created->uid, snapshot,
                                creation.action_id, deps_.agents_reason));
  deps_.metrics().Created(creation.action_id != deps_.call);
  outcome->created = *std::move(created);
  return {Verdict::kDone};
}

// Called when all VMs boot. The background handles Secrets that get no owner now.
void Acceptance::OwnSecrets(const runtime::Context& context) {
  std::vector<CreatedVm> created;
  for (auto& [vm, outcome] : outcomes_) {
    if (outcome.created.has_value()) created.push_back(*std::exchange(outcome.created, {}));
  }
  runtime::ForEachBounded(context, deps_.executor, created.size(), deps_.parallelism(),
                          [&](std::size_t i) { return OwnSecret(context, deps_, created[i]); });
}

void Acceptance::ConcludeMake(const Effect& effect, Outcome* outcome) {
  switch (effect.verdict) {
    case Verdict::kDone:
      outcome->accepted = true;
      break;
    case Verdict::kConflict:
    case Verdict::kFailed:
      // The POST is repeated with the same name until it is answered (rule C3).
      if (MayRepeatCreation(effect.status)) break;
      [[fallthrough]];
    case Verdict::kRefused:
    case Verdict::kUnsuitable:
      outcome->state = State::kFailed;
      outcome->error = effect.status;
      break;
    case Verdict::kNotWanted:
    case Verdict::kCancelled:
      break;
  }
}

void Acceptance::ConcludeRemove(const VmView& view, const Effect& effect) {
  const std::string& vm = view.vm->name;
  Outcome& outcome = outcomes_.at(vm);
  const bool is_mark = !view.vm->has_mark;
  switch (effect.verdict) {
    case Verdict::kDone:
      outcome.accepted = true;
      outcome.drained = !is_mark;
      if (is_mark) {
        deps_.logger.Info("Marked a VM for removal", {{"vm", vm}, {"action_id", deps_.call}});
      }
      break;
    case Verdict::kUnsuitable:
      if (!outcome.unknown && Replace(vm, std::string(base::Message(effect.status)))) break;
      outcome.state = State::kFailed;
      outcome.error = effect.status;
      break;
    case Verdict::kRefused: {
      deps_.backlog.CountRefusedRemoval(vm, deps_.clock.Now());
      const StepSpec& drain = SpecOf(StepKind::kStartDrain);
      deps_.PostEvent(EventOfRefusal(view.vm, is_mark ? "mark" : drain.name,
                                     is_mark ? "mark the VM for removal" : drain.infinitive,
                                     effect.status));
      // The next observation tells whether an earlier mark without a reply was written.
      if (outcome.unknown) break;
      outcome.refused = true;
      outcome.state = State::kFailed;
      break;
    }
    case Verdict::kFailed:
      outcome.unknown |= is_mark && effect.sent;
      break;
    case Verdict::kNotWanted:
    case Verdict::kConflict:
    case Verdict::kCancelled:
      break;
  }
}

void Acceptance::Record(const PoolSnapshot& snapshot, const absl::Status& ended) {
  PoolBacklog& backlog = deps_.backlog;
  bool is_made = false;
  bool creation_failed = false;
  bool creation_waits = false;
  bool removal_begun = false;
  bool removal_failed = false;
  bool was_refused = false;
  for (const auto& [vm, outcome] : outcomes_) {
    const bool failed = outcome.state == State::kFailed;
    const bool waits = outcome.state == State::kPending && !outcome.accepted;
    if (outcome.goal == Goal::kMake) {
      if (!outcome.begun && !outcome.accepted) continue;
      is_made |= outcome.accepted;
      creation_failed |= failed;
      creation_waits |= waits;
      // The name is never used again (rule C10).
      if (outcome.accepted) {
        backlog.unrecorded.made.insert(vm);
        backlog.refused_by_forecast.reset();
      }
      if (!outcome.creation.replaces.has_value()) backlog.awaited.insert(vm);
      // A creation without a VM may have left objects, or may still leave them when a late request
      // takes effect (rule C10).
      if (outcome.state == State::kPending) backlog.unanswered[vm] = deps_.clock.Now();
      if (snapshot.seen->FindVm(vm) != nullptr) continue;
      backlog.gone_since.try_emplace(vm, deps_.clock.Now());
      backlog.leftovers.try_emplace(vm, Leftover{.what = "Secret"});
    } else if (outcome.goal == Goal::kRemove) {
      removal_begun |= !failed && !waits;
      removal_failed |= failed || waits;
      was_refused |= outcome.refused;
    }
  }
  // A call that was cancelled did not fail because of the pool.
  if (!ended.ok() && !absl::IsDeadlineExceeded(ended)) return;
  if (creation_failed) {
    backlog.CountFailure(cause::kCreate, deps_.call);
  } else if (creation_waits && !is_made) {
    // The action has not failed yet: a VM that appears late may still be ready (rule C12).
    backlog.unrecorded.failures.emplace(cause::kCreate, deps_.call);
  }
  if (removal_failed && !removal_begun) {
    backlog.CountFailure(was_refused ? cause::kRefused : cause::kRemove, deps_.call);
  }
}

absl::Status Acceptance::FinalStatus(const absl::Status& ended) const {
  struct Line {
    std::vector<std::string> vms{};
    std::string text{};
    std::string key{};  // VMs with the same one share a line
  };
  std::vector<Line> lines;
  std::set<absl::StatusCode> codes;
  std::size_t failed = 0;
  for (const auto& [vm, outcome] : outcomes_) {
    Line line{.vms = {vm}, .text = "done"};
    if (outcome.state == State::kFailed) {
      ++failed;
      codes.insert(outcome.error.code());
      line.text = "failed: " + base::Message(outcome.error);
    } else if (outcome.state == State::kPending) {
      line.text = "unfinished";
      if (!outcome.error.ok()) line.text += ", " + base::Message(outcome.error);
    }
    line.key = base::WithoutName(base::WithoutName(line.text, vm), outcome.node_id);
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const Line& other) { return other.key == line.key; });
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      same->vms.push_back(vm);
    }
  }
  std::string text;
  for (const Line& line : lines) {
    const std::size_t count = line.vms.size();
    text += "\n" +
            (count == 1 ? line.vms[0]
                        : std::to_string(count) + " VMs (" + base::FirstFew(line.vms) + ")") +
            ": " + line.text;
  }
  if (!ended.ok()) return base::MakeStatus(ended.code(), base::Message(ended) + text);
  if (failed == 0) return absl::OkStatus();
  for (const SkippedVm& passed : passed_over_) {
    if (!outcomes_.contains(passed.vm)) {
      text += "\n" + passed.vm + ": passed over, " + passed.reason;
    }
  }
  // ABORTED is reserved for "busy".
  const bool alike = failed == outcomes_.size() && codes.size() == 1 &&
                     !codes.contains(absl::StatusCode::kAborted);
  return base::MakeStatus(
      alike ? *codes.begin() : absl::StatusCode::kInternal,
      std::to_string(failed) + " of " + std::to_string(outcomes_.size()) + " VMs failed:" + text);
}

}  // namespace nomad_harvester::scaling
