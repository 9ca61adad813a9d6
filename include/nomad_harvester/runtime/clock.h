// SPDX-License-Identifier: Apache-2.0
// An injected clock, so that tests control time.
#ifndef NOMAD_HARVESTER_RUNTIME_CLOCK_H_
#define NOMAD_HARVESTER_RUNTIME_CLOCK_H_

#include <functional>
#include <memory>
#include <stop_token>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::runtime {

// A periodic call. The destructor stops it and waits for a running call; it must not run inside the
// callback.
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

  // Blocks until the time `until` (returns true) or a stop request (returns false, immediately).
  // Code that has a Context must call Context::Sleep instead.
  virtual bool SleepUntil(base::MonoTime until, std::stop_token stop) = 0;

  // Calls `callback` every `interval`, first one interval from now, never concurrently; a call that
  // takes longer than the interval delays the next. An interval below one millisecond counts as one
  // millisecond. The callback must not throw: the system clock ignores exceptions.
  [[nodiscard]] virtual std::unique_ptr<PeriodicTask> Every(base::Duration interval,
                                                            std::function<void()> callback) = 0;
};

// The system clocks; each Every call is an EveryOnThread.
std::unique_ptr<Clock> MakeSystemClock();

// Implements Every with one thread per call, for clocks whose sleepers do not share a thread:
// callbacks block for requests and must not delay each other. `clock` must outlive the task.
[[nodiscard]] std::unique_ptr<PeriodicTask> EveryOnThread(Clock& clock, base::Duration interval,
                                                          std::function<void()> callback);

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_CLOCK_H_
