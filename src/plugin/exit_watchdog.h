// SPDX-License-Identifier: Apache-2.0
// The end of an end that takes too long.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_

#include <chrono>
#include <functional>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::plugin {

// The host allows 2 s (rule P1); an orderly stop plans 1.5 s.
inline constexpr base::Duration kExitLimit = std::chrono::milliseconds(1800);

// Ends the process with code 0 after `limit`, whatever then hangs, a destructor of main's included;
// `clean_up` is called before. It cannot be disarmed: for the way out only. Nothing is logged at
// the end, as a host that does not read our stderr would stop that, too.
void ArmExitWatchdog(base::Duration limit, std::function<void()> clean_up);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_EXIT_WATCHDOG_H_
