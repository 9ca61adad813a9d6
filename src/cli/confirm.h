// SPDX-License-Identifier: Apache-2.0
// Asks before what cannot be undone. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_CONFIRM_H_
#define NOMAD_HARVESTER_CLI_CONFIRM_H_

#include <functional>
#include <iosfwd>
#include <string>

#include "nomad_harvester/runtime/context.h"

#include "error_writer.h"

namespace nomad_harvester::cli {

struct Asking {
  bool yes = false;          // --yes
  bool interactive = false;  // standard input and output are terminals
  // A line of the input without its end; empty at its end, and once the context has ended.
  std::function<std::string(const runtime::Context& context)> read_line;
  std::ostream& out;
};

// Of this process' standard input and output.
bool IsInteractive();
std::string ReadLine(const runtime::Context& context);

// kExitOk: go on. kExitFailure: the answer was not yes. kExitUsage: nobody can be asked, and --yes
// is missing. `act`: "remove 2 VMs", the question and what an error says.
int Confirm(const runtime::Context& context, const Asking& asking, const std::string& act,
            const ErrorWriter& errors);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_CONFIRM_H_
