// SPDX-License-Identifier: Apache-2.0
// The help of the commands, and hints for mistyped options. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_HELP_H_
#define NOMAD_HARVESTER_CLI_HELP_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace nomad_harvester::cli {

// Formats CLI11's help, folded to `width` columns (0: not folded).
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter(std::size_t width);

// Turns "nomad-harvester help COMMAND" into "harvester COMMAND --help".
std::vector<std::string> WithoutHelp(std::vector<std::string> arguments);

// Returns the error for a first argument that is not a command; empty: it is one, or an option.
// Repeats the argument only if it resembles a command, because it may be a secret.
std::string UnknownCommand(const CLI::App& app, const std::string& argument);

// Returns the error for arguments that `app` has parsed but did not expect. Repeats only names of
// options, because the rest may be a secret given without --set.
std::string UnexpectedArguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_HELP_H_
