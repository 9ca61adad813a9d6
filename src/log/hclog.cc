// SPDX-License-Identifier: Apache-2.0
// hclog's JSON, as the host parses it (hashicorp/go-plugin:log_entry.go parseJSON).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/log/sinks.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::log {
namespace {

using nlohmann::ordered_json;

// The host reads with a buffer of 64 KiB, newline included (hashicorp/go-plugin:client.go,
// stdErrBufferSize); the difference leaves room for what the agent's log adds.
constexpr std::size_t kMaxLineBytes = 60 * 1024;
constexpr std::size_t kMaxKeyBytes = 128;
constexpr std::size_t kMaxFields = 512;
// Strings are shortened down to this before fields are dropped.
constexpr std::size_t kMinStringBytes = 64;
// The precision of the search for the string length at which a line fits.
constexpr std::size_t kStringStep = 512;
constexpr std::string_view kDroppedKey = "fields_dropped";

// NaN and the infinities, which JSON lacks, as Go prints them.
ordered_json Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return value;
}

// The text, or its beginning and a marker with the original number of bytes, at most max_bytes in
// total. Does not cut a UTF-8 character. max_bytes must leave room for the marker (48 bytes).
std::string Truncate(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const std::string mark = "... (" + std::to_string(text.size()) + " bytes)";
  std::size_t length = max_bytes - mark.size();
  // Skips continuation bytes backwards; a character has at most three of them.
  for (int i = 0; i < 3 && length > 0; ++i) {
    if ((static_cast<unsigned char>(text[length]) & 0xc0) != 0x80) break;
    --length;
  }
  return std::string(text.substr(0, length)) + mark;
}

std::string Key(std::string_view key) {
  std::string valid = base::EscapeUnseen(Truncate(key, kMaxKeyBytes));
  // Keys such as "@message" are reserved; the host panics if one of them is not a string.
  return valid.starts_with('@') ? "_" + valid : valid;
}

// One line in which no string is longer than `max_string` and only the first `max_fields` appear.
std::string Render(const Record& record, std::string_view module, std::size_t max_string,
                   std::size_t max_fields) {
  const auto text = [max_string](std::string_view value) {
    return base::EscapeUnseen(Truncate(value, max_string));
  };
  ordered_json line;
  line["@level"] = LevelName(record.level);
  line["@message"] = text(record.message);
  line["@timestamp"] = base::FormatRfc3339Micros(record.time);
  line["@module"] = text(module);
  for (std::size_t i = 0; i < max_fields; ++i) {
    const Field& field = record.fields[i];
    ordered_json& member = line[Key(field.key)];
    if (const auto* string = std::get_if<std::string>(&field.value)) {
      member = text(*string);
    } else if (const auto* number = std::get_if<double>(&field.value)) {
      member = Number(*number);
    } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
      member = *integer;
    } else {
      member = std::get<bool>(field.value);
    }
  }
  if (max_fields < record.fields.size())
    line[std::string(kDroppedKey)] = record.fields.size() - max_fields;
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// The largest value in [low, high] for which `fits` holds; low if it holds for none. `fits` must
// hold for all values below one for which it holds.
template <typename Predicate>
std::size_t Largest(std::size_t low, std::size_t high, Predicate fits) {
  while (low < high) {
    const std::size_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

std::string FormatHclog(const Record& record, std::string_view module) {
  const std::size_t all = std::min(record.fields.size(), kMaxFields);
  const auto fits = [&](std::size_t max_string, std::size_t max_fields) {
    return Render(record, module, max_string, max_fields).size() <= kMaxLineBytes;
  };
  std::string line = Render(record, module, kMaxLineBytes, all);
  if (line.size() <= kMaxLineBytes) return line;
  if (fits(kMinStringBytes, all)) {
    const auto length = [](std::size_t steps) {
      return std::max(kMinStringBytes, steps * kStringStep);
    };
    const std::size_t steps = Largest(0, kMaxLineBytes / kStringStep,
                                      [&](std::size_t n) { return fits(length(n), all); });
    return Render(record, module, length(steps), all);
  }
  const std::size_t fields =
      Largest(0, all, [&](std::size_t n) { return fits(kMinStringBytes, n); });
  return Render(record, module, kMinStringBytes, fields);
}

}  // namespace nomad_harvester::log
