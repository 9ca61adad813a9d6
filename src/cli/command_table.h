// SPDX-License-Identifier: Apache-2.0
// The commands and their options as data: for help, completion and manual pages. Private to module
// cli.
#ifndef NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_
#define NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace nomad_harvester::cli {

struct Invocation;

struct OptionEntry {
  std::vector<std::string> names;  // "--output", "-o"; empty if positional
  std::string positional;          // its name if positional, in brackets if optional: "[VM]"
  std::string argument;            // "FILE|DIR"; empty: a flag
  std::string description;
  std::vector<std::string> values;  // all that the argument may be, if they are known
  bool repeats = false;
};

struct CommandEntry {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionEntry> options;
};

CommandEntry EntryOf(const CLI::App& app);
// The first entry is `app` itself, with the name of the installed command.
std::vector<CommandEntry> CommandTable(const CLI::App& app);

// Completion for one of kShells: a script that asks nomad-harvester __complete.
inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};
std::string CompletionScript(const std::string& shell);

// nomad-harvester __complete WORDS, which no help names: prints what the last of the words of an
// unfinished command may become, one on a line, some with a tab and a description. Names of
// policies and of VMs are read by the settings in the words before. The exit code.
inline constexpr char kCompleteCommand[] = "__complete";
int Complete(const std::vector<std::string>& words, const std::vector<CommandEntry>& table,
             const Invocation& invocation);

// Returns the command's manual page, or for the program's own name the program's, as roff.
std::string ManualPage(const std::string& command, const std::vector<CommandEntry>& table);

// Returns the examples of a command, or of the program if the name is empty: lines for a shell that
// call `program`. test/contract/documents_test.go runs them. Empty: there is no such command.
std::vector<std::string> ExamplesOf(const std::string& command, const std::string& program);

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

#endif  // NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_
