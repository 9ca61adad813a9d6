// SPDX-License-Identifier: Apache-2.0
// The expected values are Go's (cases from golang/go:src/time/time_test.go).
#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

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
    testing::Values(
        DurationCase{"0", 0s}, DurationCase{"+0", 0s}, DurationCase{"-0", 0s},
        DurationCase{"5s", 5s}, DurationCase{"30s", 30s}, DurationCase{"1478s", 1478s},
        DurationCase{"-5s", -5s}, DurationCase{"+5s", 5s}, DurationCase{"5.0s", 5s},
        DurationCase{"5.6s", 5600ms}, DurationCase{"5.s", 5s}, DurationCase{".5s", 500ms},
        DurationCase{"1.0s", 1s}, DurationCase{"1.00s", 1s}, DurationCase{"1.004s", 1004ms},
        DurationCase{"1.0040s", 1004ms}, DurationCase{"100.00100s", 100001ms},
        DurationCase{"10ns", 10ns}, DurationCase{"11us", 11us}, DurationCase{"12\u00b5s", 12us},
        DurationCase{"12\u03bcs", 12us}, DurationCase{"13ms", 13ms}, DurationCase{"14s", 14s},
        DurationCase{"15m", 15min}, DurationCase{"16h", 16h}, DurationCase{"3h30m", 3h + 30min},
        DurationCase{"10.5s4m", 4min + 10s + 500ms}, DurationCase{"-2m3.4s", -(2min + 3400ms)},
        DurationCase{"1h2m3s4ms5us6ns", 1h + 2min + 3s + 4ms + 5us + 6ns},
        DurationCase{"39h9m14.425s", 39h + 9min + 14425ms},
        DurationCase{"52763797000ns", 52763797000ns},
        DurationCase{"0.3333333333333333333h", 20min},  // more digits than the precision
        DurationCase{"9007199254740993ns", Duration((std::int64_t{1} << 53) + 1)},
        DurationCase{"9223372036854775807ns", Duration::max()},
        DurationCase{"9223372036854775.807us", Duration::max()},
        DurationCase{"9223372036s854ms775us807ns", Duration::max()},
        DurationCase{"-9223372036854775807ns", -Duration::max()},
        DurationCase{"-9223372036854775808ns", Duration::min()},
        DurationCase{"-2562047h47m16.854775808s", Duration::min()},
        DurationCase{"0.100000000000000000000h", 6min},
        DurationCase{"0.830103483285477580700h", 49min + 48s + 372539827ns}));

struct Refused {
  std::string text;
  std::string message;
};

class RefusesDuration : public testing::TestWithParam<Refused> {};

TEST_P(RefusesDuration, WithTheWordsOfGo) {
  EXPECT_THAT(ParseGoDuration(GetParam().text),
              StatusIs(absl::StatusCode::kInvalidArgument, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusesDuration,
    testing::Values(
        Refused{"", R"(time: invalid duration "")"},
        Refused{"3", R"(time: missing unit in duration "3")"},
        Refused{"10", R"(time: missing unit in duration "10")"},
        Refused{"-", R"(time: invalid duration "-")"},
        Refused{"s", R"(time: invalid duration "s")"},
        Refused{".", R"(time: invalid duration ".")"},
        Refused{"-.", R"(time: invalid duration "-.")"},
        Refused{".s", R"(time: invalid duration ".s")"},
        Refused{"+.s", R"(time: invalid duration "+.s")"},
        Refused{"1d", R"(time: unknown unit "d" in duration "1d")"},
        Refused{"10mm", R"(time: unknown unit "mm" in duration "10mm")"},
        Refused{"1 s", R"(time: unknown unit " s" in duration "1 s")"},
        Refused{" 1s", R"(time: invalid duration " 1s")"},
        Refused{"1s ", R"(time: unknown unit "s " in duration "1s ")"},
        Refused{"1S", R"(time: unknown unit "S" in duration "1S")"},
        Refused{"1s-2s", R"(time: unknown unit "s-" in duration "1s-2s")"},
        Refused{"--1s", R"(time: invalid duration "--1s")"},
        Refused{"\x85\x85", R"(time: invalid duration "\x85\x85")"},
        Refused{"hello \xff world", R"(time: invalid duration "hello \xff world")"},
        Refused{"\uFFFD", R"(time: invalid duration "\xef\xbf\xbd")"},
        Refused{"\"\\\x01", R"(time: invalid duration "\"\\\x01")"},
        Refused{"9223372036854775810ns", R"(time: invalid duration "9223372036854775810ns")"},
        Refused{"9223372036854775808ns", R"(time: invalid duration "9223372036854775808ns")"},
        Refused{"-9223372036854775809ns", R"(time: invalid duration "-9223372036854775809ns")"},
        Refused{"9223372036854776us", R"(time: invalid duration "9223372036854776us")"},
        Refused{"3000000h", R"(time: invalid duration "3000000h")"},
        Refused{"9223372036854775.808us", R"(time: invalid duration "9223372036854775.808us")"},
        Refused{"9223372036854ms775us808ns",
                R"(time: invalid duration "9223372036854ms775us808ns")"},
        Refused{"99999999999999999999s", R"(time: invalid duration "99999999999999999999s")"}));

TEST(ParseGoDuration, A_sum_that_wraps_around_64_bits_is_refused) {
  EXPECT_THAT(ParseGoDuration("-9223372036854775808ns9223372036854775808ns"),
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
    for (const char c : std::string(parsed.status().message())) {
      ASSERT_TRUE(c >= 0x20 && c < 0x7f) << parsed.status();
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::base
