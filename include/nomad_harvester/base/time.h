// SPDX-License-Identifier: Apache-2.0
// Times and durations: the types used by all modules, and their text forms in Go, Kubernetes, Nomad
// and HTTP.
#ifndef NOMAD_HARVESTER_BASE_TIME_H_
#define NOMAD_HARVESTER_BASE_TIME_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace nomad_harvester::base {

using Duration = std::chrono::nanoseconds;
// A point on the monotonic clock: for waits, deadlines and intervals inside the process.
using MonoTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// A point in calendar time (UTC): for objects and logs.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Parses Go's duration syntax (golang/go:src/time/format.go, ParseDuration): optional sign, decimal
// numbers with the units ns us µs μs ms s m h, a bare "0". INVALID_ARGUMENT names the text and
// shows an example.
absl::StatusOr<Duration> ParseGoDuration(std::string_view text);

// Go's Duration.String(): "1h0m0s", "1.5s", "250ms", "0s"; parses back to the same value.
std::string FormatGoDuration(Duration duration);

// Parses RFC 3339 ("2026-11-21T02:03:04Z", any number of fractional digits kept to nanoseconds,
// any offset). INVALID_ARGUMENT names the text.
absl::StatusOr<WallTime> ParseRfc3339(std::string_view text);

// "2026-11-21T02:03:04Z": whole seconds, UTC, as Kubernetes writes metav1.Time.
std::string FormatRfc3339(WallTime time);
// "2026-11-21T02:03:04.000000Z": exactly six fractional digits. Kubernetes' MicroTime and hclog's
// @timestamp accept no other form.
std::string FormatRfc3339Micros(WallTime time);
// "2026-11-21T02:03:04.123456789Z": fraction without trailing zeros, none if it is zero, as in Go's
// time.RFC3339Nano, which Nomad uses.
std::string FormatRfc3339Nanos(WallTime time);

// Parses an HTTP date of the fixed form "Sat, 21 Nov 2026 02:03:04 GMT" (RFC 9110 5.6.7).
absl::StatusOr<WallTime> ParseHttpDate(std::string_view text);

// The value that an operator wrote into `protect` of a VM or `harvester_protect` of a Nomad client
// (rule C7), or into `paused` of a Lease (rule L10): Go's true or false, or the time until which it
// holds.
struct Hold {
  bool always = false;
  std::optional<WallTime> until = {};
  // `now` is the API server's time.
  bool HoldsAt(WallTime now) const { return always || (until.has_value() && now < *until); }
  friend bool operator==(const Hold&, const Hold&) = default;
};
// A text that is neither a boolean nor an RFC 3339 time holds forever, because whoever wrote it
// wanted to stop something.
Hold ParseHold(std::string_view text);
// "true", "false" or the time.
std::string FormatHold(const Hold& hold);

}  // namespace nomad_harvester::base

#endif  // NOMAD_HARVESTER_BASE_TIME_H_
