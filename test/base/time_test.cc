// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/time.h"

#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using namespace std::chrono_literals;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;

// Seconds since 1970, as `date -u -d … +%s` prints them.
WallTime At(std::int64_t seconds, Duration rest = 0ns) {
  return WallTime(std::chrono::seconds(seconds)) + rest;
}

TEST(ParseRfc3339, Utc) {
  EXPECT_THAT(ParseRfc3339("1970-01-01T00:00:00Z"), IsOkAndHolds(At(0)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04Z"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("2026-11-21t02:03:04z"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("1969-12-31T23:59:59Z"), IsOkAndHolds(At(-1)));
}

TEST(ParseRfc3339, Offsets_are_taken_away) {
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04+00:00"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04-00:00"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T07:33:04+05:30"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("2026-11-20T18:03:04-08:00"), IsOkAndHolds(At(1795226584)));
  EXPECT_THAT(ParseRfc3339("2026-11-22T02:02:04+23:59"), IsOkAndHolds(At(1795226584)));
}

TEST(ParseRfc3339, Fractions_keep_nanoseconds_and_drop_the_rest) {
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04.5Z"), IsOkAndHolds(At(1795226584, 500ms)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04.000001Z"), IsOkAndHolds(At(1795226584, 1us)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04.123456789Z"),
              IsOkAndHolds(At(1795226584, 123456789ns)));
  EXPECT_THAT(ParseRfc3339("2026-11-21T02:03:04.1234567899999999999999Z"),
              IsOkAndHolds(At(1795226584, 123456789ns)));
  EXPECT_THAT(ParseRfc3339("1969-12-31T23:59:59.25Z"), IsOkAndHolds(At(-1, 250ms)));
}

TEST(ParseRfc3339, Leap_days_and_leap_seconds) {
  EXPECT_THAT(ParseRfc3339("2024-02-29T00:00:00Z"), IsOkAndHolds(At(1709164800)));
  EXPECT_THAT(ParseRfc3339("2000-02-29T00:00:00Z"), IsOkAndHolds(At(951782400)));
  EXPECT_THAT(ParseRfc3339("2023-02-29T00:00:00Z"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseRfc3339("2100-02-29T00:00:00Z"), StatusIs(absl::StatusCode::kInvalidArgument));
  // A leap second is the first second of the next day, as POSIX counts.
  EXPECT_THAT(ParseRfc3339("2016-12-31T23:59:60Z"), IsOkAndHolds(At(1483228800)));
  EXPECT_THAT(ParseRfc3339("2016-12-31T15:59:60-08:00"), IsOkAndHolds(At(1483228800)));
  EXPECT_THAT(ParseRfc3339("2016-12-31T23:59:61Z"), StatusIs(absl::StatusCode::kInvalidArgument));
}

class RefusesRfc3339 : public testing::TestWithParam<std::string> {};

TEST_P(RefusesRfc3339, AndNamesTheText) {
  EXPECT_THAT(ParseRfc3339(GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"" + GetParam() + "\"")));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusesRfc3339,
    testing::Values("", "now", "2026-11-21", "2026-11-21T02:03Z", "2026-11-21T02:03:04",
                    "2026-11-21 02:03:04Z", "2026-11-21T02:03:04.Z", "2026-11-21T02:03:04,5Z",
                    "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-11-31T00:00:00Z",
                    "2026-11-00T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T02:60:00Z",
                    "2026-11-21T02:03:04+24:00", "2026-11-21T02:03:04+01:60",
                    "2026-11-21T02:03:04+1:00", "2026-11-21T02:03:04ZZ", "26-11-21T02:03:04Z",
                    "+2026-11-21T02:03:04Z", "0001-01-01T00:00:00Z", "1677-01-01T00:00:00Z",
                    "2263-01-01T00:00:00Z", "9999-12-31T23:59:59Z"));

TEST(ParseRfc3339, Times_that_64_bit_nanoseconds_cannot_hold_say_so) {
  EXPECT_THAT(ParseRfc3339("0001-01-01T00:00:00Z"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not between the years")));
  EXPECT_THAT(ParseRfc3339("2262-04-11T23:47:15.999999999Z"),
              IsOkAndHolds(At(9223372035, 999999999ns)));
  EXPECT_THAT(ParseRfc3339("2262-04-11T23:47:17Z"), StatusIs(absl::StatusCode::kInvalidArgument));
  // Not a matcher, which would print the time: libstdc++ 14 overflows when it prints this one.
  EXPECT_EQ(ParseRfc3339("1677-09-21T00:12:44Z").value(), At(-9223372036));
  EXPECT_THAT(ParseRfc3339("1677-09-21T00:12:43Z"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FormatRfc3339, The_three_forms_differ_in_their_fraction) {
  const WallTime time = At(1795226584, 120000789ns);
  EXPECT_EQ(FormatRfc3339(time), "2026-11-21T02:03:04Z");
  EXPECT_EQ(FormatRfc3339Micros(time), "2026-11-21T02:03:04.120000Z");
  EXPECT_EQ(FormatRfc3339Nanos(time), "2026-11-21T02:03:04.120000789Z");
}

TEST(FormatRfc3339, Whole_seconds) {
  EXPECT_EQ(FormatRfc3339(At(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatRfc3339Micros(At(0)), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatRfc3339Nanos(At(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatRfc3339Nanos(At(0, 100ms)), "1970-01-01T00:00:00.1Z");
}

TEST(FormatRfc3339, Times_before_1970_and_the_extremes) {
  EXPECT_EQ(FormatRfc3339Nanos(At(0, -1ns)), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(FormatRfc3339(At(0, -1ns)), "1969-12-31T23:59:59Z");
  EXPECT_EQ(FormatRfc3339Nanos(WallTime::max()), "2262-04-11T23:47:16.854775807Z");
  EXPECT_EQ(FormatRfc3339Nanos(WallTime::min() + 1s), "1677-09-21T00:12:44.145224192Z");
}

TEST(FormatRfc3339, What_it_writes_parses_back) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const WallTime time{Duration(static_cast<std::int64_t>(random()) / 2)};
    ASSERT_THAT(ParseRfc3339(FormatRfc3339Nanos(time)), IsOkAndHolds(time));
    const auto micros = std::chrono::floor<std::chrono::microseconds>(time);
    ASSERT_THAT(ParseRfc3339(FormatRfc3339Micros(time)), IsOkAndHolds(WallTime(micros)));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    ASSERT_THAT(ParseRfc3339(FormatRfc3339(time)), IsOkAndHolds(WallTime(seconds)));
  }
}

TEST(HttpDate, Is_parsed_in_the_fixed_form) {
  EXPECT_THAT(ParseHttpDate("Sat, 21 Nov 2026 02:03:04 GMT"), IsOkAndHolds(At(1795226584)));
  // The example of RFC 9110, 5.6.7.
  EXPECT_THAT(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), IsOkAndHolds(At(784111777)));
  EXPECT_THAT(ParseHttpDate("Thu, 01 Jan 1970 00:00:00 GMT"), IsOkAndHolds(At(0)));
}

class RefusesHttpDate : public testing::TestWithParam<std::string> {};

TEST_P(RefusesHttpDate, AndNamesTheText) {
  EXPECT_THAT(ParseHttpDate(GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"" + GetParam() + "\"")));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusesHttpDate,
    testing::Values("", "2026-11-21T02:03:04Z", "Sunday, 06-Nov-94 08:49:37 GMT",
                    "Sun Nov  6 08:49:37 1994", "Sat, 21 Nov 2026 02:03:04 UTC",
                    "Sat, 21 Nov 2026 02:03:04", "Xxx, 21 Nov 2026 02:03:04 GMT",
                    "Sat, 21 Nix 2026 02:03:04 GMT", "Sat, 31 Nov 2026 02:03:04 GMT",
                    "Sat, 21 Nov 2026 25:03:04 GMT", "Sat, 21 Nov 9026 02:03:04 GMT"));

}  // namespace
}  // namespace nomad_harvester::base
