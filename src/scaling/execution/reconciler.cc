// SPDX-License-Identifier: Apache-2.0
#include "execution/reconciler.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/replacement.h"

#include "absl/cleanup/cleanup.h"
#include "execution/executor.h"
#include "execution/publication.h"
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
constexpr base::Duration kRollBacksTimeout = std::chrono::minutes(2);

}  // namespace

Reconciler::Reconciler(PoolDependencies deps, SharedPolicy policy)
    : run_(std::move(deps)), policy_(std::move(policy)) {}

void Reconciler::Pass::Add(const Effect& effect) {
  const bool failed = effect.verdict == Verdict::kFailed;
  if (effect.verdict == Verdict::kConflict) ++conflicts;
  if (!failed && effect.verdict != Verdict::kRefused) return;
  if (trouble.ok()) trouble = effect.status;
  if (failed) only_refusals = false;
}

absl::StatusOr<PoolSnapshot> Reconciler::Look(const runtime::Context& context,
                                              Observer::BlockingWait blocking) {
  const base::MonoTime began = deps_.clock.Now();
  NH_ASSIGN_OR_RETURN(
      scaling::Look look,
      deps_.observer().Observe(context,
                               LookFor(deps_.clients.config->nomad.region, deps_.key.pool, policy_),
                               std::move(blocking)));
  observed_at_ = began;
  // A running drain was accepted, even if no reply said so.
  for (const VmView& view : look.vms) {
    const nomad::Node* node = LinkedNode(view, look);
    if (node == nullptr || !view.vm->mark.has_value()) continue;
    if (!nodepool::IsDrainOf(*node, view.vm->mark->action, view.vm->uid)) continue;
    deps_.backlog.retries.Forget({StepName(StepKind::kStartDrain), view.vm->uid});
  }
  deps_.backlog.retries.Apply(deps_.clock.Now(), &look);
  std::set<std::string> staying;
  for (const VmView& view : look.vms) {
    if (view.stays_unrecorded) staying.insert(view.vm->uid);
  }
  deps_.memory.RecordStaying(staying);
  if (policy_.has_value() && policy_->publish_host) {
    deps_.hosts.Record(deps_.key.ns, began, &look);
  }
  if (policy_.has_value() && EvacuatesHosts(*policy_)) {
    deps_.hosts.ApplyCordoned(deps_.key.ns, deps_.clock.Now(), &look);
  }
  return run_.WithRecord({.key = deps_.key,
                          .seen = std::make_shared<const Snapshot>(std::move(look)),
                          .policy = policy_});
}

absl::StatusOr<PoolSnapshot> Reconciler::Observe(const runtime::Context& context) {
  return Look(context, {});
}

absl::StatusOr<Reconciler::Settled> Reconciler::FinishRollBacks(const runtime::Context& context,
                                                                Observer::BlockingWait first) {
  const base::MonoTime began = deps_.clock.Now();
  for (;;) {
    NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Look(context, std::exchange(first, {})));
    if (std::string problem = NomadProblem(snapshot); !problem.empty()) {
      return base::Unavailable(std::move(problem));
    }
    const Decisions& decisions = run_.last.emplace(std::move(snapshot));
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
        settled.left_out[entry.view->vm->name] =
            "its roll-back (" + entry.step.reason +
            ") does not succeed: " + base::Message(retries.LastOf(key));
        continue;
      }
      due = true;
      std::unique_ptr<PassTask> task = MakeStepTask(entry);
      if (MayRun(*task, now, &pass)) tasks.push_back(std::move(task));
    }
    if (!due) return settled;
    NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
    CarryOut(context, tasks, &pass);
    NH_RETURN_IF_ERROR(context.Check());
    NH_RETURN_IF_ERROR(context.Sleep(pass.effects > 0 ? kPause : kFirstWait));
  }
}

namespace {

// The VMs, by uid, that only their holds keep from being deleted (rule C18).
std::set<std::string> HeldVms(const Decisions& decisions) {
  std::set<std::string> uids;
  for (const auto& [view, step] : decisions.all()) {
    if (step.is_held) uids.insert(view->vm->uid);
  }
  return uids;
}

}  // namespace

