// SPDX-License-Identifier: Apache-2.0
// What the commands share that connect to the real systems. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_COMMAND_RUN_H_
#define NOMAD_HARVESTER_CLI_COMMAND_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"

#include "settings.h"

namespace CLI {
class App;
}

namespace nomad_harvester::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotReady = 3;

// An operator waits for the output; the limit includes retries.
inline constexpr base::Duration kOperatorBudget = std::chrono::seconds(30);

// --set KEY=VALUE, repeatable.
void AddSettings(CLI::App& command, std::vector<std::string>* settings);

using MaintenanceTask =
    std::function<int(const scaling::Maintenance& maintenance, const runtime::Context& context,
                      const Settings& settings)>;

// Reads the settings (every problem on standard error: kExitUsage), connects to both systems and
// runs the task under a context that Ctrl-C and SIGTERM cancel. Warnings go to standard error.
int RunWithMaintenance(const std::string& command, const std::vector<std::string>& settings,
                       PolicyUse use, const config::StringMap& environment,
                       const MaintenanceTask& task);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMAND_RUN_H_
