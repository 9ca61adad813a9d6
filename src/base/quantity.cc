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

#include "absl/numeric/int128.h"

namespace nomad_harvester::base {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
// A number of so many digits, times 1024^6, fits 128 bits. Further digits only round up.
constexpr std::size_t kMaxDigits = 19;
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
  std::string digits = TakeDigits(&rest);
  std::int64_t exponent = 0;  // the number is digits * 10^exponent
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    const std::string fraction = TakeDigits(&rest);
    digits += fraction;
    exponent -= static_cast<std::int64_t>(fraction.size());
  }
  const std::optional<Suffix> suffix = ParseSuffix(rest);
  if (digits.empty() || !suffix) {
    return error("not a Kubernetes quantity (such as 4Gi, 500m or 1.5)");
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return 0;
  if (negative) return error("negative");
  exponent += suffix->decimal;
  bool round_up = false;
  if (digits.size() > kMaxDigits) {
    round_up = digits.find_first_not_of('0', kMaxDigits) != std::string::npos;
    exponent += static_cast<std::int64_t>(digits.size() - kMaxDigits);
    digits.resize(kMaxDigits);
  }
  absl::uint128 value = 0;
  for (const char digit : digits) value = value * 10 + static_cast<unsigned>(digit - '0');
  value <<= 10 * suffix->binary;
  for (; exponent > 0 && value <= kLargest; --exponent) value *= 10;
  for (; exponent < 0 && value > 0; ++exponent) {
    round_up = round_up || value % 10 != 0;
    value /= 10;
  }
  if (round_up) ++value;
  if (value > kLargest) return error("too large");
  return static_cast<std::int64_t>(value);
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
