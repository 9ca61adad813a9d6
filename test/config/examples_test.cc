// SPDX-License-Identifier: Apache-2.0
// Operators copy the examples: every key in them must be accepted unchanged.
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/config/option_table.h"

#include "config_test_support.h"
#include "support/source_tree.h"

namespace nomad_harvester::config {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

std::string Example(const std::string& name) {
  return base::ReadFile(support::SourcePath("examples/" + name)).value();
}

// The `key = "value"` lines between `target "harvester" {` and the brace that closes it.
StringMap TargetBlock(const std::string& hcl) {
  StringMap values;
  std::istringstream lines(hcl);
  int depth = 0;
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.empty() || line.front() == '#') continue;
    if (depth == 0 && line.rfind("target \"harvester\"", 0) != 0) continue;
    if (line.back() == '{') ++depth;
    if (line == "}" && --depth == 0) break;
    const std::size_t open = line.find("= \"");
    if (open == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_first_of(" ="));
    values[key] = line.substr(open + 3, line.rfind('"') - open - 3);
  }
  return values;
}

// Creates the files that the example names in a directory of the test.
StringMap WithFilesIn(const support::ScopedTempDir& directory, StringMap values) {
  constexpr std::string_view kPlace = "/etc/nomad-autoscaler";
  for (auto& [key, value] : values) {
    if (value.rfind(kPlace, 0) != 0) continue;
    value = directory.WriteFile(value.substr(kPlace.size() + 1), "x");
  }
  return values;
}

TEST(Examples, the_agents_target_block_is_accepted_without_a_warning) {
  const support::ScopedTempDir directory;
  StringMap values = TargetBlock(Example("agent.hcl"));
  ASSERT_EQ(values["driver"], "harvester");
  values.erase("driver");
  ASSERT_THAT(values, Contains(Key("harvester_url")));
  const auto config = ParsePluginConfig(WithFilesIn(directory, values), {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, IsEmpty());
  EXPECT_EQ(config->harvester.token_file, directory.Path("harvester.token"));
}

TEST(Examples, the_policys_target_block_is_accepted_without_a_warning) {
  const StringMap values = TargetBlock(Example("policy.hcl"));
  ASSERT_GT(values.size(), 20U);
  const auto policy = ParsePoolPolicy(values);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->warnings, IsEmpty());
  EXPECT_EQ(policy->ns, "nomad");
  EXPECT_EQ(policy->pool, "batch");
  EXPECT_EQ(policy->user_data_file, "/etc/nomad-autoscaler/cloud-init.yaml");
}

// It is copied before it is read: the copy must not act.
TEST(Examples, C13_a_copy_of_the_policy_logs_plans_and_changes_nothing) {
  const auto policy = ParsePoolPolicy(TargetBlock(Example("policy.hcl")));
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->dry_run);
}

// A check without a source uses nomad-apm, for which the agent raises min from 0 to 1
// (hashicorp/nomad-autoscaler:policy/mutators.go).
TEST(Examples, the_policy_scales_from_zero_with_an_explicit_source) {
  const std::string policy = Example("policy.hcl");
  EXPECT_THAT(policy, HasSubstr("min     = 0"));
  EXPECT_THAT(policy, HasSubstr("source = \"prometheus\""));
  EXPECT_THAT(policy, Not(HasSubstr("source = \"nomad-apm\"")));
}

// Keys in comments are suggestions: they must exist as well.
TEST(Examples, every_key_in_a_comment_of_the_agents_block_exists) {
  std::istringstream lines(Example("agent.hcl"));
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find("# ");
    const std::size_t equals = line.find(" = \"");
    if (hash == std::string::npos || equals == std::string::npos || equals < hash) continue;
    const std::string key = line.substr(hash + 2, equals - hash - 2);
    if (key.find(' ') != std::string::npos) continue;
    EXPECT_NE(FindOption(Section::kPlugin, key), nullptr) << key;
    ++found;
  }
  EXPECT_GT(found, 0);
}

// Not what is between two changes of delimiters, which is for another program.
std::set<std::string> VariablesOf(const std::string& source) {
  std::set<std::string> names;
  for (std::size_t at = source.find("{{"); at != std::string::npos; at = source.find("{{", at)) {
    if (source.substr(at).starts_with("{{=<% %>=}}")) {
      at = source.find("<%={{ }}=%>", at) + 11;
      continue;
    }
    const std::size_t end = source.find("}}", at);
    names.insert(source.substr(at + 2, end - at - 2));
    at = end;
  }
  return names;
}

