// SPDX-License-Identifier: Apache-2.0
// The keys of a policy that define the VM.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(PolicyMachine, the_size_of_a_vm_is_taken_over) {
  const PoolPolicy policy =
      PolicyOf({{"cpu_request", "8"}, {"memory_request", "1536Mi"}, {"disk_size", "40Gi"}});
  EXPECT_EQ(policy.cpu_cores, 8);
  EXPECT_EQ(policy.memory_bytes, std::int64_t{1536} << 20);
  EXPECT_EQ(policy.disk_bytes, std::int64_t{40} << 30);
  EXPECT_EQ(PolicyOf({}).disk_bytes, std::nullopt);
}

TEST(PolicyMachine, memory_without_a_unit_is_bytes_and_refused) {
  EXPECT_EQ(ProblemOf(ParsePolicy({{"memory_request", "4"}})),
            "memory_request: must be at least 64Mi; without a suffix it is a number of bytes (got "
            "\"4\"); write \"4Gi\"");
  EXPECT_THAT(ProblemOf(ParsePolicy({{"memory_request", "4Mi"}})),
              HasSubstr("; write a quantity such as \"4Gi\""));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"memory_request", "4096"}})),
              HasSubstr("number of bytes (got \"4096\"); write \"4096Mi\""));
  EXPECT_EQ(PolicyOf({{"memory_request", "64Mi"}}).memory_bytes, 64 * 1024 * 1024);
  EXPECT_EQ(PolicyOf({{"memory_request", "4294967296"}}).memory_bytes, 4294967296);
}

TEST(PolicyMachine, a_disk_without_a_unit_is_bytes_and_refused) {
  EXPECT_EQ(ProblemOf(ParsePolicy({{"disk_size", "10"}})),
            "disk_size: must be at least 1Mi; without a suffix it is a number of bytes (got "
            "\"10\"); write \"10Gi\"");
  EXPECT_EQ(PolicyOf({{"disk_size", "10737418240"}}).disk_bytes, std::int64_t{10} << 30);
}

TEST(PolicyMachine, the_name_prefix_is_the_pools_name_by_default) {
  EXPECT_EQ(PolicyOf({}).name_prefix, "web");
  const std::string longest(41, 'a');
  EXPECT_EQ(PolicyOf({{"name_prefix", longest}}).name_prefix, longest);
}

TEST(PolicyMachine, run_strategies_that_boot_are_known) {
  EXPECT_EQ(PolicyOf({}).run_strategy, std::nullopt) << "RerunOnFailure, or the template's";
  EXPECT_EQ(PolicyOf({{"run_strategy", "RerunOnFailure"}}).run_strategy,
            policy::RunStrategy::kRerunOnFailure);
  EXPECT_EQ(PolicyOf({{"run_strategy", "Always"}}).run_strategy, policy::RunStrategy::kAlways);
  EXPECT_EQ(PolicyOf({{"run_strategy", "Once"}}).run_strategy, policy::RunStrategy::kOnce);
}

TEST(PolicyMachine, user_data_is_in_the_policy_or_in_a_file) {
  EXPECT_EQ(PolicyOf({}).user_data, std::nullopt);
  EXPECT_EQ(PolicyOf({{"user_data", "#cloud-config\n"}}).user_data, "#cloud-config\n");
  EXPECT_EQ(PolicyOf({{"user_data_file", "/no/such/file"}}).user_data_file, "/no/such/file")
      << "the file is read when it is needed";
  EXPECT_THAT(ProblemOf(ParsePolicy({{"user_data", "x"}, {"user_data_file", "y"}})),
              HasSubstr("user_data: given together with user_data_file"));
}

TEST(PolicyMachine, an_introduction_token_is_used_by_a_template_or_perhaps_by_a_file) {
  const StringMap unused = {{"nomad_intro_token", "required"}, {"user_data", "#cloud-config\n"}};
  const auto problem = HasSubstr("nomad_intro_token: no template contains {{nomad_intro_token}}");
  EXPECT_THAT(ProblemOf(ParsePolicy(unused)), problem);
  EXPECT_THAT(ProblemOf(ParsePolicy(With(unused, {{"network_data", "version: 2"}}))), problem);
  for (const auto& [key, value] :
       StringMap{{"network_data", "# {{nomad_intro_token}}"}, {"network_data_file", "/etc/x"}}) {
    EXPECT_EQ(PolicyOf(With(unused, {{key, value}})).intro_token, IntroToken::kRequired) << key;
  }
}

TEST(PolicyMachine, a_path_in_the_place_of_a_text_is_told_with_the_key_that_takes_one) {
  const auto told = Contains(HasSubstr("user_data: is the path of a file"));
  for (const char* const path : {"/etc/cloud-init.yaml", "/etc/cloud-init.yaml\n"}) {
    EXPECT_THAT(PolicyOf({{"user_data", path}}).warnings, told);
  }
  EXPECT_THAT(PolicyOf({{"user_data", "/etc/a\n/etc/b\n"}}).warnings, Not(told));
}

