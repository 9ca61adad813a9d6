// SPDX-License-Identifier: Apache-2.0
// Go's duration syntax, after golang/go:src/time/time.go (String). Operators know it from the agent
// and Nomad.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

namespace nomad_harvester::base {
namespace {

// `value` / 10^digits with its fraction, without trailing zeros.
std::string Decimal(std::uint64_t value, std::size_t digits) {
  std::uint64_t power = 1;
  for (std::size_t i = 0; i < digits; ++i) power *= 10;
  std::string result = std::to_string(value / power);
  std::string fraction = std::to_string(value % power);
  fraction.insert(0, digits - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (!fraction.empty()) result += "." + fraction;
  return result;
}

}  // namespace

absl::StatusOr<Duration> ParseGoDuration(std::string_view text) {
  // Unicode has two characters for the unit's prefix.
  const std::string ascii =
      absl::StrReplaceAll(ToAbsl(text), {{"\u00b5s", "us"}, {"\u03bcs", "us"}});
  absl::Duration duration;
  // The comparisons also refuse "inf", which Go does not know.
  if (!absl::ParseDuration(ascii, &duration) || duration < absl::FromChrono(Duration::min()) ||
      duration > absl::FromChrono(Duration::max())) {
    return InvalidArgument(Quoted(text) + " is not a duration, such as 90s, 15m or 1h30m");
  }
  return absl::ToChronoNanoseconds(duration);
}

std::string FormatGoDuration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  const bool negative = duration < Duration::zero();
  // Unsigned, to represent the magnitude of Duration::min().
  std::uint64_t rest = static_cast<std::uint64_t>(duration.count());
  if (negative) rest = std::uint64_t{0} - rest;
  const std::string sign = negative ? "-" : "";
  if (rest < 1'000) return sign + std::to_string(rest) + "ns";
  if (rest < 1'000'000) return sign + Decimal(rest, 3) + "\u00b5s";
  if (rest < 1'000'000'000) return sign + Decimal(rest, 6) + "ms";

  constexpr std::uint64_t kMinute = 60'000'000'000;
  const std::uint64_t minutes = rest / kMinute;
  std::string result = sign;
  if (minutes >= 60) result += std::to_string(minutes / 60) + "h";
  if (minutes > 0) result += std::to_string(minutes % 60) + "m";
  return result + Decimal(rest % kMinute, 9) + "s";
}

}  // namespace nomad_harvester::base
