// SPDX-License-Identifier: Apache-2.0
#include "execution/vm_events.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"
#include "nomad_harvester/runtime/wait.h"

#include "absl/cleanup/cleanup.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::scaling {
namespace {

using harvester::VmEvent;

// Two events are equal if their keys are.
std::string KeyOf(const VmEvent& event) {
  return base::StableHash(event.uid + "\n" + event.reason + "\n" + event.note);
}

// True if the refusal concerns all events of the pool and not just this one, unlike a refusal by a
// quota or a webhook. 404: the namespace is being removed, or something else answers at that path.
bool IsRefusedForAll(const absl::Status& status) {
  const auto error = kube::GetKubeError(status);
  if (!error.has_value()) return false;
  const bool denied = error->message.find("denied the request") != std::string::npos;
  return error->http_status == 404 || (kube::IsForbidden(status) && !denied);
}

}  // namespace

void VmEvents::Post(const PoolKey& key, VmEvent event, const std::string& call) {
  if (context_.Done()) return;
  const base::MonoTime now = context_.clock().Now();
  const base::WallTime at = context_.clock().WallNow();
  bool starts = false;
  {
    base::MutexLock lock(mutex_);
    PoolEvents& pool = pools_[key];
    if (pool.refused) return;
    if (pool.series.size() >= 2 * kMaxPending) Forget(now, &pool);
    std::string id = KeyOf(event);
    Series& series = pool.series[id];
    if (series.name.empty() || (!series.pending && now - series.last > kSeries)) {
      const std::string began = base::FormatRfc3339Micros(at);
      series = {.name = event.vm + "." + base::StableHash(id + began + options_.instance),
                .seen = {.count = 0}};
    }
    ++series.seen.count;
    series.seen.last = at;
    series.last = now;
    if (series.pending) return;
    series.pending = true;
    pool.pending.push_back({std::move(id), std::move(event), at, call});
    if (pool.pending.size() > kMaxPending) {
      pool.series.erase(pool.pending.front().key);
      pool.pending.pop_front();
      ++pool.dropped;
    }
    starts = !std::exchange(running_, true);
  }
  if (!starts) return;
  const absl::Status submitted =
      options_.executor->Submit([self = shared_from_this()] { self->Run(); });
  if (submitted.ok()) return;
  // The next event tries again.
  {
    base::MutexLock lock(mutex_);
    running_ = false;
  }
  idle_.NotifyAll();
}

bool VmEvents::WaitUntilSent(const runtime::Context& context) {
  base::MutexLock lock(mutex_);
  return runtime::WaitFor(context, idle_, mutex_,
                          [this]() NH_REQUIRES(mutex_) { return !running_; });
}

void VmEvents::Drop(const PoolKey& key, const std::string& call) {
  base::MutexLock lock(mutex_);
  const auto pool = pools_.find(key);
  if (pool == pools_.end()) return;
  std::erase_if(pool->second.pending, [&](const Pending& pending) {
    if (pending.call != call) return false;
    pool->second.series.erase(pending.key);
    return true;
  });
}

void VmEvents::DropAll() {
  {
    base::MutexLock lock(mutex_);
    pools_.clear();
    running_ = false;
  }
  idle_.NotifyAll();
}

void VmEvents::Forget(base::MonoTime now, PoolEvents* pool) {
  std::erase_if(pool->series, [&](const auto& entry) {
    return !entry.second.pending && now - entry.second.last > kSeries;
  });
}

void VmEvents::Run() {
  absl::Cleanup abandoned = [this] { DropAll(); };  // after an exception the next event starts anew
  for (;;) {
    std::optional<base::MonoTime> wake;
    const base::MonoTime now = context_.clock().Now();
    const std::optional<Next> next = Take(now, &wake);
    if (next.has_value()) {
      const absl::Status outcome = Write(*next);
      if (!context_.Done()) RecordSent(*next, outcome);
    } else if (!wake.has_value()) {
      return std::move(abandoned).Cancel();
    } else if (!context_.Sleep(*wake - now).ok()) {
      return;
    }
    if (context_.Done()) return;
  }
}

