// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/readiness.h"

#include "nomad_harvester/nodepool/drain.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::NodeStatus;
using testing::HasSubstr;

nomad::Node ReadyNode() { return NodeBuilder("n1"); }

nomad::Node WithDriver(bool detected, bool healthy, const std::string& why = "") {
  nomad::Node node = ReadyNode();
  node.drivers = {{.name = "exec", .detected = true, .healthy = true},
                  {.name = "docker", .detected = detected, .healthy = healthy, .description = why}};
  return node;
}

TEST(WhyNotReady, C17_a_node_that_is_ready_and_eligible_is_ready) {
  EXPECT_EQ(WhyNotReady(ReadyNode(), {}), std::nullopt);
}

TEST(WhyNotReady, C17_any_other_status_is_named) {
  nomad::Node node = ReadyNode();
  node.status = NodeStatus::kInitializing;
  EXPECT_EQ(WhyNotReady(node, {}), "it is initializing");
  node.status = NodeStatus::kDown;
  EXPECT_EQ(WhyNotReady(node, {}), "it is down");
  node.status = NodeStatus::kUnknown;
  EXPECT_EQ(WhyNotReady(node, {}), "it is of an unknown status");
}

TEST(WhyNotReady, C17_a_node_that_starts_ineligible_is_not_ready) {
  nomad::Node node = ReadyNode();
  node.eligible = false;
  EXPECT_EQ(WhyNotReady(node, {}), "it is ineligible");
}

TEST(WhyNotReady, C17_a_node_that_was_ever_drained_was_ready_before) {
  nomad::Node node = ReadyNode();
  node.eligible = false;
  node.draining = true;
  EXPECT_EQ(WhyNotReady(node, {}), std::nullopt);
  node.draining = false;
  node.last_drain = nomad::LastDrain{.status = nomad::DrainStatus::kComplete};
  EXPECT_EQ(WhyNotReady(node, {}), std::nullopt);
}

TEST(WhyNotReady, C17_our_drain_of_a_node_that_was_ineligible_makes_it_no_ready_one) {
  for (const bool was_ineligible : {false, true}) {
    nomad::Node node = ReadyNode();
    node.eligible = false;
    node.last_drain = nomad::LastDrain{
        .status = nomad::DrainStatus::kComplete,
        .meta = ToMeta({.action = "a", .vm_uid = "u", .was_ineligible = was_ineligible})};
    EXPECT_EQ(WhyNotReady(node, {}).has_value(), was_ineligible);
    node.draining = true;
    EXPECT_EQ(WhyNotReady(node, {}).has_value(), was_ineligible);
  }
}

TEST(WhyNotReady, C17_each_wanted_driver_is_detected_and_healthy) {
  EXPECT_EQ(WhyNotReady(WithDriver(true, true), {"docker", "exec"}), std::nullopt);
  EXPECT_EQ(WhyNotReady(WithDriver(true, false, "no daemon"), {"exec", "docker"}),
            "its driver docker is not healthy: no daemon");
  EXPECT_EQ(WhyNotReady(WithDriver(false, false, "no daemon"), {"docker"}),
            "its driver docker is not detected: no daemon");
  EXPECT_EQ(WhyNotReady(WithDriver(true, true), {"podman"}), "its driver podman is not detected");
}

TEST(WhyNotReady, C17_a_driver_that_is_not_asked_for_does_not_matter) {
  EXPECT_EQ(WhyNotReady(WithDriver(true, false), {"exec"}), std::nullopt);
  EXPECT_EQ(WhyNotReady(WithDriver(false, false), {}), std::nullopt);
}

}  // namespace
}  // namespace nomad_harvester::nodepool
