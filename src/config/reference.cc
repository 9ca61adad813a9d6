// SPDX-License-Identifier: Apache-2.0
// Renders the option table as Markdown.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "nomad_harvester/config/option_table.h"

#include "options.h"
#include "reference_text.h"

namespace nomad_harvester::config {
namespace {

std::string Code(std::string_view text) { return "`" + std::string(text) + "`"; }

// "a,b" as "`a`, `b`".
std::string CodeList(std::string_view list) {
  std::string result;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    result += (result.empty() ? "" : ", ") + Code(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return result;
}

std::string TypeText(const Option& option) {
  switch (option.type) {
    case OptionType::kString:
      return "string";
    case OptionType::kSecret:
      return "secret";
    case OptionType::kBool:
      return "boolean";
    case OptionType::kDuration:
      return "duration";
    case OptionType::kSignedDuration:
      return "duration, any sign";
    case OptionType::kCount:
      return "whole number";
    case OptionType::kShare:
      return "whole number or percentage";
    case OptionType::kQuantity:
      return "quantity";
    case OptionType::kList:
      return "list";
    case OptionType::kMap:
      return "map";
    case OptionType::kEnum:
      return CodeList(option.enum_values);
    case OptionType::kPath:
      return "path";
    case OptionType::kUrl:
      return "URL";
  }
  return "";
}

std::string DefaultText(const Option& option) {
  if (option.required) return "**required**";
  if (!option.default_text.empty()) return Code(option.default_text);
  return option.default_note.empty() ? "–" : std::string(option.default_note);
}

// The column of variables appears only if the section has any; a policy has none.
std::string Row(const Option& option, bool with_environment) {
  std::string row =
      "| " + Code(option.key) + " | " + TypeText(option) + " | " + DefaultText(option) + " | ";
  if (with_environment) {
    row += option.environment.empty() ? "–" : CodeList(option.environment);
    if (!option.environment.empty() && !option.environment_wins) row += " (if the key is absent)";
    row += " | ";
  }
  return row + std::string(option.documentation) + " |\n";
}

std::string Tables(Section section) {
  const bool with_environment = section == Section::kPlugin;
  std::string text;
  std::string_view group;
  for (const Option& option : OptionsOf(section)) {
    if (option.group != group) {
      group = option.group;
      text += "\n### " + std::string(group) + "\n\n";
      text += with_environment ? "| Key | Type | Default | Environment | Meaning |\n"
                                 "|---|---|---|---|---|\n"
                               : "| Key | Type | Default | Meaning |\n|---|---|---|---|\n";
    }
    text += Row(option, with_environment);
  }
  return text;
}

}  // namespace

std::string RenderReference() {
  std::string text(IntroductionText());
  text += "\n## The plugin: `target \"harvester\"` of the agent\n\n";
  text += PluginRulesText();
  text += Tables(Section::kPlugin);
  text += "\n## A pool: `target \"harvester\"` of a policy\n\n";
  text += PolicyRulesText();
  text += Tables(Section::kPolicy);
  text += "\n";
  text += TemplatesText();
  text += "\n";
  text += ObjectsText();
  return text;
}

}  // namespace nomad_harvester::config
