// SPDX-License-Identifier: Apache-2.0
#include "execution/pass_task.h"

#include <utility>

#include "rules/event_text.h"

namespace nomad_harvester::scaling {
namespace {

bool IsTrouble(const Attempt& attempt) {
  return attempt.effect.verdict == Verdict::kRefused || attempt.effect.verdict == Verdict::kFailed;
}

// Posts the Event of a refused removal.
void TellRefusal(const Attempt& attempt, const harvester::VirtualMachine& vm, const PassTask& task,
                 const Run& run) {
  if (!attempt.is_news || attempt.effect.verdict != Verdict::kRefused) return;
  run.deps.Tell(EventOfRefusal(vm, task.key().what, task.what(), attempt.effect.status));
}

class StepTask final : public PassTask {
 public:
  explicit StepTask(const Decisions::Entry& entry)
      : PassTask(entry.view->vm->name, KeyOfStep(entry)), entry_(entry) {}

  Effect CarryOut(const runtime::Context& context, const Run& run) override {
    return Execute(context, run.deps, *run.last, *entry_.view, entry_.step);
  }

  void Conclude(const Attempt& attempt, Run* run) const override {
    if (attempt.effect.verdict == Verdict::kDone) {
      run->deps.metrics().Done(entry_.step, *entry_.view, run->snapshot().now());
      run->deps.Notify({.vm = vm(), .step = entry_.step});
      if (entry_.step.kind == StepKind::kMarkBroken) CountBroken(attempt, run);
      const bool ready = entry_.step.kind == StepKind::kRecordReady || entry_.step.node_is_ready;
      const std::optional<harvester::Replaces>& replaces = entry_.view->vm->replaces;
      run->replaced |= joins() && ready && replaces.has_value();
      if (joins() && ready && replaces.has_value() &&
          run->snapshot().seen->FindVmByUid(replaces->uid) == nullptr) {
        LogReplaced(run->deps, replaces->vm, vm());
      }
      if (joins() && run->action.has_value()) {
        run->action->tracker.RecordJoined(vm(), entry_.step.node_id, ready);
      }
    } else if (attempt.is_news && IsTrouble(attempt)) {
      run->deps.Notify({.vm = vm(), .step = entry_.step, .outcome = attempt.effect.status});
    }
    if (removes()) TellRefusal(attempt, *entry_.view->vm, *this, *run);
    if (joins()) run->deps.backlog.zone_failures.erase(entry_.view->vm->zone);
  }

  const Decisions::Entry* intent() const override { return &entry_; }
  bool removes() const override { return IsRemoval(entry_.step.kind); }
  bool joins() const override { return IsJoin(entry_.step.kind); }
  bool is_silent() const override {
    return entry_.step.kind == StepKind::kRecordCluster && entry_.step.value.empty();
  }
  std::string_view what() const override { return SpecOf(entry_.step.kind).infinitive; }
  std::string_view why() const override { return entry_.step.reason; }

 private:
  void CountBroken(const Attempt& attempt, Run* run) const {
    const VmView& view = *entry_.view;
    PoolBacklog& backlog = run->deps.backlog;
    // Another process may have counted the VM when it marked it.
    const bool is_first = !view.vm->removal_undone.has_value();
    if (is_first && backlog.counted.insert(vm()).second) {
      run->failures.insert(CauseOfBroken(view));
    }
    run->broken += (run->broken.empty() ? "" : "\n") + vm() + ": " + entry_.step.reason;
    if (view.start_failure.has_value()) backlog.zone_failures[view.vm->zone] = attempt.ended;
  }

  const Decisions::Entry& entry_;
};

class MarkTask final : public PassTask {
 public:
  explicit MarkTask(const Decisions::Entry& entry)
      : PassTask(entry.view->vm->name, {kMark, entry.view->vm->uid}), entry_(entry) {}

  Effect CarryOut(const runtime::Context& context, const Run& run) override {
    const Tracker& tracker = run.action->tracker;
    return MarkVictim(context, run.deps, *run.recorded, *entry_.view, tracker.action_id(),
                      tracker.outcomes().at(vm()).node_id);
  }

