// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "command_table.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// The column where descriptions begin, on a narrow terminal and elsewhere.
constexpr std::size_t kNarrow = 70;
constexpr std::size_t kNarrowColumn = 16;
constexpr std::size_t kColumn = 30;

constexpr char kExamplesHeading[] = "Examples:";

class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(width) {
    column_width(width != 0 && width < kNarrow ? kNarrowColumn : kColumn);
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help;
    const std::string whole = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t begin = 0; begin < whole.size();) {
      const std::size_t end = std::min(whole.find('\n', begin), whole.size());
      const std::string line = whole.substr(begin, end - begin);
      begin = end + 1;
      // CLI11's releases differ in the empty lines around a footer.
      const bool follows_empty = help.empty() || help.ends_with("\n\n");
      if (line.empty() && follows_empty) continue;
      if (line == kExamplesHeading && !follows_empty) help += "\n";
      // Lines of options and commands are indented.
      help += Fold(line, width_, line.starts_with(' ') ? get_column_width() : 0) + "\n";
    }
    return help;
  }

  // An option that may also be positional is shown there.
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (!is_positional) {
      std::erase_if(options, [](const CLI::Option* option) { return option->get_positional(); });
    }
    return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
  }

  std::string make_footer(const CLI::App* app) const override {
    const CLI::App* const parent = app->get_parent();
    const std::vector<std::string> examples = parent == nullptr
                                                  ? ExamplesOf("", app->get_name())
                                                  : ExamplesOf(app->get_name(), parent->get_name());
    return (examples.empty()
                ? std::string()
                : kExamplesHeading + ("\n  " + absl::StrJoin(examples, "\n  ") + "\n\n")) +
           CLI::Formatter::make_footer(app);
  }

 private:
  const std::size_t width_;
};

std::vector<std::string> CommandNames(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CLI::App* const command : commands) names.push_back(command->get_name());
  return names;
}

// A word after an unknown option may be its value, which may be a secret.
std::string Unexpected(const std::vector<std::string>& arguments, const std::string& options) {
  const bool is_told =
      options.empty() && std::none_of(arguments.begin(), arguments.end(),
                                      [](const std::string& word) { return MayBeSecret(word); });
  if (!is_told) {
    return std::to_string(arguments.size()) + " unexpected argument(s)" +
           (options.empty() ? "" : ", among them" + options);
  }
  std::vector<std::string> words;
  words.reserve(arguments.size());
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(words), GivenWord);
  return std::string("unexpected argument") + (words.size() == 1 ? " " : "s ") +
         absl::StrJoin(words, ", ");
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> MakeHelpFormatter(std::size_t width) {
  return std::make_shared<HelpFormatter>(width);
}

std::vector<std::string> WithoutHelp(std::vector<std::string> arguments) {
  if (arguments.front() != "help") return arguments;
  while (!arguments.empty() && arguments.front() == "help") arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

std::string UnknownCommand(const CLI::App& app, const std::string& argument) {
  const std::vector<std::string> names = CommandNames(app);
  if (argument.starts_with('-') || std::find(names.begin(), names.end(), argument) != names.end()) {
    return "";
  }
  if (argument == "apm") {
    return "the agent starts apm, by the args of its apm block; to see what that answers, use "
           "\"demand\"";
  }
  // The spelling is nearer to the opposite option.
  const std::optional<std::string> nearest =
      argument == "unpause" ? "resume" : base::NearestName(argument, names);
  if (nearest.has_value()) return "there is no command \"" + argument + "\"" + DidYouMean(nearest);
  return "there is no " +
         (MayBeSecret(argument) ? "such command" : "command " + GivenWord(argument)) +
         "; the commands are " + absl::StrJoin(names, ", ");
}

std::string UnexpectedArguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  std::vector<std::string> known;
  std::string places;  // "COUNT and "
  for (const OptionEntry& option : EntryOf(parsed.empty() ? app : *parsed.front()).options) {
    if (!option.positional.empty()) places += option.positional + " and ";
    std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(known),
                 [](const std::string& name) { return name.starts_with("--"); });
  }
  const bool takes_count = std::find(known.begin(), known.end(), "--count") != known.end();
  // CLI11 takes a negative number for an option, and leaves over a number that is no count.
  for (const std::string& argument : arguments) {
    const std::string problem = base::ParseInt(argument).ok() ? ProblemOfCount(argument) : "";
    if (takes_count && !problem.empty()) return "--count: " + problem;
  }
  std::string options;
  std::string hints;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with('-')) continue;
    const std::string name = argument.substr(0, argument.find('='));
    options += " " + name;
    hints += DidYouMean(base::NearestName(name, known));
  }
  if (options.empty()) {
    hints += "; it takes " + (places.empty() ? "nothing but options" : places + "options");
  }
  if (!hints.ends_with('?')) {
    const bool has_settings = std::find(known.begin(), known.end(), "--set") != known.end();
    const bool has_policy = std::find(known.begin(), known.end(), "--policy") != known.end();
    std::erase_if(known,
                  [](const std::string& name) { return name == "--help" || name == "--version"; });
    if (!options.empty()) {
      hints = known.empty() ? "; there are none but --help"
                            : "; the options are " + absl::StrJoin(known, ", ");
    }
    if (has_settings) hints += kHowToSet;
    if (has_policy) hints += ", a policy as --policy FILE";
  }
  return Unexpected(arguments, options) + hints + (hints.ends_with('?') ? "" : ".") +
         " Run with --help for more information.";
}

}  // namespace nomad_harvester::cli
