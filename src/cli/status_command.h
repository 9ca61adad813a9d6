// SPDX-License-Identifier: Apache-2.0
// harvester status: shows a pool's state as the plugin observes it. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_COMMAND_H_
#define NOMAD_HARVESTER_CLI_STATUS_COMMAND_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/scaling/maintenance.h"

namespace CLI {
class App;
}

namespace nomad_harvester::cli {

struct StatusArguments {
  std::vector<std::string> settings;
  std::string output = "table";  // or "json"
};

// The subcommand's options; owned by `app`.
CLI::App* AddStatusCommand(CLI::App& app, StatusArguments* arguments);

// 0: ready. 3: not ready. 1: Harvester or Nomad cannot be read. 2: usage.
int RunStatus(const StatusArguments& arguments, const config::StringMap& environment);

// The same with the dependencies given.
int ShowStatus(const scaling::Maintenance& maintenance, const runtime::Context& context,
               const config::PoolPolicy& policy, const std::string& output, std::ostream& out,
               std::ostream& err);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_COMMAND_H_
