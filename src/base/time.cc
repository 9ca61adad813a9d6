// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/time.h"

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/time/time.h"

namespace nomad_harvester::base {
namespace {

std::string Format(const char* format, WallTime time) {
  return absl::FormatTime(format, absl::FromChrono(time), absl::UTCTimeZone());
}

std::optional<absl::Time> Parse(const char* format, std::string_view text) {
  absl::Time time;
  const bool parsed = absl::ParseTime(format, ToAbsl(text), &time, nullptr);
  return parsed ? std::optional(time) : std::nullopt;
}

// nullopt if the time does not fit 64-bit nanoseconds.
std::optional<WallTime> ToWallTime(absl::Time time) {
  const bool fits =
      time >= absl::FromChrono(WallTime::min()) && time <= absl::FromChrono(WallTime::max());
  return fits ? std::optional(absl::ToChronoTime(time)) : std::nullopt;
}

}  // namespace

absl::StatusOr<WallTime> ParseRfc3339(std::string_view text) {
  const std::optional<absl::Time> parsed = Parse(absl::RFC3339_full, text);
  if (!parsed) return InvalidArgument("\"" + std::string(text) + "\" is not an RFC 3339 time");
  const std::optional<WallTime> time = ToWallTime(*parsed);
  if (time) return *time;
  return InvalidArgument("the time \"" + std::string(text) +
                         "\" is not between the years 1678 and 2261");
}

std::string FormatRfc3339(WallTime time) { return Format("%Y-%m-%dT%H:%M:%SZ", time); }

std::string FormatRfc3339Micros(WallTime time) { return Format("%Y-%m-%dT%H:%M:%E6SZ", time); }

std::string FormatRfc3339Nanos(WallTime time) { return Format("%Y-%m-%dT%H:%M:%E*SZ", time); }

absl::StatusOr<WallTime> ParseHttpDate(std::string_view text) {
  const std::optional<absl::Time> parsed = Parse("%a, %d %b %Y %H:%M:%S GMT", text);
  const std::optional<WallTime> time = parsed ? ToWallTime(*parsed) : std::nullopt;
  if (!time) return InvalidArgument("\"" + std::string(text) + "\" is not an HTTP date");
  return *time;
}

Hold ParseHold(std::string_view text) {
  if (const auto until = ParseRfc3339(text); until.ok()) return {.until = *until};
  return {.always = ParseGoBool(text).value_or(true)};
}

std::string FormatHold(const Hold& hold) {
  if (!hold.always && hold.until.has_value()) return FormatRfc3339Nanos(*hold.until);
  return hold.always ? "true" : "false";
}

}  // namespace nomad_harvester::base
