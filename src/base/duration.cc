// SPDX-License-Identifier: Apache-2.0
// Go's duration syntax, after golang/go:src/time/format.go (ParseDuration) and time.go (String).
// Operators know Go's syntax and messages from the agent and Nomad.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace nomad_harvester::base {
namespace {

// The magnitude of Duration::min(), the largest that can appear while parsing.
constexpr std::uint64_t kMaxMagnitude = std::uint64_t{1} << 63;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// As quote() in Go's package time: every byte of a control or non-ASCII character becomes \x..
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x80) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(byte, absl::kZeroPad2));
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

absl::Status Invalid(std::string_view text) {
  return InvalidArgument("time: invalid duration " + Quote(text));
}

std::optional<std::uint64_t> UnitNanoseconds(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\u00b5s" || unit == "\u03bcs") return 1'000;  // both Unicode mus
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return std::nullopt;
}

// Consumes the digits at the front of *rest; nullopt on overflow.
std::optional<std::uint64_t> TakeInteger(std::string_view* rest) {
  std::uint64_t value = 0;
  while (!rest->empty() && IsDigit(rest->front())) {
    if (value > kMaxMagnitude / 10) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(rest->front() - '0');
    if (value > kMaxMagnitude) return std::nullopt;
    rest->remove_prefix(1);
  }
  return value;
}

// Consumes the digits after a decimal point; ignores digits beyond the precision.
struct Fraction {
  explicit Fraction(std::string_view* rest) {
    for (bool full = false; !rest->empty() && IsDigit(rest->front()); rest->remove_prefix(1)) {
      const std::uint64_t next = digits * 10 + static_cast<std::uint64_t>(rest->front() - '0');
      full = full || digits > (kMaxMagnitude - 1) / 10 || next > kMaxMagnitude;
      if (full) continue;
      digits = next;
      scale *= 10;
    }
  }

  std::uint64_t digits = 0;
  double scale = 1;
};

// Consumes one number with its unit; the result is in nanoseconds. `text` is the whole duration,
// for messages.
absl::StatusOr<std::uint64_t> TakeTerm(std::string_view text, std::string_view* rest) {
  if (rest->front() != '.' && !IsDigit(rest->front())) return Invalid(text);
  std::size_t digits = rest->size();
  const std::optional<std::uint64_t> integer = TakeInteger(rest);
  if (!integer) return Invalid(text);
  digits -= rest->size();
  std::string_view none;
  const bool point = !rest->empty() && rest->front() == '.';
  if (point) rest->remove_prefix(1);
  const std::size_t before = rest->size();
  const Fraction fraction(point ? rest : &none);
  if (digits + before - rest->size() == 0) return Invalid(text);

  const std::size_t end = std::min(rest->find_first_of(".0123456789"), rest->size());
  const std::string_view unit_name = rest->substr(0, end);
  rest->remove_prefix(end);
  if (unit_name.empty()) return InvalidArgument("time: missing unit in duration " + Quote(text));
  const std::optional<std::uint64_t> unit = UnitNanoseconds(unit_name);
  if (!unit) {
    return InvalidArgument("time: unknown unit " + Quote(unit_name) + " in duration " +
                           Quote(text));
  }
  if (*integer > kMaxMagnitude / *unit) return Invalid(text);
  std::uint64_t value = *integer * *unit;
  if (fraction.digits > 0) {
    value += static_cast<std::uint64_t>(static_cast<double>(fraction.digits) *
                                        (static_cast<double>(*unit) / fraction.scale));
    if (value > kMaxMagnitude) return Invalid(text);
  }
  return value;
}

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
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return Invalid(text);
  std::uint64_t total = 0;
  while (!rest.empty()) {
    NH_ASSIGN_OR_RETURN(const std::uint64_t term, TakeTerm(text, &rest));
    total += term;  // both are at most 2^63, so the sum can only wrap to exactly zero
    if (total > kMaxMagnitude || (total == 0 && term > 0)) return Invalid(text);
  }
  if (negative) {
    return Duration(static_cast<std::int64_t>(std::uint64_t{0} - total));
  }
  if (total == kMaxMagnitude) return Invalid(text);
  return Duration(static_cast<std::int64_t>(total));
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
