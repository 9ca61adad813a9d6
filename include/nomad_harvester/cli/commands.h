// SPDX-License-Identifier: Apache-2.0
// The commands of the executable.
#ifndef NOMAD_HARVESTER_CLI_COMMANDS_H_
#define NOMAD_HARVESTER_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::cli {

// The name of the installed command. It differs from the driver's file name, because other
// Harvester programs have that name, too.
inline constexpr char kCommand[] = "nomad-harvester";

// Runs the program and returns its exit code. With the go-plugin cookie in the environment it runs
// as the plugin and ignores the arguments; otherwise it runs a command, or prints its help if there
// is none. Usage errors: 2. `called`: the program name in usage texts and errors; empty: kCommand.
//
// Changes the signal mask and the dispositions of SIGINT and SIGPIPE, disables core files, and
// keeps OpenSSL from loading a configuration: call it from main, before any thread is started.
int Main(const std::vector<std::string>& arguments, const config::StringMap& environment,
         const std::string& called = kCommand);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMANDS_H_
