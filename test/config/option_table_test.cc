// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/option_table.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/time.h"

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

// The option's example, or a file that exists.
std::string GoodValue(const Option& option, const support::ScopedTempDir& directory) {
  if (option.key == "nomad_ca-path") return directory.path();
  return option.type == OptionType::kPath ? directory.WriteFile("file", "x") : ExampleOf(option);
}

// The option alone, or with what it needs.
StringMap GoodValues(const Option& option, const support::ScopedTempDir& directory) {
  StringMap values = {{std::string(option.key), GoodValue(option, directory)}};
  if (const Option* const needed = FindOption(option.section, option.needs)) {
    values.emplace(needed->key, GoodValue(*needed, directory));
  }
  // The key and the variable come together.
  if (option.key == "nomad_intro_token") values["user_data"] = "# {{nomad_intro_token}}";
  return values;
}

TEST(OptionTable, no_key_is_in_a_section_twice) {
  std::set<std::pair<Section, std::string_view>> seen;
  for (const Option& option : OptionTable()) {
    EXPECT_TRUE(seen.emplace(option.section, option.key).second) << option.key;
  }
  EXPECT_GT(seen.size(), 60U);
}

TEST(OptionTable, only_an_enumeration_has_names_and_a_required_key_has_no_default) {
  for (const Option& option : OptionTable()) {
    EXPECT_FALSE(ExampleOf(option).empty()) << option.key;
    EXPECT_EQ(option.enum_values.empty(), option.type != OptionType::kEnum) << option.key;
    EXPECT_TRUE(!option.required || option.default_text.empty()) << option.key;
  }
}

absl::Status StatusOf(Section section, const StringMap& values) {
  return section == Section::kPlugin ? ParsePlugin(values).status() : ParsePolicy(values).status();
}

// An invalid default would be reported as a problem of a key that the operator did not set.
TEST(OptionTable, every_key_is_read_and_its_example_its_default_and_its_names_are_accepted) {
  const support::ScopedTempDir directory;
  for (const Option& option : OptionTable()) {
    std::vector<std::string> values = base::ParseList(option.enum_values).value();
    values.push_back(GoodValue(option, directory));
    if (!option.default_text.empty()) values.emplace_back(option.default_text);
    StringMap given = GoodValues(option, directory);
    for (const std::string& value : values) {
      given[std::string(option.key)] = value;
      EXPECT_EQ(StatusOf(option.section, given), absl::OkStatus()) << option.key << " = " << value;
    }
  }
}

// In the plugin's block that is a mistake; in a policy the key only has no effect.
TEST(OptionTable, a_key_without_the_one_that_it_needs_is_told) {
  const support::ScopedTempDir directory;
  std::set<std::string_view> told;
  for (const Option& option : OptionTable()) {
    if (option.needs.empty()) continue;
    ASSERT_NE(FindOption(option.section, option.needs), nullptr) << option.key;
    told.insert(option.key);
    const std::string key(option.key);
    const StringMap values = {{key, GoodValue(option, directory)}};
    if (option.section == Section::kPlugin) {
      EXPECT_THAT(ProblemOf(ParsePlugin(values)),
                  StartsWith(key + ": given without " + std::string(option.needs) + "; add "));
    } else {
      EXPECT_THAT(PolicyOf(values).warnings,
                  ElementsAre(key + ": has no effect without " + std::string(option.needs)));
      EXPECT_THAT(PolicyOf(GoodValues(option, directory)).warnings, IsEmpty()) << key;
    }
  }
  EXPECT_THAT(told, IsSupersetOf({"harvester_client_key", "nomad_client-cert", "max_unhealthy"}));
}

TEST(OptionTable, values_of_the_wrong_type_are_problems_of_their_key) {
  for (const Option& option : OptionTable()) {
    const bool typed = option.type != OptionType::kString && option.type != OptionType::kSecret;
    if (!typed || option.key == "user_data_file" || option.key == "network_data_file" ||
        option.key == "auth_token_file" || option.key == "nomad_token_file") {
      continue;
    }
    const StringMap values = {{std::string(option.key), "=,no such thing,="}};
    EXPECT_THAT("\n" + base::Message(StatusOf(option.section, values)),
                HasSubstr("\n" + std::string(option.key) + ": "));
  }
}

TEST(UnknownKey, a_typing_error_is_recognized) {
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "node_drain_deadine"),
            "did you mean node_drain_deadline?");
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "datacentre"), "did you mean datacenter?");
  EXPECT_EQ(UnknownKeyHint(Section::kPlugin, "nomad_http_auth"), "did you mean nomad_http-auth?");
}

TEST(UnknownKey, a_part_of_only_one_key_names_that) {
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "memory"), "did you mean memory_request?");
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "node_group"), "did you mean node_group_name?");
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "vm_image"), "did you mean image?");
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "disk"), "did you mean disk_size?")
      << "data_disks only contains it";
  EXPECT_EQ(NearestKey("node", {"node_class", "node_pool"}), std::nullopt);
  EXPECT_EQ(NearestKey("no", {"node_class"}), std::nullopt) << "too short";
}

TEST(UnknownKey, even_a_distant_one_names_the_nearest) {
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "drain_timeout"),
            "the nearest known key is join_timeout");
}

TEST(UnknownKey, the_hint_for_a_key_of_the_other_block_names_that_block) {
  EXPECT_EQ(UnknownKeyHint(Section::kPolicy, "harvester_url"),
            "it belongs in the plugin's config of the agent");
  EXPECT_EQ(UnknownKeyHint(Section::kPlugin, "image"), "it belongs in the policy's target block");
}

TEST(UnknownKey, P2_a_key_of_a_megabyte_is_quick) {
  EXPECT_THAT(UnknownKeyHint(Section::kPolicy, std::string(1 << 20, 'x')),
              HasSubstr("the nearest known key is "));
}

}  // namespace
}  // namespace nomad_harvester::config
