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

// CLI11's help, folded to `width` columns (0: not folded).
std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter(std::size_t width);

// "nomad-harvester help COMMAND" as "harvester COMMAND --help".
std::vector<std::string> WithoutHelp(std::vector<std::string> arguments);

// What to say of a first argument that is no command; empty: it is one, or an option. It is
// repeated only if it is nearly a command, for it may be a secret.
std::string UnknownCommand(const CLI::App& app, const std::string& argument);

// What to say of arguments that `app` has parsed and did not expect. Only the names of options are
// repeated: the rest may be a secret whose --set was forgotten.
std::string UnexpectedArguments(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_HELP_H_
