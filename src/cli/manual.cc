// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "command_table.h"
#include "examples.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

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

// Returns " [VM]" for each positional argument.
std::string Positionals(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options) {
    if (!option.positional.empty()) text += " " + option.positional;
  }
  return text;
}

}  // namespace

std::string ManualPage(const std::string& command, const std::vector<CommandEntry>& table) {
  const CommandEntry& program = table.front();
  std::string others;
  for (const CommandEntry& entry : table) {
    const bool is_program = &entry == &program;
    const std::string page = is_program ? entry.name : program.name + "\\-" + entry.name;
    if (entry.name != command) {
      others += (others.empty() ? "" : ",\n") + Bold(page) + "(1)";
    }
  }
  for (const CommandEntry& entry : table) {
    if (entry.name != command) continue;
    const bool is_program = &entry == &program;
    const std::string page = is_program ? entry.name : program.name + "-" + entry.name;
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
    return text + ".SH SEE ALSO\n" + others + "\n";
  }
  return "";
}

}  // namespace nomad_harvester::cli
