// SPDX-License-Identifier: Apache-2.0
// Shows the output of a command once, or with --watch until Ctrl-C. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_WATCH_H_
#define NOMAD_HARVESTER_CLI_WATCH_H_

#include <functional>
#include <string>

#include "command.h"

namespace nomad_harvester::cli {

// The result of one look at the systems.
struct Look {
  int exit_code = kExitOk;
  std::string text;   // what is shown
  std::string state;  // changes only with real changes, not with ages and times
  std::string error;  // why nothing is shown; `text` is empty
};

// Shows one look, or with `arguments.watch` looks again until the context ends or nobody reads any
// more. On a terminal that redraws, uses its alternate screen, under a line with `title`; the last
// look stays visible at the end. Elsewhere prints only changes, and each error once.
//
// Returns the exit code of the last look.
int ShowLooks(const CommandRun& run, const WatchArguments& arguments, const std::string& title,
              const std::function<Look()>& look);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_WATCH_H_
