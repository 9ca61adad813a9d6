// SPDX-License-Identifier: Apache-2.0
// hclog's text format, for people.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/sinks.h"

#include "absl/strings/ascii.h"

namespace nomad_harvester::log {
namespace {

constexpr std::size_t kMillisecondDigits = 3;

// "[INFO] ", as wide as the longest.
std::string Column(Level level) {
  std::string column = "[" + absl::AsciiStrToUpper(base::ToAbsl(LevelName(level))) + "]";
  column.resize(std::size("[ERROR]") - 1, ' ');
  return column;
}

std::string Quoted(std::string_view text) {
  bool plain = !text.empty();
  std::string escaped;
  for (const char c : text) {
    if (c == ' ' || c == '=' || c == '"' || c == '\\') plain = false;
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  const std::string valid = base::ToValidUtf8(escaped);
  escaped = base::EscapeControls(escaped);
  return plain && escaped == valid ? escaped : "\"" + escaped + "\"";
}

std::string Value(const Field::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quoted(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  return std::get<bool>(value) ? "true" : "false";
}

}  // namespace

std::string FormatPlain(const Record& record) {
  std::string time = base::FormatRfc3339Micros(record.time);
  time.erase(time.find('.') + 1 + kMillisecondDigits);
  std::string line =
      time + "Z " + Column(record.level) + " " + base::EscapeControls(record.message);
  if (!record.fields.empty()) line += ":";
  for (const Field& field : record.fields) {
    line += " " + base::EscapeControls(field.key) + "=" + Value(field.value);
  }
  return line;
}

}  // namespace nomad_harvester::log