TEST(Examples, the_user_data_uses_documented_variables_only) {
  const std::string reference =
      base::ReadFile(support::SourcePath("docs/configuration.md")).value();
  for (const char* const example : {"cloud-init.yaml", "cloud-init-consul.yaml",
                                    "cloud-init-introduction.yaml", "cloud-init-tls.yaml"}) {
    const std::set<std::string> names = VariablesOf(Example(example));
    for (const std::string& name : names) {
      if (name.rfind("env.HARVESTER_TEMPLATE_", 0) == 0) continue;
      EXPECT_THAT(reference, HasSubstr("`{{" + name + "}}`")) << example;
    }
    for (const char* const needed :
         {"vm_name", "vm_uuid", "datacenter", "node_class", "node_pool", "nomad_region"}) {
      EXPECT_THAT(names, Contains(needed)) << example;
    }
  }
}

TEST(Examples, C6_the_user_data_carries_the_identity_hint) {
  const std::string source = Example("cloud-init.yaml");
  EXPECT_THAT(source, StartsWith("#cloud-config\n"));
  EXPECT_THAT(source, HasSubstr("harvester_vm_uuid = \"{{vm_uuid}}\""));
}

// The part of a text from `begin` to before `end`.
std::string Part(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end, from);
  if (from == std::string::npos || to == std::string::npos) return "no part from " + begin;
  return text.substr(from, to - from);
}

TEST(Examples, the_user_data_with_an_introduction_token_is_the_other_one_and_more_files) {
  const std::string plain = Example("cloud-init.yaml");
  const std::string introduction = Example("cloud-init-introduction.yaml");
  const std::string begin = "# The image must contain";
  EXPECT_EQ(Part(introduction, begin, "\n  # The token lets"), Part(plain, begin, "\nruncmd:"));
  EXPECT_THAT(Part(introduction, "  # The token lets", "\nruncmd:"),
              HasSubstr("content: \"{{nomad_intro_token}}\""));
  const std::string start = plain.substr(plain.find("  - [systemctl, enable, nomad]"));
  EXPECT_THAT(introduction, EndsWith("  - [systemctl, daemon-reload]\n" + start));
}

// Every line of the plain one, in its order, but for the comments.
void HasLinesOfThePlainOne(const std::string& example) {
  std::istringstream plain(Example("cloud-init.yaml"));
  std::size_t at = 0;
  for (std::string line; std::getline(plain, line);) {
    if (line.find_first_not_of(' ') == line.find('#')) continue;
    const std::size_t found = example.find(line + "\n", at);
    ASSERT_NE(found, std::string::npos) << line;
    at = found + line.size();
  }
}

TEST(Examples, the_user_data_with_tls_is_the_other_one_and_more) {
  const std::string with_tls = Example("cloud-init-tls.yaml");
  HasLinesOfThePlainOne(with_tls);
  EXPECT_THAT(with_tls, HasSubstr("    encoding: b64\n"
                                  "    content: \"{{env.HARVESTER_TEMPLATE_NOMAD_KEY}}\"\n"));
}

TEST(Examples, the_user_data_with_consul_is_the_other_one_and_starts_consul_before_nomad) {
  const std::string with_consul = Example("cloud-init-consul.yaml");
  HasLinesOfThePlainOne(with_consul);
  EXPECT_THAT(with_consul, HasSubstr("      [Unit]\n"
                                     "      Wants=consul.service\n"
                                     "      After=consul.service\n"));
  EXPECT_THAT(with_consul, EndsWith("  - [systemctl, enable, consul]\n"
                                    "  - [systemctl, restart, consul]\n"
                                    "  - [systemctl, enable, nomad]\n"
                                    "  - [systemctl, restart, nomad]\n"));
}

// The policy names them in a comment.
TEST(Examples, the_policy_with_an_introduction_token_is_accepted_without_a_warning) {
  const std::string hcl = Example("policy.hcl");
  const std::string comment = "# nomad_intro_token = \"required\"";
  ASSERT_THAT(hcl, HasSubstr(comment));
  ASSERT_THAT(hcl, HasSubstr("\"/etc/nomad-autoscaler/cloud-init-introduction.yaml\""));
  StringMap values = TargetBlock(hcl);
  ASSERT_EQ(values.count("nomad_intro_token"), 0U);
  values["nomad_intro_token"] = "required";
  const auto policy = ParsePoolPolicy(values);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->warnings, IsEmpty());
  EXPECT_EQ(policy->intro_token, IntroToken::kRequired);
}

// The example policy passes its node class to the VMs through the template, not as a copy.
TEST(Examples, the_user_data_repeats_no_identifier_of_the_policy) {
  const std::string source = Example("cloud-init.yaml");
  EXPECT_THAT(source, HasSubstr("node_class = \"{{node_class}}\""));
  EXPECT_THAT(source, HasSubstr("node_pool  = \"{{node_pool}}\""));
  EXPECT_THAT(source, HasSubstr("datacenter = \"{{datacenter}}\""));
}

}  // namespace
}  // namespace nomad_harvester::config
