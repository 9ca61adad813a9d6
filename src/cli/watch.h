// SPDX-License-Identifier: Apache-2.0
// What a command shows once, or with --watch until Ctrl-C. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_WATCH_H_
#define NOMAD_HARVESTER_CLI_WATCH_H_

#include <functional>
#include <string>

#include "command.h"

namespace nomad_harvester::cli {

// One look at the systems.
struct Look {
  int exit_code = kExitOk;
  std::string text;   // what is shown
  std::string state;  // another one: something has changed; ages and times are no change
  std::string error;  // why nothing is shown; `text` is empty
};

// Shows one look, or with `arguments.watch` looks again until the context ends or nobody reads any
// more. On a terminal that redraws: on its alternate screen, under a line with `title`; what was
// seen last stays when it ends. Elsewhere what has changed is printed, and an error is told once.
//
// The exit code of the last look.
int ShowLooks(const CommandRun& run, const WatchArguments& arguments, const std::string& title,
              const std::function<Look()>& look);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_WATCH_H_
