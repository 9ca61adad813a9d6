// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::base {
namespace {

using nlohmann::json;

// Of a UTF-8 sequence, after table 3-7 of the Unicode standard.
struct Lead {
  std::size_t length = 0;
  // Bounds of the second byte: they exclude overlong forms, surrogates and values past U+10FFFF.
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

Lead Classify(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead >= 0xc2 && lead <= 0xdf) return {2};
  if (lead == 0xe0) return {3, 0xa0};
  if (lead == 0xed) return {3, 0x80, 0x9f};
  if (lead >= 0xe1 && lead <= 0xef) return {3};
  if (lead == 0xf0) return {4, 0x90};
  if (lead >= 0xf1 && lead <= 0xf3) return {4};
  if (lead == 0xf4) return {4, 0x80, 0x8f};
  return {};
}

void AppendHex(unsigned char byte, std::string* text) {
  absl::StrAppend(text, "\\x", absl::Hex(byte, absl::kZeroPad2));
}

constexpr int kMaxDepth = 200;

// Counts the brackets outside of strings. The depth is limited for code that walks a value
// recursively; nlohmann's parser does not recurse, so that depth costs it only memory.
bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\') ++i;
    if (in_string) continue;
    if ((text[i] == '[' || text[i] == '{') && ++depth > kMaxDepth) return true;
    if (text[i] == ']' || text[i] == '}') --depth;
  }
  return false;
}

}  // namespace

// The texts of nlohmann's errors quote the input, which may hold a secret: only the position is
// kept.
absl::StatusOr<json> ParseJson(std::string_view text, std::string_view what) {
  std::string problem = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
  try {
    if (!IsTooDeep(text)) return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    problem = error.byte > text.size() ? "unexpected end of input"
                                       : "syntax error at byte " + std::to_string(error.byte);
  } catch (const json::exception&) {
    problem = "a number is out of range";
  }
  return InvalidArgument(std::string(what) + " is not JSON: " + problem);
}

std::string DumpJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json* FindMember(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

const json* FindPath(const json& object, std::initializer_list<std::string_view> path) {
  const json* current = &object;
  for (const std::string_view key : path) {
    current = FindMember(*current, key);
    if (current == nullptr) return nullptr;
  }
  return current;
}

std::string GetString(const json& object, std::string_view key, std::string_view fallback) {
  return FindString(object, key).value_or(std::string(fallback));
}

std::int64_t GetInt(const json& object, std::string_view key, std::int64_t fallback) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_number_integer()) return fallback;
  if (member->is_number_unsigned()) {
    const auto value = *member->get_ptr<const json::number_unsigned_t*>();
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    return value > kMax ? fallback : static_cast<std::int64_t>(value);
  }
  return *member->get_ptr<const json::number_integer_t*>();
}

bool GetBool(const json& object, std::string_view key, bool fallback) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_boolean()) return fallback;
  return *member->get_ptr<const json::boolean_t*>();
}

std::optional<std::string> FindString(const json& object, std::string_view key) {
  const json* member = FindMember(object, key);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return *member->get_ptr<const json::string_t*>();
}

std::vector<std::string> GetStrings(const json& object, std::string_view key) {
  std::vector<std::string> texts;
  const json* list = FindMember(object, key);
  if (list == nullptr || !list->is_array()) return texts;
  for (const json& item : *list) {
    if (const auto* text = item.get_ptr<const std::string*>()) texts.push_back(*text);
  }
  return texts;
}

std::size_t Utf8CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = Classify(byte(0));
  if (lead.length > text.size()) return 0;
  for (std::size_t i = 1; i < lead.length; ++i) {
    const unsigned char min = i == 1 ? lead.second_min : 0x80;
    const unsigned char max = i == 1 ? lead.second_max : 0xbf;
    if (byte(i) < min || byte(i) > max) return 0;
  }
  return lead.length;
}

std::string ToValidUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = Utf8CharacterLength(text);
    result.append(length == 0 ? "\ufffd" : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string ToShortUtf8(std::string_view text, std::size_t limit) {
  constexpr std::string_view kCut = "...";
  std::string valid = ToValidUtf8(text);
  if (valid.size() <= limit) return valid;
  std::size_t kept = 0;
  while (kept < limit - kCut.size()) {
    const std::size_t next = Utf8CharacterLength(std::string_view(valid).substr(kept));
    if (kept + next > limit - kCut.size()) break;
    kept += next;
  }
  return valid.substr(0, kept).append(kCut);
}

std::string EscapeC1(std::string_view text) {
  std::string result;
  const std::string valid = ToValidUtf8(text);
  for (std::size_t i = 0; i < valid.size(); ++i) {
    // U+0080 to U+009F are C2 80 to C2 9F, and nothing else begins with C2 and such a byte.
    const auto next = static_cast<unsigned char>(i + 1 < valid.size() ? valid[i + 1] : 0);
    if (valid[i] == '\xc2' && next >= 0x80 && next <= 0x9f) {
      AppendHex(next, &result);
      ++i;
    } else {
      result += valid[i];
    }
  }
  return result;
}

std::string EscapeControls(std::string_view text, std::string_view newline) {
  std::string result;
  for (const char c : EscapeC1(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += newline;
    } else if (byte < 0x20 || byte == 0x7f) {
      AppendHex(byte, &result);
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace nomad_harvester::base
