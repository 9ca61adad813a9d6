// SPDX-License-Identifier: Apache-2.0
#include "execution/reconciler.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

#include "absl/cleanup/cleanup.h"
#include "execution/executor.h"
#include "execution/publication.h"
#include "rules/pool_record.h"
#include "rules/vm_story.h"

namespace nomad_harvester::scaling {
namespace {

// Between two observations: a blocking query that ends when a node changes, and at
// nomad_block-query-wait-time at the latest. Load balancers would cut a long wait, because they
// close a connection that is silent for a minute (hashicorp/nomad-autoscaler#754). What changes all
// the time is observed at this interval, after a few observations at once.
constexpr base::Duration kPause = std::chrono::milliseconds(250);
constexpr int kAtOnce = 4;
constexpr base::Duration kFirstWait = std::chrono::seconds(1);
constexpr base::Duration kLongestWait = std::chrono::seconds(5);
// Resumption ends after so many consecutive passes without an effect in which something failed.
constexpr int kFruitlessPasses = 3;
// A plan is made without the VMs whose roll-backs do not end by then.
constexpr base::Duration kRollBacksTimeout = std::chrono::minutes(2);

Retries::Key KeyOf(const Decisions::Entry& entry) {
  return {StepName(entry.step.kind), entry.view->vm->uid};
}

}  // namespace

Reconciler::Reconciler(PoolDependencies deps, SharedPolicy policy)
    : deps_(std::move(deps)), policy_(std::move(policy)), gone_(deps_), publications_(deps_) {}

void Reconciler::Pass::Note(const Effect& effect) {
  const bool failed = effect.verdict == Verdict::kFailed;
  if (effect.verdict == Verdict::kConflict) ++conflicts;
  if (!failed && effect.verdict != Verdict::kRefused) return;
  if (trouble.ok()) trouble = effect.status;
  if (failed) only_refusals = false;
}

Observer Reconciler::MakeObserver() const {
  return {deps_.nomad(), deps_.nodes, deps_.vms, deps_.memory, deps_.executor, deps_.logger};
}

PoolSnapshot Reconciler::WithRecord(PoolSnapshot snapshot) const {
  PoolRecord record = deps_.lease.record();
  snapshot.lease_used = deps_.lease.used();
  snapshot.action = std::move(record.action);
  snapshot.lease_cluster = std::move(record.nomad_cluster);
  snapshot.collected = deps_.collects;
  return snapshot;
}

absl::StatusOr<PoolSnapshot> Reconciler::Look(const runtime::Context& context,
                                              Observer::BlockingWait blocking) {
  const base::MonoTime began = deps_.clock.Now();
  NH_ASSIGN_OR_RETURN(
      scaling::Look look,
      MakeObserver().Observe(context, LookFor(deps_.clients.config->nomad.region, policy_),
                             std::move(blocking)));
  // A drain that runs was accepted, although no reply may have said so.
  for (const VmView& view : look.vms) {
    const nomad::Node* node = LinkedNode(view, look);
    if (node == nullptr || !view.vm->mark.has_value()) continue;
    if (!nodepool::IsDrainOf(*node, view.vm->mark->action, view.vm->uid)) continue;
    deps_.troubles.retries.Forget({StepName(StepKind::kStartDrain), view.vm->uid});
  }
  deps_.troubles.retries.Apply(deps_.clock.Now(), &look);
  if (policy_.has_value() && policy_->publish_host) {
    deps_.hosts.Note(deps_.key.ns, began, &look);
  }
  return WithRecord({.key = deps_.key,
                     .seen = std::make_shared<const Snapshot>(std::move(look)),
                     .policy = policy_});
}

absl::StatusOr<PoolSnapshot> Reconciler::Observe(const runtime::Context& context) {
  return Look(context, {});
}

absl::StatusOr<Observer::Guests> Reconciler::ReadGuests(const runtime::Context& context) {
  return MakeObserver().ReadGuests(context, /*with_instances=*/true);
}

absl::StatusOr<AllocationList> Reconciler::ReadAllocations(const runtime::Context& context) {
  return MakeObserver().ReadAllocations(context);
}

absl::StatusOr<Reconciler::Settled> Reconciler::FinishRollBacks(const runtime::Context& context,
                                                                Observer::BlockingWait first) {
  const base::MonoTime began = deps_.clock.Now();
  for (;;) {
    NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Look(context, std::exchange(first, {})));
    if (std::string problem = NomadProblem(snapshot); !problem.empty()) {
      return base::Unavailable(std::move(problem));
    }
    const Decisions& decisions = last_.emplace(std::move(snapshot));
    const base::MonoTime now = deps_.clock.Now();
    Settled settled{.snapshot = decisions.snapshot()};
    std::vector<Task> tasks;
    bool due = false;
    for (const Decisions::Entry& entry : decisions.all()) {
      if (!IsRepair(entry.step.kind)) continue;
      const Retries& retries = deps_.troubles.retries;
      const Retries::Key key = KeyOf(entry);
      if (retries.FailingFor(key, now) >= kRefusedForGood || now - began >= kRollBacksTimeout) {
        settled.left_out[entry.view->vm->name] =
            "its roll-back (" + entry.step.reason +
            ") does not succeed: " + base::Message(retries.LastOf(key));
        continue;
      }
      due = true;
      if (retries.MayTry(key, now)) tasks.push_back(StepTask(entry));
    }
    if (!due) return settled;
    NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
    Carry(context, &tasks);
    NH_RETURN_IF_ERROR(context.Check());
    Pass pass;
    for (const Task& task : tasks) Note(task, deps_.clock.Now(), &pass);
    NH_RETURN_IF_ERROR(context.Sleep(pass.effects > 0 ? kPause : kFirstWait));
  }
}

