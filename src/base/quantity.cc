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

std::string TakeDigits(std::string_view* rest) {
  const std::size_t length = std::min(rest->find_first_not_of("0123456789"), rest->size());
  std::string digits(rest->substr(0, length));
  rest->remove_prefix(length);
  return digits;
}

// An exact decimal number of any length: 0.<digits> * 10^point.
struct ExactNumber {
  std::string digits;
  std::int64_t point = 0;
};

void MultiplyBy1024(ExactNumber* number) {
  int carry = 0;
  for (auto digit = number->digits.rbegin(); digit != number->digits.rend(); ++digit) {
    const int product = (*digit - '0') * 1024 + carry;
    *digit = static_cast<char>('0' + product % 10);
    carry = product / 10;
  }
  const std::string front = std::to_string(carry);
  number->digits.insert(0, front);
  number->point += static_cast<std::int64_t>(front.size());
}

// nullopt if it does not fit.
std::optional<std::int64_t> RoundUp(ExactNumber number) {
  const std::size_t zeros = number.digits.find_first_not_of('0');
  number.digits.erase(0, zeros);
  number.point -= static_cast<std::int64_t>(zeros);
  if (number.point <= 0) return 1;
  if (number.point > kMaxIntegerDigits) return std::nullopt;
  const auto length = static_cast<std::size_t>(number.point);
  if (number.digits.size() < length) number.digits.resize(length, '0');
  const absl::StatusOr<std::int64_t> integer = ParseInt(number.digits.substr(0, length));
  if (!integer.ok()) return std::nullopt;
  if (number.digits.find_first_not_of('0', length) == std::string::npos) return *integer;
  if (*integer == kLargest) return std::nullopt;
  return *integer + 1;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseQuantity(std::string_view text) {
  const auto error = [text](std::string_view why) {
    return InvalidArgument("\"" + std::string(text) + "\" is " + std::string(why));
  };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  ExactNumber number{TakeDigits(&rest)};
  number.point = static_cast<std::int64_t>(number.digits.size());
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    number.digits += TakeDigits(&rest);
  }
  const std::optional<Suffix> suffix = ParseSuffix(rest);
  if (number.digits.empty() || !suffix) {
    return error("not a Kubernetes quantity (such as 4Gi, 500m or 1.5)");
  }
  if (number.digits.find_first_not_of('0') == std::string::npos) return 0;
  if (negative) return error("negative");
  number.point += suffix->decimal;
  for (int i = 0; i < suffix->binary; ++i) MultiplyBy1024(&number);
  const std::optional<std::int64_t> value = RoundUp(std::move(number));
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
