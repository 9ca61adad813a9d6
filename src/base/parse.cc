// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "utf8.h"

namespace nomad_harvester::base {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

char LowerCharacter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Go's escape for one ASCII character inside quotes (golang/go:src/strconv/quote.go).
std::string EscapeAscii(char c) {
  constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\"\\";
  constexpr std::string_view kLetters = "abfnrtv\"\\";
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::size_t named = kNamed.find(c);
  if (named != std::string_view::npos) return {'\\', kLetters[named]};
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return {c};
  return {'\\', 'x', kHex[byte >> 4], kHex[byte & 0xf]};
}

// strconv.Quote, except that valid non-ASCII characters are not escaped.
std::string GoQuote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = Utf8CharacterLength(text);
    if (length > 1) {
      quoted.append(text.substr(0, length));
      text.remove_prefix(length);
    } else {
      quoted += EscapeAscii(text.front());
      text.remove_prefix(1);
    }
  }
  return quoted + '"';
}

}  // namespace

absl::StatusOr<bool> ParseGoBool(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  return InvalidArgument("strconv.ParseBool: parsing " + GoQuote(text) + ": invalid syntax");
}

absl::StatusOr<std::int64_t> ParseInt(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) {
    return InvalidArgument(GoQuote(text) + " is out of range");
  }
  if (error != std::errc{} || stop != end) {
    return InvalidArgument(GoQuote(text) + " is not an integer");
  }
  return value;
}

absl::StatusOr<std::vector<std::string>> ParseList(std::string_view text) {
  std::vector<std::string> elements;
  if (TrimAsciiSpace(text).empty()) return elements;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view element = TrimAsciiSpace(text.substr(0, comma));
    if (element.empty()) return InvalidArgument("the list has an empty element");
    elements.emplace_back(element);
    if (comma == std::string_view::npos) return elements;
    text.remove_prefix(comma + 1);
  }
}

absl::StatusOr<std::map<std::string, std::string>> ParseMap(std::string_view text) {
  NH_ASSIGN_OR_RETURN(const std::vector<std::string> elements, ParseList(text));
  std::map<std::string, std::string> result;
  for (const std::string_view element : elements) {
    const std::size_t equals = element.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument(GoQuote(element) + " is not of the form key=value");
    }
    const std::string key(TrimAsciiSpace(element.substr(0, equals)));
    if (key.empty()) return InvalidArgument(GoQuote(element) + " has an empty key");
    const std::string value(TrimAsciiSpace(element.substr(equals + 1)));
    if (!result.emplace(key, value).second) {
      return InvalidArgument("the key " + GoQuote(key) + " is given twice");
    }
  }
  return result;
}

std::string AsciiLower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), LowerCharacter);
  return result;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCharacter(x) == LowerCharacter(y); });
}

std::string_view TrimAsciiSpace(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace nomad_harvester::base