const char* Reconciler::WhyWaits(StepKind kind) const {
  if (!IsRemoval(kind) && !IsUpkeep(kind)) return nullptr;
  // A Scale that is open when the pool is paused ends what it has begun.
  if (!action_.has_value() && deps_.lease.record().paused.HoldsAt(last_->snapshot().now())) {
    return "the pool is paused";
  }
  if (IsRemoval(kind) && IsOtherClusterByLease(last_->snapshot())) {
    return "by its Lease the pool belongs to another Nomad cluster";
  }
  const bool allowed = action_.has_value() && action_->tracker.despite_mass_loss();
  return IsRemoval(kind) && !allowed && last_->pool().mass_loss.alarming
             ? "too many VMs have lost their Nomad nodes at once"
             : nullptr;
}

Reconciler::Task Reconciler::StepTask(const Decisions::Entry& entry) const {
  return {
      .kind = Task::Kind::kStep, .vm = entry.view->vm->name, .entry = &entry, .key = KeyOf(entry)};
}

// What is to be done now: not what waits for its next attempt.
std::vector<Reconciler::Task> Reconciler::TasksOf(
    const Decisions& decisions, base::MonoTime now,
    std::vector<const Decisions::Entry*>* publications) {
  std::vector<Task> tasks;
  publications->clear();
  const auto add = [&](Task task) {
    if (deps_.troubles.retries.MayTry(task.key, now)) tasks.push_back(std::move(task));
  };
  std::set<std::string> to_mark;
  if (action_.has_value()) to_mark = action_->tracker.ToMark(decisions);
  for (const Decisions::Entry& entry : decisions.all()) {
    Step step = entry.step;
    if (const char* why = WhyWaits(step.kind); why != nullptr) {
      step.kind = StepKind::kWait;
      step.reason += std::string("; it waits, because ") + why;
    }
    if (step.kind != StepKind::kNothing) LogDecision(step, *entry.view);
    // One write for one VM: a victim's mark comes before what else is to be recorded on it.
    if (!IsAct(step.kind) || to_mark.contains(entry.view->vm->name)) continue;
    if (IsAside(step.kind)) {
      publications->push_back(&entry);
    } else {
      add(StepTask(entry));
    }
  }
  if (action_.has_value()) {
    for (const std::string& vm : to_mark) {
      const Decisions::Entry* entry = decisions.Find(vm);
      add({.kind = Task::Kind::kMark,
           .vm = vm,
           .entry = entry,
           .key = {kMark, entry->view->vm->uid}});
    }
    for (const std::string& vm : action_->tracker.ToMake()) {
      add({.kind = Task::Kind::kMake, .vm = vm, .key = {"create", vm}});
    }
  }
  if (!decisions.snapshot().look().nomad_readable) return tasks;
  for (const NodeOfGoneVm& gone : decisions.to_purge()) {
    add({.kind = Task::Kind::kPurge,
         .vm = std::string(gone.mark.vm),
         .gone = &gone,
         .key = {StepName(StepKind::kPurge), gone.node->id}});
  }
  return tasks;
}

