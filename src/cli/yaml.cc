// SPDX-License-Identifier: Apache-2.0
#include "yaml.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "absl/strings/ascii.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::cli {
namespace {

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

// yaml-cpp leaves a text plain that another reader takes for a number.
void WriteText(const std::string& text, YAML::Emitter* out) {
  if (!IsPlain(text)) *out << YAML::DoubleQuoted;
  *out << text;
}

template <typename Json>
void Write(const Json& value, YAML::Emitter* out) {
  if (value.is_structured() && value.empty()) *out << YAML::Flow;
  if (value.is_array()) {
    *out << YAML::BeginSeq;
    for (const Json& item : value) Write(item, out);
    *out << YAML::EndSeq;
  } else if (value.is_object()) {
    *out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      *out << YAML::Key;
      WriteText(key, out);
      *out << YAML::Value;
      Write(member, out);
    }
    *out << YAML::EndMap;
  } else if (value.is_string()) {
    WriteText(value.template get_ref<const std::string&>(), out);
  } else if (value.is_null()) {
    *out << YAML::Null;
  } else {
    *out << value.dump();  // numbers, true and false are YAML's, too
  }
}

template <typename Json>
std::string Written(const Json& value) {
  YAML::Emitter out;
  out.SetOutputCharset(YAML::EscapeNonAscii);
  Write(value, &out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace

std::string ToYaml(const nlohmann::json& value) { return Written(value); }
std::string ToYaml(const nlohmann::ordered_json& value) { return Written(value); }

}  // namespace nomad_harvester::cli
