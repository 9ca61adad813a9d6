// SPDX-License-Identifier: Apache-2.0
// harvester pause and harvester resume (rule L10). Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PAUSE_COMMAND_H_
#define NOMAD_HARVESTER_CLI_PAUSE_COMMAND_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/scaling/maintenance.h"

namespace CLI {
class App;
}

namespace nomad_harvester::cli {

struct PauseArguments {
  std::vector<std::string> settings;
  std::string until;  // RFC 3339; empty: until harvester resume
};

// The subcommands' options; owned by `app`.
CLI::App* AddPauseCommand(CLI::App& app, PauseArguments* arguments);
CLI::App* AddResumeCommand(CLI::App& app, PauseArguments* arguments);

// 0: the Lease says so. 1: it could not be written. 2: usage.
int RunPause(const PauseArguments& arguments, const config::StringMap& environment);
int RunResume(const PauseArguments& arguments, const config::StringMap& environment);

// The same with the dependencies given. `hold`: nothing resumes.
int SetPaused(const scaling::Maintenance& maintenance, const runtime::Context& context,
              const scaling::PoolKey& key, const std::optional<harvester::Hold>& hold,
              std::ostream& out, std::ostream& err);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PAUSE_COMMAND_H_
