// SPDX-License-Identifier: Apache-2.0
// Asks before irreversible actions. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_CONFIRM_H_
#define NOMAD_HARVESTER_CLI_CONFIRM_H_

#include <functional>
#include <optional>
#include <string>

#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::cli {

struct CommandRun;  // command.h

struct Prompter {
  bool interactive = false;  // standard input and output are terminals
  // Reads a line without its end; nullopt at the end of the input, and once the context has ended.
  std::function<std::optional<std::string>(const runtime::Context& context)> read_line;
};

// Uses this process' standard input and output.
Prompter AskOnTerminal();

// kExitOk: continue, as with --yes. kExitFailure: the answer was not yes. kExitUsage: nobody can be
// asked. `act`: used in the question and in errors, for example "remove 2 VMs".
int Confirm(const CommandRun& run, bool yes, const std::string& act);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_CONFIRM_H_
