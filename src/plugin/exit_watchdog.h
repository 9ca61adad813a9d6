// SPDX-License-Identifier: Apache-2.0
// Ends the process if its shutdown takes too long.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_

#include <chrono>
#include <functional>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::plugin {

// The host allows 2 s (rule P1); a graceful stop takes up to 1.5 s.
inline constexpr base::Duration kExitLimit = std::chrono::milliseconds(1800);

// Ends the process with code 0 after `limit`, even if a destructor of main hangs; calls `clean_up`
// first. It cannot be disarmed, so it must be armed only when the process is stopping. It does not
// log at the end: that would block if the host does not read our stderr.
void ArmExitWatchdog(base::Duration limit, std::function<void()> clean_up);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_