absl::Status Reconciler::WriteAhead(const runtime::Context& context,
                                    const std::vector<Task>& tasks) {
  std::vector<Intent> intents;
  for (const Task& task : tasks) {
    if (task.kind == Task::Kind::kStep)
      intents.push_back({task.entry->view, task.entry->step.kind});
  }
  const PoolRecord before = deps_.lease.record();
  PoolRecord needed = RecordBefore(before, last_->snapshot(), intents, NewActionId(deps_.random));
  if (action_.has_value() && needed.action.has_value()) {
    needed.action->names.merge(action_->tracker.Names());
  }
  const std::string keys = NewKeysForLease(last_->snapshot());
  if (needed == before && keys.empty()) return absl::OkStatus();
  return deps_.lease.Store(context, needed, keys);
}

Effect Reconciler::Make(const runtime::Context& context, Task* task) const {
  const std::string& vm = task->vm;
  const Part& part = action_->tracker.parts().at(vm);
  const std::string& id = part.creation_id;
  deps_.logger.Info("Creating a VM", {{"vm", vm}, {"action_id", id}});
  if (id != action_->tracker.action_id()) {
    if (absl::Status cleared = ClearLeftoverSecret(context, deps_, vm); !cleared.ok()) {
      return EffectOf(std::move(cleared));
    }
  }
  auto created =
      CreateVm(context, deps_, *action_->creation, {.name = vm, .action_id = id, .zone = part.zone},
               last_->snapshot().now());
  if (!created.ok()) return EffectOf(created.status());
  deps_.Tell(StoryOfCreation(vm, created->uid, deps_.key, last_->snapshot().action, id,
                             deps_.agents_reason));
  deps_.metrics().Created(id != action_->tracker.action_id());
  task->created = *std::move(created);
  return {Verdict::kDone};
}

Effect Reconciler::CarryOne(const runtime::Context& context, const PoolSnapshot& named,
                            Task* carried) const {
  const Task& task = *carried;
  switch (task.kind) {
    case Task::Kind::kStep:
      return Execute(context, deps_, *last_, *task.entry->view, task.entry->step);
    case Task::Kind::kMark: {
      const Part& part = action_->tracker.parts().at(task.vm);
      return MarkVictim(context, deps_, named, *task.entry->view, action_->tracker.action_id(),
                        part.node_id, action_->nodes);
    }
    case Task::Kind::kMake:
      return Make(context, carried);
    case Task::Kind::kPurge:
      deps_.logger.Info("Purging the node of a deleted VM",
                        {{"vm", task.vm},
                         {"node_id", task.gone->node->id},
                         {"action_id", task.gone->mark.action}});
      return Purge(context, deps_, *last_, *task.gone);
  }
  return {};
}