const char* Reconciler::ReasonToWait(StepKind kind) const {
  if (!IsRemoval(kind) && !IsUpkeep(kind)) return nullptr;
  // A Scale that is running when the pool is paused finishes first.
  if (!run_.action.has_value() && deps_.lease.record().paused.HoldsAt(run_.snapshot().now())) {
    return "the pool is paused";
  }
  if (IsRemoval(kind) && IsOtherClusterByLease(run_.snapshot())) {
    return "by its Lease the pool belongs to another Nomad cluster";
  }
  const bool allowed = run_.action.has_value() && run_.action->tracker.despite_mass_loss();
  return IsRemoval(kind) && !allowed && run_.last->snapshot().mass_loss().alarming
             ? "too many VMs have lost their Nomad nodes at once"
             : nullptr;
}

bool Reconciler::MayRun(const PassTask& task, base::MonoTime now, Pass* pass) {
  const Retries& retries = deps_.backlog.retries;
  if (retries.WasAccepted(task.key(), observed_at_)) {
    const Effect effect = WithoutEffect();
    if (Conclude(task, effect, pass)) LogTroubles({{&task, &effect}});
  }
  return retries.MayTry(task.key(), now);
}

// The tasks that are due now, without those that wait for their next attempt.
PassTasks Reconciler::TasksOf(const Decisions& decisions, base::MonoTime now,
                              std::vector<const Decisions::Entry*>* publications, Pass* pass) {
  PassTasks tasks;
  publications->clear();
  const auto add = [&](std::unique_ptr<PassTask> task) {
    if (MayRun(*task, now, pass)) tasks.push_back(std::move(task));
  };
  std::set<std::string> to_mark;
  if (run_.action.has_value()) to_mark = run_.action->tracker.ToMark(decisions);
  for (const Decisions::Entry& entry : decisions.all()) {
    Step step = entry.step;
    if (const char* why = ReasonToWait(step.kind); why != nullptr) {
      step.kind = StepKind::kWait;
      step.reason += std::string("; it waits, because ") + why;
    }
    if (step.kind != StepKind::kNothing) LogDecision(step, *entry.view);
    // Only one write per VM: a victim's mark precedes anything else to be recorded on it.
    if (!IsAct(step.kind) || to_mark.contains(entry.view->vm->name)) continue;
    if (IsDeferred(step.kind)) {
      if (MayRun(*MakeStepTask(entry), now, pass)) publications->push_back(&entry);
    } else {
      add(MakeStepTask(entry));
    }
  }
  if (run_.action.has_value()) {
    for (const std::string& vm : to_mark) add(MakeMarkTask(*decisions.Find(vm)));
    for (const std::string& vm : run_.action->tracker.ToMake()) add(MakeCreationTask(vm));
  }
  if (!decisions.snapshot().look().nomad_readable) return tasks;
  for (const OrphanedNode& gone : decisions.to_purge()) add(MakePurgeTask(gone));
  return tasks;
}

absl::Status Reconciler::WriteAhead(const runtime::Context& context, const PassTasks& tasks) {
  std::vector<Intent> intents;
  for (const auto& task : tasks) {
    const Decisions::Entry* const entry = task->intent();
    if (entry != nullptr) intents.push_back({entry->view, entry->step.kind, entry->step.reason});
  }
  const PoolRecord before = deps_.lease.record();
  PoolRecord needed = RecordBefore(before, run_.snapshot(), intents, NewActionId(deps_.random));
  if (run_.action.has_value() && needed.action.has_value()) {
    needed.action->names.merge(run_.action->tracker.Names());
  }
  const std::string keys = NewKeysForLease(run_.snapshot());
  if (needed == before && keys.empty()) return absl::OkStatus();
  return deps_.lease.Store(context, needed, keys);
}

