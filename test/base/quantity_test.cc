// SPDX-License-Identifier: Apache-2.0
// The expected values are Kubernetes'
// (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/api/resource/ quantity_test.go),
// rounded up to whole units.
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "nomad_harvester/base/parse.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/status_matchers.h"

namespace nomad_harvester::base {
namespace {

using support::IsOkAndHolds;
using support::StatusIs;
using testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

struct QuantityCase {
  std::string text;
  std::int64_t value;
};

class ParsesQuantity : public testing::TestWithParam<QuantityCase> {};

TEST_P(ParsesQuantity, AsKubernetesDoes) {
  EXPECT_THAT(ParseQuantity(GetParam().text), IsOkAndHolds(GetParam().value));
}

INSTANTIATE_TEST_SUITE_P(
    Whole, ParsesQuantity,
    testing::Values(
        QuantityCase{"0", 0}, QuantityCase{"1", 1}, QuantityCase{"+1", 1}, QuantityCase{"007", 7},
        QuantityCase{"0Ki", 0}, QuantityCase{"-0", 0}, QuantityCase{"4Gi", 4294967296},
        QuantityCase{"1Ki", 1024}, QuantityCase{"8Mi", 8 << 20}, QuantityCase{"7Ti", 7LL << 40},
        QuantityCase{"6Pi", 6LL << 50}, QuantityCase{"5Ei", 5LL << 60}, QuantityCase{"1k", 1000},
        QuantityCase{"10M", 10'000'000}, QuantityCase{"3G", 3'000'000'000},
        QuantityCase{"4T", 4'000'000'000'000}, QuantityCase{"5P", 5'000'000'000'000'000},
        QuantityCase{"9E", 9'000'000'000'000'000'000}, QuantityCase{"1e3", 1000},
        QuantityCase{"1E3", 1000}, QuantityCase{"1e+3", 1000}, QuantityCase{"100000e-3", 100},
        QuantityCase{"0e99999999", 0}, QuantityCase{"9223372036854775807", kMax},
        QuantityCase{"00000000000000000000000000001", 1},
        QuantityCase{"1000000000000000000000e-21", 1}));

INSTANTIATE_TEST_SUITE_P(
    Fractions, ParsesQuantity,
    testing::Values(
        QuantityCase{"1.5k", 1500}, QuantityCase{"0.5Gi", 536870912},
        QuantityCase{".5Gi", 536870912}, QuantityCase{"1.5", 2}, QuantityCase{"5.", 5},
        QuantityCase{"5.0", 5}, QuantityCase{"500m", 1}, QuantityCase{"1000m", 1},
        QuantityCase{"1001m", 2}, QuantityCase{"1u", 1}, QuantityCase{"1n", 1},
        QuantityCase{"0.0m", 0}, QuantityCase{"2000000000n", 2}, QuantityCase{"2000000001n", 3},
        QuantityCase{"1e-3", 1}, QuantityCase{"1e-9999999999", 1}, QuantityCase{"0.1Ki", 103},
        QuantityCase{"1.000000000000000000000000000001Ki", 1025}, QuantityCase{"0.0009765625Ki", 1},
        QuantityCase{"0.00000000000000000000000000001", 1},
        // 0.1 has no exact binary form: doubles would give another result.
        QuantityCase{"4.1Ei", 4726978168888072602}, QuantityCase{"7.999Ei", 9222219115350168962},
        QuantityCase{"9223372036854775806.1", kMax}));

class RefusesQuantity : public testing::TestWithParam<std::string> {};

TEST_P(RefusesQuantity, AndNamesTheText) {
  EXPECT_THAT(ParseQuantity(GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"" + GetParam() + "\"")));
}

INSTANTIATE_TEST_SUITE_P(Malformed, RefusesQuantity,
                         testing::Values("", "-", "+", ".", "Gi", ".Gi", "e3", "1 Gi", " 1Gi",
                                         "1Gi ", "1gi", "1GI", "1GiB", "1GB", "1ki", "1Ki1", "1K",
                                         "1kk", "1mi", "1 ", "1,5", "1.2.3", "--1", "+-1", "1e",
                                         "1e+", "1e+-3", "1e-+3", "1e3.5", "1e3Ki", "1Kie3", "0x10",
                                         "four", "1\xff", "1e99999999999999999999"));

INSTANTIATE_TEST_SUITE_P(Negative, RefusesQuantity, testing::Values("-1", "-1Gi", "-500m", "-1n"));

INSTANTIATE_TEST_SUITE_P(Overflow, RefusesQuantity,
                         testing::Values("8Ei", "9223372036854775808", "9223372036854775807.1",
                                         "9.3E", "10E", "1e19", "1e9999999999",
                                         "99999999999999999999999999", "8192Pi",
                                         "9999999999999999999Ki"));

TEST(ParseQuantity, Says_whether_a_value_is_malformed_negative_or_too_large) {
  EXPECT_THAT(ParseQuantity("1GB"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a Kubernetes quantity")));
  EXPECT_THAT(ParseQuantity("-1"),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"-1\" is negative"));
  EXPECT_THAT(ParseQuantity("8Ei"),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"8Ei\" is too large"));
}

TEST(ParseQuantity, Digits_beyond_the_nineteenth_round_up) {
  EXPECT_THAT(ParseQuantity("1." + std::string(40, '0')), IsOkAndHolds(1));
  EXPECT_THAT(ParseQuantity("1." + std::string(40, '0') + "1"), IsOkAndHolds(2));
  EXPECT_THAT(ParseQuantity(std::string(40, '0') + "1Ki"), IsOkAndHolds(1024));
  EXPECT_THAT(ParseQuantity("1" + std::string(40, '0')),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FormatBinaryQuantity, Uses_the_largest_suffix_that_is_exact) {
  EXPECT_EQ(FormatBinaryQuantity(0), "0");
  EXPECT_EQ(FormatBinaryQuantity(1), "1");
  EXPECT_EQ(FormatBinaryQuantity(1000), "1000");
  EXPECT_EQ(FormatBinaryQuantity(1024), "1Ki");
  EXPECT_EQ(FormatBinaryQuantity(1536), "1536");
  EXPECT_EQ(FormatBinaryQuantity(1536 * 1024), "1536Ki");
  EXPECT_EQ(FormatBinaryQuantity(10737418240), "10Gi");
  EXPECT_EQ(FormatBinaryQuantity(std::int64_t{1} << 60), "1Ei");
  EXPECT_EQ(FormatBinaryQuantity(std::int64_t{1} << 62), "4Ei");
  EXPECT_EQ(FormatBinaryQuantity(kMax), "9223372036854775807");
}

TEST(FormatBinaryQuantity, What_it_writes_parses_back) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<std::int64_t>((random() >> (1 + random() % 63)) &
                                                 (~std::uint64_t{0} << (random() % 62)));
    ASSERT_THAT(ParseQuantity(FormatBinaryQuantity(value)), IsOkAndHolds(value));
  }
}

TEST(ParseQuantity, A_suffix_multiplies_and_never_loses_order) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t value = random() % 1'000'000;
    const std::string digits = std::to_string(value);
    ASSERT_THAT(ParseQuantity(digits + "Mi"), IsOkAndHolds(static_cast<std::int64_t>(value << 20)));
    ASSERT_THAT(ParseQuantity(digits + "M"),
                IsOkAndHolds(static_cast<std::int64_t>(value * 1'000'000)));
    // Rounded up: at least the exact value, and less than one unit above it.
    ASSERT_THAT(ParseQuantity(digits + "m"),
                IsOkAndHolds(static_cast<std::int64_t>((value + 999) / 1000)));
  }
}

}  // namespace
}  // namespace nomad_harvester::base
