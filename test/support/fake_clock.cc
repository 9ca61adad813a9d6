// SPDX-License-Identifier: Apache-2.0
#include "support/fake_clock.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "nomad_harvester/base/mutex.h"

namespace nomad_harvester::support {

using base::Duration;
using base::MonoTime;

namespace {

constexpr MonoTime kMonoStart{std::chrono::hours(1)};
constexpr base::WallTime kWallStart =
    std::chrono::sys_days(std::chrono::year(2026) / std::chrono::January / 1);

}  // namespace

struct FakeClock::Event {
  MonoTime when;
  std::uint64_t order = 0;  // events at the same time run in this order
  Duration interval{};      // zero: runs once
  std::function<void()> fn;
  bool running = false;
  std::thread::id runner;
};

struct FakeClock::Core {
  mutable base::Mutex mutex;
  mutable base::CondVar changed;
  MonoTime now NH_GUARDED_BY(mutex) = kMonoStart;
  Duration wall_skew NH_GUARDED_BY(mutex) = Duration::zero();
  bool auto_advance NH_GUARDED_BY(mutex) = true;
  std::multiset<MonoTime> sleepers NH_GUARDED_BY(mutex);  // when each sleep ends
  std::uint64_t next_order NH_GUARDED_BY(mutex) = 0;
  std::vector<std::shared_ptr<Event>> events NH_GUARDED_BY(mutex);

  std::shared_ptr<Event> Add(MonoTime when, Duration interval, std::function<void()> fn) {
    auto event = std::make_shared<Event>();
    event->when = when;
    event->interval = interval;
    event->fn = std::move(fn);
    base::MutexLock lock(mutex);
    event->order = next_order++;
    events.push_back(event);
    return event;
  }

  void Remove(const std::shared_ptr<Event>& event) {
    base::MutexLock lock(mutex);
    std::erase(events, event);
    // A call may run in another thread; PeriodicTask's destructor must wait for it.
    if (event->runner == std::this_thread::get_id()) return;
    changed.Wait(mutex, [&event] { return !event->running; });
  }

  // Moves to the next event that is due at `until` or before and marks it as running; without one,
  // moves to `until`.
  std::shared_ptr<Event> Step(MonoTime until) {
    base::MutexLock lock(mutex);
    std::shared_ptr<Event> next;
    for (const std::shared_ptr<Event>& event : events) {
      if (event->running || event->when > until) continue;
      if (next == nullptr || event->when < next->when ||
          (event->when == next->when && event->order < next->order)) {
        next = event;
      }
    }
    now = std::max(now, next == nullptr ? until : next->when);
    if (next != nullptr) {
      next->running = true;
      next->runner = std::this_thread::get_id();
      if (next->interval == Duration::zero()) std::erase(events, next);
    }
    changed.NotifyAll();
    return next;
  }

  void End(const std::shared_ptr<Event>& event) {
    base::MutexLock lock(mutex);
    event->running = false;
    event->runner = std::thread::id();
    event->when = std::max(event->when + event->interval, now);
    changed.NotifyAll();
  }

  void Fire(const std::shared_ptr<Event>& event) {
    struct Ender {
      Core& core;
      const std::shared_ptr<Event>& event;
      ~Ender() { core.End(event); }
    } ender{*this, event};
    event->fn();
  }
};

// Owns the event of one Every call.
class FakeClock::Task final : public runtime::PeriodicTask {
 public:
  Task(std::shared_ptr<Core> core, std::shared_ptr<Event> event)
      : core_(std::move(core)), event_(std::move(event)) {}
  ~Task() override { core_->Remove(event_); }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Event> event_;
};

FakeClock::FakeClock() : core_(std::make_shared<Core>()) {}

FakeClock::~FakeClock() {
  std::vector<std::shared_ptr<Event>> dropped;  // destroyed outside of the lock
  base::MutexLock lock(core_->mutex);
  dropped.swap(core_->events);
}

MonoTime FakeClock::Now() const {
  base::MutexLock lock(core_->mutex);
  return core_->now;
}

base::WallTime FakeClock::WallNow() const {
  base::MutexLock lock(core_->mutex);
  return kWallStart + (core_->now - kMonoStart) + core_->wall_skew;
}

bool FakeClock::SleepUntil(MonoTime until, std::stop_token stop) {
  const std::shared_ptr<Core> core = core_;
  MonoTime last;
  {
    base::MutexLock lock(core->mutex);
    if (!core->auto_advance) {
      const auto sleeper = core->sleepers.insert(until);
      core->changed.NotifyAll();
      const bool came = core->changed.Wait(
          core->mutex, stop, [&]() NH_REQUIRES(core->mutex) { return core->now >= until; });
      core->sleepers.erase(sleeper);
      return came && !stop.stop_requested();
    }
    last = core->now > MonoTime::max() - kMaxSleep ? MonoTime::max() : core->now + kMaxSleep;
  }
  while (!stop.stop_requested()) {
    const std::shared_ptr<Event> due = core->Step(std::min(until, last));
    if (due != nullptr) {
      core->Fire(due);
    } else if (until > last) {
      throw std::logic_error("FakeClock: nothing ends this sleep");
    } else {
      return true;
    }
  }
  return false;
}

std::unique_ptr<runtime::PeriodicTask> FakeClock::Every(Duration interval,
                                                        std::function<void()> callback) {
  interval = std::max<Duration>(interval, std::chrono::milliseconds(1));
  return std::make_unique<Task>(core_, core_->Add(Now() + interval, interval, std::move(callback)));
}

void FakeClock::At(MonoTime when, std::function<void()> fn) {
  core_->Add(when, Duration::zero(), std::move(fn));
}

void FakeClock::After(Duration delay, std::function<void()> fn) {
  At(Now() + delay, std::move(fn));
}

void FakeClock::Advance(Duration duration) {
  const std::shared_ptr<Core> core = core_;
  const MonoTime until = Now() + duration;
  while (const std::shared_ptr<Event> due = core->Step(until)) core->Fire(due);
}

void FakeClock::set_auto_advance(bool value) {
  base::MutexLock lock(core_->mutex);
  core_->auto_advance = value;
}

void FakeClock::set_wall_skew(Duration skew) {
  base::MutexLock lock(core_->mutex);
  core_->wall_skew = skew;
}

void FakeClock::WaitForSleepers(std::size_t count) const {
  base::MutexLock lock(core_->mutex);
  core_->changed.Wait(core_->mutex, [&]() NH_REQUIRES(core_->mutex) {
    // Does not count sleepers whose time has passed but that have not returned yet.
    const auto first = core_->sleepers.upper_bound(core_->now);
    return static_cast<std::size_t>(std::distance(first, core_->sleepers.end())) >= count;
  });
}

MonoTime FakeClock::FirstWake() const {
  base::MutexLock lock(core_->mutex);
  return core_->sleepers.empty() ? core_->now : *core_->sleepers.begin();
}

}  // namespace nomad_harvester::support