TEST(PolicyMachine, P3_inline_user_data_is_a_warning) {
  EXPECT_THAT(PolicyOf({{"user_data", "#cloud-config\n"}}).warnings,
              Contains(HasSubstr("user_data: the agent writes")));
  EXPECT_THAT(PolicyOf({{"user_data_file", "/etc/x"}}).warnings, IsEmpty());
}

TEST(PolicyMachine, P3_the_content_of_a_file_in_the_place_of_its_path_is_refused_and_not_shown) {
  for (const char* const content :
       {"#cloud-config\npassword: hunter2", "password: hunter2\n", "#cloud-config hunter2"}) {
    for (const char* const key : {"user_data_file", "network_data_file"}) {
      EXPECT_THAT(ProblemOf(ParsePolicy({{key, content}})),
                  AllOf(HasSubstr(std::string(key) + ": must be the path of a file"),
                        Not(HasSubstr("hunter2"))));
    }
  }
}

TEST(PolicyMachine, P3_user_data_is_not_shown_in_problems_or_warnings) {
  const std::string secret = "password: hunter2";
  EXPECT_THAT(PolicyOf({{"user_data", secret}}).warnings, Not(Contains(HasSubstr("hunter2"))));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"user_data", secret + std::string(1, '\0')}})),
              Not(HasSubstr("hunter2")));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"user_data", secret}, {"user_data_file", "/x"}})),
              Not(HasSubstr("hunter2")));
}

TEST(PolicyMachine, a_tag_that_is_a_label_too_is_a_problem) {
  EXPECT_THAT(ProblemOf(ParsePolicy({{"labels", "tag.harvesterhci.io/a=1"}, {"tags", "a=2"}})),
              HasSubstr("tags: \"a\" is given in labels, too"));
  EXPECT_TRUE(ParsePolicy({{"labels", "tag.harvesterhci.io/a=1"}, {"tags", "b=2"}}).ok());
}

TEST(PolicyMachine, lists_and_maps_are_taken_over) {
  const PoolPolicy policy = PolicyOf({{"networks", "management, nomad/vlan10"},
                                      {"image", "default/Ubuntu 24.04 (noble).img"},
                                      {"ssh_keys", "default/a,ops/b"},
                                      {"labels", "team=data"},
                                      {"annotations", "example.org/note=hello world"},
                                      {"tags", "pool=batch"}});
  ASSERT_EQ(policy.networks.size(), 2U);
  EXPECT_TRUE(policy.networks[0].management);
  EXPECT_FALSE(policy.networks[1].management);
  EXPECT_EQ(policy.networks[1].attachment, (NamespacedName{"nomad", "vlan10"}));
  EXPECT_EQ(policy.image, (NamespacedName{"default", "Ubuntu 24.04 (noble).img"}));
  EXPECT_THAT(policy.ssh_keys,
              ElementsAre(NamespacedName{"default", "a"}, NamespacedName{"ops", "b"}));
  EXPECT_EQ(policy.labels, (StringMap{{"team", "data"}}));
  EXPECT_EQ(policy.annotations, (StringMap{{"example.org/note", "hello world"}}));
  EXPECT_EQ(policy.tags, (StringMap{{"pool", "batch"}}));
}

TEST(PolicyMachine, empty_lists_and_maps_mean_none_where_none_is_possible) {
  const PoolPolicy policy =
      PolicyOf({{"ssh_keys", ""}, {"labels", ""}, {"annotations", " "}, {"tags", ""}});
  EXPECT_THAT(policy.ssh_keys, IsEmpty());
  EXPECT_THAT(policy.labels, IsEmpty());
}

TEST(PolicyTemplate, is_named_with_or_without_a_version) {
  EXPECT_EQ(PolicyOf({{"vm_template", "default/worker"}}).vm_template,
            (TemplateRef{.name = {"default", "worker"}, .version = {}}));
  EXPECT_EQ(PolicyOf({{"vm_template", "default/worker:12"}}).vm_template,
            (TemplateRef{.name = {"default", "worker"}, .version = 12}));
}

TEST(PolicyTemplate, makes_the_keys_optional_that_it_can_say) {
  StringMap values = MinimalPolicy();
  for (const char* const key : {"image", "cpu_request", "memory_request", "networks"}) {
    values.erase(key);
  }
  EXPECT_THAT(ProblemsOf(ParsePoolPolicy(values)), ::testing::SizeIs(4));
  values["vm_template"] = "default/worker";
  const auto policy = ParsePoolPolicy(values);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->image, NamespacedName());
  EXPECT_EQ(policy->cpu_cores, 0);
  EXPECT_EQ(policy->memory_bytes, 0);
  EXPECT_TRUE(policy->networks.empty());
}

TEST(PolicyTemplate, that_is_wrong_does_not_require_the_keys_that_it_replaces) {
  StringMap values = MinimalPolicy();
  values.erase("image");
  values["vm_template"] = "worker";
  EXPECT_THAT(ProblemsOf(ParsePoolPolicy(values)),
              ::testing::ElementsAre(::testing::StartsWith("vm_template: ")));
}

}  // namespace
}  // namespace nomad_harvester::config