// A task that was not started because the context ended counts as cancelled.
void Reconciler::CarryOut(const runtime::Context& context, const PassTasks& tasks, Pass* pass) {
  run_.recorded = run_.WithRecord(run_.snapshot());
  std::vector<Effect> effects(tasks.size());
  const std::vector<absl::Status> started = runtime::ForEachBounded(
      context, deps_.executor, tasks.size(), deps_.parallelism(), [&](std::size_t i) {
        effects[i] = tasks[i]->CarryOut(context, run_);
        return absl::OkStatus();
      });
  for (std::size_t i = 0; i < started.size(); ++i) {
    if (!started[i].ok()) effects[i] = {Verdict::kCancelled, started[i]};
  }
  OwnSecrets(context, tasks);
  std::vector<Trouble> troubles;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const bool is_news = Conclude(*tasks[i], effects[i], pass);
    const bool failed =
        effects[i].verdict == Verdict::kRefused || effects[i].verdict == Verdict::kFailed;
    if (is_news && failed) troubles.push_back({tasks[i].get(), &effects[i]});
  }
  LogTroubles(troubles);
}

// Called when all VMs boot. A sweep handles Secrets that get no owner now.
void Reconciler::OwnSecrets(const runtime::Context& context, const PassTasks& tasks) {
  std::vector<const CreatedVm*> created;
  for (const auto& task : tasks) {
    if (task->created() != nullptr) created.push_back(task->created());
  }
  const std::vector<absl::Status> owned = runtime::ForEachBounded(
      context, deps_.executor, created.size(), deps_.parallelism(),
      [&](std::size_t i) { return OwnSecret(context, deps_, *created[i]); });
  for (const absl::Status& outcome : owned) {
    if (outcome.ok()) continue;
    unowned_ = true;
    run_.gone.RequestSweep();
  }
}

// True if the effect is news, which is logged.
bool Reconciler::Conclude(const PassTask& task, const Effect& effect, Pass* pass) {
  PoolBacklog& backlog = deps_.backlog;
  Attempt attempt{.effect = effect, .ended = deps_.clock.Now()};
  attempt.is_news = backlog.retries.Record(task.key(), effect, attempt.ended);
  if (effect.verdict == Verdict::kDone && backlog.retries.LacksEffect(task.key())) return false;
  attempt.refused_for_good = backlog.retries.IsRefusedForGood(task.key(), attempt.ended);
  deps_.metrics().Troubled(effect.verdict);
  pass->Add(effect);
  if (effect.verdict == Verdict::kDone) {
    ++pass->effects;
    if (task.joins()) ++pass->joins;
    if (!task.is_silent()) run_.last_event = run_.snapshot().earlier_now();
    if (attempt.is_news) {
      deps_.logger.Info("A step that was refused or failed has succeeded",
                        {{"vm", task.vm()}, {"what", task.what()}});
    }
  }
  if (effect.verdict == Verdict::kRefused && task.removes()) {
    PoolBacklog::Refusals& refusals = backlog.removal_refusals[task.vm()];
    ++refusals.count;
    refusals.last = attempt.ended;
  }
  task.Conclude(attempt, &run_);
  return attempt.is_news;
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
  // A Scale logs the joins of its own VMs itself.
  const bool told = IsJoin(step.kind) && run_.action.has_value();
  if (!told) {
    std::vector<log::Field> fields = {{"vm", view.vm->name}};
    if (!reported) fields.emplace_back("what", SpecOf(step.kind).infinitive);
    if (level == log::Level::kDebug) fields.emplace_back("row", RowName(step.row));
    fields.insert(fields.end(), {{"why", step.reason},
                                 {"node_id", step.node_id},
                                 {"action_id", ActionOf(step, view, run_.snapshot())}});
    deps_.logger.Log(level,
                     reported  ? "A VM needs an operator"
                     : overdue ? "A VM is deleted although it is held"
                               : "Next step",
                     fields);
  }
  // An act is reported once it is done. A VM that has yet to join is not worth a log line.
  if (reported &&
      std::exchange(deps_.backlog.reported[view.vm->uid], RowName(step.row)) != RowName(step.row)) {
    deps_.Tell(EventOf(step, view, run_.snapshot()));
  }
  if (reported || (step.kind == StepKind::kWait && view.vm->has_mark)) {
    deps_.Notify({.vm = view.vm->name, .step = step});
  }
}

