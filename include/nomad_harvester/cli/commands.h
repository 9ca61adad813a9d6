// SPDX-License-Identifier: Apache-2.0
// The commands of the executable.
#ifndef NOMAD_HARVESTER_CLI_COMMANDS_H_
#define NOMAD_HARVESTER_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"

namespace nomad_harvester::cli {

// Runs the program and returns its exit code. With the go-plugin cookie in the environment it runs
// as the plugin and ignores the arguments; otherwise it runs a command. Without both: prints one
// sentence about its purpose and use on standard error, nothing on standard output, and returns 1.
// Usage errors: 2.
//
// Changes the signal mask and the dispositions of SIGINT and SIGPIPE, makes the process write no
// core file and OpenSSL load no configuration: call it from main, before any thread is started.
int Main(const std::vector<std::string>& arguments, const config::StringMap& environment);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMANDS_H_
