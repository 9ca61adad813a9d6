// SPDX-License-Identifier: Apache-2.0
// The pool, its Nomad nodes, and the keys that the agent adds to a policy's map.
#include "nomad_harvester/config/pool_policy.h"

#include <chrono>
#include <string>

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
using ::testing::StartsWith;

// The initializers of the struct and the table state the same ones.
TEST(PoolPolicy, the_required_keys_alone_give_the_documented_defaults) {
  for (const PoolPolicy& policy : {PolicyOf({}), PoolPolicy()}) {
    EXPECT_EQ(policy.ns, "default");
    EXPECT_FALSE(policy.dry_run);
    EXPECT_EQ(policy.datacenter, std::nullopt);
    EXPECT_EQ(policy.node_pool, std::nullopt);
    EXPECT_EQ(policy.drain_deadline, std::chrono::minutes(15));
    EXPECT_FALSE(policy.drain_ignore_system_jobs);
    EXPECT_FALSE(policy.node_purge);
    EXPECT_EQ(policy.selector, policy::SelectorStrategy::kLeastBusy);
    EXPECT_FALSE(policy.filter_ignore_init);
    EXPECT_FALSE(policy.filter_ignore_drain);
    EXPECT_EQ(policy.filter_ignore_ineligible, std::nullopt);
    EXPECT_EQ(policy.run_strategy, std::nullopt);
    EXPECT_EQ(policy.node_attribute, "unique.hostname");
    EXPECT_EQ(policy.join_timeout, std::chrono::minutes(15));
    EXPECT_EQ(policy.on_join_timeout, OnJoinTimeout::kDelete);
    EXPECT_EQ(policy.drain_grace, std::chrono::minutes(5));
    EXPECT_TRUE(policy.force_after_deadline);
    EXPECT_EQ(policy.max_scale_out, std::nullopt);
    EXPECT_EQ(policy.max_scale_in, std::nullopt);
    EXPECT_EQ(policy.grpc_timeout, std::nullopt);
    EXPECT_THAT(policy.warnings, IsEmpty());
  }
  EXPECT_EQ(PolicyOf({}).pool, "web");
  EXPECT_EQ(PolicyOf({}).node_class, "web");
}

TEST(PoolPolicy, an_empty_map_names_every_required_key) {
  EXPECT_THAT(ProblemsOf(ParsePoolPolicy({})),
              ElementsAre(HasSubstr("node_group_name: required"),
                          HasSubstr("node_class: node pool identification method required"),
                          HasSubstr("image: required"), HasSubstr("cpu_request: required"),
                          HasSubstr("memory_request: required"), HasSubstr("networks: required")));
}

TEST(PoolPolicy, each_required_key_is_required_alone) {
  for (const char* const key :
       {"node_group_name", "image", "cpu_request", "memory_request", "networks"}) {
    EXPECT_THAT(
        ProblemOf(ParsePoolPolicy(Without(MinimalPolicy(), key))),
        ::testing::StartsWith(std::string(key) +
                              ": required, but absent; add it to the policy's target block"));
  }
}

TEST(PoolPolicy, a_pool_name_has_40_characters_at_most) {
  const std::string longest(40, 'a');
  EXPECT_EQ(ParsePolicy({{"node_group_name", longest}})->pool, longest);
}

TEST(PoolPolicy, any_one_identifier_is_enough_and_all_are_kept) {
  const StringMap none = Without(MinimalPolicy(), "node_class");
  EXPECT_EQ(ParsePoolPolicy(With(none, {{"datacenter", "dc1"}}))->datacenter, "dc1");
  EXPECT_EQ(ParsePoolPolicy(With(none, {{"node_pool", "batch"}}))->node_pool, "batch");
  const auto all = ParsePolicy({{"datacenter", "dc1"}, {"node_pool", "batch"}});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->node_class, "web");
  EXPECT_EQ(all->datacenter, "dc1");
  EXPECT_EQ(all->node_pool, "batch");
}

TEST(PoolPolicy, an_identifier_is_present_even_if_it_is_empty) {
  for (const char* const key : {"node_class", "datacenter", "node_pool"}) {
    const auto policy = ParsePoolPolicy(With(Without(MinimalPolicy(), "node_class"), {{key, ""}}));
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_THAT(policy->warnings, ElementsAre(std::string(key) + ": is empty and matches no node"));
  }
  EXPECT_EQ(ParsePolicy({{"datacenter", ""}})->datacenter, "");
}

TEST(PoolPolicy, the_node_pool_all_is_refused_because_no_node_is_in_it) {
  EXPECT_THAT(
      ProblemsOf(ParsePolicy({{"node_pool", "all"}})),
      ElementsAre(AllOf(StartsWith("node_pool: "), HasSubstr("is Nomad's word for every node pool"),
                        HasSubstr("give the node pool in which the nodes register"))));
  EXPECT_EQ(ParsePolicy({{"node_class", "all"}})->node_class, "all");
}

TEST(PoolPolicy, a_misspelt_identifier_is_reported_as_missing_and_as_unknown) {
  const StringMap map = With(Without(MinimalPolicy(), "node_class"), {{"datacentre", "dc1"}});
  EXPECT_THAT(ProblemsOf(ParsePoolPolicy(map)),
              ElementsAre(HasSubstr("node pool identification method required"),
                          "datacentre: unknown key; did you mean datacenter?"));
}

TEST(PoolPolicy, node_filters_are_booleans_and_one_has_no_default) {
  const auto policy = ParsePolicy({{"node_filter_ignore_init", "true"},
                                   {"node_filter_ignore_drain", "t"},
                                   {"node_filter_ignore_ineligible", "false"}});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->filter_ignore_init);
  EXPECT_TRUE(policy->filter_ignore_drain);
  EXPECT_EQ(policy->filter_ignore_ineligible, false);
}

TEST(PoolPolicy, C13_the_agents_dry_run_is_accepted) {
  EXPECT_TRUE(ParsePolicy({{"dry-run", "true"}})->dry_run);
  EXPECT_THAT(ParsePolicy({{"dry-run", "true"}})->warnings, IsEmpty());
  EXPECT_FALSE(ParsePolicy({{"dry-run", "false"}})->dry_run);
}

TEST(PoolPolicy, a_dry_run_that_the_agent_does_not_understand_is_a_warning) {
  const auto policy = ParsePolicy({{"dry-run", "1"}});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->dry_run);
  EXPECT_THAT(policy->warnings, Contains(HasSubstr("dry-run: ")));
}

TEST(PoolPolicy, the_agents_own_keys_are_accepted_with_any_name) {
  const auto policy = ParsePolicy(
      {{"_nomad_autoscaler_grpc_timeout", "7.5s"}, {"_nomad_autoscaler_of_tomorrow", "?"}});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->grpc_timeout, std::chrono::milliseconds(7500));
}

TEST(PoolPolicy, keys_that_only_look_like_the_agents_are_unknown) {
  EXPECT_THAT(ProblemOf(ParsePolicy({{"_nomad_autoscaler", "x"}})), HasSubstr("unknown key"));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"nomad_autoscaler_x", "x"}})), HasSubstr("unknown key"));
}

TEST(PoolPolicy, the_error_for_a_plugin_key_in_a_policy_names_its_block) {
  EXPECT_EQ(ProblemOf(ParsePolicy({{"auth_token", "hunter2"}})),
            "auth_token: unknown key; it belongs in the plugin's config of the agent");
}

}  // namespace
}  // namespace nomad_harvester::config
