// SPDX-License-Identifier: Apache-2.0
// The formats of a line: hclog's JSON, as the host parses it (hashicorp/go-plugin:log_entry.go
// parseJSON), and hclog's text format, for people.
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
#include "nlohmann/json.hpp"

namespace nomad_harvester::log {
namespace {

using nlohmann::ordered_json;

// The host reads with a buffer of 64 KiB, newline included (hashicorp/go-plugin:client.go,
// stdErrBufferSize); the difference leaves room for text that the agent's log adds.
constexpr std::size_t kMaxLineBytes = 60 * 1024;
constexpr std::size_t kMaxKeyBytes = 128;
// A line fits even if all of its few strings are this short.
constexpr std::size_t kMinStringBytes = 64;

// The text, or its beginning and a marker with the original number of bytes, at most max_bytes in
// total. Does not cut a UTF-8 character. max_bytes must leave room for the marker (48 bytes).
std::string Truncate(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const std::string mark = "... (" + std::to_string(text.size()) + " bytes)";
  return std::string(base::Utf8Prefix(text, max_bytes - mark.size())) + mark;
}

std::string Key(std::string_view key) {
  std::string valid = base::EscapeUnseen(Truncate(key, kMaxKeyBytes));
  // Keys such as "@message" are reserved; the host panics if one of them is not a string.
  return valid.starts_with('@') ? "_" + valid : valid;
}

// Renders one line in which no string is longer than `max_string`.
std::string Render(const Record& record, std::string_view module, std::size_t max_string) {
  const auto text = [max_string](std::string_view value) {
    return base::EscapeUnseen(Truncate(value, max_string));
  };
  ordered_json line;
  line["@level"] = LevelName(record.level);
  line["@message"] = text(record.message);
  line["@timestamp"] = base::FormatRfc3339Micros(record.time);
  line["@module"] = text(module);
  for (const Field& field : record.fields) {
    ordered_json& member = line[Key(field.key)];
    if (const auto* string = std::get_if<std::string>(&field.value)) {
      member = text(*string);
    } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
      member = *integer;
    } else {
      member = std::get<bool>(field.value);
    }
  }
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

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

std::string FormatHclog(const Record& record, std::string_view module) {
  std::size_t max_string = kMaxLineBytes;
  std::string line = Render(record, module, max_string);
  while (line.size() > kMaxLineBytes && max_string > kMinStringBytes) {
    max_string -= max_string / 8;
    line = Render(record, module, max_string);
  }
  return line;
}

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
