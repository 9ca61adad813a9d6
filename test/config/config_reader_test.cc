// SPDX-License-Identifier: Apache-2.0
#include "config_reader.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "config_test_support.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Finished(ConfigReader& reader) { return base::Message(reader.Finish()); }

TEST(ConfigReader, an_absent_key_takes_the_default_of_the_table) {
  for (const auto& [values, wanted] :
       {std::pair(StringMap{}, std::chrono::seconds(15 * 60)),
        std::pair(StringMap{{"join_timeout", "90s"}}, std::chrono::seconds(90))}) {
    ConfigReader reader(Section::kPolicy, values);
    base::Duration timeout{};
    reader.Read("join_timeout", PositiveDuration, &timeout);
    EXPECT_EQ(timeout, wanted);
    EXPECT_TRUE(reader.Finish().ok());
  }
}

TEST(ConfigReader, an_invalid_value_is_a_problem_and_does_not_change_the_target) {
  const StringMap values = {{"max_scale_out", "many"}};
  ConfigReader reader(Section::kPolicy, values);
  std::optional<std::int64_t> count = 7;
  reader.Read("max_scale_out", Count, &count);
  EXPECT_EQ(count, 7);
  EXPECT_EQ(Finished(reader),
            "max_scale_out: must be a whole number greater than 0 (got \"many\"); write one such "
            "as \"5\"");
}

TEST(ConfigReader, a_key_that_was_not_read_is_unknown) {
  const StringMap values = {{"join_timeout", "1m"}, {"join_timeuot", "2m"}};
  ConfigReader reader(Section::kPolicy, values);
  base::Duration timeout{};
  reader.Read("join_timeout", PositiveDuration, &timeout);
  EXPECT_EQ(Finished(reader), "join_timeuot: unknown key; did you mean join_timeout?");
}

TEST(ConfigReader, the_value_of_an_unknown_key_is_not_shown) {
  const StringMap values = {{"auth_tokne", "hunter2"}};
  ConfigReader reader(Section::kPlugin, values);
  const std::string message = Finished(reader);
  EXPECT_THAT(message, HasSubstr("did you mean auth_token?"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("hunter2")));
}

TEST(ConfigReader, problems_come_in_the_order_of_the_table_and_unknown_keys_last) {
  const StringMap values = {{"aaa", ""}, {"join_timeout", "x"}, {"drain_grace", "x"}};
  ConfigReader reader(Section::kPolicy, values);
  base::Duration ignored{};
  reader.Read("drain_grace", PositiveDuration, &ignored);
  reader.Read("join_timeout", PositiveDuration, &ignored);
  const std::string message = Finished(reader);
  EXPECT_LT(message.find("join_timeout:"), message.find("drain_grace:"));
  EXPECT_LT(message.find("drain_grace:"), message.find("aaa:"));
}

TEST(ConfigReader, a_required_key_that_is_absent_is_a_problem) {
  const StringMap values;
  ConfigReader reader(Section::kPolicy, values);
  std::string name;
  reader.Read("node_group_name", Text, &name);
  EXPECT_EQ(Finished(reader),
            "node_group_name: required, but absent; add it to the policy's target block");
}

TEST(ConfigReader, the_environment_wins_or_fills_absent_keys_as_the_table_defines_it) {
  const struct {
    const char* key;
    StringMap map;
    StringMap environment;
    const char* value;
    const char* variable;
  } rows[] = {
      {"harvester_url",
       {{"harvester_url", "map"}},
       {{"HARVESTER_URL", "env"}},
       "env",
       "HARVESTER_URL"},
      {"harvester_url", {{"harvester_url", "map"}}, {{"HARVESTER_URL", ""}}, "map", ""},
      {"nomad_region", {{"nomad_region", "map"}}, {{"NOMAD_REGION", "env"}}, "map", ""},
      {"nomad_region", {}, {{"NOMAD_REGION", "env"}}, "env", "NOMAD_REGION"},
      // The first of several variables counts.
      {"nomad_address", {}, {{"NOMAD_ADDR", "a"}, {"NOMAD_UNIX_ADDR", "b"}}, "a", "NOMAD_ADDR"},
      {"nomad_address", {}, {{"NOMAD_UNIX_ADDR", "b"}}, "b", "NOMAD_UNIX_ADDR"},
  };
  for (const auto& row : rows) {
    ConfigReader reader(Section::kPlugin, row.map, row.environment);
    const std::optional<GivenValue> given = reader.Find(row.key);
    ASSERT_TRUE(given);
    EXPECT_EQ(given->value, row.value);
    EXPECT_EQ(given->variable, row.variable);
    EXPECT_TRUE(reader.Finish().ok()) << "a key of the map is read, although it does not count";
  }
}