// An index that was not started, because the context ended, counts as cancelled.
void Reconciler::Carry(const runtime::Context& context, std::vector<Task>* tasks) {
  const PoolSnapshot named = WithRecord(last_->snapshot());
  const std::vector<absl::Status> started = runtime::ForEachBounded(
      context, deps_.executor, tasks->size(), deps_.parallelism(), [&](std::size_t i) {
        (*tasks)[i].effect = CarryOne(context, named, &(*tasks)[i]);
        return absl::OkStatus();
      });
  for (std::size_t i = 0; i < started.size(); ++i) {
    if (!started[i].ok()) (*tasks)[i].effect = {Verdict::kCancelled, started[i]};
  }
}

// Once all VMs boot. A Secret that gets no owner now is swept.
void Reconciler::OwnSecrets(const runtime::Context& context, const std::vector<Task>& tasks) {
  std::vector<const CreatedVm*> created;
  for (const Task& task : tasks) {
    if (task.created.has_value()) created.push_back(&*task.created);
  }
  const std::vector<absl::Status> owned = runtime::ForEachBounded(
      context, deps_.executor, created.size(), deps_.parallelism(),
      [&](std::size_t i) { return OwnSecret(context, deps_, *created[i]); });
  for (const absl::Status& outcome : owned) {
    if (outcome.ok()) continue;
    unowned_ = true;
    gone_.RequestSweep();
  }
}

void Reconciler::Note(const Task& task, base::MonoTime now, Pass* pass) {
  Retries& retries = deps_.troubles.retries;
  const bool worth_a_line = retries.Note(task.key, task.effect, now);
  const bool for_good = retries.IsRefusedForGood(task.key, now);
  deps_.metrics().Troubled(task.effect.verdict);
  pass->Note(task.effect);
  switch (task.effect.verdict) {
    case Verdict::kDone:
      ++pass->effects;
      // The record of a new key changes nothing that the agent should wait for.
      if (task.kind != Task::Kind::kStep || task.entry->step.kind != StepKind::kRecordCluster) {
        last_event_ = last_->snapshot().now();
      }
      if (worth_a_line) {
        deps_.logger.Info("A step that was refused or failed has succeeded",
                          {{"vm", task.vm}, {"step", task.key.first}});
      }
      if (task.kind != Task::Kind::kStep) break;
      deps_.metrics().Done(task.entry->step, *task.entry->view, last_->snapshot().now());
      if (IsJoin(task.entry->step.kind)) ++pass->joins;
      deps_.Notify({.vm = task.vm, .step = task.entry->step});
      break;
    case Verdict::kRefused:
      if (task.kind == Task::Kind::kMark ||
          (task.kind == Task::Kind::kStep && IsRemoval(task.entry->step.kind))) {
        PoolTroubles::Refusals& refusals = deps_.troubles.removal_refusals[task.vm];
        ++refusals.count;
        refusals.last = now;
      }
      [[fallthrough]];
    case Verdict::kFailed:
      if (worth_a_line) LogTrouble(task);
      break;
    case Verdict::kConflict:
    case Verdict::kNotWanted:
    case Verdict::kUnsuitable:
    case Verdict::kCancelled:
      break;
  }
  if (task.kind == Task::Kind::kPurge && (worth_a_line || task.effect.status.ok())) {
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = task.vm,
                  .object = task.gone->node->id,
                  .outcome = task.effect.status});
  }
  if (task.kind == Task::Kind::kStep) {
    const bool broken = task.entry->step.kind == StepKind::kMarkBroken;
    if (broken && task.effect.verdict == Verdict::kDone) {
      const VmView& view = *task.entry->view;
      // Another process may have counted what it marked.
      const bool is_first = !view.vm->removal_undone.has_value();
      if (is_first && deps_.troubles.counted.insert(task.vm).second) {
        failures_.insert(CauseOfBroken(view));
      }
      broken_ += (broken_.empty() ? "" : "\n") + task.vm + ": " + task.entry->step.reason;
      if (view.start_failure.has_value()) deps_.troubles.zone_failures[view.vm->zone] = now;
    }
    const bool joined = IsJoin(task.entry->step.kind);
    if (joined && task.effect.verdict == Verdict::kDone && action_.has_value()) {
      const Step& step = task.entry->step;
      const bool ready = step.kind == StepKind::kRecordReady || step.node_is_ready;
      action_->tracker.NoteJoined(task.vm, step.node_id, ready);
    }
    if (joined) deps_.troubles.zone_failures.erase(task.entry->view->vm->zone);
    return;
  }
  if (!action_.has_value()) return;
  if (task.kind == Task::Kind::kMark) {
    if (task.effect.verdict == Verdict::kDone) {
      deps_.logger.Info("Marked a VM for removal",
                        {{"vm", task.vm}, {"action_id", action_->tracker.action_id()}});
    }
    action_->tracker.NoteMark(task.vm, task.effect, for_good);
  } else if (task.kind == Task::Kind::kMake) {
    action_->tracker.NoteMake(task.vm, task.effect);
    // What a creation that failed may have left is swept.
    if (action_->tracker.parts().at(task.vm).state == OutcomeState::kFailed) gone_.RequestSweep();
  }
}

