// SPDX-License-Identifier: Apache-2.0
#include "drivers/background.h"

#include <set>
#include <utility>

#include "nomad_harvester/scaling/status_report.h"

#include "absl/cleanup/cleanup.h"
#include "drivers/resumption.h"

namespace nomad_harvester::scaling {
namespace {

// Every pool of the namespace that owns a VM, or the node of a VM that is gone.
std::set<std::string> PoolsIn(const PoolSnapshot& snapshot) {
  std::set<std::string> names = {snapshot.key.pool};
  for (const VmView& view : snapshot.look().vms) {
    if (view.member) names.insert(view.vm->pool);
  }
  const std::string ns = snapshot.key.ns + "/";
  for (const NodeOfGoneVm& gone : NodesOfGoneVms(snapshot)) {
    if (gone.mark.pool.starts_with(ns)) names.emplace(gone.mark.pool.substr(ns.size()));
  }
  return names;
}

// What there is to do, for Rounds: the same text as long as nothing changes.
std::string WorkOf(const Decisions& decisions) {
  std::string work;
  for (const auto& [view, step] : decisions.all()) {
    if (IsAct(step.kind) || view->vm->has_mark) {
      work += view->vm->uid + " " + std::string(RowName(step.row)) + "\n";
    }
  }
  for (const NodeOfGoneVm& gone : decisions.to_purge()) work += gone.node->id + "\n";
  return work;
}

}  // namespace

bool Background::Tasks::Begin() {
  base::MutexLock lock(mutex_);
  if (closed_) return false;
  ++running_;
  return true;
}

void Background::Tasks::End() {
  {
    base::MutexLock lock(mutex_);
    --running_;
  }
  changed_.NotifyAll();
}

void Background::Tasks::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
  changed_.Wait(mutex_, [this]() NH_REQUIRES(mutex_) { return running_ == 0; });
}

void Background::Wake(const std::shared_ptr<Session>& session, const PoolSnapshot& snapshot) {
  for (const std::string& name : PoolsIn(snapshot)) {
    const std::shared_ptr<Pool> pool = pools_.Find(PoolKey{.ns = snapshot.key.ns, .pool = name});
    if (pool->gate.Busy()) continue;
    PoolSnapshot own{.key = pool->key, .seen = snapshot.seen};
    const PoolRecord record = session->AccessTo(*pool)->lease->record();
    own.action = record.action;
    bool unfinished = false;
    {
      base::MutexLock lock(pool->mutex);
      own.policy = pool->state.policy;
      unfinished = !pool->state.inspected || pool->state.leftovers > 0;
    }
    const Decisions decisions(std::move(own));
    const bool paused = record.paused.HoldsAt(snapshot.now());
    if (!unfinished && !NeedsResumption(decisions, paused)) continue;
    std::string work = WorkOf(decisions);
    if (paused) work += "paused\n";  // its end is new work
    {
      base::MutexLock lock(pool->mutex);
      PoolState& state = pool->state;
      if (state.queued || !state.rounds.MayBegin(work, options_.clock->Now())) continue;
      state.queued = true;
    }
    Start(session, pool, std::move(work));
  }
}

// The gate is entered when the task begins: one that waits in the queue holds up no Scale.
void Background::Start(const std::shared_ptr<Session>& session, const std::shared_ptr<Pool>& pool,
                       std::string work) {
  const absl::Status submitted =
      options_.background->Submit([this, tasks = tasks_, session, pool, work = std::move(work)] {
        if (!tasks->Begin()) return;
        const absl::Cleanup end = [&tasks] { tasks->End(); };
        Run(*session, *pool, work);
      });
  if (submitted.ok()) return;
  pools_.LoggerOf(*pool).Debug("The queue for background work is full; the next Status tries again",
                               {{"error", submitted}});
  base::MutexLock lock(pool->mutex);
  pool->state.queued = false;
}

void Background::Run(Session& session, Pool& pool, const std::string& work) {
  {
    base::MutexLock lock(pool.mutex);
    pool.state.queued = false;
  }
  const std::unique_ptr<PoolGate::Guard> guard = pool.gate.EnterForResumption(root_);
  if (guard != nullptr) Resume(session, pool, guard->context(), work);
}

void Background::Resume(Session& session, Pool& pool, const runtime::Context& context,
                        const std::string& work) {
  const std::shared_ptr<PoolAccess> access = session.AccessTo(pool);
  const log::Logger logger = pools_.LoggerOf(pool);
  SharedPolicy policy;
  {
    base::MutexLock lock(pool.mutex);
    policy = pool.state.policy;
  }
  const Resumed resumed =
      ResumePool(context, session.DependenciesFor(pool, *access, *access->lease), policy);
  if (!resumed.lease.ok()) {
    logger.Debug("Background work is waiting for the pool's Lease", {{"error", resumed.lease}});
    base::MutexLock lock(pool.mutex);
    if (!context.Done()) pool.state.rounds.Unfinished(work, options_.clock->Now());
    return;
  }
  // A Scale that takes over is routine.
  const bool routine = resumed.outcome.ok() || resumed.interrupted;
  logger.Log(routine ? log::Level::kDebug : log::Level::kInfo, "Background work ended",
             {{"outcome", resumed.outcome}});
  base::MutexLock lock(pool.mutex);
  PoolState& state = pool.state;
  state.leftovers = static_cast<std::int64_t>(pool.troubles.leftovers.size());
  if (resumed.last_event.has_value()) state.last_event = resumed.last_event;
  state.inspected = resumed.outcome.ok();
  if (resumed.outcome.ok()) {
    state.rounds.Done(work, options_.clock->Now());
  } else if (!resumed.interrupted) {
    state.rounds.Unfinished(work, options_.clock->Now());
  }
}

}  // namespace nomad_harvester::scaling
