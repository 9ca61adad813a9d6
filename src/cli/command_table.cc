// SPDX-License-Identifier: Apache-2.0
#include "command_table.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "nomad_harvester/cli/commands.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

OptionEntry OptionEntryOf(const CLI::Option& option) {
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

struct Example {
  std::string_view command;
  std::string_view arguments;  // including what the shell does with the output
};

// Lines have at most 80 columns.
constexpr Example kExamples[] = {
    {"", "help status"},
    {"", "status"},
    {"dev", "dev --simulate"},
    {"dev", "dev --simulate --fail quota"},
    {"init", "init --kubeconfig harvester.kubeconfig --dir pool"},
    {"init", "init --rbac | kubectl apply -f -"},
    {"check", "check batch-workers"},
    {"check", "check --agent-config agent.hcl --policy web.hcl -o json"},
    {"status", "status batch-workers -o wide"},
    {"status", "status --all"},
    {"status", "status --history batch-workers"},
    {"status", "status --agent-config agent.hcl --policy web.hcl"},
    {"demand", "demand batch-workers"},
    {"demand", "demand 'nodes-needed node_class=web'"},
    {"why", "why api"},
    {"gc", "gc -n nomad --dry-run"},
    {"gc", "gc batch-workers"},
    {"adopt", "adopt batch-workers --dry-run"},
    {"pause", "pause batch-workers"},
    {"pause", "pause batch-workers --until 2h"},
    {"resume", "resume batch-workers"},
    {"evacuate", "evacuate rack1-a batch-workers"},
    {"replace", "replace batch-workers --drifted"},
    {"plan", "plan 3 batch-workers"},
    {"plan", "plan 3 --policy web.hcl -o yaml"},
    {"scale", "scale 3 batch-workers"},
    {"scale", "scale 1 batch-workers --yes"},
    {"render", "render batch-workers"},
    {"version", "version"},
    {"version", "version -o json"},
    {"completion", "completion zsh > _nomad-harvester"},
    {"manual", "manual status | man -l -"},
};

// Escapes a line of text; a full stop or an apostrophe at its beginning would be a request.
std::string Roff(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n", " "}});
  return (escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" : "") + escaped + "\n";
}

std::string Bold(const std::string& text) { return "\\fB" + text + "\\fR"; }

std::string Options(const CommandEntry& command) {
  std::string text = ".SH OPTIONS\n";
  for (const OptionEntry& option : command.options) {
    const std::string names = absl::StrJoin(option.names, ", ");
    text += ".TP\n" + Bold(absl::StrReplaceAll(names, {{"-", "\\-"}})) +
            (names.empty() || option.argument.empty() ? "" : " ") +
            absl::StrReplaceAll(option.argument, {{"-", "\\-"}}) + (option.repeats ? " ..." : "") +
            "\n" + Roff(option.description);
  }
  return text;
}

std::string Positionals(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options) {
    if (!option.positional.empty()) text += " " + option.positional;
  }
  return text;
}

}  // namespace

CommandEntry EntryOf(const CLI::App& app) {
  CommandEntry entry{
      .name = app.get_name(), .description = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* const option : app.get_options({})) {
    entry.options.push_back(OptionEntryOf(*option));
  }
  return entry;
}

std::vector<CommandEntry> CommandTable(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  std::vector<CommandEntry> table;
  table.reserve(commands.size() + 1);
  table.push_back(EntryOf(app));
  table.back().name = kCommand;  // however it was called
  for (const CLI::App* const command : commands) table.push_back(EntryOf(*command));
  return table;
}

std::vector<std::string> ExamplesOf(const std::string& command, const std::string& program) {
  std::vector<std::string> lines;
  for (const Example& example : kExamples) {
    if (example.command == command) lines.push_back(program + " " + std::string(example.arguments));
  }
  return lines;
}

std::string ManualPage(const std::string& command, const std::vector<CommandEntry>& table) {
  const CommandEntry& program = table.front();
  const auto page_of = [&](const CommandEntry& entry) {
    return &entry == &program ? entry.name : program.name + "-" + entry.name;
  };
  std::vector<std::string> others;
  for (const CommandEntry& entry : table) {
    if (entry.name == command) continue;
    others.push_back(Bold(absl::StrReplaceAll(page_of(entry), {{"-", "\\-"}})) + "(1)");
  }
  for (const CommandEntry& entry : table) {
    if (entry.name != command) continue;
    const bool is_program = &entry == &program;
    const std::string page = page_of(entry);
    std::string text =
        ".TH " + absl::AsciiStrToUpper(page) + " 1 \"\" \"" + program.name + " " + Version() +
        "\"\n.ad l\n.SH NAME\n" + absl::StrReplaceAll(page, {{"-", "\\-"}}) + " \\- " +
        Roff(entry.description.substr(0, entry.description.find(". "))) + ".SH SYNOPSIS\n" +
        Bold(program.name) + " " + (is_program ? "COMMAND" : Bold(entry.name)) + " [OPTIONS]" +
        Positionals(entry) + "\n" + ".SH DESCRIPTION\n" + Roff(entry.description);
    if (is_program) {
      text += ".SH COMMANDS\n";
      for (std::size_t i = 1; i < table.size(); ++i) {
        text += ".TP\n" + Bold(table[i].name) + "\n" + Roff(table[i].description);
      }
    }
    text += Options(entry);
    text += ".SH EXAMPLES\n.nf\n";
    for (const std::string& example : ExamplesOf(is_program ? "" : entry.name, program.name)) {
      text += Roff(example);
    }
    text += ".fi\n";
    const std::string heading = entry.footer.starts_with("Exit: ") ? "EXIT STATUS" : "NOTES";
    if (!entry.footer.empty()) text += ".SH " + heading + "\n" + Roff(entry.footer);
    return text + ".SH SEE ALSO\n" + absl::StrJoin(others, ",\n") + "\n";
  }
  return "";
}

}  // namespace nomad_harvester::cli
