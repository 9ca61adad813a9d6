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
  // A separate clock: the thread outlives its caller's objects.
  std::shared_ptr<runtime::Clock> clock = runtime::MakeSystemClock();
  const base::MonoTime until = clock->Now() + limit;
  try {
    std::thread([clock, until, clean_up = std::move(clean_up)] {
      clock->SleepUntil(until, std::stop_token());
      clean_up();
      _exit(0);
    }).detach();
  } catch (const std::system_error&) {
    // If no thread can be created, only the graceful stop remains; the host kills a process that
    // hangs.
  }
}

}  // namespace nomad_harvester::plugin
