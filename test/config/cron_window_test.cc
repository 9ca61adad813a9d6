// SPDX-License-Identifier: Apache-2.0
// When a window opens and closes, and what is none.
#include "nomad_harvester/config/cron_window.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/time.h"

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

base::WallTime At(const std::string& text) { return base::ParseRfc3339(text).value(); }

CronWindow WindowOf(const std::string& text) { return CronWindow::Parse(text).value(); }

struct OpenCase {
  std::string window;
  std::string time;
  std::string open_from;  // `time` itself: it is open
};

// 2026-11-26 is a Thursday.
TEST(CronWindow, R2_opens_when_its_expression_fires_and_stays_open_for_its_duration) {
  const std::vector<OpenCase> cases = {
      // The edges.
      {"0 2 * * * 4h", "2026-11-26T01:59:59Z", "2026-11-26T02:00:00Z"},
      {"0 2 * * * 4h", "2026-11-26T02:00:00Z", "2026-11-26T02:00:00Z"},
      {"0 2 * * * 4h", "2026-11-26T05:59:59Z", "2026-11-26T05:59:59Z"},
      {"0 2 * * * 4h", "2026-11-26T06:00:00Z", "2026-11-27T02:00:00Z"},
      {"30 5 * * * 1m", "2026-11-26T05:30:59Z", "2026-11-26T05:30:59Z"},
      {"30 5 * * * 1m", "2026-11-26T05:31:00Z", "2026-11-27T05:30:00Z"},
      // Over midnight, and over days.
      {"0 22 * * * 4h", "2026-11-27T01:59:59Z", "2026-11-27T01:59:59Z"},
      {"0 22 * * * 4h", "2026-11-27T02:00:00Z", "2026-11-27T22:00:00Z"},
      {"0 0 * * sat 48h", "2026-11-29T23:59:59Z", "2026-11-29T23:59:59Z"},
      {"0 0 * * sat 48h", "2026-11-30T00:00:00Z", "2026-12-05T00:00:00Z"},
      {"59 23 * * sun 168h", "2026-11-26T12:00:00Z", "2026-11-26T12:00:00Z"},
      // It fires again before it closes, then and then only.
      {"0 0 * * * 36h", "2026-11-26T23:00:00Z", "2026-11-26T23:00:00Z"},
      {"0,10 2 * * * 15m", "2026-11-26T02:24:59Z", "2026-11-26T02:24:59Z"},
      {"0,10 2 * * * 15m", "2026-11-26T02:25:00Z", "2026-11-27T02:00:00Z"},
      // Lists, ranges, steps.
      {"*/20 * * * * 1m", "2026-11-26T02:21:00Z", "2026-11-26T02:40:00Z"},
      {"5-30/10 * * * * 1m", "2026-11-26T02:26:00Z", "2026-11-26T03:05:00Z"},
      {"0 1,3-4 * * * 1m", "2026-11-26T01:01:00Z", "2026-11-26T03:00:00Z"},
      {"0 1,3-4 * * * 1m", "2026-11-26T04:01:00Z", "2026-11-27T01:00:00Z"},
      {"0 */12 * * * 1m", "2026-11-26T00:01:00Z", "2026-11-26T12:00:00Z"},
      // Days of the week: numbers, both Sundays, names in any case, over the end of the week.
      {"0 2 * * 1-5 4h", "2026-11-27T06:00:00Z", "2026-11-30T02:00:00Z"},
      {"0 2 * * mon-FRI 4h", "2026-11-27T06:00:00Z", "2026-11-30T02:00:00Z"},
      {"0 2 * * 0 4h", "2026-11-26T00:00:00Z", "2026-11-29T02:00:00Z"},
      {"0 2 * * 7 4h", "2026-11-26T00:00:00Z", "2026-11-29T02:00:00Z"},
      {"0 2 * * 6-7 4h", "2026-11-28T06:00:00Z", "2026-11-29T02:00:00Z"},
      {"0 2 * * Sat-Sun 4h", "2026-11-28T06:00:00Z", "2026-11-29T02:00:00Z"},
      {"0 2 * * sun-tue 4h", "2026-11-26T06:00:00Z", "2026-11-29T02:00:00Z"},
      {"0 2 * * */2 4h", "2026-11-26T06:00:00Z", "2026-11-28T02:00:00Z"},
      // Days of the month and months.
      {"0 2 1 * * 4h", "2026-11-26T00:00:00Z", "2026-12-01T02:00:00Z"},
      {"0 2 31 * * 4h", "2026-11-26T00:00:00Z", "2026-12-31T02:00:00Z"},
      {"0 2 1 jan,Jul * 4h", "2026-11-26T00:00:00Z", "2027-01-01T02:00:00Z"},
      {"0 2 1 2-3 * 4h", "2026-11-26T00:00:00Z", "2027-02-01T02:00:00Z"},
      {"0 0 29 2 * 4h", "2026-11-26T00:00:00Z", "2028-02-29T00:00:00Z"},
      {"0 0 29 2 * 4h", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
      {"0 0 31 12 * 48h", "2027-01-01T23:59:59Z", "2027-01-01T23:59:59Z"},
      // Both days restricted: one of them is enough.
      {"0 2 13 * fri 4h", "2026-11-26T00:00:00Z", "2026-11-27T02:00:00Z"},
      {"0 2 13 * fri 4h", "2026-12-12T00:00:00Z", "2026-12-13T02:00:00Z"},
      {"0 2 30 2 mon 4h", "2027-02-02T00:00:00Z", "2027-02-08T02:00:00Z"},
      {"\t0  2 * *\t* 4h ", "2026-11-26T00:00:00Z", "2026-11-26T02:00:00Z"},
  };
  for (const OpenCase& each : cases) {
    const CronWindow window = WindowOf(each.window);
    EXPECT_EQ(base::FormatRfc3339(window.OpenFrom(At(each.time))), each.open_from)
        << each.window << " at " << each.time;
    EXPECT_EQ(window.IsOpen(At(each.time)), each.time == each.open_from)
        << each.window << " at " << each.time;
  }
}

TEST(CronWindow, R2_what_is_wrong_is_named_with_its_field_and_an_example) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has 0 fields, not five of cron and a duration"},
      {"0 2 * * 1-5", "has 5 fields, not five of cron and a duration"},
      {"0 2 * * 1-5 4h 5m", "has 7 fields, not five of cron and a duration"},
      {"@daily 4h", "has 2 fields, not five of cron and a duration"},
      {"60 2 * * * 4h", "the field minute: \"60\" is not a number from 0 to 59"},
      {"x 2 * * * 4h", "the field minute: \"x\" is not a number from 0 to 59"},
      {"1,,2 2 * * * 4h", "the field minute: \"\" is not a number from 0 to 59"},
      {"-5 2 * * * 4h", "the field minute: \"\" is not a number from 0 to 59"},
      {"0 24 * * * 4h", "the field hour: \"24\" is not a number from 0 to 23"},
      {"0 9-5 * * * 4h", "the field hour: \"9-5\" ends before it begins"},
      {"0 2 0 * * 4h", "the field day of month: \"0\" is not a number from 1 to 31"},
      {"0 2 32 * * 4h", "the field day of month: \"32\" is not a number from 1 to 31"},
      {"0 2 L * * 4h", "the field day of month: \"L\" is not a number from 1 to 31"},
      {"0 2 * 13 * 4h",
       "the field month: \"13\" is not a number from 1 to 12, nor a name such as jan"},
      {"0 2 * 0 * 4h",
       "the field month: \"0\" is not a number from 1 to 12, nor a name such as jan"},
      {"0 2 * january * 4h",
       "the field month: \"january\" is not a number from 1 to 12, nor a name such as jan"},
      {"0 2 * * 8 4h",
       "the field day of week: \"8\" is not a number from 0 to 7, nor a name such as sun"},
      {"0 2 * * jan 4h",
       "the field day of week: \"jan\" is not a number from 0 to 7, nor a name such as sun"},
      {"0 2 * * fri-mon 4h", "the field day of week: \"fri-mon\" ends before it begins"},
      {"*/0 2 * * * 4h", "the field minute: \"*/0\" has a step that is no number from 1 to 59"},
      {"*/ 2 * * * 4h", "the field minute: \"*/\" has a step that is no number from 1 to 59"},
      {"*/60 2 * * * 4h", "the field minute: \"*/60\" has a step that is no number from 1 to 59"},
      {"5/10 2 * * * 4h", "the field minute: \"5/10\" has a step, but is no range"},
      {"0 2 * * * 30s",
       "the last field, how long it is open: \"30s\" is not a duration from 1m to 168h"},
      {"0 2 * * * 169h",
       "the last field, how long it is open: \"169h\" is not a duration from 1m to 168h"},
      {"0 2 * * * 4",
       "the last field, how long it is open: \"4\" is not a duration from 1m to 168h"},
      {"0 0 30 2 * 4h", "the field day of month: \"30\" never comes in the months \"2\""},
      {"0 0 31 4,6,9,nov * 4h",
       "the field day of month: \"31\" never comes in the months \"4,6,9,nov\""},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_EQ(ProblemOf(ParsePolicy({{"replacement_window", text}})),
              "replacement_window: " + why + " (got \"" + text +
                  "\"); write minute, hour, day of month, month, day of week, and for how long it "
                  "is open, such as \"0 2 * * 1-5 4h\"");
  }
}

