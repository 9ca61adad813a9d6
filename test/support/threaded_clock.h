// SPDX-License-Identifier: Apache-2.0
// A clock for tests whose threads are real and whose time is not.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_THREADED_CLOCK_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_THREADED_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>

#include "nomad_harvester/runtime/clock.h"

#include "support/fake_clock.h"

namespace nomad_harvester::support {

// The test advances it; periodic tasks have threads of their own, as those of the system's clock.
// It starts at the system's steady time, so that a wait for a deadline that knows no other clock
// does not end at once.
class ThreadedClock final : public runtime::Clock {
 public:
  ThreadedClock();

  base::MonoTime Now() const override { return clock_.Now() + offset_; }
  base::WallTime WallNow() const override { return clock_.WallNow(); }
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override;
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override {
    return runtime::EveryOnThread(*this, interval, std::move(callback));
  }

  void Advance(base::Duration duration) { clock_.Advance(duration); }
  // To the time at which a sleeper is to wake, by `step` at least: so that several wake together.
  void AdvanceToNextWake(base::Duration step) {
    clock_.Advance(
        std::clamp<base::Duration>(clock_.FirstWake() - clock_.Now(), step, std::chrono::hours(1)));
  }
  // Advances once `sleepers` threads sleep, that is, once all have done what was due. The test's
  // time limit is the protection against hangs.
  void AdvanceWhenAllSleep(std::size_t sleepers, base::Duration duration) {
    clock_.WaitForSleepers(sleepers);
    clock_.Advance(duration);
  }
  void WaitForSleepers(std::size_t count) const { clock_.WaitForSleepers(count); }

 private:
  FakeClock clock_;
  base::Duration offset_{};
};

// While this object exists, time passes whenever no other thread of the process has anything to do:
// until one of them has, and by `step` at least. What lasts a while by this clock therefore lasts
// as long on a slow machine.
class PassingTime {
 public:
  PassingTime(ThreadedClock& clock, base::Duration step);

 private:
  std::jthread thread_;
};

// Whether every thread of the process but the caller waits, for another one or for time to pass.
bool OtherThreadsWait();

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_THREADED_CLOCK_H_
