// SPDX-License-Identifier: Apache-2.0
#include "yaml.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {
namespace {

using nlohmann::json;

// Begins with a letter, so that it is neither a number nor a time, and has no sign of YAML's.
bool IsPlain(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text.front()))) return false;
  const bool harmless = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._/-").find(c) != std::string_view::npos;
  });
  constexpr std::array<std::string_view, 9> kWords = {"true", "false", "yes", "no", "on",
                                                      "off",  "null",  "y",   "n"};
  const std::string lower = absl::AsciiStrToLower(text);
  return harmless && std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

// JSON's quotes and escapes are YAML's, too.
std::string Scalar(const json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) {
    return value.get<std::string>();
  }
  return value.dump(-1, ' ', /*ensure_ascii=*/true);
}

bool IsBlock(const json& value) { return value.is_structured() && !value.empty(); }

// `first`: what stands before the first line already is its indentation.
void Write(const json& value, std::size_t indent, bool first, std::string* text) {
  const auto begin_line = [&] {
    if (!first) text->append(indent, ' ');
    first = false;
  };
  if (!IsBlock(value)) {
    *text += Scalar(value) + "\n";
  } else if (value.is_array()) {
    for (const json& item : value) {
      begin_line();
      *text += "- ";
      Write(item, indent + 2, true, text);
    }
  } else {
    for (const auto& [key, member] : value.items()) {
      begin_line();
      *text += Scalar(key) + ":";
      *text += IsBlock(member) ? "\n" : " ";
      Write(member, indent + 2, false, text);
    }
  }
}

}  // namespace

std::string ToYaml(const json& value) {
  std::string text;
  Write(value, 0, false, &text);
  return text;
}

}  // namespace nomad_harvester::cli