TEST(CronWindow, P2_no_text_is_accepted_that_is_cut_or_changed_into_nonsense) {
  const std::string good = "5-30/10 2 13 jan,7 mon-sun 4h";
  ASSERT_TRUE(CronWindow::Parse(good).ok());
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(CronWindow::Parse(good.substr(0, i)).ok()) << i;
    for (const char c : {'\0', '\x80', '-', '/', ',', '*', '9', ' ', 'n'}) {
      std::string changed = good;
      changed[i] = c;
      const auto window = CronWindow::Parse(changed);
      // One that is accepted opens within the eight years in which every date occurs.
      if (!window.ok()) continue;
      EXPECT_LT(window->OpenFrom(At("2026-01-01T00:00:00Z")), At("2034-01-02T00:00:00Z"));
    }
  }
  EXPECT_FALSE(CronWindow::Parse(std::string(100'000, ',') + " * * * * 1h").ok());
}

TEST(CronWindow, R2_is_absent_by_default_and_warns_if_nothing_waits_for_it) {
  EXPECT_FALSE(PolicyOf({}).replacement_window.has_value());
  const std::string window = "0 2 * * 1-5 4h";
  EXPECT_THAT(PolicyOf({{"replacement_window", window}}).warnings,
              Contains(AllOf(HasSubstr("replacement_window: "), HasSubstr("expire_after"))));
  EXPECT_THAT(PolicyOf({{"replacement_window", window}, {"replace_drifted", "rolling"}}).warnings,
              IsEmpty());
  const PoolPolicy policy = PolicyOf({{"replacement_window", window}, {"expire_after", "720h"}});
  EXPECT_THAT(policy.warnings, IsEmpty());
  ASSERT_TRUE(policy.replacement_window.has_value());
  EXPECT_TRUE(policy.replacement_window->IsOpen(At("2026-11-26T03:00:00Z")));
}

}  // namespace
}  // namespace nomad_harvester::config
