// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "decode.h"
#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

NamespaceRules Rules(std::initializer_list<const char*> policies) {
  NamespaceRules rules;
  for (const char* text : policies) EXPECT_TRUE(rules.Add(nlohmann::json::parse(text))) << text;
  return rules;
}

TEST(NamespaceRules, the_capability_read_job_for_every_namespace_is_enough) {
  EXPECT_TRUE(Rules({R"({"Namespaces":[{"Name":"*","Policy":"","Capabilities":["read-job"]}]})"})
                  .AllowsEverywhere("read-job"));
}

// hashicorp/nomad:acl/policy.go, expandNamespacePolicy, of 1.11.0 and of 1.11.1.
TEST(NamespaceRules, C9_a_shorthand_is_worth_what_the_server_made_of_it) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Policy":"scale","Capabilities":[
                "list-scaling-policies","read-scaling-policy","read-job-scaling","scale-job"]}]})"})
                   .AllowsEverywhere("read-job"));
  EXPECT_TRUE(Rules({R"({"Namespaces":[{"Name":"*","Policy":"scale","Capabilities":[
                "list-scaling-policies","read-scaling-policy","read-job-scaling","scale-job",
                "read-job","submit-recommendation"]}]})"})
                  .AllowsEverywhere("read-job"));
  EXPECT_TRUE(Rules({R"({"Namespaces":[{"Name":"*","Policy":"read",
                                        "Capabilities":["list-jobs","parse-job","read-job"]}]})"})
                  .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, C9_a_shorthand_alone_proves_nothing) {
  for (const std::string policy : {"read", "write", "scale"}) {
    NamespaceRules rules;
    ASSERT_TRUE(rules.Add({{"Namespaces", {{{"Name", "*"}, {"Policy", policy}}}}}));
    EXPECT_FALSE(rules.AllowsEverywhere("read-job")) << policy;
  }
}

TEST(NamespaceRules, list_jobs_alone_is_not_read_job) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["list-jobs"]}]})"})
                   .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, each_capability_counts_by_itself) {
  const NamespaceRules rules =
      Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]}]})"});
  EXPECT_FALSE(rules.AllowsEverywhere("list-jobs"));
  EXPECT_TRUE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]}]})",
                     R"({"Namespaces":[{"Name":"*","Capabilities":["list-jobs"]}]})"})
                  .AllowsEverywhere("list-jobs"));
}

TEST(NamespaceRules, read_job_in_one_namespace_is_not_everywhere) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"default","Capabilities":["read-job"]}]})"})
                   .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, no_rule_at_all_is_not_everywhere) {
  EXPECT_FALSE(Rules({}).AllowsEverywhere("read-job"));
  EXPECT_FALSE(
      Rules({R"({"Namespaces":null,"Node":{"Policy":"write"}})"}).AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, a_deny_of_the_same_pattern_wins_over_a_grant_of_another_policy) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]}]})",
                      R"({"Namespaces":[{"Name":"*","Capabilities":["deny"]}]})"})
                   .AllowsEverywhere("read-job"));
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["deny"]}]})",
                      R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]}]})"})
                   .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, a_more_specific_pattern_that_denies_leaves_a_blind_spot) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]},
                                        {"Name":"secret-*","Capabilities":["deny"]}]})"})
                   .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, a_more_specific_pattern_without_read_job_denies_it) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]},
                                        {"Name":"ops","Capabilities":["submit-job"]}]})"})
                   .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, two_policies_add_up_to_a_grant) {
  EXPECT_TRUE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":["read-job"]},
                                       {"Name":"ops","Capabilities":["submit-job"]}]})",
                     R"({"Namespaces":[{"Name":"ops","Capabilities":["read-job"]}]})"})
                  .AllowsEverywhere("read-job"));
}

TEST(NamespaceRules, what_is_not_a_policy_proves_nothing) {
  for (const char* text : {"null", "[]", "7", R"({"Namespaces":{}})", R"({"Namespaces":[7]})"}) {
    NamespaceRules rules;
    EXPECT_FALSE(rules.Add(nlohmann::json::parse(text))) << text;
  }
}

TEST(NamespaceRules, capabilities_of_another_type_grant_nothing) {
  EXPECT_FALSE(Rules({R"({"Namespaces":[{"Name":"*","Capabilities":[7,null,{"read-job":true}]}]})"})
                   .AllowsEverywhere("read-job"));
}

// hashicorp/nomad:acl/acl.go, maxPrivilege.
TEST(NodeRule, write_of_one_policy_is_enough_and_deny_of_one_takes_it) {
  NodeRule node;
  node.Add({{"Node", nullptr}});
  node.Add({{"Node", {{"Policy", "read"}}}});
  EXPECT_FALSE(node.MayWrite());
  node.Add({{"Node", {{"Policy", "write"}}}});
  EXPECT_TRUE(node.MayWrite());
  node.Add({{"Node", {{"Policy", "deny"}}}});
  EXPECT_FALSE(node.MayWrite());
}

}  // namespace
}  // namespace nomad_harvester::nomad
