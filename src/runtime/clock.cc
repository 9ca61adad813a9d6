// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/clock.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include "nomad_harvester/base/mutex.h"

namespace nomad_harvester::runtime {
namespace {

using base::Duration;
using base::MonoTime;

// One Every call: a thread that sleeps on the clock.
class ThreadTask final : public PeriodicTask {
 public:
  ThreadTask(Clock& clock, Duration interval, std::function<void()> callback)
      : thread_([&clock, interval = std::max<Duration>(interval, kMinInterval),
                 callback = std::move(callback)](const std::stop_token& stop) {
          Run(clock, interval, callback, stop);
        }) {}

 private:
  static constexpr std::chrono::milliseconds kMinInterval{1};

  static void Run(Clock& clock, Duration interval, const std::function<void()>& callback,
                  const std::stop_token& stop) {
    MonoTime next = clock.Now() + interval;
    while (clock.SleepUntil(next, stop)) {
      try {
        callback();
      } catch (...) {  // NOLINT(bugprone-empty-catch): see Every; the thread must not end
      }
      // A slow call is not followed by a burst of calls.
      next = std::max(next + interval, clock.Now());
    }
  }

  std::jthread thread_;
};

class SystemClock final : public Clock {
 public:
  MonoTime Now() const override { return std::chrono::steady_clock::now(); }
  base::WallTime WallNow() const override { return std::chrono::system_clock::now(); }

  bool SleepUntil(MonoTime until, std::stop_token stop) override {
    // Local to the call: sleepers share no state, and a stop request wakes only its own sleeper.
    base::Mutex mutex;
    base::CondVar condition;
    base::MutexLock lock(mutex);
    while (!stop.stop_requested()) {
      if (Now() >= until) return true;
      condition.WaitUntil(mutex, stop, until, [] { return false; });
    }
    return false;
  }

  std::unique_ptr<PeriodicTask> Every(Duration interval, std::function<void()> callback) override {
    return EveryOnThread(*this, interval, std::move(callback));
  }
};

}  // namespace

std::unique_ptr<Clock> MakeSystemClock() { return std::make_unique<SystemClock>(); }

std::unique_ptr<PeriodicTask> EveryOnThread(Clock& clock, Duration interval,
                                            std::function<void()> callback) {
  return std::make_unique<ThreadTask>(clock, interval, std::move(callback));
}

}  // namespace nomad_harvester::runtime
