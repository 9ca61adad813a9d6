// SPDX-License-Identifier: Apache-2.0
#include "cursor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::hcl {
namespace {

constexpr std::size_t kMaxNumberDigits = 100;

// What Go's unicode.IsSpace takes for white space.
constexpr std::string_view kSpaces[] = {
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\xc2\x85", "\u00a0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",   "\u2007", "\u2008",
    "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

// U+0300 to U+036F, each of two bytes.
bool HasCombiningCharacter(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const std::string_view character = text.substr(i, 2);
    if (character >= "\u0300" && character <= "\u036f") return true;
  }
  return false;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string_view TakeDigits(std::string_view* text) {
  const auto end = std::find_if_not(text->begin(), text->end(), IsDigit);
  const std::string_view digits = text->substr(0, static_cast<std::size_t>(end - text->begin()));
  text->remove_prefix(digits.size());
  return digits;
}

// White space at the front of `text`: characters, counted up to `limit`, and bytes.
struct Indentation {
  std::size_t characters = 0;
  std::size_t bytes = 0;
};

Indentation IndentationOf(std::string_view text, std::size_t limit) {
  Indentation result;
  while (result.characters < limit) {
    const std::size_t length = SpaceLength(text.substr(result.bytes));
    if (length == 0) break;
    result.bytes += length;
    ++result.characters;
  }
  return result;
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

bool IsBlank(const std::string& line) {
  return line.ends_with('\n') && IndentationOf(line, kAll).bytes == line.size();
}

}  // namespace

absl::Status Cursor::Level::Reached() const {
  if (cursor_->depth_ <= kMaxDepth) return absl::OkStatus();
  return cursor_->Error("nested more than " + std::to_string(kMaxDepth) +
                        " levels deep, which is not read here");
}

absl::Status Cursor::TakeCharacter(std::string* text) {
  const std::size_t length = base::Utf8CharacterLength(Rest());
  if (length == 0) return Error("this is not valid UTF-8");
  text->append(Rest().substr(0, length));
  Skip(length);
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> Cursor::TakeHex(int digits) {
  std::uint32_t code = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = HexDigit(Peek());
    if (digit < 0) {
      return Error("expected " + std::to_string(digits) + " hexadecimal digits in this escape");
    }
    code = code * 16 + static_cast<std::uint32_t>(digit);
    Skip(1);
  }
  return code;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool AppendCharacter(std::uint32_t code, std::string* text) {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
  const auto append = [&](std::uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  const auto append_rest = [&](int sixes) {
    while (sixes-- > 0) append(0x80U | ((code >> (6U * static_cast<unsigned>(sixes))) & 0x3fU));
  };
  if (code < 0x80) {
    append(code);
  } else if (code < 0x800) {
    append(0xc0U | (code >> 6U));
    append_rest(1);
  } else if (code < 0x10000) {
    append(0xe0U | (code >> 12U));
    append_rest(2);
  } else {
    append(0xf0U | (code >> 18U));
    append_rest(3);
  }
  return true;
}

std::size_t SpaceLength(std::string_view text) {
  for (const std::string_view space : kSpaces) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

std::optional<std::string> CanonicalNumber(std::string_view text) {
  const std::string_view whole = TakeDigits(&text);
  if (whole.empty()) return std::nullopt;
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = TakeDigits(&text);
  }
  std::int64_t exponent = 0;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const auto value = base::ParseInt(TakeDigits(&text));
    if (!value.ok() || *value > static_cast<std::int64_t>(kMaxNumberDigits)) return std::nullopt;
    exponent = negative ? -*value : *value;
  }
  if (!text.empty() || whole.size() + fraction.size() > kMaxNumberDigits) return std::nullopt;

  // The value is 0.DIGITS times ten to the power of `point`.
  std::string digits = std::string(whole) + std::string(fraction);
  std::int64_t point = static_cast<std::int64_t>(whole.size()) + exponent;
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  point -= static_cast<std::int64_t>(zeros);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.empty()) return "0";
  const auto length = static_cast<std::int64_t>(digits.size());
  if (point <= 0) return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  if (point >= length) return digits + std::string(static_cast<std::size_t>(point - length), '0');
  return digits.insert(static_cast<std::size_t>(point), ".");
}

absl::StatusOr<Value> StringValue(const Cursor& cursor, std::size_t offset, std::string text) {
  if (HasCombiningCharacter(text)) {
    return cursor.Error(offset,
                        "this text has a combining character, which the agent may replace "
                        "(Unicode's normal form C), and that is not read here");
  }
  Value value;
  value.kind = Value::Kind::kString;
  value.text = std::move(text);
  value.offset = offset;
  return value;
}

std::string* LiteralOf(TemplateParts* parts) {
  if (parts->empty() || parts->back().value.has_value()) parts->emplace_back();
  return &parts->back().text;
}

void RemoveIndentation(TemplateParts* parts) {
  std::size_t least = kAll;
  for (const TemplatePart& part : *parts) {
    if (!part.begins_line || IsBlank(part.text)) continue;
    least = std::min(least, IndentationOf(part.text, kAll).characters);
  }
  for (TemplatePart& part : *parts) {
    if (!part.begins_line || IsBlank(part.text)) continue;
    part.text.erase(0, IndentationOf(part.text, least).bytes);
  }
}

}  // namespace nomad_harvester::hcl
