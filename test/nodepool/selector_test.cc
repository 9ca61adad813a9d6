// SPDX-License-Identifier: Apache-2.0
// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodeselector/*_test.go.
#include "nomad_harvester/nodepool/selector.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nodepool/builders.h"

namespace nomad_harvester::nodepool {
namespace {

using nomad::ClientStatus;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SelectorStrategy kAll[] = {SelectorStrategy::kLeastBusy,
                                     SelectorStrategy::kNewestCreateIndex,
                                     SelectorStrategy::kOldestCreateIndex, SelectorStrategy::kEmpty,
                                     SelectorStrategy::kEmptyIgnoreSystem};

// The three nodes of the SDK's fixture: A runs a service and a system job, B a system job, C
// nothing; each has a complete batch job.
const std::string kA = "151be1dc-92e7-a488-f7dc-49faaf5a4c96";
const std::string kB = "b2d5bbb6-a61d-ee1f-a896-cbc6efe4f7fe";
const std::string kC = "b535e699-1112-c379-c020-ebd80fdd9f09";

AllocationsByNode Cluster() {
  const auto complete = Alloc(ClientStatus::kComplete, "batch", 100, 1500);
  const auto system = Alloc(ClientStatus::kRunning, "system", 100, 64);
  const auto service = Alloc(ClientStatus::kRunning, "service", 500, 256);
  return {{kA, {service, system, complete}}, {kB, {system, complete}}, {kC, {complete}}};
}

std::vector<nomad::Node> Nodes(bool giant_a = false) {
  NodeBuilder a(kA);
  giant_a ? a.Resources(25'000'000, 198'500'000) : a.Resources(2500, 1985);
  return {a, NodeBuilder(kB).Resources(2500, 1985), NodeBuilder(kC).Resources(2500, 1985)};
}

std::vector<std::string> Select(SelectorStrategy strategy, const std::vector<nomad::Node>& nodes,
                                const AllocationsByNode& allocations) {
  std::vector<std::string> ids;
  for (const std::size_t i : SelectNodes(strategy, nodes, allocations)) {
    ids.push_back(nodes.at(i).id);
  }
  return ids;
}

TEST(NeedsAllocations, only_the_strategies_by_create_index_do_without_allocations) {
  EXPECT_TRUE(NeedsAllocations(SelectorStrategy::kLeastBusy));
  EXPECT_TRUE(NeedsAllocations(SelectorStrategy::kEmpty));
  EXPECT_TRUE(NeedsAllocations(SelectorStrategy::kEmptyIgnoreSystem));
  EXPECT_FALSE(NeedsAllocations(SelectorStrategy::kNewestCreateIndex));
  EXPECT_FALSE(NeedsAllocations(SelectorStrategy::kOldestCreateIndex));
}

TEST(WorkToMove, C19_is_live_work_of_other_than_system_jobs) {
  EXPECT_FALSE(HasWorkToMove({}));
  for (const char* const moves : {"service", "batch", ""}) {
    EXPECT_TRUE(HasWorkToMove({Alloc(ClientStatus::kRunning, moves, 1, 1)})) << moves;
    EXPECT_TRUE(HasWorkToMove({Alloc(ClientStatus::kPending, moves, 1, 1)})) << moves;
    EXPECT_FALSE(HasWorkToMove({Alloc(ClientStatus::kComplete, moves, 1, 1)})) << moves;
  }
  for (const char* const stays : {"system", "sysbatch"}) {
    EXPECT_FALSE(HasWorkToMove({Alloc(ClientStatus::kRunning, stays, 1, 1)})) << stays;
  }
}

TEST(EachSelector, of_an_empty_list_selects_nothing) {
  for (const SelectorStrategy strategy : kAll) {
    EXPECT_THAT(Select(strategy, {}, {}), IsEmpty());
  }
}

TEST(EachSelector, does_not_depend_on_the_order_of_the_list) {
  std::vector<nomad::Node> nodes = Nodes();
  std::vector<nomad::Node> reversed(nodes.rbegin(), nodes.rend());
  for (const SelectorStrategy strategy : kAll) {
    EXPECT_EQ(Select(strategy, nodes, Cluster()), Select(strategy, reversed, Cluster()))
        << policy::NameOf(strategy);
  }
}

TEST(Empty, selects_only_the_node_without_live_allocations) {
  EXPECT_THAT(Select(SelectorStrategy::kEmpty, Nodes(), Cluster()), ElementsAre(kC));
}

TEST(EmptyIgnoreSystem, selects_nodes_with_system_jobs_alone_too_in_list_order) {
  EXPECT_THAT(Select(SelectorStrategy::kEmptyIgnoreSystem, Nodes(), Cluster()),
              ElementsAre(kB, kC));
}

TEST(EmptyIgnoreSystem, sysbatch_is_not_a_system_job) {
  const AllocationsByNode allocations = {{kA, {Alloc(ClientStatus::kRunning, "sysbatch")}}};
  EXPECT_THAT(Select(SelectorStrategy::kEmptyIgnoreSystem, {NodeBuilder(kA)}, allocations),
              IsEmpty());
}

TEST(Empty, an_allocation_is_terminal_by_its_client_or_its_server_status) {
  struct Row {
    ClientStatus client;
    const char* desired;
    bool empty;
  };
  const Row rows[] = {
      {ClientStatus::kComplete, "run", true},  {ClientStatus::kFailed, "run", true},
      {ClientStatus::kLost, "run", true},      {ClientStatus::kRunning, "stop", true},
      {ClientStatus::kRunning, "evict", true}, {ClientStatus::kRunning, "run", false},
      {ClientStatus::kPending, "run", false},  {ClientStatus::kUnknown, "run", false},
      {ClientStatus::kRunning, "", false}};
  for (const Row& row : rows) {
    nomad::Allocation allocation = Alloc(row.client);
    allocation.desired_status = row.desired;
    const AllocationsByNode allocations = {{kA, {allocation}}};
    EXPECT_EQ(Select(SelectorStrategy::kEmpty, {NodeBuilder(kA)}, allocations).size(),
              row.empty ? 1U : 0U)
        << static_cast<int>(row.client) << " " << row.desired;
  }
}

TEST(Empty, a_node_without_an_entry_has_no_allocations) {
  EXPECT_THAT(Select(SelectorStrategy::kEmpty, {NodeBuilder("n")}, {}), ElementsAre("n"));
}

TEST(Empty, offers_the_newest_first) {
  EXPECT_THAT(Select(SelectorStrategy::kEmpty,
                     {NodeBuilder("a").CreateIndex(1), NodeBuilder("b").CreateIndex(9),
                      NodeBuilder("c").CreateIndex(5)},
                     {}),
              ElementsAre("b", "c", "a"));
}

TEST(LeastBusy, selects_the_least_busy_first) {
  EXPECT_THAT(Select(SelectorStrategy::kLeastBusy, Nodes(), Cluster()), ElementsAre(kC, kB, kA));
}

TEST(LeastBusy, a_giant_is_less_busy_with_the_same_load) {
  std::vector<nomad::Node> nodes = Nodes(/*giant_a=*/true);
  nodes.pop_back();  // C has no load at all
  EXPECT_THAT(Select(SelectorStrategy::kLeastBusy, nodes, Cluster()), ElementsAre(kA, kB));
}

TEST(LeastBusy, ties_go_to_the_higher_create_index_then_to_the_id) {
  const std::vector<nomad::Node> nodes = {NodeBuilder("b").Resources(10, 10).CreateIndex(5),
                                          NodeBuilder("a").Resources(10, 10).CreateIndex(5),
                                          NodeBuilder("c").Resources(10, 10).CreateIndex(7)};
  EXPECT_THAT(Select(SelectorStrategy::kLeastBusy, nodes, {}), ElementsAre("c", "a", "b"));
}

TEST(BusyScore, counts_running_allocations_alone) {
  const std::vector<nomad::Allocation> allocations = {
      Alloc(ClientStatus::kRunning, "service", 100, 50),
      Alloc(ClientStatus::kComplete, "service", 100, 50),
      Alloc(ClientStatus::kFailed, "service", 100, 50),
      Alloc(ClientStatus::kPending, "service", 100, 50),
      Alloc(ClientStatus::kRunning, "system", 100, 50),
      Alloc(ClientStatus::kLost, "service", 100, 50)};
  // 200 of 1000 CPU, 100 of 1000 MB.
  EXPECT_EQ(BusyScore(NodeBuilder("n").Resources(1000, 1000), allocations), 15);
}

TEST(BusyScore, subtracts_what_is_reserved) {
  const std::vector<nomad::Allocation> allocations = {
      Alloc(ClientStatus::kRunning, "service", 19000, 8388508)};
  EXPECT_EQ(BusyScore(NodeBuilder("n").Resources(38400, 16777216).Reserved(400, 200), allocations),
            50);
  EXPECT_EQ(BusyScore(NodeBuilder("n").Resources(38000, 16777016), allocations), 50);
}

TEST(BusyScore, a_tenth_is_ten_and_nothing_is_nothing) {
  const nomad::Node node = NodeBuilder("n").Resources(10000, 10000);
  EXPECT_EQ(BusyScore(node, {Alloc(ClientStatus::kRunning, "service", 1000, 1000)}), 10);
  EXPECT_EQ(BusyScore(node, {}), 0);
}

TEST(BusyScore, each_percentage_and_the_mean_are_rounded_up) {
  const nomad::Node node = NodeBuilder("n").Resources(1000, 1000);
  // ceil(0.1) = 1 and 0: ceil(0.5) = 1.
  EXPECT_EQ(BusyScore(node, {Alloc(ClientStatus::kRunning, "service", 1, 0)}), 1);
  // ceil(10.1) = 11 and ceil(20) = 20: ceil(15.5) = 16.
  EXPECT_EQ(BusyScore(node, {Alloc(ClientStatus::kRunning, "service", 101, 200)}), 16);
}

TEST(BusyScore, an_overcommitted_node_is_busier_than_full) {
  const nomad::Node node = NodeBuilder("n").Resources(1000, 1000);
  EXPECT_EQ(BusyScore(node, {Alloc(ClientStatus::kRunning, "service", 3000, 1000)}), 200);
}

TEST(BusyScore, a_node_that_offers_nothing_scores_a_hundred) {
  EXPECT_EQ(BusyScore(NodeBuilder("n"), {}), 100);
  EXPECT_EQ(BusyScore(NodeBuilder("n").Resources(0, 0), {}), 100);
  EXPECT_EQ(BusyScore(NodeBuilder("n").Resources(400, 200).Reserved(400, 300), {}), 100);
}

TEST(BusyScore, absurd_sums_do_no_harm) {
  const auto huge =
      Alloc(ClientStatus::kRunning, "service", std::numeric_limits<std::int64_t>::max(), -5);
  EXPECT_GT(BusyScore(NodeBuilder("n").Resources(1, 1), {huge, huge, huge}), 100);
}

TEST(NewestCreateIndex, takes_the_order_of_the_list) {
  const std::vector<nomad::Node> nodes = {NodeBuilder("8d01d8fe"), NodeBuilder("a6604683")};
  EXPECT_THAT(Select(SelectorStrategy::kNewestCreateIndex, nodes, {}),
              ElementsAre("8d01d8fe", "a6604683"));
}

TEST(NewestCreateIndex, the_highest_create_index_comes_first) {
  const std::vector<nomad::Node> nodes = {NodeBuilder("a").CreateIndex(3),
                                          NodeBuilder("b").CreateIndex(8),
                                          NodeBuilder("c").CreateIndex(5)};
  EXPECT_THAT(Select(SelectorStrategy::kNewestCreateIndex, nodes, {}), ElementsAre("b", "c", "a"));
}

TEST(OldestCreateIndex, takes_the_list_oldest_first) {
  const std::vector<nomad::Node> nodes = {NodeBuilder("8d01d8fe"), NodeBuilder("a6604683")};
  EXPECT_THAT(Select(SelectorStrategy::kOldestCreateIndex, nodes, {}),
              ElementsAre("a6604683", "8d01d8fe"));
}

TEST(OldestCreateIndex, the_lowest_create_index_comes_first) {
  const std::vector<nomad::Node> nodes = {NodeBuilder("a").CreateIndex(3),
                                          NodeBuilder("b").CreateIndex(8),
                                          NodeBuilder("c").CreateIndex(5)};
  EXPECT_THAT(Select(SelectorStrategy::kOldestCreateIndex, nodes, {}), ElementsAre("a", "c", "b"));
}

}  // namespace
}  // namespace nomad_harvester::nodepool
