// SPDX-License-Identifier: Apache-2.0
#include "exit_watchdog.h"

#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/runtime/clock.h"

namespace nomad_harvester::plugin {

void ArmExitWatchdog(base::Duration limit, std::function<void()> clean_up) {
  // A clock of its own: the thread outlives everything of its caller.
  std::shared_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const base::MonoTime until = clock->Now() + limit;
  try {
    std::thread([clock, until, clean_up = std::move(clean_up)] {
      clock->SleepUntil(until, std::stop_token());
      clean_up();
      _exit(0);
    }).detach();
  } catch (const std::system_error&) {
    // No thread to be had: the orderly stop has to do, and the host kills what does not end.
  }
}

}  // namespace nomad_harvester::plugin
