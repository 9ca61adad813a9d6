// SPDX-License-Identifier: Apache-2.0
#include "execution/reconciler.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/replacement.h"

#include "absl/cleanup/cleanup.h"
#include "execution/executor.h"
#include "execution/publication.h"
#include "rules/back_off.h"
#include "rules/event_text.h"
#include "rules/pool_record.h"

namespace nomad_harvester::scaling {
namespace {

// Interval between two observations. A blocking query ends when a node changes, and after
// nomad_block-query-wait-time at the latest, because load balancers close connections that are
// silent for a minute (hashicorp/nomad-autoscaler#754). Nodes that change continuously are observed
// at this interval, after an initial burst.
constexpr base::Duration kPause = std::chrono::milliseconds(250);
constexpr int kAtOnce = 4;
constexpr base::Duration kFirstWait = std::chrono::seconds(1);
constexpr base::Duration kMaxWait = std::chrono::seconds(5);
// Resumption ends after this many consecutive passes with failures and without an effect.
constexpr int kFruitlessPasses = 3;
// VMs whose roll-back takes longer than this are left out of the plan.
constexpr base::Duration kRollBacksTimeout = std::chrono::seconds(15);

}  // namespace

Reconciler::Reconciler(PoolDependencies deps, SharedPolicy policy)
    : deps_(std::move(deps)), policy_(std::move(policy)) {}

void Reconciler::Pass::Add(const Effect& effect) {
  const bool failed = effect.verdict == Verdict::kFailed;
  if (effect.verdict == Verdict::kConflict) ++conflicts;
  if (!failed && effect.verdict != Verdict::kRefused) return;
  if (trouble.ok()) trouble = effect.status;
  if (failed) only_refusals = false;
}

absl::StatusOr<PoolSnapshot> Reconciler::Observe(const runtime::Context& context,
                                                 const Observer::BlockingWait& blocking) {
  const base::MonoTime began = deps_.clock.Now();
  NH_ASSIGN_OR_RETURN(
      scaling::Observation observation,
      deps_.observer().Observe(
          context, EmptyObservation(deps_.clients.config->nomad.region, deps_.key.pool, policy_),
          blocking));
  observed_at_ = began;
  // A running drain was accepted, even if no reply said so.
  for (const VmView& view : observation.vms) {
    const nomad::Node* node = LinkedNode(view, observation);
    if (node == nullptr || !view.vm->mark.has_value()) continue;
    if (!nodepool::IsDrainOf(*node, view.vm->mark->action, view.vm->uid)) continue;
    deps_.backlog.retries.Forget({StepName(StepKind::kStartDrain), view.vm->uid});
  }
  deps_.backlog.retries.Apply(deps_.clock.Now(), &observation);
  std::set<std::string> staying;
  for (const VmView& view : observation.vms) {
    if (view.stays_unrecorded) staying.insert(view.vm->uid);
  }
  deps_.memory.RecordStaying(staying);
  if (policy_.has_value() && policy_->publish_host) {
    deps_.hosts.Record(deps_.key.ns, began, &observation);
  }
  if (policy_.has_value() && EvacuatesHosts(*policy_)) {
    deps_.hosts.ApplyCordoned(deps_.key.ns, deps_.clock.Now(), &observation);
  }
  return WithRecord({.key = deps_.key,
                     .seen = std::make_shared<const Snapshot>(std::move(observation)),
                     .policy = policy_});
}

PoolSnapshot Reconciler::WithRecord(PoolSnapshot seen) const {
  PoolRecord record = deps_.lease.record();
  seen.action = std::move(record.action);
  seen.lease_cluster = std::move(record.nomad_cluster);
  seen.collected = deps_.collects;
  return seen;
}

absl::StatusOr<Reconciler::Settled> Reconciler::FinishRollBacks(const runtime::Context& context) {
  const base::MonoTime began = deps_.clock.Now();
  for (;;) {
    NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
    NH_RETURN_IF_ERROR(CheckNomad(snapshot));
    const Decisions& decisions = last_.emplace(std::move(snapshot));
    const base::MonoTime now = deps_.clock.Now();
    Settled settled{.snapshot = decisions.snapshot()};
    PassTasks tasks;
    Pass pass;
    bool due = false;
    for (const Decisions::Entry& entry : decisions.all()) {
      if (!IsRepair(entry.step.kind)) continue;
      const Retries& retries = deps_.backlog.retries;
      const Retries::Key key = KeyOfStep(entry);
      if (retries.FailingFor(key, now) >= kRefusedForGood || now - began >= kRollBacksTimeout) {
        const absl::Status last = retries.LastOf(key);
        settled.left_out[entry.view->vm->name] =
            "its roll-back (" + entry.step.reason +
            ") does not succeed: " + (last.ok() ? "it has not ended in 15s" : base::Message(last));
        continue;
      }
      due = true;
      if (PassTask task(entry); MayRun(&task, now, &pass)) tasks.push_back(std::move(task));
    }
    NoteOthersWithoutEffect(decisions, &pass);
    deps_.backlog.retries.ConfirmAccepted(observed_at_, /*of_sweep=*/false);
    if (!due) return settled;
    NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
    // One that gets no answer delays the others for no longer (rule L1).
    CarryOut(context.WithTimeout(began + kRollBacksTimeout - now), &tasks, &pass);
    NH_RETURN_IF_ERROR(context.Check());
    NH_RETURN_IF_ERROR(context.Sleep(pass.effects > 0 ? kPause : kFirstWait));
  }
}

const Decisions& Reconciler::Take(PoolSnapshot observed) {
  const Decisions& decisions = last_.emplace(std::move(observed));
  const base::MonoTime now = deps_.clock.Now();
  std::set<std::string> held;
  for (const auto& [view, step] : decisions.all()) {
    // A read that fails says nothing of a hold that has begun.
    const bool still =
        view->held_for > base::Duration::zero() && view->vm->has_mark && !view->vm->holds.empty();
    if (step.is_held || still) held.insert(view->vm->uid);
  }
  if (decisions.snapshot().observation().nomad.ok()) {
    deps_.memory.RecordAwaiting(now, AwaitingReplacement(decisions), held);
  }
  gone_.Observe(decisions, now);
  return decisions;
}

const char* Reconciler::ReasonToWait(const PoolSnapshot& snapshot, StepKind kind) const {
  if (!IsRemoval(kind) && !IsUpkeep(kind)) return nullptr;
  if (deps_.lease.record().paused.HoldsAt(snapshot.now())) return "the pool is paused";
  if (!IsRemoval(kind)) return nullptr;
  if (IsOtherClusterByLease(snapshot)) {
    return "by its Lease the pool belongs to another Nomad cluster";
  }
  const bool allowed = snapshot.action.has_value() && snapshot.action->despite_mass_loss;
  return !allowed && snapshot.mass_loss().alarming
             ? "too many VMs have lost their Nomad nodes at once"
             : nullptr;
}

void Reconciler::NoteWithoutEffect(PassTask* task, Pass* pass) {
  if (!deps_.backlog.retries.WasAccepted(task->key, observed_at_)) return;
  task->effect = WithoutEffect();
  Conclude(task, pass);
  LogTroubles({*task});
}

void Reconciler::NoteOthersWithoutEffect(const Decisions& decisions, Pass* pass) {
  for (const Decisions::Entry& entry : decisions.all()) {
    const StepKind kind = entry.step.kind;
    if (!IsAct(kind) || IsRepair(kind)) continue;
    if (ReasonToWait(decisions.snapshot(), kind) != nullptr) continue;
    PassTask task(entry);
    NoteWithoutEffect(&task, pass);
  }
  for (const OrphanedNode& gone : decisions.to_purge()) {
    PassTask task(gone);
    NoteWithoutEffect(&task, pass);
  }
}

bool Reconciler::MayRun(PassTask* task, base::MonoTime now, Pass* pass) {
  NoteWithoutEffect(task, pass);
  return deps_.backlog.retries.MayTry(task->key, now);
}

// The tasks that are due now, without those that wait for their next attempt.
PassTasks Reconciler::TasksOf(const Decisions& decisions, base::MonoTime now, Pass* pass) {
  PassTasks tasks;
  for (const Decisions::Entry& entry : decisions.all()) {
    Step step = entry.step;
    if (const char* why = ReasonToWait(decisions.snapshot(), step.kind); why != nullptr) {
      step.kind = StepKind::kWait;
      step.reason += std::string("; it waits, because ") + why;
    }
    if (step.kind != StepKind::kNothing) LogDecision(step, *entry.view);
    if (!IsAct(step.kind)) continue;
    if (PassTask task(entry); MayRun(&task, now, pass)) tasks.push_back(std::move(task));
  }
  if (!decisions.snapshot().observation().nomad.ok()) return tasks;
  for (const OrphanedNode& gone : decisions.to_purge()) {
    if (PassTask task(gone); MayRun(&task, now, pass)) tasks.push_back(std::move(task));
  }
  return tasks;
}

absl::Status Reconciler::WriteAhead(const runtime::Context& context, const PassTasks& tasks) {
  std::vector<Decisions::Entry> steps;
  for (const PassTask& task : tasks) {
    const bool is_first = deps_.backlog.retries.LastOf(task.key).ok();
    if (task.kind == StepKind::kRollBack && is_first) RecordRollBack(task, *last_, &deps_.backlog);
    if (task.entry != nullptr) steps.push_back(*task.entry);
  }
  NH_RETURN_IF_ERROR(StoreFailures(context));
  const PoolRecord before = deps_.lease.record();
  const PoolRecord needed =
      RecordBefore(before, last_->snapshot(), steps, NewActionId(deps_.random));
  const std::string keys = NewKeysForLease(last_->snapshot());
  if (needed == before && keys.empty()) return absl::OkStatus();
  return deps_.lease.Store(context, needed, keys);
}

// A task that was not started because the context ended counts as cancelled.
void Reconciler::CarryOut(const runtime::Context& context, PassTasks* tasks, Pass* pass) {
  const std::vector<absl::Status> started = runtime::ForEachBounded(
      context, deps_.executor, tasks->size(), deps_.parallelism(), [&](std::size_t i) {
        PassTask& task = (*tasks)[i];
        task.effect = task.entry == nullptr
                          ? Purge(context, deps_, *last_, *task.gone)
                          : Execute(context, deps_, *last_, *task.entry->view, task.entry->step);
        return absl::OkStatus();
      });
  for (std::size_t i = 0; i < started.size(); ++i) {
    PassTask& task = (*tasks)[i];
    if (!started[i].ok()) task.effect = {Verdict::kCancelled, started[i]};
    Conclude(&task, pass);
  }
  LogTroubles(*tasks);
}

void Reconciler::Conclude(PassTask* concluded, Pass* pass) {
  PassTask& task = *concluded;
  const Effect& effect = task.effect;
  PoolBacklog& backlog = deps_.backlog;
  task.ended = deps_.clock.Now();
  task.should_log = backlog.retries.Record(task.key, effect, task.ended);
  if (effect.verdict == Verdict::kDone && backlog.retries.LacksEffect(task.key)) return;
  deps_.metrics().Troubled(effect.verdict);
  pass->Add(effect);
  if (effect.verdict == Verdict::kDone) {
    ++pass->effects;
    // The agent need not wait for a record of the cluster alone.
    const bool is_silent = task.kind == StepKind::kRecordCluster && task.entry->step.value.empty();
    if (!is_silent) backlog.unrecorded.last_event = last_->snapshot().earlier_now();
    if (task.should_log) {
      deps_.logger.Info("A step that was refused or failed has succeeded",
                        {{"vm", task.vm}, {"what", task.what()}});
    }
  }
  if (effect.verdict == Verdict::kRefused && IsRemoval(task.kind)) {
    backlog.CountRefusedRemoval(task.vm, task.ended);
  }
  scaling::Conclude(task, deps_, *last_);
}

// Logs a decision once per change.
void Reconciler::LogDecision(const Step& step, const VmView& view) {
  if (step.kind == StepKind::kWait && !view.drain_held_by.empty() &&
      std::exchange(held_by_[view.vm->name], view.drain_held_by) != view.drain_held_by) {
    deps_.logger.Info(
        "A drain waits for running work",
        {{"vm", view.vm->name}, {"running", view.drain_held_by}, {"node_id", step.node_id}});
  }
  std::string logged(RowName(step.row));
  logged += StepName(step.kind);  // the kind changes when a row waits for a hold
  if (last_logged_[view.vm->name] == logged) return;
  last_logged_[view.vm->name] = std::move(logged);
  const bool reported = step.kind == StepKind::kReport;
  const bool overdue = step.is_held && IsAct(step.kind);
  const log::Level level = reported || overdue                ? log::Level::kWarn
                           : IsAct(step.kind) || step.is_held ? log::Level::kInfo
                                                              : log::Level::kDebug;
  // A join is logged once it is recorded.
  if (!IsJoin(step.kind)) {
    std::vector<log::Field> fields = {{"vm", view.vm->name}};
    if (!reported) fields.emplace_back("what", SpecOf(step.kind).infinitive);
    if (level == log::Level::kDebug) fields.emplace_back("row", RowName(step.row));
    fields.insert(fields.end(), {{"why", step.reason},
                                 {"node_id", step.node_id},
                                 {"action_id", ActionOf(step, view, last_->snapshot())}});
    deps_.logger.Log(level,
                     reported  ? "A VM needs an operator"
                     : overdue ? "A VM is deleted although it is held"
                               : "Next step",
                     fields);
  }
  // An act is reported once it is done. A VM that has yet to join is not worth a log line.
  if (reported &&
      std::exchange(deps_.backlog.reported[view.vm->uid], RowName(step.row)) != RowName(step.row)) {
    deps_.PostEvents(EventsOf(step, view, last_->snapshot()));
    if (deps_.backlog.awaited.contains(view.vm->name) && IsBroken(view, last_->snapshot())) {
      ConcludeBroken(view, step.reason, deps_.clock.Now(), &deps_.backlog);
    }
  }
  if (reported || (step.kind == StepKind::kWait && view.vm->has_mark)) {
    deps_.Notify({.vm = view.vm->name, .step = step});
  }
}

// Logs equal failures of several VMs in one line.
void Reconciler::LogTroubles(const PassTasks& tasks) const {
  std::map<std::string, std::vector<const PassTask*>> alike;
  for (const PassTask& task : tasks) {
    if (!task.should_log || !task.is_trouble()) continue;
    const std::string error = base::WithoutName(task.effect.status.ToString(), task.vm);
    alike[std::string(task.what()) + "\n" + error].push_back(&task);
  }
  for (const auto& [key, same] : alike) {
    const PassTask& task = *same[0];
    std::vector<std::string> vms;
    for (const PassTask* each : same) vms.push_back(each->vm);
    std::vector<log::Field> fields = {{"vm", base::FirstFew(vms)}};
    if (vms.size() > 1) fields.emplace_back("vms", vms.size());
    fields.emplace_back("what", task.what());
    if (vms.size() == 1 && !task.why().empty()) fields.emplace_back("why", task.why());
    fields.emplace_back("error", task.effect.status);
    deps_.logger.Log(log::Level::kWarn,
                     task.effect.verdict == Verdict::kRefused
                         ? "A step is refused; trying again later"
                         : "A step failed; trying again later",
                     fields);
  }
}

namespace {

std::vector<const VmView*> DeletedBy(const PassTasks& tasks) {
  std::vector<const VmView*> deleted;
  for (const PassTask& task : tasks) {
    if (task.kind == StepKind::kDelete) deleted.push_back(task.entry->view);
  }
  return deleted;
}

}  // namespace

absl::StatusOr<Reconciler::Pass> Reconciler::RunPass(const runtime::Context& context) {
  closed_at_.reset();
  auto observation = Observe(context, next_wait_);
  NH_RETURN_IF_ERROR(context.Check());
  NH_RETURN_IF_ERROR(observation);
  // The Lease's action and the VMs' leftovers then belong to another agent, too.
  NH_RETURN_IF_ERROR(CheckCluster(*observation));
  const Decisions& decisions = Take(*std::move(observation));
  const base::MonoTime now = deps_.clock.Now();
  deps_.metrics().Observed(decisions.snapshot());
  Pass pass{.began = now, .readable = decisions.snapshot().observation().nomad.ok()};
  PassTasks tasks = TasksOf(decisions, now, &pass);
  std::vector<const Decisions::Entry*> publications;
  for (const PassTask& task : tasks) {
    if (IsDeferred(task.kind)) publications.push_back(task.entry);
  }
  std::erase_if(tasks, [](const PassTask& task) { return IsDeferred(task.kind); });
  deps_.backlog.retries.ConfirmAccepted(observed_at_, /*of_sweep=*/false);
  NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
  deps_.backlog.history.Write(context, deps_, decisions.snapshot(), DeletedBy(tasks));
  publications_.Start(context, publications, decisions.snapshot().seen, now);
  CarryOut(context, &tasks, &pass);
  NH_RETURN_IF_ERROR(StoreFailures(context));
  // If nothing else is in progress, waiting here saves an Observation.
  if (tasks.empty() && !IsInProgress(now)) publications_.Await();
  for (const Effect& effect : publications_.TakeEnded()) pass.Add(effect);
  NH_RETURN_IF_ERROR(context.Check());
  if (gone_.IsSweepDue()) pass.Add(gone_.Sweep(context, decisions.snapshot()));
  deps_.backlog.ForgetWhatIsGone(decisions, deps_.key);
  NH_RETURN_IF_ERROR(context.Check());
  return pass;
}

// Waits for a change of Nomad's nodes before the next observation. The wait is short after an
// effect, which may not show in the nodes. Otherwise it grows, but is limited, because VMs change,
// too.
absl::Status Reconciler::Wait(const runtime::Context& context, const Pass& pass) {
  next_wait_ = {};
  idle_passes_ = pass.effects > 0 ? 0 : idle_passes_ + 1;
  const base::MonoTime now = deps_.clock.Now();
  base::Duration wait = pass.effects > 0 ? kPause : std::min(kMaxWait, kFirstWait * idle_passes_);
  if (const auto next = deps_.backlog.retries.NextAttempt(pass.began);
      next.has_value() && pass.effects == 0) {
    wait = std::clamp(base::Duration(*next - now), kFirstWait, wait);
  }
  const std::uint64_t index = last_->snapshot().observation().nomad_index;
  // A blocking query needs an index; an empty cluster does not have one yet.
  if (!pass.readable || index == 0) return context.Sleep(wait);
  next_wait_.after_index = index;
  next_wait_.wait = std::min(wait, deps_.clients.config->nomad.block_query_wait);
  paced_until_ = std::max(paced_until_, now) + kPause;
  return context.Sleep(std::max(paced_until_ - now - kAtOnce * kPause, base::Duration::zero()));
}

// True if something is in progress that only needs time: a drain, a deletion, a clean-up.
bool Reconciler::IsInProgress(base::MonoTime now) const {
  const PoolSnapshot& snapshot = last_->snapshot();
  for (const auto& [view, step] : last_->all()) {
    if (!view->member || IsOtherNomad(view->vm, snapshot.observation())) continue;
    if (!view->vm->has_mark || IsStuckInDeletion(*view, snapshot.now())) continue;
    if (step.kind == StepKind::kWait) return true;
  }
  return gone_.IsCleanUpInProgress(now);
}

Reconciler::Waiting Reconciler::WaitingAt(base::MonoTime now) const {
  const Retries& retries = deps_.backlog.retries;
  Waiting waiting;
  for (const Decisions::Entry& entry : last_->all()) {
    if (!IsAct(entry.step.kind)) continue;
    const Retries::Key key = KeyOfStep(entry);
    waiting.why.Update(retries.LastOf(key));
    const auto next = retries.RetryOf(key);
    if (next.has_value() && *next > now && *next - now <= kMaxWait) {
      waiting.next = std::min(waiting.next.value_or(*next), *next);
    }
    if (!IsRemoval(entry.step.kind)) continue;
    waiting.has_removal = true;
    const std::optional<harvester::Mark>& mark = entry.view->vm->mark;
    const base::Duration refused_for = retries.RefusedFor(key, now);
    waiting.tries_removal |= mark.has_value() && mark->reason == harvester::MarkReason::kScaleIn &&
                             refused_for > base::Duration::zero() && refused_for < kRefusedForGood;
  }
  return waiting;
}

absl::Status Reconciler::RunResumption(const runtime::Context& context, const MayLeave& may_leave) {
  const absl::Cleanup end = [this] { publications_.End(); };
  gone_.RequestSweep();
  base::MonoTime acted_at = deps_.clock.Now();
  for (int fruitless = 0;;) {
    const auto pass = RunPass(context);
    NH_RETURN_IF_ERROR(context.Check());
    const absl::Status trouble = !pass.ok()        ? pass.status()
                                 : !pass->readable ? last_->snapshot().observation().nomad
                                                   : pass->trouble;
    const bool effective = pass.ok() && pass->effects > 0;
    const bool readable = pass.ok() && pass->readable;
    const base::MonoTime now = deps_.clock.Now();
    const Waiting waiting = readable ? WaitingAt(now) : Waiting();
    const bool in_progress = readable && (publications_.any() || IsInProgress(now) ||
                                          (!deps_.collects && may_leave && waiting.tries_removal));
    fruitless = trouble.ok() || effective ? 0 : fruitless + 1;
    if (!trouble.ok() && !effective && !in_progress) {
      // A refused step waits for the next round; a failed one may succeed a moment later.
      if ((readable && pass->only_refusals) || fruitless >= kFruitlessPasses) {
        if (readable) CloseAction(last_->snapshot());
        return trouble;
      }
    }
    if (!pass.ok()) {
      next_wait_ = {};  // a proxy may answer everything but blocking queries
      NH_RETURN_IF_ERROR(context.Sleep(kFirstWait));
      continue;
    }
    const bool rests = readable && !effective && pass->conflicts == 0 && trouble.ok();
    if (!rests || gone_.IsCleanUpInProgress(now) || publications_.any()) acted_at = now;
    if (rests && in_progress && may_leave && may_leave(last_->snapshot(), now - acted_at)) {
      return absl::OkStatus();
    }
    if (rests && !in_progress) {
      const char* const why = ReasonToWait(last_->snapshot(), StepKind::kDelete);
      if (waiting.has_removal && why != nullptr) {
        return base::Unavailable(std::string(why) + ": nothing is removed");
      }
      if (waiting.next.has_value()) {
        NH_RETURN_IF_ERROR(context.Sleep(*waiting.next - now));
        continue;
      }
      CloseAction(last_->snapshot());
      if (!waiting.why.ok() || deps_.backlog.leftovers.empty()) return waiting.why;
      const auto& [vm, leftover] = *deps_.backlog.leftovers.begin();
      return base::Unavailable("VM " + vm +
                               " is gone, but something is left of it: " + leftover.what);
    }
    NH_RETURN_IF_ERROR(Wait(context, *pass));
  }
}

absl::Status Reconciler::AwaitWork(const runtime::Context& context,
                                   const std::function<bool(const PoolSnapshot&)>& may_end) {
  for (;;) {
    const base::MonoTime now = deps_.clock.Now();
    NH_RETURN_IF_ERROR(Wait(context, {.began = now, .readable = true}));
    auto observation = Observe(context, next_wait_);
    NH_RETURN_IF_ERROR(context.Check());
    if (!observation.ok()) return absl::OkStatus();  // RunResumption deals with it
    const Decisions& decisions = Take(*std::move(observation));
    const base::MonoTime observed = deps_.clock.Now();
    Pass pass;
    const bool only_waits = TasksOf(decisions, observed, &pass).empty() &&
                            decisions.snapshot().observation().nomad.ok() &&
                            IsInProgress(observed) && !gone_.IsCleanUpInProgress(observed);
    if (only_waits && !may_end(decisions.snapshot())) continue;
    next_wait_ = {};  // the work that it has found begins at once
    return absl::OkStatus();
  }
}

PoolRecord Reconciler::NewRecord() const {
  const Unrecorded& news = deps_.backlog.unrecorded;
  if (closed_at_.has_value()) {
    std::set<std::string> leftovers;
    for (const auto& [vm, leftover] : deps_.backlog.leftovers) leftovers.insert(vm);
    return RecordAfter(deps_.lease.record(), news, *closed_at_, leftovers);
  }
  return RecordAfter(deps_.lease.record(), news,
                     last_.has_value() ? last_->snapshot().now() : deps_.clock.WallNow());
}

absl::Status Reconciler::StoreRecord(const runtime::Context& context) {
  const PoolRecord record = NewRecord();
  if (record != deps_.lease.record()) NH_RETURN_IF_ERROR(deps_.lease.Store(context, record));
  deps_.backlog.unrecorded = {};
  closed_at_.reset();
  return absl::OkStatus();
}

// A Scale may begin while the run goes on: it must know of the back-off.
absl::Status Reconciler::StoreFailures(const runtime::Context& context) {
  const Unrecorded& news = deps_.backlog.unrecorded;
  return news.failures.empty() && !news.error.has_value() ? absl::OkStatus() : StoreRecord(context);
}

bool Reconciler::Release(LeaseHold& hold) {
  // Who waits for its end (a Scale, an orderly stop) waits for one request only (rules L8, L9). The
  // next run stores the rest.
  if (hold.context().cancel_reason() != runtime::CancelReason::kNone) {
    hold.Release();
    return false;
  }
  const PoolRecord record = NewRecord();
  const bool is_stored = hold.Release(record == deps_.lease.record() ? nullptr : &record);
  if (is_stored) deps_.backlog.unrecorded = {};
  closed_at_.reset();
  return is_stored;
}

absl::Status Reconciler::Preview(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
  NH_RETURN_IF_ERROR(CheckNomad(snapshot));
  const Decisions& decisions = Take(std::move(snapshot));
  for (const auto& [view, step] : decisions.all()) {
    const bool waits_to_join = step.kind == StepKind::kWait && !view->vm->has_mark;
    if (step.kind == StepKind::kNothing || waits_to_join) continue;
    if (ReasonToWait(decisions.snapshot(), step.kind) == nullptr)
      deps_.Notify({.vm = view->vm->name, .step = step});
  }
  for (const OrphanedNode& gone : decisions.to_purge()) {
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = std::string(gone.mark.vm),
                  .object = gone.node->id});
  }
  return SweepLeftovers(context, deps_, /*dry_run=*/true).status();
}

}  // namespace nomad_harvester::scaling
