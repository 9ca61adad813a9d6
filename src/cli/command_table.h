// SPDX-License-Identifier: Apache-2.0
// The commands and their options as data, for completion scripts and manual pages. Private to
// module cli.
#ifndef NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_
#define NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace nomad_harvester::cli {

struct OptionEntry {
  std::vector<std::string> names;  // "--output", "-o"; of a positional argument empty
  std::string positional;          // the name of one, in brackets if it may be left out: "[VM]"
  std::string argument;            // "FILE|DIR"; empty: a flag
  std::string description;
  std::vector<std::string> values;  // all that the argument may be, if they are known
  std::vector<std::string> pairs;   // of KEY=VALUE: those of which the values are known
  bool repeats = false;
  std::string names_of;  // "policies" or "vms": __names prints what it may be
};

struct CommandEntry {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionEntry> options;
};

// The first entry is `app` itself, by the name of the installed command.
std::vector<CommandEntry> CommandTable(const CLI::App& app);

// Completion for one of kShells. It knows the values of options, and the keys of --set.
inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};
std::string CompletionScript(const std::string& shell, const std::vector<CommandEntry>& table);

// The manual page of the command, or that of the program for its own name, as roff.
std::string ManualPage(const std::string& command, const std::vector<CommandEntry>& table);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_COMMAND_TABLE_H_
