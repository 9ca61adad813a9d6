// SPDX-License-Identifier: Apache-2.0
// harvester dev: serves the plugin's gRPC services without the agent, for debugging.
#ifndef NOMAD_HARVESTER_CLI_DEV_COMMAND_H_
#define NOMAD_HARVESTER_CLI_DEV_COMMAND_H_

#include <string>

#include "nomad_harvester/config/plugin_config.h"

namespace CLI {
class App;
}

namespace nomad_harvester::cli {

struct DevArguments {
  std::string listen = "127.0.0.1:0";
  bool simulate = false;
};

// The subcommand's options; owned by `app`.
CLI::App* AddDevCommand(CLI::App& app, DevArguments* arguments);

// Serves until SIGTERM or SIGINT. Returns the exit code.
int RunDev(const DevArguments& arguments, const config::StringMap& environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_DEV_COMMAND_H_