// Once per change.
void Reconciler::LogDecision(const Step& step, const VmView& view) {
  std::string logged(RowName(step.row));
  if (last_logged_[view.vm->name] == logged) return;
  last_logged_[view.vm->name] = std::move(logged);
  const bool reported = step.kind == StepKind::kReport;
  const log::Level level = reported           ? log::Level::kWarn
                           : IsAct(step.kind) ? log::Level::kInfo
                                              : log::Level::kDebug;
  // A Scale tells itself of the joins of its VMs.
  const bool told = IsJoin(step.kind) && action_.has_value();
  if (!told) {
    deps_.logger.Log(level, reported ? "A VM needs an operator" : "Next step",
                     {{"vm", view.vm->name},
                      {"step", StepName(step.kind)},
                      {"row", RowName(step.row)},
                      {"why", step.reason},
                      {"node_id", step.node_id},
                      {"action_id", ActionOf(step, view, last_->snapshot())}});
  }
  // An act is reported once it is done. A VM that has yet to join is not worth a line.
  if (!reported) {
    deps_.troubles.reported.erase(view.vm->uid);
  } else if (std::exchange(deps_.troubles.reported[view.vm->uid], RowName(step.row)) !=
             RowName(step.row)) {
    deps_.Tell(StoryOf(step, view, last_->snapshot()));
  }
  if (reported || (step.kind == StepKind::kWait && view.vm->has_mark)) {
    deps_.Notify({.vm = view.vm->name, .step = step});
  }
}

void Reconciler::LogTrouble(const Task& task) {
  std::vector<log::Field> fields = {{"vm", task.vm}, {"step", task.key.first}};
  if (task.kind == Task::Kind::kStep) {
    fields.emplace_back("row", RowName(task.entry->step.row));
    fields.emplace_back("why", task.entry->step.reason);
    deps_.Notify({.vm = task.vm, .step = task.entry->step, .outcome = task.effect.status});
  }
  if (action_.has_value()) fields.emplace_back("action_id", action_->tracker.action_id());
  fields.emplace_back("error", task.effect.status);
  const bool refused = task.effect.verdict == Verdict::kRefused;
  const bool removal = task.kind == Task::Kind::kMark ||
                       (task.kind == Task::Kind::kStep && IsRemoval(task.entry->step.kind));
  if (refused && removal) {
    deps_.Tell(StoryOfRefusal(task.entry->view->vm, task.key.first, task.effect.status));
  }
  deps_.logger.Log(
      log::Level::kWarn,
      refused ? "A step is refused; trying again later" : "A step failed; trying again later",
      fields);
}

