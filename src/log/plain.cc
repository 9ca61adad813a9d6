// SPDX-License-Identifier: Apache-2.0
// hclog's text format, for people.
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/sinks.h"

namespace nomad_harvester::log {
namespace {

constexpr std::size_t kMillisecondDigits = 3;

std::string_view Column(Level level) {
  switch (level) {
    case Level::kTrace:
      return "[TRACE]";
    case Level::kDebug:
      return "[DEBUG]";
    case Level::kInfo:
      return "[INFO] ";
    case Level::kWarn:
      return "[WARN] ";
    case Level::kError:
      break;
  }
  return "[ERROR]";
}

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// One line, and no control sequence for the terminal.
std::string EscapeControls(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (const char c : base::ToValidUtf8(text)) {
    if (!IsControl(c)) {
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else {
      const auto byte = static_cast<unsigned char>(c);
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 0xf]};
    }
  }
  return result;
}

std::string Quoted(std::string_view text) {
  bool plain = !text.empty();
  std::string escaped;
  for (const char c : text) {
    if (c == ' ' || c == '=' || c == '"' || c == '\\' || IsControl(c)) plain = false;
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  escaped = EscapeControls(escaped);
  return plain ? escaped : "\"" + escaped + "\"";
}

std::string Value(const Field::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quoted(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  std::array<char, 32> buffer;  // the shortest form of a double has at most 24 characters
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::get<double>(value));
  return std::string(buffer.data(), end.ptr);
}

}  // namespace

std::string FormatPlain(const Record& record) {
  std::string time = base::FormatRfc3339Micros(record.time);
  time.erase(time.find('.') + 1 + kMillisecondDigits);
  std::string line =
      time + "Z " + std::string(Column(record.level)) + " " + EscapeControls(record.message);
  if (!record.fields.empty()) line += ":";
  for (const Field& field : record.fields) {
    line += " " + EscapeControls(field.key) + "=" + Value(field.value);
  }
  return line;
}

}  // namespace nomad_harvester::log
