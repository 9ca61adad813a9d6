// SPDX-License-Identifier: Apache-2.0
// Scaling out and in: times, limits and strategies of a policy.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PolicyScaling, durations_are_taken_over) {
  const PoolPolicy policy =
      PolicyOf({{"join_timeout", "7m"}, {"drain_grace", "8m"}, {"node_drain_deadline", "9m"}});
  EXPECT_EQ(policy.join_timeout, std::chrono::minutes(7));
  EXPECT_EQ(policy.drain_grace, std::chrono::minutes(8));
  EXPECT_EQ(policy.drain_deadline, std::chrono::minutes(9));
}

TEST(PolicyScaling, the_drain_deadline_may_be_0_or_negative) {
  EXPECT_EQ(PolicyOf({{"node_drain_deadline", "0"}}).drain_deadline, base::Duration::zero());
  EXPECT_EQ(PolicyOf({{"node_drain_deadline", "-1h"}}).drain_deadline, std::chrono::hours(-1));
}

TEST(PolicyScaling, booleans_are_taken_over) {
  const PoolPolicy policy = PolicyOf({{"node_drain_ignore_system_jobs", "true"},
                                      {"node_purge", "true"},
                                      {"force_after_deadline", "false"}});
  EXPECT_TRUE(policy.drain_ignore_system_jobs);
  EXPECT_TRUE(policy.node_purge);
  EXPECT_FALSE(policy.force_after_deadline);
}

TEST(PolicyScaling, limits_are_counts_or_absent) {
  const PoolPolicy policy = PolicyOf({{"max_scale_out", "3"}, {"max_scale_in", "2"}});
  EXPECT_EQ(policy.max_scale_out, 3);
  EXPECT_EQ(policy.max_scale_in, 2);
}

TEST(PolicyScaling, C19_what_would_wait_is_reported_unless_a_place_is_required) {
  EXPECT_EQ(PolicyOf({}).scale_in_fit, ScaleInFit::kReport);
  EXPECT_EQ(PolicyOf({{"scale_in_fit", "report"}}).scale_in_fit, ScaleInFit::kReport);
  EXPECT_EQ(PolicyOf({{"scale_in_fit", "require"}}).scale_in_fit, ScaleInFit::kRequire);
}

TEST(PolicyScaling, one_vm_is_replaced_at_a_time_and_the_new_one_comes_first) {
  EXPECT_EQ(PolicyOf({}).max_surge, 1);
  EXPECT_EQ(PolicyOf({}).max_unavailable, 0);
  EXPECT_EQ(PolicyOf({{"max_surge", "3"}}).max_surge, 3);
}

TEST(PolicyScaling, each_of_max_surge_and_max_unavailable_tells_the_others_default) {
  EXPECT_EQ(PolicyOf({{"max_surge", "0"}}).max_unavailable, 1);
  const PoolPolicy policy = PolicyOf({{"max_unavailable", "2"}});
  EXPECT_EQ(policy.max_surge, 0);
  EXPECT_EQ(policy.max_unavailable, 2);
}

TEST(PolicyScaling, exactly_one_of_max_surge_and_max_unavailable_counts) {
  EXPECT_THAT(ProblemOf(ParsePolicy({{"max_surge", "0"}, {"max_unavailable", "0"}})),
              HasSubstr("max_surge: 0, and so is max_unavailable: no VM could be replaced; leave "
                        "one of the two out"));
  EXPECT_THAT(
      ProblemOf(ParsePolicy({{"max_surge", "1"}, {"max_unavailable", "1"}})),
      HasSubstr("max_unavailable: the old VM goes first, and with max_surge = 1 the new one "
                "does; leave one of the two out"));
}

TEST(PolicyScaling, R1_vms_expire_after_an_hour_or_more_and_only_when_asked_for) {
  EXPECT_EQ(PolicyOf({}).expire_after, std::nullopt);
  EXPECT_EQ(PolicyOf({{"expire_after", "1h"}}).expire_after, std::chrono::hours(1));
  EXPECT_THAT(ProblemOf(ParsePolicy({{"expire_after", "59m59s"}})),
              HasSubstr("expire_after: must be an hour or more"));
}

