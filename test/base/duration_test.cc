// SPDX-License-Identifier: Apache-2.0
// The expected values are Go's (cases from golang/go:src/time/time_test.go).
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/time.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using namespace std::chrono_literals;
using support::IsOkAndHolds;
using support::StatusIs;

struct DurationCase {
  std::string text;
  Duration value;
};

class ParsesDuration : public testing::TestWithParam<DurationCase> {};

TEST_P(ParsesDuration, AsGoDoes) {
  EXPECT_THAT(ParseGoDuration(GetParam().text), IsOkAndHolds(GetParam().value));
}

INSTANTIATE_TEST_SUITE_P(
    Table, ParsesDuration,
    testing::Values(DurationCase{"0", 0s}, DurationCase{"+0", 0s}, DurationCase{"-0", 0s},
                    DurationCase{"5s", 5s}, DurationCase{"30s", 30s}, DurationCase{"1478s", 1478s},
                    DurationCase{"-5s", -5s}, DurationCase{"+5s", 5s}, DurationCase{"5.0s", 5s},
                    DurationCase{"5.6s", 5600ms}, DurationCase{"5.s", 5s},
                    DurationCase{".5s", 500ms}, DurationCase{"1.0s", 1s}, DurationCase{"1.00s", 1s},
                    DurationCase{"1.004s", 1004ms}, DurationCase{"1.0040s", 1004ms},
                    DurationCase{"100.00100s", 100001ms}, DurationCase{"10ns", 10ns},
                    DurationCase{"11us", 11us}, DurationCase{"12\u00b5s", 12us},
                    DurationCase{"12\u03bcs", 12us}, DurationCase{"13ms", 13ms},
                    DurationCase{"14s", 14s}, DurationCase{"15m", 15min}, DurationCase{"16h", 16h},
                    DurationCase{"3h30m", 3h + 30min}, DurationCase{"10.5s4m", 4min + 10s + 500ms},
                    DurationCase{"-2m3.4s", -(2min + 3400ms)},
                    DurationCase{"1h2m3s4ms5us6ns", 1h + 2min + 3s + 4ms + 5us + 6ns},
                    DurationCase{"39h9m14.425s", 39h + 9min + 14425ms},
                    DurationCase{"52763797000ns", 52763797000ns}, DurationCase{"1h30m", 90min},
                    DurationCase{"1.5h", 90min}, DurationCase{"-1s", -1s},
                    DurationCase{"0.33333333333333h", 20min - 1ns},  // rounded towards zero
                    DurationCase{"9007199254740993ns", Duration((std::int64_t{1} << 53) + 1)},
                    DurationCase{"9223372036854775807ns", Duration::max()},
                    DurationCase{"9223372036854775.807us", Duration::max()},
                    DurationCase{"9223372036s854ms775us807ns", Duration::max()},
                    DurationCase{"-9223372036854775807ns", -Duration::max()},
                    DurationCase{"-2562047h47m16.854775808s", Duration::min()},
                    DurationCase{"0.100000000000000h", 6min},
                    DurationCase{"0.830103483285477h", 49min + 48s + 372539827ns}));

TEST(ParseGoDuration, Refuses_everything_else) {
  for (const char* text : {"",
                           "3",
                           "10",
                           "-",
                           "s",
                           ".",
                           "-.",
                           ".s",
                           "+.s",
                           "1d",
                           "10mm",
                           "1 s",
                           " 1s",
                           "1s ",
                           "1S",
                           "1s-2s",
                           "--1s",
                           "+-1s",
                           "inf",
                           "-inf",
                           "+inf",
                           "1inf",
                           "infh",
                           "1e3s",
                           "0x1s",
                           "\x85\x85",
                           "\u00b5",
                           "1\u00b5",
                           "1h\n",
                           "1h30",
                           "3000000h",
                           "9999999999h",
                           "9223372036854775810ns",
                           "9223372036854775808ns",
                           "-9223372036854775809ns",
                           "9223372036854776us",
                           "9223372036854775.808us",
                           "9223372036854ms775us808ns",
                           "99999999999999999999s"}) {
    EXPECT_THAT(ParseGoDuration(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
  EXPECT_THAT(ParseGoDuration("10mm"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       R"("10mm" is not a duration, such as 90s, 15m or 1h30m)"));
  EXPECT_THAT(ParseGoDuration("hello \xff\x01world"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::StartsWith("\"hello \ufffd\\x01world\" is not")));
}

TEST(ParseGoDuration, A_sum_that_wraps_around_64_bits_is_refused) {
  EXPECT_THAT(ParseGoDuration("-9223372036854775807ns9223372036854775807ns"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

struct Formatted {
  Duration value;
  std::string text;
};

class FormatsDuration : public testing::TestWithParam<Formatted> {};

TEST_P(FormatsDuration, AsGoDoes) {
  EXPECT_EQ(FormatGoDuration(GetParam().value), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FormatsDuration,
    testing::Values(Formatted{0s, "0s"}, Formatted{1ns, "1ns"}, Formatted{999ns, "999ns"},
                    Formatted{1us, "1\u00b5s"}, Formatted{1100ns, "1.1\u00b5s"},
                    Formatted{2200us, "2.2ms"}, Formatted{250ms, "250ms"},
                    Formatted{3300ms, "3.3s"}, Formatted{1s, "1s"}, Formatted{1500ms, "1.5s"},
                    Formatted{1min, "1m0s"}, Formatted{4min + 5s, "4m5s"},
                    Formatted{4min + 5001ms, "4m5.001s"}, Formatted{1h, "1h0m0s"},
                    Formatted{5h + 6min + 7001ms, "5h6m7.001s"},
                    Formatted{8min + 1ns, "8m0.000000001s"}, Formatted{24h, "24h0m0s"},
                    Formatted{-1ns, "-1ns"}, Formatted{-1500ms, "-1.5s"}, Formatted{-1h, "-1h0m0s"},
                    Formatted{Duration::max(), "2562047h47m16.854775807s"},
                    Formatted{Duration::min(), "-2562047h47m16.854775808s"}));

TEST(FormatGoDuration, What_it_writes_parses_back_to_the_same_value) {
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 20000; ++i) {
    // Shifted, to cover all magnitudes.
    const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
    const std::string text = FormatGoDuration(Duration(value));
    ASSERT_THAT(ParseGoDuration(text), IsOkAndHolds(Duration(value))) << text;
  }
}

TEST(ParseGoDuration, Any_bytes_give_a_value_or_an_error_that_quotes_printable_text) {
  std::mt19937_64 random(7);
  const std::string alphabet = "0123456789.+-nsumh\u00b5 \"\\\xff\n";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto length = random() % 12; length > 0; --length) {
      text += alphabet[random() % alphabet.size()];
    }
    const auto parsed = ParseGoDuration(text);
    if (parsed.ok()) {
      ASSERT_THAT(ParseGoDuration(FormatGoDuration(*parsed)), IsOkAndHolds(*parsed)) << text;
      continue;
    }
    const std::string message(parsed.status().message());
    ASSERT_EQ(EscapeControls(message), message) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::base
