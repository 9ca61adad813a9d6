// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "nomad_harvester/base/time.h"

#include "gtest/gtest.h"

namespace nomad_harvester::base {
namespace {

WallTime TimeOf(std::string_view text) { return ParseRfc3339(text).value(); }

TEST(Hold, C7_is_a_boolean_of_go) {
  for (const char* text : {"1", "t", "T", "true", "TRUE", "True"}) {
    EXPECT_TRUE(ParseHold(text).HoldsAt(TimeOf("2026-11-21T02:00:00Z"))) << text;
  }
  for (const char* text : {"0", "f", "F", "false", "FALSE", "False"}) {
    EXPECT_FALSE(ParseHold(text).HoldsAt(TimeOf("2026-11-21T02:00:00Z"))) << text;
  }
}

TEST(Hold, C7_ends_at_its_time) {
  const Hold hold = ParseHold("2026-11-21T04:00:00+02:00");
  EXPECT_TRUE(hold.HoldsAt(TimeOf("2026-11-21T01:59:59.999Z")));
  EXPECT_FALSE(hold.HoldsAt(TimeOf("2026-11-21T02:00:00Z")));
  EXPECT_FALSE(hold.HoldsAt(TimeOf("2026-11-21T02:00:01Z")));
}

TEST(Hold, C7_that_is_neither_a_boolean_nor_a_time_holds_for_ever) {
  for (const char* text : {"", "yes", "no", "2020-01-01", "2020-01-01 00:00", "10m", "tomorrow"}) {
    EXPECT_TRUE(ParseHold(text).HoldsAt(TimeOf("2099-11-21T02:00:00Z"))) << text;
  }
}

TEST(Hold, that_nobody_wrote_does_not_hold) {
  EXPECT_FALSE(Hold().HoldsAt(TimeOf("2026-11-21T02:00:00Z")));
  EXPECT_FALSE(Hold().HoldsAt(WallTime{}));
}

TEST(Hold, L10_comes_back_as_it_was_written) {
  for (const Hold& hold :
       {Hold{}, Hold{.always = true}, Hold{.until = TimeOf("2026-11-21T02:00:00Z")}}) {
    EXPECT_EQ(ParseHold(FormatHold(hold)), hold);
  }
  EXPECT_EQ(FormatHold({}), "false");
  EXPECT_EQ(FormatHold({.always = true}), "true");
  EXPECT_EQ(FormatHold({.until = TimeOf("2026-11-21T04:00:00+02:00")}), "2026-11-21T02:00:00Z");
}

}  // namespace
}  // namespace nomad_harvester::base
