// SPDX-License-Identifier: Apache-2.0
#include "command_table.h"

#include <CLI/CLI.hpp>

#include "nomad_harvester/cli/commands.h"

#include "absl/strings/str_split.h"

namespace nomad_harvester::cli {
namespace {

OptionEntry EntryOf(const CLI::Option& option) {
  OptionEntry entry{.description = option.get_description()};
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  if (option.get_positional()) {
    const std::string name = option.get_name(/*positional=*/true);
    entry.positional = option.get_required() ? name : "[" + name + "]";
  }
  if (option.get_items_expected_max() == 0) return entry;
  entry.repeats = option.get_items_expected_max() > 1;
  // CLI11 shows the values of IsMember in the type's name: "TEXT:{table,json}".
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) {
    entry.argument = entry.positional.empty() ? type : entry.positional;
    return entry;
  }
  entry.argument = type.substr(open + 1, close - open - 1);
  entry.values = absl::StrSplit(entry.argument, ',');
  for (char& c : entry.argument) {
    if (c == ',') c = '|';
  }
  return entry;
}

CommandEntry EntryOf(const CLI::App& app) {
  CommandEntry entry{
      .name = app.get_name(), .description = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* const option : app.get_options({})) {
    entry.options.push_back(EntryOf(*option));
  }
  return entry;
}

}  // namespace

std::vector<CommandEntry> CommandTable(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  std::vector<CommandEntry> table;
  table.reserve(commands.size() + 1);
  table.push_back(EntryOf(app));
  table.back().name = kCommand;  // however it was called
  for (const CLI::App* const command : commands) table.push_back(EntryOf(*command));
  return table;
}

}  // namespace nomad_harvester::cli
