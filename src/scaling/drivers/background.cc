// SPDX-License-Identifier: Apache-2.0
#include "drivers/background.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/pending_reasons.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/status_report.h"

#include "drivers/resumption.h"
#include "execution/pool_metrics.h"
#include "rules/pool_record.h"

namespace nomad_harvester::scaling {
namespace {

// If nobody has asked for a pool for this long, the agent no longer has a policy for it, for
// example after a reload.
constexpr base::Duration kAskedWithin = std::chrono::minutes(30);

PoolMetrics MetricsOf(const Session& session, const PoolKey& key) {
  return {session.clients().metrics_sink.get(), key};
}

// True for a broken VM that is kept.
bool StaysBroken(const Decisions::Entry& entry, const PoolSnapshot& snapshot) {
  return entry.step.kind == StepKind::kReport && IsBroken(*entry.view, snapshot);
}

// Describes a pool's work as a text for Rounds. The text stays the same while nothing changes.
std::string WorkOf(const Decisions& decisions) {
  std::string work;
  const Observation& observation = decisions.snapshot().observation();
  for (const Decisions::Entry& entry : decisions.all()) {
    const auto& [view, step] = entry;
    if (IsAct(step.kind) || view->vm->has_mark || StaysBroken(entry, decisions.snapshot()) ||
        NeedsPodMessage(*view, observation)) {
      work += view->vm->uid + " " + std::string(RowName(step.row)) + "\n";
    }
  }
  for (const OrphanedNode& gone : decisions.to_purge()) work += gone.node->id + "\n";
  if (!work.empty()) return work;
  // A node that could be a VM's is read in full immediately when it is new, but in rounds if it
  // keeps changing.
  const PoolSnapshot& snapshot = decisions.snapshot();
  for (const std::size_t node : NodesToReadInFull(snapshot.observation())) {
    work += snapshot.nodes()[node].id + "\n";
  }
  return work;
}

// True if a VM boots: its join, or the end of its time, has to be recorded.
bool AwaitsJoin(const PoolSnapshot& snapshot) {
  return std::any_of(snapshot.vms().begin(), snapshot.vms().end(), [&](const VmView* view) {
    const VmState state = StateOf(*view, snapshot);
    return state == VmState::kPending || state == VmState::kRegistered;
  });
}

}  // namespace

Background::~Background() {
  self_.reset();
  ended_->get_future().wait();
}

void Background::Wake(const std::shared_ptr<Session>& session, const PoolSnapshot& snapshot) {
  const std::shared_ptr<Pool> pool = pools_.Find(snapshot.key);
  if (pool->gate.Busy()) return;
  PoolSnapshot own = snapshot;
  const PoolRecord record = session->AccessTo(*pool)->lease->record();
  own.action = record.action;
  own.lease_cluster = record.nomad_cluster;
  if (!CheckCluster(own).ok()) return SetAlarm(pool, std::nullopt);
  bool unfinished = false;
  std::set<std::string> reported;
  KnownTemplate new_vms;
  {
    base::MutexLock lock(pool->mutex);
    own.policy = pool->state.policy;
    unfinished = !pool->state.inspected || pool->state.leftovers > 0;
    reported = pool->state.reported;
    new_vms = pool->state.new_vms;
  }
  const Decisions decisions(std::move(own));
  // That a new VM is broken and stays is told once (rule C16).
  for (const Decisions::Entry& entry : decisions.all()) {
    unfinished |=
        StaysBroken(entry, decisions.snapshot()) && !reported.contains(entry.view->vm->uid);
  }
  const bool paused = record.paused.HoldsAt(snapshot.now());
  const bool new_keys = !paused && !NewKeysForLease(decisions.snapshot()).empty();
  std::string replacement;
  if (options_.replaces) {
    replacement = ReplacementWork(decisions.snapshot(), record, new_vms, options_.clock->Now());
  }
  const bool error_over = IsRoomErrorOver(record, snapshot.now());
  unfinished |= new_keys || error_over || !replacement.empty();
  if (!unfinished && !NeedsResumption(decisions, paused)) return;
  std::string work = WorkOf(decisions);
  if (paused) work += "paused\n";  // the end of a pause counts as new work
  if (new_keys) work += "the keys on the Lease\n";
  if (error_over) work += "the last error on the Lease\n";
  work += replacement;
  {
    base::MutexLock lock(pool->mutex);
    PoolState& state = pool->state;
    if (state.queued || !state.rounds.MayBegin(work, options_.clock->Now())) return;
    state.queued = true;
  }
  Start(pool, std::move(work));
}

void Background::Continue(const std::shared_ptr<Pool>& pool) {
  {
    base::MutexLock lock(pool->mutex);
    if (std::exchange(pool->state.queued, true)) return;
  }
  if (!Start(pool, "")) SetAlarm(pool, options_.clock->Now() + Rounds::kShortest);
}

void Background::SetAlarm(const std::shared_ptr<Pool>& pool, std::optional<base::MonoTime> at) {
  std::unique_ptr<runtime::PeriodicTask> alarm;
  if (at.has_value()) {
    alarm = options_.clock->Every(*at - options_.clock->Now(), [this, pool] { OnAlarm(pool); });
  }
  // The old alarm is destroyed after the lock is released, because its destructor waits for a
  // running call.
  const base::MutexLock lock(alarms_mutex_);
  alarm.swap(alarms_[pool->key]);
}

void Background::OnAlarm(const std::shared_ptr<Pool>& pool) {
  if (root_.Done() || pool->gate.Busy()) return;
  std::string work;
  {
    const base::MutexLock lock(pool->mutex);
    PoolState& state = pool->state;
    const base::MonoTime now = options_.clock->Now();
    const bool is_asked_for = now - state.asked_at < kAskedWithin;
    if (!is_asked_for || state.queued || !state.rounds.IsDue(now)) return;
    // Each Status looks for due work; the alarm serves pools for which none arrives.
    if (state.inspected && now - state.asked_at < Rounds::kShortest) return;
    state.queued = true;
    if (!state.inspected) work = state.rounds.work();
  }
  Start(pool, std::move(work));
}

void Background::ReportUnclaimed(const Session& session, const PoolSnapshot& snapshot) {
  const base::MonoTime now = options_.clock->Now();
  std::set<PoolKey> claimed;
  for (const std::shared_ptr<Pool>& pool : pools_.All()) {
    const base::MutexLock lock(pool->mutex);
    if (now - pool->state.asked_at < kAskedWithin) claimed.insert(pool->key);
  }
  const auto unclaimed = UnclaimedRemovals(snapshot, claimed);
  const auto is_over = [&](const auto& entry) {
    return entry.first.ns == snapshot.key.ns && !unclaimed.contains(entry.first);
  };
  const base::MutexLock lock(mutex_);
  for (const auto& entry : unclaimed_) {
    if (is_over(entry)) MetricsOf(session, entry.first).Unclaimed(false);
  }
  std::erase_if(unclaimed_, is_over);
  for (const auto& [key, removals] : unclaimed) {
    UnclaimedWork& work = unclaimed_.try_emplace(key, UnclaimedWork{.since = now}).first->second;
    if (now - work.since < kUnclaimedFor) continue;
    MetricsOf(session, key).Unclaimed(true);
    if (std::exchange(work.told, true)) continue;
    options_.logger.Warn(
        "A removal is unfinished in a pool for which this agent has no policy: unless another "
        "agent "
        "has one, finish it with nomad-harvester gc",
        {{"pool", key.ToString()}});
  }
}

// The task enters the gate when it starts, so that a queued task delays no Scale.
bool Background::Start(const std::shared_ptr<Pool>& pool, std::string work) {
  const absl::Status submitted =
      options_.background->Submit([background = while_it_exists_, pool, work] {
        const std::shared_ptr<Background> self = background.lock();
        if (self != nullptr) self->Run(pool, work);
      });
  if (submitted.ok()) return true;
  pool->logger.Debug("The queue for background work is full; trying again later",
                     {{"error", submitted}});
  base::MutexLock lock(pool->mutex);
  pool->state.queued = false;
  return false;
}

// SetConfig ends what is inside the gate, so that what enters it needs the session of that moment,
// and not the one of the call that began it.
void Background::Run(const std::shared_ptr<Pool>& pool, std::string work) {
  {
    base::MutexLock lock(pool->mutex);
    pool->state.queued = false;
  }
  const std::unique_ptr<PoolGate::Guard> guard = pool->gate.EnterForResumption(root_);
  const std::shared_ptr<Session> session = session_();
  if (session == nullptr) return;
  if (guard != nullptr) {
    SetAlarm(pool, Resume(*session, *pool, guard->context(), std::move(work)));
  } else {
    // A Scale came first. If it is refused, it leaves the work undone.
    SetAlarm(pool, options_.clock->Now() + Rounds::kShortest);
  }
}

std::optional<base::MonoTime> Background::Resume(Session& session, Pool& pool,
                                                 const runtime::Context& context,
                                                 std::string work) {
  const std::shared_ptr<PoolAccess> access = session.AccessTo(pool);
  SharedPolicy policy;
  {
    base::MutexLock lock(pool.mutex);
    policy = pool.state.policy;
  }
  pool.memory.SetOwnNode(session.OwnNode(context));
  const std::function<bool()> may_begin = [&] {
    base::MutexLock lock(pool.mutex);
    return pool.state.asks.AreCurrent(options_.clock->Now());
  };
  PoolDependencies deps = session.DependenciesFor(pool, *access, *access->lease);
  if (const auto last = access->lease->record().policy; last.has_value()) {
    deps.logger = deps.logger.With({{"policy_id", last->id}});
  }
  const Resumed resumed =
      ResumePool(context, deps, policy, options_.replaces ? may_begin : std::function<bool()>());
  const bool acquired = resumed.lease.ok();
  const bool done = acquired && resumed.outcome.ok();
  const bool interrupted = acquired ? resumed.interrupted : context.Done();
  if (kube::IsForbidden(resumed.lease)) {
    pool.WarnOnce({base::Message(resumed.lease)});
  } else if (!acquired) {
    pool.logger.Debug("Background work is waiting for the pool's Lease",
                      {{"error", resumed.lease}});
  } else {
    // Being interrupted by a Scale is routine.
    pool.logger.Log(done || interrupted ? log::Level::kDebug : log::Level::kInfo,
                    "Background work ended", {{"outcome", resumed.outcome}});
  }
  // A paused pool needs no alarm: a Status notices the end of the pause.
  bool paused = false;
  bool awaits_join = false;
  if (resumed.last.has_value()) {
    awaits_join = AwaitsJoin(resumed.last->snapshot());
    if (work.empty()) work = WorkOf(*resumed.last);
    // The replacement may take forever if an operator has stopped the new VM (rule L7).
    if (work.empty()) work = resumed.replacing;
    paused = access->lease->record().paused.HoldsAt(resumed.last->snapshot().now());
  }
  if (acquired) pool.Publish(*access->lease);
  const base::MonoTime now = options_.clock->Now();
  base::MutexLock lock(pool.mutex);
  PoolState& state = pool.state;
  if (acquired) state.inspected = done;
  if (done) {
    state.rounds.Done(std::move(work), now);
  } else if (!interrupted) {
    state.rounds.Unfinished(std::move(work), now);
  }
  const bool is_complete = done && resumed.replacing.empty() && !awaits_join;
  if (paused || root_.Done() || is_complete) return std::nullopt;
  const base::MonoTime next = state.rounds.NextAfter(now);
  if (next - state.asked_at >= kAskedWithin) return std::nullopt;
  return next;
}

}  // namespace nomad_harvester::scaling