// Logs equal failures of several VMs in one line.
void Reconciler::LogTroubles(const std::vector<Trouble>& troubles) const {
  std::map<std::string, std::vector<const Trouble*>> alike;
  for (const Trouble& trouble : troubles) {
    const std::string error =
        base::WithoutName(trouble.effect->status.ToString(), trouble.task->vm());
    alike[std::string(trouble.task->what()) + "\n" + error].push_back(&trouble);
  }
  for (const auto& [key, same] : alike) {
    const PassTask& task = *same[0]->task;
    const Effect& effect = *same[0]->effect;
    std::vector<std::string> vms;
    for (const Trouble* trouble : same) vms.push_back(trouble->task->vm());
    std::vector<log::Field> fields = {{"vm", base::FirstFew(vms)}};
    if (vms.size() > 1) fields.emplace_back("vms", vms.size());
    fields.emplace_back("what", task.what());
    if (vms.size() == 1 && !task.why().empty()) fields.emplace_back("why", task.why());
    if (run_.action.has_value()) fields.emplace_back("action_id", run_.action->tracker.action_id());
    fields.emplace_back("error", effect.status);
    deps_.logger.Log(log::Level::kWarn,
                     effect.verdict == Verdict::kRefused ? "A step is refused; trying again later"
                                                         : "A step failed; trying again later",
                     fields);
  }
}

absl::StatusOr<Reconciler::Pass> Reconciler::RunPass(const runtime::Context& context,
                                                     std::optional<PoolSnapshot> look) {
  if (!look.has_value()) {
    auto seen = Look(context, next_wait_);
    NH_RETURN_IF_ERROR(context.Check());
    NH_RETURN_IF_ERROR(seen);
    look = *std::move(seen);
  }
  // The Lease's action and the VMs' leftovers then belong to another agent, too.
  if (std::string problem = OtherClusterProblem(*look);
      !run_.action.has_value() && !problem.empty()) {
    return base::Unavailable(std::move(problem));
  }
  const Decisions& decisions = run_.last.emplace(*std::move(look));
  deps_.memory.RecordAwaiting(deps_.clock.Now(), AwaitingReplacement(decisions),
                              HeldVms(decisions));
  PoolBacklog& backlog = deps_.backlog;
  const base::MonoTime now = deps_.clock.Now();
  deps_.metrics().Observed(decisions.snapshot());
  run_.gone.Observe(decisions, now);
  if (run_.action.has_value()) {
    run_.action->tracker.Observe(decisions, backlog.retries, backlog.leftovers, now);
  }
  Pass pass{.began = now, .readable = decisions.snapshot().look().nomad_readable};
  std::vector<const Decisions::Entry*> publications;
  const PassTasks tasks = TasksOf(decisions, now, &publications, &pass);
  deps_.backlog.retries.ConfirmAccepted(observed_at_, /*of_sweep=*/false);
  NH_RETURN_IF_ERROR(WriteAhead(context, tasks));
  publications_.Start(context, publications, decisions.snapshot().seen, now);
  CarryOut(context, tasks, &pass);
  // If nothing else is in progress, waiting here saves a Look.
  if (!run_.action.has_value() && tasks.empty() && !IsInProgress(now)) publications_.Await();
  for (const Effect& effect : publications_.TakeEnded()) pass.Add(effect);
  NH_RETURN_IF_ERROR(context.Check());
  const Tracker* const tracker = run_.action.has_value() ? &run_.action->tracker : nullptr;
  if (run_.gone.IsSweepDue(tracker)) {
    pass.Add(run_.gone.Sweep(context, decisions.snapshot(), tracker));
    if (run_.action.has_value()) {
      run_.action->tracker.Observe(decisions, backlog.retries, backlog.leftovers,
                                   deps_.clock.Now());
    }
  }
  backlog.ForgetWhatIsGone(decisions, deps_.key,
                           tracker == nullptr ? std::set<std::string>() : tracker->Names());
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
  const std::uint64_t index = run_.snapshot().look().nomad_index;
  // A blocking query needs an index; an empty cluster does not have one yet.
  if (!pass.readable || index == 0) return context.Sleep(wait);
  next_wait_.after_index = index;
  next_wait_.wait = std::min(wait, deps_.clients.config->nomad.block_query_wait);
  paced_until_ = std::max(paced_until_, now) + kPause;
  return context.Sleep(std::max(paced_until_ - now - kAtOnce * kPause, base::Duration::zero()));
}

