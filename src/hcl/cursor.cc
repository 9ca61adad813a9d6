// SPDX-License-Identifier: Apache-2.0
#include "cursor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::hcl {
namespace {

constexpr std::size_t kMaxNumberDigits = 100;

// Normal form C changes a character of these ranges, or may do so behind another one. They are
// those of Unicode 14's quick check, with gaps of up to 64 characters filled.
struct Range {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr Range kNotNormal[] = {
    {0x300, 0x387},     {0x5b4, 0x5c2},     {0x653, 0x655},     {0x93c, 0x95f},
    {0x9bc, 0x9df},     {0xa33, 0xa5e},     {0xb3c, 0xb5d},     {0xbbe, 0xbd7},
    {0xc56, 0xc56},     {0xcc2, 0xcd6},     {0xd3e, 0xd57},     {0xdca, 0xddf},
    {0xf43, 0xfb9},     {0x102e, 0x102e},   {0x1161, 0x11c2},   {0x1b35, 0x1b35},
    {0x1f71, 0x2001},   {0x2126, 0x212b},   {0x2329, 0x232a},   {0x2adc, 0x2adc},
    {0x3099, 0x309a},   {0xf900, 0xfad9},   {0xfb1d, 0xfb4e},   {0x110ba, 0x110ba},
    {0x11127, 0x11127}, {0x1133e, 0x11357}, {0x114b0, 0x114bd}, {0x115af, 0x115af},
    {0x11930, 0x11930}, {0x1d15e, 0x1d172}, {0x1d1bb, 0x1d1c0}, {0x2f800, 0x2fa1d}};

bool MayChange(std::uint32_t code) {
  return code >= kNotNormal[0].first &&
         std::any_of(std::begin(kNotNormal), std::end(kNotNormal),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
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

}  // namespace

absl::Status Cursor::Level::Reached() const {
  if (cursor_->depth_ <= kMaxDepth) return absl::OkStatus();
  return cursor_->Error("nested more than " + std::to_string(kMaxDepth) + " levels deep");
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
  const std::size_t length = base::Utf8CharacterLength(text);
  if (length == 0) return 0;
  const std::uint32_t code = base::CodePoint(text.substr(0, length));
  const bool is_space = (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 ||
                        code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
                        code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
                        code == 0x3000;
  return is_space ? length : 0;
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

  // 0.DIGITS times ten to the power of `point`.
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
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = base::Utf8CharacterLength(rest);
    if (MayChange(base::CodePoint(rest.substr(0, length)))) {
      return cursor.Error(offset,
                          "this text has a combining character or another one that the agent may "
                          "replace (Unicode's normal form C), and that is not read here");
    }
    rest.remove_prefix(length);
  }
  Value value;
  value.kind = Value::Kind::kString;
  value.text = std::move(text);
  value.offset = offset;
  return value;
}

}  // namespace nomad_harvester::hcl
