// SPDX-License-Identifier: Apache-2.0
#include "confirm.h"

#include <iostream>
#include <poll.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Ctrl-C is handled by a waiting thread and interrupts no read, so reading starts only when there
// is input.
std::optional<std::string> ReadLine(const runtime::Context& context) {
  constexpr int kPollMilliseconds = 100;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!context.Done() && poll(&input, 1, kPollMilliseconds) == 0) {
  }
  std::string line;
  if (context.Done() || !std::getline(std::cin, line)) return std::nullopt;
  return line;
}

}  // namespace

Prompter AskOnTerminal() {
  return {.interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1,
          .read_line = ReadLine};
}

int Confirm(const CommandRun& run, bool yes, const std::string& act) {
  if (yes) return kExitOk;
  if (!run.prompter.interactive) {
    return run.errors.Refuse("it would " + act + ", and there is no terminal to ask on: give --yes",
                             kExitUsage);
  }
  std::string question = Printable(act);
  question.front() = absl::ascii_toupper(static_cast<unsigned char>(question.front()));
  run.out << "\n" << question << "? [y/N] " << std::flush;
  const std::string answer = run.prompter.read_line(run.context).value_or("");
  if (answer == "y" || answer == "Y" || answer == "yes") return kExitOk;
  if (run.context.Done()) run.out << "\n";
  return run.errors.Refuse("nothing was done", kExitFailure);
}

}  // namespace nomad_harvester::cli
