// SPDX-License-Identifier: Apache-2.0
// What each node is to the count: the table in src/demand/pool_nodes.h.
#include <string>
#include <vector>

#include "nomad_harvester/demand/packing.h"

#include "demand/builders.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using nomad::NodeStatus;

struct State {
  const char* name;
  NodeStatus status = NodeStatus::kReady;
  bool eligible = true;
  bool draining = false;
  bool counts_with_work = true;
  bool takes_work = false;
};

class DemandOfNode : public testing::TestWithParam<State> {
 protected:
  PoolNode Node() const {
    PoolNode node = MakeNode("n1");
    Edit(node).status = GetParam().status;
    Edit(node).eligible = GetParam().eligible;
    Edit(node).draining = GetParam().draining;
    return node;
  }
};

TEST_P(DemandOfNode, with_work_counts_if_the_work_stays) {
  World world;
  world.nodes = {With(Node(), MakeWork("a", 100, 0))};
  EXPECT_EQ(Of(world).busy, GetParam().counts_with_work ? 1 : 0);
  world.nodes[0].work[0].job_type = "batch";
  EXPECT_EQ(Of(world).busy, GetParam().counts_with_work ? 1 : 0);
  world.nodes[0].work[0].stops = true;
  EXPECT_EQ(Of(world).busy, GetParam().counts_with_work ? 1 : 0);
  for (const char* type : {"system", "sysbatch"}) {
    world.nodes[0].work[0].job_type = type;
    EXPECT_EQ(Of(world).needed, 0) << type;
  }
}

TEST_P(DemandOfNode, without_work_counts_if_it_takes_some) {
  World world;
  world.nodes = {Node()};
  EXPECT_EQ(Of(world).needed, 0);
  world.pending = {Waiting(MakeWork("a", 100, 0), 1)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.needed, GetParam().takes_work ? 1 : 2) << "the target counts it, too";
  EXPECT_EQ(demand.away, GetParam().takes_work ? 0 : 1);
  EXPECT_EQ(demand.used_idle, GetParam().takes_work ? 1 : 0);
  EXPECT_EQ(demand.added, GetParam().takes_work ? 0 : 1);
}

TEST_P(DemandOfNode, that_no_scale_in_may_take_counts_unless_it_is_down) {
  World world;
  world.nodes = {Node()};
  Edit(world.nodes[0]).meta["harvester_protect"] = "true";
  if (GetParam().status == NodeStatus::kDown) {
    EXPECT_EQ(Of(world).kept, 0);
    return;
  }
  EXPECT_EQ(Of(world).kept, 1);
  world.nodes = {Node()};
  Edit(world.nodes[0]).dynamic_host_volumes = {"db"};
  EXPECT_EQ(Of(world).kept, 1);
  EXPECT_EQ(Of(world).needed, 1);
  world.pending = {Waiting(MakeWork("a", 100, 0), 1)};
  EXPECT_EQ(Of(world).needed, GetParam().takes_work ? 1 : 2) << "each node once";
  world.nodes[0] = With(world.nodes[0], MakeWork("b", 100, 0));
  EXPECT_EQ(Of(world).busy + Of(world).kept, 1);
}

INSTANTIATE_TEST_SUITE_P(
    States, DemandOfNode,
    testing::Values(
        State{.name = "ready", .takes_work = true},
        State{.name = "initializing", .status = NodeStatus::kInitializing, .takes_work = true},
        State{.name = "ineligible", .eligible = false},
        State{.name = "draining", .eligible = false, .draining = true, .counts_with_work = false},
        State{.name = "disconnected", .status = NodeStatus::kDisconnected},
        State{.name = "unknown", .status = NodeStatus::kUnknown},
        State{.name = "down", .status = NodeStatus::kDown, .counts_with_work = false}),
    [](const auto& info) { return info.param.name; });

TEST(DemandOfIdleNode, D1_that_the_work_cannot_use_counts_beside_the_new_ones) {
  World world;
  world.nodes = {With(MakeNode("big"), MakeWork("a", 3000, 0)),
                 MakeNode("small", {.cpu = 2000, .cores = 4, .memory_mb = 8192, .disk_mb = 10000})};
  EXPECT_EQ(Of(world).needed, 1) << "no new node is needed";
  world.pending = {Waiting(MakeWork("b", 3000, 0), 1)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.away, 1);
  EXPECT_EQ(demand.needed, demand.busy + demand.away + demand.added);
  EXPECT_GT(demand.needed, 2) << "the target has two already";
}

