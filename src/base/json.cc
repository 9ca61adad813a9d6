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

// A UTF-8 sequence, after table 3-7 of the Unicode standard.
struct Utf8Sequence {
  std::size_t length = 0;
  // Bounds of the second byte: they exclude overlong forms, surrogates and values past U+10FFFF.
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

Utf8Sequence Classify(unsigned char lead) {
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

// Directions of text, characters without width, separators of lines.
bool IsUnseen(std::string_view character) {
  if (character.size() != 2 && character.size() != 3) return false;
  const std::uint32_t point = CodePoint(character);
  return point == 0x61c || (point >= 0x200b && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x2069) ||
         point == 0xfeff;
}

// The number of bytes at the front that are ASCII: most texts have no others.
std::size_t AsciiLength(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](unsigned char c) { return c >= 0x80U; });
  return static_cast<std::size_t>(end - text.begin());
}

constexpr int kMaxDepth = 200;

// Counts the brackets outside of strings. The depth is limited for code that walks a value
// recursively; nlohmann's parser does not recurse, so depth only costs it memory.
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

// nlohmann's error texts quote the input, which may contain a secret, so only the position is kept.
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

std::string TextAt(const json& object, std::initializer_list<std::string_view> path) {
  const json* found = FindPath(object, path);
  return found == nullptr || !found->is_string() ? "" : *found->get_ptr<const json::string_t*>();
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

std::uint32_t CodePoint(std::string_view character) {
  const auto byte = [character](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i]));
  };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0x7fU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = (code << 6U) | (byte(i) & 0x3fU);
  return code;
}

std::size_t Utf8CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Utf8Sequence lead = Classify(byte(0));
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
    const std::size_t ascii = AsciiLength(text);
    const std::size_t length = ascii > 0 ? ascii : Utf8CharacterLength(text);
    result.append(length == 0 ? "\ufffd" : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string_view Utf8Prefix(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  // A character has at most three continuation bytes.
  for (int i = 0; i < 3 && limit > 0; ++i) {
    if (!ContinuesCharacter(text[limit])) break;
    --limit;
  }
  return text.substr(0, limit);
}

std::string ToShortUtf8(std::string_view text, std::size_t limit) {
  constexpr std::string_view kCut = "...";
  std::string valid = ToValidUtf8(text);
  if (valid.size() <= limit) return valid;
  return std::string(Utf8Prefix(valid, limit - kCut.size())).append(kCut);
}

std::string EscapeUnseen(std::string_view text) {
  std::string result;
  const std::string valid = ToValidUtf8(text);
  for (std::string_view left = valid; !left.empty();) {
    const std::size_t ascii = AsciiLength(left);
    const std::string_view character =
        left.substr(0, ascii > 0 ? ascii : Utf8CharacterLength(left));
    left.remove_prefix(character.size());
    if (ascii == 0 && character.size() == 2 && character >= "\xc2\x80" && character <= "\xc2\x9f") {
      AppendHex(static_cast<unsigned char>(character[1]), &result);
    } else if (ascii == 0 && IsUnseen(character)) {
      absl::StrAppend(&result, "\\u", absl::Hex(CodePoint(character), absl::kZeroPad4));
    } else {
      result += character;
    }
  }
  return result;
}

std::string EscapeControls(std::string_view text, std::string_view newline) {
  std::string result;
  for (const char c : EscapeUnseen(text)) {
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

std::string Quoted(std::string_view text) { return "\"" + EscapeControls(text) + "\""; }

}  // namespace nomad_harvester::base