  void Conclude(const Attempt& attempt, Run* run) const override {
    Tracker& tracker = run->action->tracker;
    if (attempt.effect.verdict == Verdict::kDone) {
      run->deps.logger.Info("Marked a VM for removal",
                            {{"vm", vm()}, {"action_id", tracker.action_id()}});
    }
    TellRefusal(attempt, *entry_.view->vm, *this, *run);
    tracker.RecordMark(vm(), attempt.effect, attempt.refused_for_good);
  }

  std::string_view what() const override { return "mark the VM for removal"; }
  bool removes() const override { return true; }

 private:
  const Decisions::Entry& entry_;
};

class CreationTask final : public PassTask {
 public:
  explicit CreationTask(const std::string& vm) : PassTask(vm, {"create", vm}) {}

  Effect CarryOut(const runtime::Context& context, const Run& run) override {
    const Tracker& tracker = run.action->tracker;
    const VmOutcome& outcome = tracker.outcomes().at(vm());
    const std::string& id = outcome.creation_id;
    run.deps.logger.Info("Creating a VM", {{"vm", vm()}, {"action_id", id}});
    if (id != tracker.action_id()) {
      const absl::Status cleared = ClearLeftoverSecret(context, run.deps, vm());
      if (!cleared.ok()) return EffectOf(cleared);
    }
    auto created = MakeVm(context, run.deps, *run.action->creation,
                          {.name = vm(), .action_id = id, .zone = outcome.zone},
                          tracker.action_id(), run.snapshot());
    if (!created.ok()) return EffectOf(created.status());
    created_ = *std::move(created);
    return {Verdict::kDone};
  }

  void Conclude(const Attempt& attempt, Run* run) const override {
    Tracker& tracker = run->action->tracker;
    tracker.RecordMake(vm(), attempt.effect);
    // The sweep removes anything that a failed creation may have left.
    if (tracker.outcomes().at(vm()).state == OutcomeState::kFailed) run->gone.RequestSweep();
  }

  std::string_view what() const override { return "create the VM"; }
  const CreatedVm* created() const override { return created_.has_value() ? &*created_ : nullptr; }

 private:
  std::optional<CreatedVm> created_;
};

class PurgeTask final : public PassTask {
 public:
  explicit PurgeTask(const OrphanedNode& gone)
      : PassTask(std::string(gone.mark.vm), {StepName(StepKind::kPurge), gone.node->id}),
        gone_(gone) {}

  Effect CarryOut(const runtime::Context& context, const Run& run) override {
    run.deps.logger.Info(
        "Purging the node of a deleted VM",
        {{"vm", vm()}, {"node_id", gone_.node->id}, {"action_id", gone_.mark.action}});
    return Purge(context, run.deps, *run.last, gone_);
  }

  void Conclude(const Attempt& attempt, Run* run) const override {
    if (!attempt.is_news && !attempt.effect.status.ok()) return;
    run->deps.Notify({.kind = ReconcileEvent::Kind::kPurge,
                      .vm = vm(),
                      .object = gone_.node->id,
                      .outcome = attempt.effect.status});
  }

  std::string_view what() const override { return SpecOf(StepKind::kPurge).infinitive; }

 private:
  const OrphanedNode& gone_;
};

}  // namespace

PoolSnapshot Run::WithRecord(PoolSnapshot seen) const {
  PoolRecord record = deps.lease.record();
  seen.action = std::move(record.action);
  seen.lease_cluster = std::move(record.nomad_cluster);
  seen.collected = deps.collects;
  return seen;
}

Retries::Key KeyOfStep(const Decisions::Entry& entry) {
  const Step& step = entry.step;
  return {StepName(step.kind), entry.view->vm->uid, step.node_id + " " + step.value};
}

std::unique_ptr<PassTask> MakeStepTask(const Decisions::Entry& entry) {
  return std::make_unique<StepTask>(entry);
}

std::unique_ptr<PassTask> MakeMarkTask(const Decisions::Entry& entry) {
  return std::make_unique<MarkTask>(entry);
}

std::unique_ptr<PassTask> MakeCreationTask(const std::string& vm) {
  return std::make_unique<CreationTask>(vm);
}

std::unique_ptr<PassTask> MakePurgeTask(const OrphanedNode& gone) {
  return std::make_unique<PurgeTask>(gone);
}

}  // namespace nomad_harvester::scaling
