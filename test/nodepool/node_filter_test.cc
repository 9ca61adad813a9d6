// SPDX-License-Identifier: Apache-2.0
// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_identifier_test.go.
#include "nomad_harvester/nodepool/identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::NodeStatus;
using testing::ElementsAre;
using testing::IsEmpty;

PoolIdentity Web() { return {.node_class = "web"}; }
NodeBuilder WebNode(std::string id) { return NodeBuilder(std::move(id)).Class("web"); }

FilterResult Filter(const std::vector<nomad::Node>& nodes, const FilterOptions& options = {}) {
  return FilterNodes(nodes, Web(), options);
}

TEST(FilterNodes, of_multiclass_input_only_the_named_class) {
  const FilterResult result =
      Filter({WebNode("w1"), WebNode("w2"), NodeBuilder("o1").Class("other"),
              NodeBuilder("n1").Class("")});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("w1", "w2"));
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST(FilterNodes, of_multiclass_input_only_nodes_without_class_for_the_default_class) {
  const FilterResult result =
      FilterNodes({WebNode("w1"), NodeBuilder("n1"), NodeBuilder("n2")},
                  PoolIdentity{.node_class = "autoscaler-default-pool"}, {});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("n1", "n2"));
}

TEST(FilterNodes, keeps_ready_and_eligible_nodes_and_drops_the_others_without_error) {
  const FilterResult result =
      Filter({WebNode("ready-eligible"), WebNode("ready-ineligible").Ineligible(),
              WebNode("down-eligible").Status(NodeStatus::kDown),
              WebNode("down-ineligible").Status(NodeStatus::kDown).Ineligible(),
              WebNode("disconnected").Status(NodeStatus::kDisconnected),
              WebNode("unknown").Status(NodeStatus::kUnknown)});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("ready-eligible"));
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST(FilterNodes, an_initializing_member_is_a_problem_and_the_list_is_empty) {
  const FilterResult result =
      Filter({WebNode("good"), WebNode("n1").Status(NodeStatus::kInitializing)});
  EXPECT_THAT(result.members, IsEmpty());
  EXPECT_THAT(result.problems, ElementsAre("node n1 is initializing"));
}

TEST(FilterNodes, a_draining_member_is_a_problem_and_the_list_is_empty) {
  const FilterResult result = Filter({WebNode("good"), WebNode("n1").Draining(), WebNode("good2")});
  EXPECT_THAT(result.members, IsEmpty());
  EXPECT_THAT(result.problems, ElementsAre("node n1 is draining"));
}

TEST(FilterNodes, a_down_node_that_still_drains_blocks_the_pool) {
  for (const NodeStatus status :
       {NodeStatus::kDown, NodeStatus::kDisconnected, NodeStatus::kUnknown}) {
    EXPECT_THAT(Filter({WebNode("n1").Status(status).Draining()}).problems,
                ElementsAre("node n1 is draining"));
  }
}

TEST(FilterNodes, initializing_or_draining_nodes_of_other_pools_do_not_matter) {
  const FilterResult result =
      Filter({WebNode("w1"), NodeBuilder("o1").Class("other").Draining(),
              NodeBuilder("o2").Class("other").Status(NodeStatus::kInitializing)});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("w1"));
}

TEST(FilterNodes, limited_error_count_of_eleven_draining_members_ten_are_reported) {
  std::vector<nomad::Node> nodes;
  for (int i = 0; i < 11; ++i) nodes.push_back(WebNode("n" + std::to_string(i)).Draining());
  const FilterResult result = Filter(nodes);
  EXPECT_EQ(result.problems.size(), 10U);
  EXPECT_EQ(result.problems.back(), "node n9 is draining");
  EXPECT_THAT(result.members, IsEmpty());
}

TEST(FilterNodes, ignore_ineligible_includes_ready_ineligible_nodes) {
  const std::vector<nomad::Node> nodes = {WebNode("e"), WebNode("i").Ineligible(),
                                          WebNode("d").Status(NodeStatus::kDown)};
  EXPECT_THAT(IdsOf(Filter(nodes, {.ignore_ineligible = true}).members), ElementsAre("e", "i"));
  EXPECT_THAT(IdsOf(Filter(nodes).members), ElementsAre("e"));
}

TEST(FilterNodes, all_ineligible_nodes_make_an_empty_output_without_error) {
  const FilterResult result = Filter({WebNode("i1").Ineligible(), WebNode("i2").Ineligible()});
  EXPECT_THAT(result.members, IsEmpty());
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST(FilterNodes, ignored_initializing_nodes_are_neither_members_nor_problems) {
  const FilterResult result = Filter(
      {WebNode("e"), WebNode("n1").Status(NodeStatus::kInitializing)}, {.ignore_init = true});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("e"));
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST(FilterNodes, ignored_draining_nodes_are_neither_members_nor_problems) {
  const FilterResult result =
      Filter({WebNode("e"), WebNode("n1").Draining()}, {.ignore_drain = true});
  EXPECT_THAT(IdsOf(result.members), ElementsAre("e"));
  EXPECT_THAT(result.problems, IsEmpty());
}

TEST(FilterNodes, a_node_that_initializes_and_drains_is_reported_once_as_initializing) {
  const nomad::Node both = WebNode("n1").Status(NodeStatus::kInitializing).Draining();
  EXPECT_THAT(Filter({both}).problems, ElementsAre("node n1 is initializing"));
  EXPECT_THAT(Filter({both}, {.ignore_init = true}).problems, ElementsAre("node n1 is draining"));
  EXPECT_THAT(Filter({both}, {.ignore_drain = true}).problems,
              ElementsAre("node n1 is initializing"));
  EXPECT_THAT(Filter({both}, {.ignore_init = true, .ignore_drain = true}).problems, IsEmpty());
}

TEST(FilterNodes, S2_an_empty_pool_is_ready) {
  EXPECT_THAT(Filter({}).problems, IsEmpty());
  EXPECT_THAT(Filter({}).members, IsEmpty());
}

TEST(FilterNodes, keeps_the_order_of_the_list) {
  EXPECT_THAT(IdsOf(Filter({WebNode("c"), WebNode("a"), WebNode("b")}).members),
              ElementsAre("c", "a", "b"));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
