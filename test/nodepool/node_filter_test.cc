// SPDX-License-Identifier: Apache-2.0
// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_identifier_test.go, as far
// as it concerns readiness.
#include "nomad_harvester/nodepool/identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::NodeStatus;
using testing::ElementsAre;
using testing::IsEmpty;

NodeBuilder WebNode(std::string id) { return NodeBuilder(std::move(id)).Class("web"); }

std::vector<std::string> Filter(const std::vector<nomad::Node>& nodes,
                                const FilterOptions& options = {}) {
  std::vector<const nomad::Node*> pointers;
  for (const nomad::Node& node : nodes) pointers.push_back(&node);
  return FilterNodes(pointers, {.node_class = "web"}, options);
}

TEST(FilterNodes, ready_down_and_ineligible_members_are_stable) {
  EXPECT_THAT(Filter({WebNode("ready-eligible"), WebNode("ready-ineligible").Ineligible(),
                      WebNode("down-eligible").Status(NodeStatus::kDown),
                      WebNode("down-ineligible").Status(NodeStatus::kDown).Ineligible(),
                      WebNode("disconnected").Status(NodeStatus::kDisconnected),
                      WebNode("unknown").Status(NodeStatus::kUnknown)}),
              IsEmpty());
}

TEST(FilterNodes, an_initializing_member_is_a_problem) {
  EXPECT_THAT(Filter({WebNode("good"), WebNode("n1").Status(NodeStatus::kInitializing)}),
              ElementsAre("node n1 is initializing"));
}

TEST(FilterNodes, a_draining_member_is_a_problem) {
  EXPECT_THAT(Filter({WebNode("good"), WebNode("n1").Draining(), WebNode("good2")}),
              ElementsAre("node n1 is draining"));
}

TEST(FilterNodes, a_down_node_that_still_drains_blocks_the_pool) {
  for (const NodeStatus status :
       {NodeStatus::kDown, NodeStatus::kDisconnected, NodeStatus::kUnknown}) {
    EXPECT_THAT(Filter({WebNode("n1").Status(status).Draining()}),
                ElementsAre("node n1 is draining"));
  }
}

TEST(FilterNodes, initializing_or_draining_nodes_of_other_pools_do_not_matter) {
  EXPECT_THAT(Filter({WebNode("w1"), NodeBuilder("o1").Class("other").Draining(),
                      NodeBuilder("o2").Class("other").Status(NodeStatus::kInitializing),
                      NodeBuilder("o3").Draining()}),
              IsEmpty());
}

TEST(FilterNodes, of_eleven_draining_members_ten_are_reported_in_the_order_of_the_list) {
  std::vector<nomad::Node> nodes;
  for (int i = 0; i < 11; ++i) nodes.push_back(WebNode("n" + std::to_string(i)).Draining());
  const std::vector<std::string> problems = Filter(nodes);
  ASSERT_EQ(problems.size(), 10U);
  EXPECT_EQ(problems.front(), "node n0 is draining");
  EXPECT_EQ(problems.back(), "node n9 is draining");
}

TEST(FilterNodes, a_node_that_initializes_and_drains_is_reported_once_as_initializing) {
  const nomad::Node both = WebNode("n1").Status(NodeStatus::kInitializing).Draining();
  EXPECT_THAT(Filter({both}), ElementsAre("node n1 is initializing"));
  EXPECT_THAT(Filter({both}, {.ignore_init = true}), ElementsAre("node n1 is draining"));
  EXPECT_THAT(Filter({both}, {.ignore_drain = true}), ElementsAre("node n1 is initializing"));
  EXPECT_THAT(Filter({both}, {.ignore_init = true, .ignore_drain = true}), IsEmpty());
}

TEST(FilterNodes, S2_an_empty_pool_is_ready) { EXPECT_THAT(Filter({}), IsEmpty()); }

}  // namespace
}  // namespace nomad_harvester::nodepool