TEST(ConfigReader, a_problem_of_a_variable_names_it) {
  const StringMap values;
  ConfigReader reader(Section::kPlugin, values, {{"HARVESTER_URL", "ftp://x"}});
  std::string url;
  reader.AddFault("harvester_url", {"must be better", "improve it"}, *reader.Find("harvester_url"));
  EXPECT_EQ(Finished(reader),
            "harvester_url: must be better (got \"ftp://x\" from HARVESTER_URL); improve it");
}

TEST(ConfigReader, a_secret_is_never_quoted_regardless_of_the_fault) {
  const StringMap values = {{"auth_token", "hunter2"}};
  ConfigReader reader(Section::kPlugin, values, {{"HARVESTER_TOKEN", "hunter3"}});
  const Fault fault{.what = "must be better", .hint = "improve it", .show_value = true};
  reader.AddFault("auth_token", fault, *reader.FindInMap("auth_token"));
  reader.AddFault("auth_token", fault, *reader.FindInEnvironment("auth_token"));
  EXPECT_EQ(Finished(reader),
            "auth_token: must be better; improve it\n"
            "auth_token: must be better (from HARVESTER_TOKEN); improve it");
}

TEST(ConfigReader, a_key_without_an_entry_in_the_table_is_treated_as_a_secret) {
  const StringMap values = {{"no_such_option", "hunter2"}};
  ConfigReader reader(Section::kPlugin, values);
  reader.AddFault("no_such_option", {"must be better", ""}, *reader.Find("no_such_option"));
  EXPECT_EQ(Finished(reader), "no_such_option: must be better");
}

TEST(ConfigReader, warnings_name_their_key_and_are_not_problems) {
  const StringMap values;
  ConfigReader reader(Section::kPolicy, values);
  reader.AddWarning("user_data", "is visible");
  EXPECT_TRUE(reader.Finish().ok());
  EXPECT_THAT(reader.TakeWarnings(), ElementsAre("user_data: is visible"));
}

TEST(Quote, a_text_is_put_in_quotes_and_made_visible) {
  EXPECT_EQ(Quote("a b"), "\"a b\"");
  EXPECT_EQ(Quote("a\"\\"), "\"a\\\"\\\\\"");
  EXPECT_EQ(Quote("a\n\x1b\x7f"), "\"a\\x0a\\x1b\\x7f\"");
  EXPECT_EQ(Quote("a\xff"), "\"a\xef\xbf\xbd\"") << "invalid UTF-8 becomes valid";
}

TEST(Quote, a_long_text_is_cut_between_characters) {
  EXPECT_EQ(Quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "\"…");
  EXPECT_EQ(Quote(std::string(79, 'x') + "äb"), "\"" + std::string(79, 'x') + "\"…");
  EXPECT_EQ(Quote(std::string(78, 'x') + "äb"), "\"" + std::string(78, 'x') + "ä\"…");
}

TEST(Quote, a_long_text_of_continuation_bytes_alone_is_cut_too) {
  const std::string quoted = Quote(std::string(500, '\x80'));
  EXPECT_LT(quoted.size(), 300U);
  EXPECT_THAT(quoted, HasSubstr("…"));
}

TEST(ConfigReader, P2_a_key_of_any_bytes_is_shown_in_a_readable_form) {
  const StringMap values = {{std::string("\n\xff\0x", 4), "v"}, {"", "v"}};
  ConfigReader reader(Section::kPolicy, values);
  const std::vector<std::string> problems = ProblemsOf(absl::StatusOr<int>(reader.Finish()));
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_THAT(problems[0], HasSubstr("\"\": unknown key"));
  EXPECT_THAT(problems[1], HasSubstr("\\x0a"));
}

}  // namespace
}  // namespace nomad_harvester::config
