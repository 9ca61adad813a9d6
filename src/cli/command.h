// SPDX-License-Identifier: Apache-2.0
// The subcommands of the executable, and what those share that connect to the real systems. Private
// to module cli.
#ifndef NOMAD_HARVESTER_CLI_COMMAND_H_
#define NOMAD_HARVESTER_CLI_COMMAND_H_

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"

#include "operator_files.h"
#include "settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace nomad_harvester::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotReady = 3;

// An operator waits for the output; the limit includes retries.
inline constexpr base::Duration kOperatorBudget = std::chrono::seconds(30);

// The environment of a command, and where it puts its exit code.
struct Invocation {
  const config::StringMap& environment;
  int& exit_code;
};

// Each adds a subcommand that runs when it is parsed. `invocation` must outlive `app`.
//
// harvester dev: serves the plugin's gRPC services without the agent, for debugging, until SIGTERM
// or SIGINT.
void AddDevCommand(CLI::App& app, const Invocation& invocation);
// harvester check: every precondition of a pool, with its cure.
void AddCheckCommand(CLI::App& app, const Invocation& invocation);
// harvester status: shows a pool's state as the plugin observes it.
void AddStatusCommand(CLI::App& app, const Invocation& invocation);
// harvester gc: collects what an interrupted action left behind.
void AddGcCommand(CLI::App& app, const Invocation& invocation);
// harvester pause and harvester resume (rule L10).
void AddPauseCommand(CLI::App& app, const Invocation& invocation);
void AddResumeCommand(CLI::App& app, const Invocation& invocation);

// Prints each line of `problems` to standard error, behind the command's name; returns `exit_code`.
int Refuse(const std::string& command, const absl::Status& problems, int exit_code);

// The commands with their dependencies given; each returns the exit code.
//
// 0: nothing failed. 1: something did. The policy must be whole.
int CheckPreconditions(const scaling::Maintenance& maintenance, const runtime::Context& context,
                       const Settings& settings, const std::string& output, std::ostream& out);
// 0: ready. 3: not ready. 1: Harvester or Nomad cannot be read.
int ShowStatus(const scaling::Maintenance& maintenance, const runtime::Context& context,
               const Settings& settings, const std::string& output, std::ostream& out,
               std::ostream& err);
// 0: everything is clean. 1: something was not done. Prints a line to `out` for each thing done,
// and to `err` for each thing not done.
int CollectGarbage(const scaling::Maintenance& maintenance, const runtime::Context& context,
                   const Settings& settings, bool dry_run, std::ostream& out, std::ostream& err);

// The option --set KEY=VALUE, repeatable. `settings` must outlive `command`.
CLI::Option* AddSetOption(CLI::App& command, std::vector<std::string>& settings,
                          const std::string& description);

// The options --agent-config, --policy and --policy-name. `files` must outlive `command`.
void AddFileOptions(CLI::App& command, OperatorFiles& files);

using MaintenanceTask =
    std::function<int(const scaling::Maintenance& maintenance, const runtime::Context& context,
                      const Settings& settings)>;

// What an operator says on the command line about the cluster and the pool.
struct SettingArguments {
  OperatorFiles files;
  std::vector<std::string> pairs;  // KEY=VALUE
};

// Reads the files and the settings (every problem on standard error: kExitUsage), connects to both
// systems and runs the task under a context that Ctrl-C and SIGTERM cancel. Warnings go to standard
// error.
int RunWithMaintenance(const std::string& command, const SettingArguments& arguments, PolicyUse use,
                       const config::StringMap& environment, const MaintenanceTask& task);

// A subcommand that does that with its options --agent-config, --policy, --policy-name and --set.
struct MaintenanceCommand {
  std::string name;
  std::string description;
  std::string exit_codes;  // the last line of its help
  PolicyUse use;
  MaintenanceTask task;
  // Checks further options first; anything but kExitOk ends the command.
  std::function<int()> check = nullptr;
};
CLI::App* AddMaintenanceCommand(CLI::App& app, const Invocation& invocation,
                                const MaintenanceCommand& command);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMAND_H_