World WorldThatDrains() {
  World world;
  world.nodes = {With(MakeNode("n1"), MakeWork("a", 3000, 0)),
                 With(MakeNode("n2"), MakeWork("a", 3000, 0))};
  DrainByTarget(world.nodes[1]);
  return world;
}

TEST(DemandOfDrain, D1_the_vm_of_a_drain_that_is_not_the_targets_still_counts) {
  World world = WorldThatDrains();
  EXPECT_EQ(Of(world).away, 0);
  Edit(world.nodes[1]).last_drain->status = nomad::DrainStatus::kComplete;
  EXPECT_EQ(Of(world).away, 0);
  Edit(world.nodes[1]).last_drain->status = nomad::DrainStatus::kCanceled;
  EXPECT_EQ(Of(world).away, 1) << "the target took it back";
  Edit(world.nodes[1]).last_drain->meta.clear();
  Edit(world.nodes[1]).last_drain->status = nomad::DrainStatus::kDraining;
  Demand demand = Of(world);
  EXPECT_EQ(demand.away, 1) << "an operator drains it";
  EXPECT_EQ(demand.needed, 3);
  world.nodes[0].work.clear();
  demand = Of(world);
  EXPECT_EQ(demand.needed, 1) << "no new node is needed";
}

TEST(DemandOfDrain, its_work_is_packed_like_pending_work) {
  World world = WorldThatDrains();
  Demand demand = Of(world);
  EXPECT_EQ(demand.busy, 1);
  EXPECT_EQ(demand.added, 1);
  ASSERT_EQ(demand.groups.size(), 1U);
  EXPECT_EQ(demand.groups[0].group->job, "a");
  EXPECT_EQ(demand.groups[0].pending, 1);
  world.nodes[0].work.clear();
  EXPECT_EQ(Of(world).needed, 1) << "n1 has room for it";
}

TEST(DemandOfDrain, work_that_a_blocked_evaluation_counts_is_not_counted_twice) {
  World world = WorldThatDrains();
  world.nodes[1].work[0].leaves = true;
  world.pending = {Waiting(MakeWork("a", 3000, 0), 1)};
  EXPECT_EQ(Of(world).needed, 2);
  world.nodes[1].work[0].leaves = false;
  EXPECT_EQ(Of(world).needed, 3) << "Nomad has not told it to leave yet";
}

TEST(DemandOfDrain, batch_work_stays_until_nomad_migrates_it) {
  World world = WorldThatDrains();
  world.nodes[1].work[0].job_type = "batch";
  EXPECT_EQ(Of(world).needed, 1);
  world.nodes[1].work[0].leaves = true;
  EXPECT_EQ(Of(world).needed, 2);
}

TEST(DemandOfDrain, work_that_stops_is_not_placed_anew) {
  World world = WorldThatDrains();
  world.nodes[1].work[0].stops = true;
  EXPECT_EQ(Of(world).needed, 1);
}

TEST(DemandOfWorkThatStops, it_holds_its_room_and_no_distinct_value) {
  World world;
  Group group = MakeWork("a", 3000, 0);
  group.static_ports = {80};
  world.nodes = {With(MakeNode("n1"), group)};
  world.nodes[0].work[0].stops = true;
  world.pending = {Waiting(MakeWork("b", 3000, 0), 1)};
  EXPECT_EQ(Of(world).added, 1);
  group.need.cpu = 100;
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 1) << "its port is taken";
  group.static_ports.clear();
  group.distinct = {{.property = "${node.unique.id}", .limit = 1}};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 0) << "it ends soon";
}

TEST(DemandOfDrain, system_jobs_do_not_leave_for_another_node) {
  World world = WorldThatDrains();
  world.nodes[1].work[0].job_type = "system";
  EXPECT_EQ(Of(world).needed, 1);
}

TEST(DemandOfDrain, work_keeps_the_constraints_of_its_group_if_it_also_waits) {
  World world = WorldThatDrains();
  Group group = MakeWork("a", 3000, 0);
  group.constraints = {{"${meta.rack}", "=", "a"}};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 0);
}

TEST(DemandOfDrain, what_leaves_no_longer_uses_up_distinct_hosts) {
  World world = WorldThatDrains();
  world.nodes.push_back(MakeNode("n3"));
  Group group = MakeWork("a", 3000, 0);
  group.distinct = {{.property = "${meta.rack}", .limit = 1}};
  for (PoolNode& node : world.nodes) Edit(node).meta["rack"] = node.node->id == "n1" ? "x" : "y";
  world.nodes[1].work[0].leaves = true;
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).used_idle, 1) << "n3 has the rack of n2";
}

}  // namespace
}  // namespace nomad_harvester::demand
