// SPDX-License-Identifier: Apache-2.0
// A clock that tests move.
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
// By default the clock advances by itself: a sleep returns at once and moves the time, and on the
// way calls whatever falls due, in order of time, in the sleeper's thread. Such a callback may ask
// for the time, sleep (the outer sleep then goes on from there; time never goes backwards), add
// and remove callbacks, and throw: exceptions reach the sleeper. This mode is for one thread.
//
// With set_auto_advance(false) a sleep blocks its thread until another thread calls Advance.
class FakeClock final : public runtime::Clock {
 public:
  FakeClock();
  // The tasks that Every gave out may outlive the clock; they never run again.
  ~FakeClock() override;

  base::MonoTime Now() const override;
  base::WallTime WallNow() const override;
  // Throws std::logic_error if the clock advances by itself for more than kLongestSleep: in the
  // program nothing would ever end such a sleep.
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override;
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override;

  // Calls fn once, when the time has come (in the past: at the next step).
  void At(base::MonoTime when, std::function<void()> fn);
  void After(base::Duration delay, std::function<void()> fn);

  // Moves the time, calling what falls due in the calling thread, and wakes sleepers on the way.
  void Advance(base::Duration duration);

  void set_auto_advance(bool value);
  // The wall clock's lead over where it would be: an operator or NTP sets the clock.
  void set_wall_skew(base::Duration skew);

  // Without auto-advance: blocks until so many threads sleep on this clock (or more).
  void WaitForSleepers(std::size_t count) const;

  static constexpr base::Duration kLongestSleep = std::chrono::hours(24 * 30);

 private:
  struct Event;
  struct Core;
  class Task;

  std::shared_ptr<Core> core_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_FAKE_CLOCK_H_
