// SPDX-License-Identifier: Apache-2.0
// Kubernetes quantities, after the grammar in the comment of
// kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::base {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
// 20 digits always exceed int64.
constexpr std::int64_t kMaxIntegerDigits = 19;
// Far above the exponent of any value that fits int64, and small enough that sums do not overflow.
constexpr std::int64_t kMaxExponent = 1'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number is scaled by 10^decimal or by 1024^binary.
struct Suffix {
  std::int64_t decimal = 0;
  int binary = 0;
};

std::optional<Suffix> ParseExponent(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  const absl::StatusOr<std::int64_t> exponent = ParseInt(text);
  if (!exponent.ok()) return std::nullopt;
  return Suffix{.decimal = std::clamp(*exponent, -kMaxExponent, kMaxExponent)};
}

std::optional<Suffix> ParseSuffix(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Suffix>, 16> kSuffixes = {{
      {"", {}},
      {"n", {.decimal = -9}},
      {"u", {.decimal = -6}},
      {"m", {.decimal = -3}},
      {"k", {.decimal = 3}},
      {"M", {.decimal = 6}},
      {"G", {.decimal = 9}},
      {"T", {.decimal = 12}},
      {"P", {.decimal = 15}},
      {"E", {.decimal = 18}},
      {"Ki", {.binary = 1}},
      {"Mi", {.binary = 2}},
      {"Gi", {.binary = 3}},
      {"Ti", {.binary = 4}},
      {"Pi", {.binary = 5}},
      {"Ei", {.binary = 6}},
  }};
  for (const auto& [name, suffix] : kSuffixes) {
    if (text == name) return suffix;
  }
  if (text.front() == 'e' || text.front() == 'E') return ParseExponent(text.substr(1));
  return std::nullopt;
}

// An exact decimal number of any length: the digits before and after the point.
struct Decimal {
  std::string integer;
  std::string fraction;

  bool zero() const { return (integer + fraction).find_first_not_of('0') == std::string::npos; }
};

std::string TakeDigits(std::string_view* rest) {
  std::size_t length = 0;
  while (length < rest->size() && IsDigit((*rest)[length])) ++length;
  std::string digits(rest->substr(0, length));
  rest->remove_prefix(length);
  return digits;
}

// Moves the point by `exponent` places. nullopt if the integer part becomes too long for int64.
std::optional<Decimal> Shift(const Decimal& number, std::int64_t exponent) {
  std::string digits = number.integer + number.fraction;
  const std::size_t leading = digits.find_first_not_of('0');
  const auto point = static_cast<std::int64_t>(number.integer.size()) + exponent -
                     static_cast<std::int64_t>(leading);
  digits.erase(0, leading);
  if (point > kMaxIntegerDigits) return std::nullopt;
  // A number below one: the zeros after the point do not matter, since it is rounded up.
  if (point <= 0) return Decimal{.integer = "0", .fraction = digits};
  const auto length = static_cast<std::size_t>(point);
  if (digits.size() < length) digits.resize(length, '0');
  return Decimal{.integer = digits.substr(0, length), .fraction = digits.substr(length)};
}

// Multiplies the digits of a fraction by 1024 in place and returns the carry (integer part).
std::int64_t MultiplyFraction(std::string* fraction) {
  int carry = 0;
  for (auto digit = fraction->rbegin(); digit != fraction->rend(); ++digit) {
    const int product = (*digit - '0') * 1024 + carry;
    *digit = static_cast<char>('0' + product % 10);
    carry = product / 10;
  }
  return carry;
}

std::optional<std::int64_t> RoundUp(Decimal number, int binary) {
  const absl::StatusOr<std::int64_t> integer = ParseInt(number.integer);
  if (!integer.ok()) return std::nullopt;
  std::int64_t value = *integer;
  for (; binary > 0; --binary) {
    const std::int64_t carry = MultiplyFraction(&number.fraction);
    if (value > (kLargest - carry) / 1024) return std::nullopt;
    value = value * 1024 + carry;
  }
  if (number.fraction.find_first_not_of('0') == std::string::npos) return value;
  if (value == kLargest) return std::nullopt;
  return value + 1;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseQuantity(std::string_view text) {
  const auto error = [text](std::string_view why) {
    return InvalidArgument("\"" + std::string(text) + "\" is " + std::string(why));
  };
  constexpr std::string_view kNoQuantity = "not a Kubernetes quantity (such as 4Gi, 500m or 1.5)";
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  Decimal number;
  number.integer = TakeDigits(&rest);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    number.fraction = TakeDigits(&rest);
  }
  if (number.integer.empty() && number.fraction.empty()) return error(kNoQuantity);
  const std::optional<Suffix> suffix = ParseSuffix(rest);
  if (!suffix) return error(kNoQuantity);
  if (number.zero()) return 0;
  if (negative) return error("negative");

  // With a binary suffix the point does not move.
  std::optional<Decimal> shifted = number;
  if (suffix->binary == 0) shifted = Shift(number, suffix->decimal);
  if (shifted && shifted->integer.empty()) shifted->integer = "0";
  const std::optional<std::int64_t> value =
      shifted ? RoundUp(*std::move(shifted), suffix->binary) : std::nullopt;
  if (!value) return error("too large");
  return *value;
}

std::string FormatBinaryQuantity(std::int64_t value) {
  constexpr std::array<std::string_view, 7> kNames = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  std::size_t index = 0;
  while (value != 0 && value % 1024 == 0 && index + 1 < kNames.size()) {
    value /= 1024;
    ++index;
  }
  return std::to_string(value) + std::string(kNames[index]);
}

}  // namespace nomad_harvester::base
