// SPDX-License-Identifier: Apache-2.0
#include "values.h"

#include <chrono>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;

TEST(Values, a_text_is_not_empty_and_has_no_nul) {
  EXPECT_EQ(ValueOf(Text("a b")), "a b");
  EXPECT_EQ(FaultOf(Text("")), "must not be empty");
  EXPECT_THAT(FaultOf(Text(std::string("a\0b", 3))), HasSubstr("NUL"));
}

TEST(Values, a_text_that_may_be_empty_still_has_no_nul) {
  EXPECT_EQ(ValueOf(AnyText("")), "");
  EXPECT_THAT(FaultOf(AnyText(std::string("\0", 1))), HasSubstr("NUL"));
}

TEST(Values, a_token_is_visible_ascii) {
  EXPECT_EQ(ValueOf(Token("kubeconfig-user-abc:x/y+z=")).Reveal(), "kubeconfig-user-abc:x/y+z=");
  EXPECT_EQ(FaultOf(Token("")), "must not be empty");
  for (const char* const bad : {"abc\n", "a b", "a\r\nX-Evil: 1", "ä", "\x7f"}) {
    EXPECT_THAT(FaultOf(Token(bad)), HasSubstr("white space")) << bad;
  }
}

TEST(Values, the_faults_of_secrets_hide_the_value) {
  EXPECT_FALSE(std::get<Fault>(Token("a b")).show_value);
  EXPECT_FALSE(std::get<Fault>(SecretText("")).show_value);
}

TEST(Values, any_other_secret_may_have_spaces) {
  EXPECT_EQ(ValueOf(SecretText("user:pass word")).Reveal(), "user:pass word");
}

TEST(Values, booleans_are_those_of_go) {
  for (const char* const yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    EXPECT_TRUE(ValueOf(Boolean(yes))) << yes;
  }
  for (const char* const no : {"0", "f", "F", "FALSE", "false", "False"}) {
    EXPECT_FALSE(ValueOf(Boolean(no))) << no;
  }
}

TEST(Values, durations_are_those_of_go) {
  EXPECT_EQ(ValueOf(PositiveDuration("1h30m")), std::chrono::minutes(90));
  EXPECT_EQ(ValueOf(PositiveDuration("1ns")), std::chrono::nanoseconds(1));
}

TEST(Values, a_signed_duration_may_be_0_or_negative) {
  EXPECT_EQ(ValueOf(SignedDuration("0")), base::Duration::zero());
  EXPECT_EQ(ValueOf(SignedDuration("-1s")), std::chrono::seconds(-1));
}

TEST(Values, P2_durations_that_would_overflow_a_time_are_refused) {
  EXPECT_EQ(ValueOf(PositiveDuration("87600h")), std::chrono::hours(87600));
  EXPECT_EQ(FaultOf(PositiveDuration("87600h1ns")), "too long");
  EXPECT_EQ(FaultOf(SignedDuration("-2562047h")), "too long");
  EXPECT_EQ(FaultOf(PositiveDuration("9223372036854775808ns")), "must be a duration");
}

TEST(Values, counts_are_whole_and_at_least_1) {
  EXPECT_EQ(ValueOf(Count("1")), 1);
  EXPECT_EQ(ValueOf(Count("9223372036854775807")), std::numeric_limits<std::int64_t>::max());
}

TEST(Values, counts_may_have_a_limit) {
  EXPECT_EQ(ValueOf(CountUpTo("5", 5)), 5);
  EXPECT_EQ(FaultOf(CountUpTo("6", 5)), "must be a whole number from 1 to 5");
}

TEST(Values, bytes_are_quantities_greater_than_0) {
  EXPECT_EQ(ValueOf(Bytes("4Gi")), std::int64_t{4} << 30);
  EXPECT_EQ(ValueOf(Bytes("1500M")), 1'500'000'000);
}

TEST(Values, a_number_without_a_unit_is_meant_in_mebibytes_from_512_on) {
  EXPECT_EQ(WithUnit("512"), "512Mi");
  EXPECT_EQ(WithUnit("511"), "511Gi");
  EXPECT_EQ(WithUnit("512@fast"), "512Mi@fast");
  EXPECT_EQ(WithUnit("512M"), "");
}

TEST(Values, a_node_attribute_is_a_bare_name) {
  for (const char* const good : {"unique.hostname", "meta.vm_name", "platform.aws.instance-id"}) {
    EXPECT_EQ(ValueOf(NodeAttribute(good)), good);
  }
}

}  // namespace
}  // namespace nomad_harvester::config
