// SPDX-License-Identifier: Apache-2.0
// A clock that tests control.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_FAKE_CLOCK_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_FAKE_CLOCK_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/clock.h"

namespace nomad_harvester::support {

// Starts at 2026-01-01T00:00:00Z.
//
// By default the clock advances automatically: a sleep moves the time, runs the callbacks that
// become due in order of time in the sleeper's thread, and returns immediately. A callback may read
// the time, sleep (the outer sleep then continues from there; time never goes backwards), add and
// remove callbacks, and throw: the exception propagates from the sleep. This mode is for one
// thread.
//
// With set_auto_advance(false) a sleep blocks its thread until another thread calls Advance.
class FakeClock final : public runtime::Clock {
 public:
  FakeClock();
  // Tasks returned by Every may outlive the clock; they do not run any more.
  ~FakeClock() override;

  base::MonoTime Now() const override;
  base::WallTime WallNow() const override;
  // Throws std::logic_error if an automatic advance exceeds kMaxSleep: in the program such a
  // sleep would never end.
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override;
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override;

  // Calls fn once, at `when` (in the past: at the next step).
  void At(base::MonoTime when, std::function<void()> fn);
  void After(base::Duration delay, std::function<void()> fn);

  // Moves the time, runs due callbacks in the calling thread, and wakes sleepers.
  void Advance(base::Duration duration);

  void set_auto_advance(bool value);
  // The offset of the wall clock, as if an operator or NTP had set it.
  void set_wall_skew(base::Duration skew);

  // Without auto-advance: blocks until at least `count` threads sleep on this clock.
  void WaitForSleepers(std::size_t count) const;

  // When the first of the threads that sleep on this clock is to wake; Now() if none sleeps.
  base::MonoTime FirstWake() const;

  static constexpr base::Duration kMaxSleep = std::chrono::hours(24 * 30);

 private:
  struct Event;
  struct Core;
  class Task;

  std::shared_ptr<Core> core_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_FAKE_CLOCK_H_