TEST(PolicyScaling, unhealthy_vms_are_replaced_only_when_asked_for) {
  EXPECT_EQ(PolicyOf({}).replace_unhealthy_after, std::nullopt);
  EXPECT_EQ(PolicyOf({}).max_unhealthy, (Share{.value = 20, .is_percentage = true}));
  const PoolPolicy policy = PolicyOf({{"replace_unhealthy_after", "10m"}, {"max_unhealthy", "3"}});
  EXPECT_EQ(policy.replace_unhealthy_after, std::chrono::minutes(10));
  EXPECT_EQ(policy.max_unhealthy, (Share{.value = 3, .is_percentage = false}));
  EXPECT_EQ(
      PolicyOf({{"replace_unhealthy_after", "1m"}, {"max_unhealthy", "100%"}}).max_unhealthy.Of(7),
      7);
}

TEST(PolicyScaling, a_percentage_of_unhealthy_vms_is_rounded_up) {
  const Share share{.value = 20, .is_percentage = true};
  EXPECT_EQ(share.Of(0), 0);
  EXPECT_EQ(share.Of(1), 1);
  EXPECT_EQ(share.Of(5), 1);
  EXPECT_EQ(share.Of(6), 2);
  EXPECT_EQ((Share{.value = 4, .is_percentage = false}).Of(2), 4);
}

TEST(PolicyScaling, drifted_vms_go_first_unless_the_policy_says_off) {
  EXPECT_EQ(PolicyOf({}).replace_drifted, ReplaceDrifted::kOnScaleIn);
  EXPECT_EQ(PolicyOf({{"replace_drifted", "off"}}).replace_drifted, ReplaceDrifted::kOff);
}

TEST(PolicyScaling, what_is_no_drift_is_a_list_of_parts) {
  EXPECT_THAT(PolicyOf({{"drift_ignore", "tags,labels"}}).drift_ignore,
              ElementsAre("tags", "labels"));
}

TEST(PolicyScaling, every_strategy_is_known) {
  const std::vector<std::pair<std::string, policy::SelectorStrategy>> strategies = {
      {"least_busy", policy::SelectorStrategy::kLeastBusy},
      {"newest_create_index", policy::SelectorStrategy::kNewestCreateIndex},
      {"oldest_create_index", policy::SelectorStrategy::kOldestCreateIndex},
      {"empty", policy::SelectorStrategy::kEmpty},
      {"empty_ignore_system", policy::SelectorStrategy::kEmptyIgnoreSystem}};
  for (const auto& [name, strategy] : strategies) {
    EXPECT_EQ(PolicyOf({{"node_selector_strategy", name}}).selector, strategy) << name;
    EXPECT_EQ(policy::NameOf(strategy), name);
  }
}

TEST(PolicyScaling, on_join_timeout_is_a_name) {
  EXPECT_EQ(PolicyOf({{"on_join_timeout", "keep"}}).on_join_timeout, OnJoinTimeout::kKeep);
  EXPECT_EQ(PolicyOf({{"on_join_timeout", "delete"}}).on_join_timeout, OnJoinTimeout::kDelete);
}

TEST(PolicyScaling, hosts_are_published_only_if_the_policy_says_so) {
  EXPECT_FALSE(PolicyOf({}).publish_host);
  EXPECT_TRUE(PolicyOf({{"publish_host", "true"}}).publish_host);
  EXPECT_FALSE(PolicyOf({{"publish_host", "0"}}).publish_host);
}

TEST(PolicyScaling, C16_boots_and_drains_may_last_longer_than_any_call) {
  EXPECT_THAT(PolicyOf({{"join_timeout", "3h"}, {"node_drain_deadline", "48h"}}).warnings,
              IsEmpty());
}

TEST(PolicyScaling, C16_the_keys_of_scales_that_waited_are_refused_and_told_to_go) {
  for (const std::string key : {"scale_in_wait", "scale_timeout", "wait_for"}) {
    EXPECT_EQ(ProblemOf(ParsePolicy({{key, "1h"}})),
              key +
                  ": unknown key; remove it: a Scale is accepted within a minute, and the "
                  "background does the rest (C16)");
  }
}

}  // namespace
}  // namespace nomad_harvester::config