absl::Status Reconciler::RunScale(const runtime::Context& context, PoolSnapshot first,
                                  RunningAction action) {
  const absl::Cleanup end = [this] { publications_.End(); };
  run_.action.emplace(action);
  std::optional<PoolSnapshot> look = run_.WithRecord(std::move(first));
  for (;;) {
    const auto pass = RunPass(context, std::exchange(look, std::nullopt));
    NH_RETURN_IF_ERROR(context.Check());
    if (!pass.ok()) {
      deps_.logger.Warn("Could not observe the pool; retrying", {{"error", pass.status()}});
      NH_RETURN_IF_ERROR(context.Sleep(kMaxWait));
      continue;
    }
    const bool ended = action.tracker.Ended(*run_.last, deps_.backlog.retries, deps_.clock.Now());
    if (ended && pass->effects == pass->joins) return absl::OkStatus();
    NH_RETURN_IF_ERROR(Wait(context, *pass));
  }
}

// True if something is in progress that only needs time: a drain, a deletion, a clean-up.
bool Reconciler::IsInProgress(base::MonoTime now) const {
  const PoolSnapshot& snapshot = run_.snapshot();
  for (const auto& [view, step] : run_.last->all()) {
    if (!view->member || IsOtherNomad(view->vm, snapshot.look())) continue;
    if (!view->vm->has_mark || IsStuckInDeletion(*view, snapshot.now())) continue;
    if (step.kind == StepKind::kWait) return true;
  }
  return run_.gone.IsCleanUpInProgress(now);
}

absl::Status Reconciler::RunResumption(const runtime::Context& context, const MayLeave& may_leave) {
  const absl::Cleanup end = [this] { publications_.End(); };
  run_.gone.RequestSweep();
  base::MonoTime acted_at = deps_.clock.Now();
  for (int fruitless = 0;;) {
    const auto pass = RunPass(context, std::nullopt);
    NH_RETURN_IF_ERROR(context.Check());
    const absl::Status trouble = !pass.ok() ? pass.status()
                                 : !pass->readable
                                     ? base::Unavailable(run_.snapshot().look().nomad_problem)
                                     : pass->trouble;
    const bool effective = pass.ok() && pass->effects > 0;
    const bool in_progress =
        pass.ok() && pass->readable && (publications_.any() || IsInProgress(deps_.clock.Now()));
    fruitless = trouble.ok() || effective ? 0 : fruitless + 1;
    if (!trouble.ok() && !effective && !in_progress) {
      // A refused step waits for the next round; a failed one may succeed a moment later.
      if ((pass.ok() && pass->readable && pass->only_refusals) || fruitless >= kFruitlessPasses) {
        if (pass.ok() && pass->readable) CloseRecord(nullptr);
        return trouble;
      }
    }
    if (!pass.ok()) {
      NH_RETURN_IF_ERROR(context.Sleep(kFirstWait));
      continue;
    }
    const bool rests = pass->readable && !effective && pass->conflicts == 0 && trouble.ok();
    const base::MonoTime now = deps_.clock.Now();
    if (!rests || run_.gone.IsCleanUpInProgress(now) || publications_.any()) acted_at = now;
    if (rests && in_progress && may_leave && may_leave(run_.snapshot(), now - acted_at)) {
      return absl::OkStatus();
    }
    if (rests && !in_progress) {
      if (const char* why = ReasonRemovalWaits(); why != nullptr) {
        return base::Unavailable(std::string(why) + ": nothing is removed");
      }
      CloseRecord(nullptr);
      return WaitingForAttempts();
    }
    NH_RETURN_IF_ERROR(Wait(context, *pass));
  }
}