std::optional<VmEvents::Next> VmEvents::Take(base::MonoTime now,
                                             std::optional<base::MonoTime>* wake) {
  base::MutexLock lock(mutex_);
  auto pool = pools_.upper_bound(last_);
  for (std::size_t i = 0; i < pools_.size(); ++i, ++pool) {
    if (pool == pools_.end()) pool = pools_.begin();
    auto& [key, events] = *pool;
    if (events.pending.empty()) continue;
    const std::chrono::duration<double> passed = now - events.counted_at;
    events.tokens = std::min(kBurst, events.tokens + passed.count() * kPerSecond);
    events.counted_at = now;
    if (events.tokens < 1) {
      const std::chrono::duration<double> missing((1 - events.tokens) / kPerSecond);
      // Adds a millisecond, so that rounding cannot leave the bucket short of a token.
      const base::MonoTime enough =
          now + std::chrono::ceil<base::Duration>(missing) + std::chrono::milliseconds(1);
      *wake = std::min(wake->value_or(enough), enough);
      continue;
    }
    events.tokens -= 1;
    last_ = key;
    Pending pending = std::move(events.pending.front());
    events.pending.pop_front();
    Series& series = events.series.at(pending.key);
    series.pending = false;
    return Next{key, std::move(pending), series};
  }
  for (auto& [key, events] : pools_) Forget(now, &events);
  running_ = wake->has_value();
  if (!running_) idle_.NotifyAll();
  return std::nullopt;
}

absl::Status VmEvents::Write(const Next& next) const {
  const kube::KubeClient& kube = *options_.kube;
  const std::string& ns = next.pool.ns;
  const Series& series = next.series;
  if (series.sent) {
    return base::GetStatus(kube.MergePatch(context_, kube::kEvents, ns, series.name,
                                           harvester::BuildEventSeriesPatch(series.seen)));
  }
  return base::GetStatus(
      kube.Create(context_, kube::kEvents, ns,
                  harvester::BuildVmEvent(next.pending.event, ns, series.name, options_.instance,
                                          next.pending.at, series.seen)));
}

void VmEvents::RecordSent(const Next& next, const absl::Status& outcome) {
  // Somebody has deleted the object, so the next equal event becomes a new one.
  const bool gone = next.series.sent && kube::IsNotFound(outcome);
  const bool refused = !gone && IsRefusedForAll(outcome);
  int dropped = 0;
  {
    base::MutexLock lock(mutex_);
    PoolEvents& pool = pools_[next.pool];
    if (refused) {
      pool = {.refused = true};
    } else if (const auto series = pool.series.find(next.pending.key);
               series != pool.series.end() && series->second.name == next.series.name) {
      series->second.sent = series->second.sent || outcome.ok();
      // Later events must not be counted on an object that may not exist.
      if (!series->second.pending && (gone || !series->second.sent)) pool.series.erase(series);
    }
    if (pool.pending.empty()) dropped = std::exchange(pool.dropped, 0);
  }
  const log::Logger logger = options_.logger.With({{"pool", next.pool.ToString()}});
  if (refused) {
    logger.Warn(
        "Kubernetes Events cannot be written, and none of this pool will be tried until the next "
        "SetConfig. Grant create and patch of events.events.k8s.io, or set events = \"false\"",
        {{"error", outcome}});
  } else if (!outcome.ok()) {
    logger.Debug(
        "A Kubernetes Event is lost",
        {{"vm", next.pending.event.vm}, {"reason", next.pending.event.reason}, {"error", outcome}});
  }
  if (dropped > 0) {
    logger.Debug("Event rate limit reached; oldest Events dropped", {{"count", dropped}});
  }
}

}  // namespace nomad_harvester::scaling
