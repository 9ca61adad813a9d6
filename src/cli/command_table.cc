// SPDX-License-Identifier: Apache-2.0
#include "command_table.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/cli/commands.h"
#include "nomad_harvester/config/option_table.h"

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
  if (entry.positional == "[VM]") entry.names_of = "vms";
  if (option.get_items_expected_max() == 0) return entry;
  entry.repeats = option.get_items_expected_max() > 1;
  // CLI11 tells the values of IsMember in the name of the type: "TEXT:{table,json}".
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  const std::size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) {
    entry.argument = entry.positional.empty() ? type : entry.positional;
    if (entry.argument == "NAME") entry.names_of = "policies";
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
    if (entry.options.back().argument == "KEY=VALUE") {
      for (const config::Option& known : config::OptionTable()) {
        const std::string key = std::string(known.key) + "=";
        entry.options.back().values.push_back(key);
        const std::string_view values = known.type == config::OptionType::kBool ? "true,false"
                                        : known.type == config::OptionType::kEnum
                                            ? known.enum_values
                                            : std::string_view();
        for (const absl::string_view value :
             absl::StrSplit(base::ToAbsl(values), ',', absl::SkipEmpty())) {
          entry.options.back().pairs.push_back(key + std::string(value));
        }
      }
    }
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
  for (const CLI::App* const command : commands) {
    if (!command->get_group().empty()) table.push_back(EntryOf(*command));
  }
  return table;
}

}  // namespace nomad_harvester::cli
