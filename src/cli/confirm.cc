// SPDX-License-Identifier: Apache-2.0
#include "confirm.h"

#include <cctype>
#include <iostream>
#include <unistd.h>

#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {

bool IsInteractive() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

int Confirm(const Asking& asking, const std::string& act, const ErrorWriter& errors) {
  if (asking.yes) return kExitOk;
  if (!asking.interactive) {
    return errors.Refuse("it would " + act + ", and there is no terminal to ask on: give --yes",
                         kExitUsage);
  }
  std::string question = Printable(act);
  question.front() =
      static_cast<char>(std::toupper(static_cast<unsigned char>(question.front())));
  asking.out << question << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(asking.in, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return kExitOk;
  return errors.Refuse("nothing was done", kExitFailure);
}

}  // namespace nomad_harvester::cli
