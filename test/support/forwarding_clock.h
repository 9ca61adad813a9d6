// SPDX-License-Identifier: Apache-2.0
// A clock that is another clock, for tests that change one thing about it.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_FORWARDING_CLOCK_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_FORWARDING_CLOCK_H_

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "nomad_harvester/runtime/clock.h"

namespace nomad_harvester::support {

class ForwardingClock : public runtime::Clock {
 public:
  explicit ForwardingClock(runtime::Clock& clock) : clock_(clock) {}
  base::MonoTime Now() const override { return clock_.Now(); }
  base::WallTime WallNow() const override { return clock_.WallNow(); }
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override {
    return clock_.SleepUntil(until, std::move(stop));
  }
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override {
    return clock_.Every(interval, std::move(callback));
  }

 private:
  runtime::Clock& clock_;
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_FORWARDING_CLOCK_H_