// Forgets troubles of objects that are gone.
void Reconciler::Prune() {
  std::set<std::string> objects = {deps_.key.pool};
  for (const VmView& view : last_->snapshot().look().vms) {
    objects.insert(view.vm->uid);
    objects.insert(view.vm->name);
    if (view.vm->has_mark) continue;
    // Whoever removed the mark: the next removal of this VM is tried from the start.
    for (const StepKind kind : {StepKind::kStartDrain, StepKind::kDelete, StepKind::kRollBack}) {
      deps_.troubles.retries.Forget({StepName(kind), view.vm->uid});
    }
  }
  // What is no longer to be published, to be unset, or to be marked.
  for (const auto& [view, step] : last_->all()) {
    if (!IsReadable(*view, last_->snapshot().look())) continue;
    for (const StepKind kind : {StepKind::kPublishHost, StepKind::kUnpublishHost,
                                StepKind::kMarkBroken, StepKind::kMarkUnhealthy}) {
      if (step.kind != kind) deps_.troubles.retries.Forget({StepName(kind), view->vm->uid});
    }
  }
  for (const nomad::Node& node : last_->snapshot().nodes()) objects.insert(node.id);
  if (action_.has_value()) objects.merge(action_->tracker.Names());
  std::erase_if(deps_.troubles.reported,
                [&](const auto& entry) { return !objects.contains(entry.first); });
  std::erase_if(deps_.troubles.counted,
                [&](const std::string& vm) { return !objects.contains(vm); });
  std::erase_if(deps_.troubles.removal_refusals,
                [&](const auto& entry) { return !objects.contains(entry.first); });
  // Claims and Secrets of VMs that are gone, by the names that the sweep found.
  const bool sweeps = !deps_.troubles.leftovers.empty();
  deps_.troubles.retries.KeepOnly(objects, sweeps);
}

absl::StatusOr<Reconciler::Pass> Reconciler::RunPass(const runtime::Context& context,
                                                     std::optional<PoolSnapshot> look) {
  if (!look.has_value()) {
    auto seen = Look(context, next_wait_);
    NH_RETURN_IF_ERROR(context.Check());
    NH_RETURN_IF_ERROR(seen);
    look = *std::move(seen);
  }
  // The Lease's action and what is left of VMs are another agent's, too.
  if (std::string problem = OtherClusterProblem(*look); !action_.has_value() && !problem.empty()) {
    return base::Unavailable(std::move(problem));
  }
  const Decisions& decisions = last_.emplace(*std::move(look));
  PoolTroubles& troubles = deps_.troubles;
  const base::MonoTime now = deps_.clock.Now();
  deps_.metrics().Observed(decisions.snapshot());
  gone_.Observe(decisions, now);
  if (action_.has_value()) {
    action_->tracker.Observe(decisions, troubles.retries, troubles.leftovers, now);
  }
  Pass pass{.began = now, .readable = decisions.snapshot().look().nomad_readable};
  std::vector<const Decisions::Entry*> publications;
  std::vector<Task> tasks = TasksOf(decisions, now, &publications);
  NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
  publications_.Start(context, publications, decisions.snapshot().seen, now);
  Carry(context, &tasks);
  OwnSecrets(context, tasks);
  for (const Task& task : tasks) Note(task, deps_.clock.Now(), &pass);
  // If nothing else goes on, this saves another look.
  if (!action_.has_value() && tasks.empty() && !IsInProgress(now)) publications_.Await();
  for (const Effect& effect : publications_.TakeEnded()) pass.Note(effect);
  NH_RETURN_IF_ERROR(context.Check());
  const Tracker* const tracker = action_.has_value() ? &action_->tracker : nullptr;
  if (gone_.IsSweepDue(tracker)) {
    pass.Note(gone_.Sweep(context, decisions.snapshot(), tracker));
    if (action_.has_value()) {
      action_->tracker.Observe(decisions, troubles.retries, troubles.leftovers, deps_.clock.Now());
    }
  }
  Prune();
  NH_RETURN_IF_ERROR(context.Check());
  return pass;
}

