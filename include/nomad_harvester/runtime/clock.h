// SPDX-License-Identifier: Apache-2.0
// Time as an object, so that tests own it.
#ifndef NOMAD_HARVESTER_RUNTIME_CLOCK_H_
#define NOMAD_HARVESTER_RUNTIME_CLOCK_H_

#include <functional>
#include <memory>
#include <stop_token>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::runtime {

// A periodic call; destroying it ends the period and waits for a call that is under way. Must not
// be destroyed from inside its own callback.
class PeriodicTask {
 public:
  virtual ~PeriodicTask() = default;
};

// All methods are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual base::MonoTime Now() const = 0;
  virtual base::WallTime WallNow() const = 0;

  // Blocks until the time has come (true) or a stop is requested (false, at once). This is the
  // only sleep in the program; everything else calls Context::Sleep.
  virtual bool SleepUntil(base::MonoTime until, std::stop_token stop) = 0;

  // Calls `callback` every `interval`, first one interval from now, never twice at a time; a call
  // that takes longer than the interval delays the next. An interval below one millisecond counts
  // as one. The callback must not throw: the system clock swallows what it throws.
  [[nodiscard]] virtual std::unique_ptr<PeriodicTask> Every(base::Duration interval,
                                                            std::function<void()> callback) = 0;
};

// The machine's clocks; Every runs a thread of its own.
std::unique_ptr<Clock> MakeSystemClock();

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_CLOCK_H_
