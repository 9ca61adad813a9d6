// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/cluster_scalein_test.go: how
// identity, link and strategy work together when a pool shrinks.
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/nodepool/selector.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<nomad::Node> PoolA() {
  return {NodeBuilder("node-a").Class("pool-a").Name("vm-a").CreateIndex(20),
          NodeBuilder("node-b").Class("pool-a").Name("vm-b").CreateIndex(10)};
}

std::vector<nomad::Node> Candidates(const std::vector<nomad::Node>& nodes) {
  return FilterNodes(nodes, {.node_class = "pool-a"}, {.ignore_ineligible = true}).members;
}

std::vector<std::string> Select(const std::vector<nomad::Node>& nodes, std::size_t count) {
  std::vector<std::string> ids;
  for (const std::size_t i : SelectNodes(Strategy::kNewestCreateIndex, nodes, {}, count)) {
    ids.push_back(nodes.at(i).id);
  }
  return ids;
}

TEST(ScaleInCandidates, honors_requested_num) {
  EXPECT_THAT(Select(Candidates(PoolA()), 1), ElementsAre("node-a"));
}

TEST(ScaleInCandidates, none_is_selected_when_none_is_asked_for) {
  EXPECT_THAT(Select(Candidates(PoolA()), 0), IsEmpty());
}

TEST(ScaleInCandidates, uses_all_eligible_nodes_before_remote_filtering) {
  // Only vm-b is a VM of ours: node-a, which the strategy would take first, must not use up the
  // one that was asked for.
  const std::vector<nomad::Node> candidates = Candidates(PoolA());
  const Links links =
      LinkNodes({{.name = "vm-b", .node_attribute = "unique.hostname"}}, candidates);
  std::vector<nomad::Node> ours;
  for (const Link& link : links.of_vm) {
    if (link.state == LinkState::kLinked) ours.push_back(candidates.at(link.node));
  }
  EXPECT_THAT(Select(ours, 1), ElementsAre("node-b"));
}

TEST(ScaleInCandidates, ineligible_nodes_may_be_removed) {
  std::vector<nomad::Node> nodes = PoolA();
  nodes[0].eligible = false;
  EXPECT_THAT(Select(Candidates(nodes), 1), ElementsAre("node-a"));
}

TEST(ScaleInCandidates, an_unmappable_node_does_not_stand_in_the_way_of_the_others) {
  std::vector<nomad::Node> nodes = PoolA();
  nodes.push_back(NodeBuilder("bare-metal").Class("pool-a").Attribute("cpu.arch", "amd64"));
  const Links links = LinkNodes({{.name = "vm-a", .node_attribute = "unique.hostname"},
                                 {.name = "vm-b", .node_attribute = "unique.hostname"}},
                                nodes);
  EXPECT_EQ(links.of_vm[0].state, LinkState::kLinked);
  EXPECT_EQ(links.of_vm[1].state, LinkState::kLinked);
  EXPECT_THAT(links.node_is_linked, ElementsAre(true, true, false));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