absl::Status Reconciler::AwaitWork(const runtime::Context& context,
                                   const std::function<bool(const PoolSnapshot&)>& may_end) {
  for (;;) {
    const base::MonoTime now = deps_.clock.Now();
    NH_RETURN_IF_ERROR(Wait(context, {.began = now, .readable = true}));
    auto look = Look(context, next_wait_);
    NH_RETURN_IF_ERROR(context.Check());
    if (!look.ok()) return absl::OkStatus();  // RunResumption deals with it
    const Decisions& decisions = run_.last.emplace(*std::move(look));
    deps_.memory.RecordAwaiting(deps_.clock.Now(), AwaitingReplacement(decisions),
                                HeldVms(decisions));
    Pass pass;
    std::vector<const Decisions::Entry*> publications;
    const bool has_tasks = !TasksOf(decisions, deps_.clock.Now(), &publications, &pass).empty();
    run_.gone.Observe(decisions, deps_.clock.Now());
    const bool only_waits =
        !has_tasks && publications.empty() && decisions.snapshot().look().nomad_readable &&
        IsInProgress(deps_.clock.Now()) && !run_.gone.IsCleanUpInProgress(deps_.clock.Now());
    if (!only_waits || may_end(decisions.snapshot())) return absl::OkStatus();
  }
}

const char* Reconciler::ReasonRemovalWaits() const {
  for (const Decisions::Entry& entry : run_.last->all()) {
    if (IsRemoval(entry.step.kind)) return ReasonToWait(entry.step.kind);
  }
  return nullptr;
}

// Says why a due step was not tried in the last pass; OK if all were tried.
absl::Status Reconciler::WaitingForAttempts() const {
  for (const Decisions::Entry& entry : run_.last->all()) {
    if (!IsAct(entry.step.kind)) continue;
    absl::Status last = deps_.backlog.retries.LastOf(KeyOfStep(entry));
    if (!last.ok()) return last;
  }
  for (const auto& [vm, leftover] : deps_.backlog.leftovers) {
    return base::Unavailable("VM " + vm +
                             " is gone, but something is left of it: " + leftover.what);
  }
  return absl::OkStatus();
}

void Reconciler::CloseRecord(const Tracker* tracker) {
  if (!run_.last.has_value()) return;
  RunSummary run{.last = run_.snapshot(), .last_event = run_.last_event};
  run.failures = std::exchange(run_.failures, {});
  run.created = std::exchange(run_.replaced, false);
  if (tracker != nullptr) {
    tracker->AddTo(&run);
    deps_.backlog.counted.merge(tracker->FailedVms());
  }
  for (const auto& [vm, leftover] : deps_.backlog.leftovers) run.leftovers.insert(vm);
  const PoolRecord before = deps_.lease.record();
  PoolRecord after = RecordAfter(before, run);
  if (after != before) closed_record_ = std::move(after);
  // A Scale records its own outcome.
  const std::string broken = std::exchange(run_.broken, {});
  if (tracker == nullptr && !broken.empty()) RecordOutcome("", base::Internal(broken));
}

void Reconciler::RecordOutcome(const std::string& action_id, const absl::Status& outcome) {
  PoolRecord record = closed_record_.value_or(deps_.lease.record());
  std::optional<harvester::ErrorRecord>& error = record.last_error;
  if (outcome.ok()) {
    error.reset();
  } else {
    if (!error.has_value()) error.emplace();
    error->action = action_id;
    error->at = run_.last.has_value() ? run_.snapshot().now() : deps_.clock.WallNow();
    error->text = base::WithoutSecrets(base::Message(outcome));
  }
  if (record != deps_.lease.record()) closed_record_ = std::move(record);
}

absl::Status Reconciler::Preview(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, Observe(context));
  if (std::string problem = NomadProblem(snapshot); !problem.empty()) {
    return base::Unavailable(std::move(problem));
  }
  const Decisions& decisions = run_.last.emplace(std::move(snapshot));
  for (const auto& [view, step] : decisions.all()) {
    const bool waits_to_join = step.kind == StepKind::kWait && !view->vm->has_mark;
    if (step.kind == StepKind::kNothing || waits_to_join) continue;
    if (ReasonToWait(step.kind) == nullptr) deps_.Notify({.vm = view->vm->name, .step = step});
  }
  for (const OrphanedNode& gone : decisions.to_purge()) {
    deps_.Notify({.kind = ReconcileEvent::Kind::kPurge,
                  .vm = std::string(gone.mark.vm),
                  .object = gone.node->id});
  }
  run_.gone.Observe(decisions, deps_.clock.Now());
  SweepScope scope = run_.gone.Scope();
  scope.dry_run = true;
  return SweepLeftovers(context, deps_, scope).status();
}

}  // namespace nomad_harvester::scaling