// Waits before the next observation, for a change of Nomad's nodes: briefly after an effect, which
// may not show there, else for a time that grows, because VMs change, too.
absl::Status Reconciler::Wait(const runtime::Context& context, const Pass& pass) {
  next_wait_ = {};
  idle_passes_ = pass.effects > 0 ? 0 : idle_passes_ + 1;
  const base::MonoTime now = deps_.clock.Now();
  base::Duration wait =
      pass.effects > 0 ? kPause : std::min(kLongestWait, kFirstWait * idle_passes_);
  if (const auto next = deps_.troubles.retries.NextAttempt(pass.began);
      next.has_value() && pass.effects == 0) {
    wait = std::clamp(base::Duration(*next - now), kFirstWait, wait);
  }
  const std::uint64_t index = last_->snapshot().look().nomad_index;
  // A blocking query needs an index; an empty cluster does not have one yet.
  if (!pass.readable || index == 0) return context.Sleep(wait);
  next_wait_.after_index = index;
  next_wait_.wait = std::min(wait, deps_.clients.config->nomad.block_query_wait);
  paced_until_ = std::max(paced_until_, now) + kPause;
  return context.Sleep(std::max(paced_until_ - now - kAtOnce * kPause, base::Duration::zero()));
}

absl::Status Reconciler::RunScale(const runtime::Context& context, PoolSnapshot first,
                                  Action action) {
  const absl::Cleanup end = [this] { publications_.End(); };
  action_.emplace(action);
  std::optional<PoolSnapshot> look = WithRecord(std::move(first));
  for (;;) {
    const auto pass = RunPass(context, std::exchange(look, std::nullopt));
    action_->nodes = nullptr;
    NH_RETURN_IF_ERROR(context.Check());
    if (!pass.ok()) {
      deps_.logger.Warn("Could not observe the pool; retrying", {{"error", pass.status()}});
      NH_RETURN_IF_ERROR(context.Sleep(kLongestWait));
      continue;
    }
    const bool ended = action.tracker.Ended(*last_, deps_.troubles.retries, deps_.clock.Now());
    if (ended && pass->effects == pass->joins) return absl::OkStatus();
    NH_RETURN_IF_ERROR(Wait(context, *pass));
  }
}

// Whether something goes on that only needs time: a drain, a deletion, a clean-up.
bool Reconciler::IsInProgress(base::MonoTime now) const {
  const PoolSnapshot& snapshot = last_->snapshot();
  for (const auto& [view, step] : last_->all()) {
    if (!view->member || IsOtherNomad(view->vm, snapshot.look())) continue;
    if (!view->vm->has_mark || IsStuckInDeletion(view->vm, snapshot.now())) continue;
    if (step.kind == StepKind::kWait) return true;
  }
  return gone_.IsCleanUpInProgress(now);
}

absl::Status Reconciler::RunResumption(const runtime::Context& context) {
  const absl::Cleanup end = [this] { publications_.End(); };
  gone_.RequestSweep();
  for (int fruitless = 0;;) {
    const auto pass = RunPass(context, std::nullopt);
    NH_RETURN_IF_ERROR(context.Check());
    const absl::Status trouble = !pass.ok() ? pass.status()
                                 : !pass->readable
                                     ? base::Unavailable(last_->snapshot().look().nomad_problem)
                                     : pass->trouble;
    const bool effective = pass.ok() && pass->effects > 0;
    const bool in_progress =
        pass.ok() && pass->readable && (publications_.any() || IsInProgress(deps_.clock.Now()));
    fruitless = trouble.ok() || effective ? 0 : fruitless + 1;
    if (!trouble.ok() && !effective && !in_progress) {
      // What is refused waits for the next round; what failed may succeed a moment later.
      if ((pass.ok() && pass->readable && pass->only_refusals) || fruitless >= kFruitlessPasses) {
        if (pass.ok() && pass->readable) CloseRecord(nullptr);
        return trouble;
      }
    }
    if (!pass.ok()) {
      NH_RETURN_IF_ERROR(context.Sleep(kFirstWait));
      continue;
    }
    if (pass->readable && !effective && pass->conflicts == 0 && trouble.ok() && !in_progress) {
      if (const char* why = RemovalWaits(); why != nullptr) {
        return base::Unavailable(std::string(why) + ": nothing is removed");
      }
      CloseRecord(nullptr);
      return WaitingForAttempts();
    }
    NH_RETURN_IF_ERROR(Wait(context, *pass));
  }
}

