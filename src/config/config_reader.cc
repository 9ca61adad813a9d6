// SPDX-License-Identifier: Apache-2.0
#include "config_reader.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::config {
namespace {

constexpr std::size_t kMaxQuoted = 80;
constexpr std::string_view kEllipsis = "…";

std::string PrintableKey(std::string_view key) {
  const bool plain = !key.empty() && key.size() <= kMaxQuoted &&
                     std::all_of(key.begin(), key.end(), [](unsigned char c) {
                       return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
                     });
  return plain ? std::string(key) : Quote(key);
}

}  // namespace

std::string Quote(std::string_view text) {
  // Before shortening, because part of a secret would not be recognised.
  const std::string open = base::WithoutSecrets(std::string(text));
  const std::string_view shown = base::Utf8Prefix(open, kMaxQuoted);
  std::string quoted;
  for (const char c : shown) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  quoted = "\"" + base::EscapeControls(quoted, "\\x0a") + "\"";
  if (shown.size() < open.size()) quoted += kEllipsis;
  return quoted;
}

ConfigReader::ConfigReader(Section section, const StringMap& values, StringMap environment)
    : section_(section), values_(values), environment_(std::move(environment)) {
  for (const Option& option : OptionsOf(section_)) {
    if (option.type != OptionType::kSecret) continue;
    if (const std::optional<GivenValue> given = FindInEnvironment(option.key))
      AddSecret(given->value, given->variable);
    const auto in_map = values_.find(std::string(option.key));
    if (in_map != values_.end()) AddSecret(in_map->second, std::string(option.key));
  }
}

std::optional<GivenValue> ConfigReader::FindInMap(std::string_view key) {
  consumed_.emplace(key);
  const auto found = values_.find(std::string(key));
  if (found == values_.end()) return std::nullopt;
  const Option* const option = FindOption(section_, key);
  if (found->second.empty() && option != nullptr && option->empty_is_absent) return std::nullopt;
  return GivenValue{.value = found->second, .variable = {}};
}

// An empty variable counts as unset, as in Nomad's client and Go's standard library.
std::optional<GivenValue> ConfigReader::FindInEnvironment(std::string_view key) const {
  const Option* const option = FindOption(section_, key);
  if (option == nullptr) return std::nullopt;
  const std::vector<std::string> names =
      absl::StrSplit(base::ToAbsl(option->environment), ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    const std::string value = base::ValueOf(environment_, name);
    if (!value.empty()) return GivenValue{.value = value, .variable = name};
  }
  return std::nullopt;
}

std::optional<GivenValue> ConfigReader::Find(std::string_view key) {
  const Option* const option = FindOption(section_, key);
  std::optional<GivenValue> in_map = FindInMap(key);
  std::optional<GivenValue> in_environment = FindInEnvironment(key);
  if (in_environment && (!in_map || option->environment_wins)) return in_environment;
  if (!in_map && option != nullptr && option->required) {
    AddProblem(key, "required, but absent",
               section_ == Section::kPolicy ? "add it to the policy's target block"
                                            : "add it to the config of the agent's target block");
  }
  return in_map;
}

std::optional<std::string> ConfigReader::DefaultOf(std::string_view key) const {
  const Option* const option = FindOption(section_, key);
  if (option == nullptr || option->default_text.empty()) return std::nullopt;
  return std::string(option->default_text);
}

void ConfigReader::AddFault(std::string_view key, const Fault& fault, const GivenValue& given) {
  const Option* const option = FindOption(section_, key);
  const bool secret = option == nullptr || option->type == OptionType::kSecret;
  std::string what = fault.what;
  if (fault.show_value && !secret) {
    what += " (got " + Quote(given.value);
    if (!given.variable.empty()) what += " from " + given.variable;
    what += ")";
  } else if (!given.variable.empty()) {
    what += " (from " + given.variable + ")";
  }
  AddProblem(key, what, fault.hint);
}

void ConfigReader::AddProblem(std::string_view key, std::string_view what, std::string_view hint) {
  std::string text = PrintableKey(key) + ": " + std::string(what);
  if (!hint.empty()) text += "; " + std::string(hint);
  problems_.emplace(OrderOf(key), std::move(text));
}

void ConfigReader::AddWarning(std::string_view key, std::string_view text) {
  warnings_.push_back(std::string(key) + ": " + std::string(text));
}

std::size_t ConfigReader::OrderOf(std::string_view key) const {
  const Option* const option = FindOption(section_, key);
  const std::span<const Option> table = OptionTable();
  return option == nullptr ? table.size() : static_cast<std::size_t>(option - table.data());
}

void ConfigReader::CheckNeeds() {
  for (const Option& option : OptionsOf(section_)) {
    if (option.needs.empty() || !Find(option.key) || Find(option.needs)) continue;
    const std::string needed(option.needs);
    if (section_ == Section::kPolicy) {
      AddWarning(option.key, "has no effect without " + needed);
      continue;
    }
    const std::string_view variable = FindOption(section_, needed)->environment;
    AddProblem(option.key, "given without " + needed,
               "add " + needed + (variable.empty() ? "" : ", or set " + std::string(variable)) +
                   ", or remove " + std::string(option.key));
  }
}

absl::Status ConfigReader::Finish() {
  CheckNeeds();
  for (const auto& [key, value] : values_) {
    if (!consumed_.contains(key)) AddProblem(key, "unknown key", UnknownKeyHint(section_, key));
  }
  if (problems_.empty()) return absl::OkStatus();
  const std::string message = absl::StrJoin(
      problems_, "\n", [](std::string* all, const auto& problem) { *all += problem.second; });
  return base::InvalidArgument(base::WithoutSecrets(message));
}

}  // namespace nomad_harvester::config
