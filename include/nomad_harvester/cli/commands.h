// SPDX-License-Identifier: Apache-2.0
// What the executable does, by its arguments and its environment.
#ifndef NOMAD_HARVESTER_CLI_COMMANDS_H_
#define NOMAD_HARVESTER_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::cli {

// Runs the program and returns its exit code. With the host's cookie in the environment it is the
// plugin, whatever the arguments; otherwise a command. Without both: one sentence on standard error
// that says what this is and how it is used, nothing on standard output, 1. Usage errors: 2.
//
// Changes the signal mask and the dispositions of SIGINT and SIGPIPE: to be called from main,
// before any thread is started.
int Main(const std::vector<std::string>& arguments, const config::StringMap& environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMANDS_H_