const char* Reconciler::RemovalWaits() const {
  for (const Decisions::Entry& entry : last_->all()) {
    if (IsRemoval(entry.step.kind)) return WhyWaits(entry.step.kind);
  }
  return nullptr;
}

// Why something that is to be done was not tried in the last pass; OK if there is nothing.
absl::Status Reconciler::WaitingForAttempts() const {
  for (const Decisions::Entry& entry : last_->all()) {
    if (!IsAct(entry.step.kind)) continue;
    absl::Status last = deps_.troubles.retries.LastOf(KeyOf(entry));
    if (!last.ok()) return last;
  }
  for (const auto& [vm, leftover] : deps_.troubles.leftovers) {
    return base::Unavailable("VM " + vm +
                             " is gone, but something is left of it: " + leftover.what);
  }
  return absl::OkStatus();
}

void Reconciler::CloseRecord(const Tracker* tracker) {
  if (!last_.has_value()) return;
  RunSummary run{
      .last = last_->snapshot(), .last_event = last_event_, .remembered = deps_.lease.used()};
  run.failures = failures_;
  if (tracker != nullptr) {
    tracker->AddTo(&run);
    deps_.troubles.counted.merge(tracker->FailedVms());
  }
  for (const auto& [vm, leftover] : deps_.troubles.leftovers) run.leftovers.insert(vm);
  const PoolRecord before = deps_.lease.record();
  PoolRecord after = RecordAfter(before, run);
  if (after != before) closed_record_ = std::move(after);
  // A Scale records its own outcome.
  if (tracker == nullptr && !broken_.empty()) RecordOutcome("", base::Internal(broken_));
}

void Reconciler::RecordOutcome(const std::string& action_id, const absl::Status& outcome) {
  PoolRecord record = closed_record_.value_or(deps_.lease.record());
  std::optional<harvester::ErrorRecord>& error = record.last_error;
  if (outcome.ok()) {
    error.reset();
  } else {
    if (!error.has_value()) error.emplace();
    error->action = action_id;
    error->at = last_.has_value() ? last_->snapshot().now() : deps_.clock.WallNow();
    error->text = base::WithoutSecrets(base::Message(outcome));
  }
  if (record != deps_.lease.record()) closed_record_ = std::move(record);
}

absl::Status Reconciler::Preview(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
  if (std::string problem = NomadProblem(snapshot); !problem.empty()) {
    return base::Unavailable(std::move(problem));
  }
  const Decisions& decisions = last_.emplace(std::move(snapshot));
  for (const auto& [view, step] : decisions.all()) {
    const bool waits_to_join = step.kind == StepKind::kWait && !view->vm->has_mark;
    if (step.kind == StepKind::kNothing || waits_to_join) continue;
    if (WhyWaits(step.kind) == nullptr) deps_.Notify({.vm = view->vm->name, .step = step});
  }
  for (const NodeOfGoneVm& gone : decisions.to_purge()) {
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = std::string(gone.mark.vm),
                  .object = gone.node->id});
  }
  gone_.Observe(decisions, deps_.clock.Now());
  SweepScope scope = gone_.Scope();
  scope.dry_run = true;
  return SweepLeftovers(context, deps_, scope).status();
}

}  // namespace nomad_harvester::scaling
