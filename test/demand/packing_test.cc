// SPDX-License-Identifier: Apache-2.0
// How work becomes nodes.
#include "nomad_harvester/demand/packing.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "demand/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// A pool of one idle node, so that it is known what a new one holds.
World WorldOfOne() {
  World world;
  world.nodes = {MakeNode("n1")};
  return world;
}
// As above, with a node that is full.
World WorldThatIsFull() {
  World world;
  world.nodes = {With(MakeNode("n1"), MakeWork("old", 4000, 8192))};
  return world;
}
const GroupDemand& First(const Demand& demand) { return demand.groups.at(0); }

TEST(Demand, of_an_empty_pool_without_work_is_zero) {
  EXPECT_EQ(Of(World()).needed, 0);
  EXPECT_EQ(Of(WorldOfOne()).needed, 0) << "an idle node is not needed";
}

TEST(Demand, work_is_packed_into_as_few_nodes_as_it_fits) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("a", 1000, 3000), 5)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 4) << "one is busy, and a new one holds two";
  EXPECT_EQ(demand.busy, 1);
  EXPECT_EQ(demand.added, 3);
  EXPECT_EQ(First(demand).verdict, Verdict::kNeedsNodes);
  EXPECT_EQ(First(demand).pending, 5);
  EXPECT_EQ(First(demand).nodes, 3);
  EXPECT_EQ(First(demand).fits, 0);
}

TEST(Demand, the_scarcest_resource_decides) {
  const struct {
    Resources need;
    std::int64_t per_node;
  } rows[] = {{{.cpu = 2001}, 1},     {{.cpu = 2000}, 2},      {{.memory_mb = 4096}, 2},
              {{.disk_mb = 3000}, 3}, {{.cores = 2}, 2},       {{.cpu = 500, .cores = 1}, 2},
              {{.cores = 4}, 1},      {{.memory_mb = 8192}, 1}};
  for (const auto& row : rows) {
    World world = WorldOfOne();
    Edit(world.nodes[0]).eligible = false;
    Group group = MakeWork("a", 0, 0);
    group.need = row.need;
    world.pending = {Waiting(group, 12)};
    EXPECT_EQ(Of(world).added, 12 / row.per_node) << row.need.cpu << " " << row.need.cores;
  }
}

TEST(Demand, free_room_of_nodes_that_are_there_is_used_first) {
  World world;
  world.nodes = {With(MakeNode("n1"), MakeWork("old", 3000, 6000)), MakeNode("n2")};
  world.pending = {Waiting(MakeWork("a", 1000, 2000), 3)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 2);
  EXPECT_EQ(demand.used_idle, 1);
  EXPECT_EQ(demand.added, 0);
  EXPECT_EQ(First(demand).fits, 3);
  EXPECT_EQ(First(demand).verdict, Verdict::kFits);
  world.pending = {Waiting(MakeWork("a", 1000, 2000), 1)};
  EXPECT_EQ(Of(world).needed, 1) << "beside the work, so that the idle node may go";
}

TEST(Demand, of_a_priority_the_oldest_work_is_packed_first_as_nomad_does) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("large", 3000, 0), 2), Waiting(MakeWork("small", 1000, 0), 4)};
  EXPECT_EQ(Of(world).added, 3) << "a large and a small one on two, and two small ones";
  world.pending[0].create_index = 8;
  world.pending[1].create_index = 7;
  EXPECT_EQ(Of(world).added, 3) << "four small ones on one, and a large one on each of two";
  world.pending[1].count = 2;
  EXPECT_EQ(Of(world).added, 3) << "two small ones on one, which leave no room for a large one";
  world.pending[1].create_index = 9;
  EXPECT_EQ(Of(world).added, 2);
}

TEST(Demand, of_an_age_the_largest_work_is_packed_first) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("a", 1000, 0), 4), Waiting(MakeWork("b", 3000, 0), 4)};
  EXPECT_EQ(Of(world).added, 4);
}

TEST(Demand, what_a_new_node_has_left_is_for_what_follows) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("a", 3900, 0), 1), Waiting(MakeWork("b", 1500, 0), 1),
                   Waiting(MakeWork("c", 1400, 0), 1)};
  EXPECT_EQ(Of(world).added, 2) << "the last two share a node";
}

TEST(Demand, higher_priority_has_the_room_that_is_there) {
  World world = WorldOfOne();
  Group high = MakeWork("b", 3000, 0);
  high.priority = 80;
  world.pending = {Waiting(MakeWork("a", 4000, 0), 1), Waiting(high, 1)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 2);
  EXPECT_EQ(demand.groups[0].verdict, Verdict::kNeedsNodes);
  EXPECT_EQ(demand.groups[1].verdict, Verdict::kFits);
}

TEST(Demand, D1_asking_twice_orders_nothing_twice) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("a", 3000, 0), 2)};
  EXPECT_EQ(Of(world).needed, 3);
  EXPECT_EQ(Of(world).needed, 3);
  PoolNode booting = MakeNode("n2");
  Edit(booting).status = nomad::NodeStatus::kInitializing;
  Edit(booting).attributes.clear();
  Edit(booting).drivers.clear();
  world.nodes.push_back(booting);
  EXPECT_EQ(Of(world).needed, 3) << "the node that boots is for the work";
}

TEST(Demand, a_constraint_that_no_node_meets_orders_nothing) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 1000, 0);
  group.constraints = {{"${attr.kernel.name}", "=", "windows"}};
  world.pending = {Waiting(group, 5)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 1);
  EXPECT_EQ(First(demand).verdict, Verdict::kImpossible);
  EXPECT_EQ(First(demand).why, "a new node lacks what it asks for: ${attr.kernel.name} = windows");
}

TEST(Demand, a_constraint_that_nodes_meet_in_part_is_named_and_orders_nothing) {
  World world = WorldThatIsFull();
  world.nodes.push_back(With(MakeNode("n2"), MakeWork("old", 4000, 0)));
  Edit(world.nodes[0]).meta["rack"] = "a";
  Group group = MakeWork("a", 1000, 0);
  group.constraints = {{"${meta.rack}", "=", "a"}};
  world.pending = {Waiting(group, 5)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.added, 0);
  EXPECT_EQ(First(demand).verdict, Verdict::kCannotTell);
  EXPECT_EQ(First(demand).why, "a new node may lack: ${meta.rack} = a");
}

TEST(Demand, a_driver_that_no_node_has_is_impossible_and_one_that_a_node_lost_is_not) {
  World world = WorldThatIsFull();
  world.nodes.push_back(With(MakeNode("n2"), MakeWork("old", 4000, 0)));
  Edit(world.nodes[0]).drivers[0].healthy = false;
  world.pending = {Waiting(MakeWork("a", 1000, 0), 1)};
  EXPECT_EQ(Of(world).added, 1);
  Group group = MakeWork("a", 1000, 0);
  group.drivers = {"podman"};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 0);
  EXPECT_THAT(First(Of(world)).why, HasSubstr("the driver podman"));
}

TEST(Demand, work_larger_than_an_empty_node_orders_nothing_and_says_what_lacks) {
  World world = WorldThatIsFull();
  Group system = MakeWork("logs", 500, 512);
  system.job_type = "system";
  world.system = {std::make_shared<const Group>(system)};
  world.pending = {Waiting(MakeWork("a", 1000, 8000), 3)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.added, 0);
  EXPECT_EQ(First(demand).verdict, Verdict::kImpossible);
  EXPECT_EQ(First(demand).why,
            "needs 8000 MiB of memory, there are 7680 on an empty node beside its system jobs");
}

TEST(Demand, system_jobs_take_their_part_of_each_new_node) {
  World world = WorldThatIsFull();
  Group system = MakeWork("logs", 1000, 0);
  system.job_type = "system";
  world.pending = {Waiting(MakeWork("a", 2000, 0), 2)};
  EXPECT_EQ(Of(world).added, 1);
  world.system = {std::make_shared<const Group>(system)};
  EXPECT_EQ(Of(world).added, 2);
  system.constraints = {{"${node.class}", "=", "web"}};
  world.system = {std::make_shared<const Group>(system)};
  EXPECT_EQ(Of(world).added, 1) << "it will not run there";
}

TEST(Demand, a_node_that_boots_keeps_room_for_system_jobs_that_are_not_there_yet) {
  World world = WorldThatIsFull();
  Group system = MakeWork("logs", 1000, 0);
  system.job_type = "system";
  world.system = {std::make_shared<const Group>(system)};
  world.nodes.push_back(MakeNode("n2"));
  Edit(world.nodes[1]).status = nomad::NodeStatus::kInitializing;
  world.pending = {Waiting(MakeWork("a", 1500, 0), 2)};
  EXPECT_EQ(Of(world).added, 0);
  world.pending = {Waiting(MakeWork("a", 2000, 0), 2)};
  EXPECT_EQ(Of(world).added, 1);
  world.nodes[1].work = {Running(system)};
  EXPECT_EQ(Of(world).added, 1) << "it takes its part once";
  world.nodes[1].work.clear();
  Edit(world.nodes[1]).status = nomad::NodeStatus::kReady;
  EXPECT_EQ(Of(world).added, 0) << "once it is ready, it has its system jobs";
}

TEST(Demand, distinct_hosts_need_a_node_each) {
  World world = WorldThatIsFull();
  world.nodes.push_back(With(MakeNode("n2"), MakeWork("a", 100, 0)));
  Group group = MakeWork("a", 100, 0);
  group.distinct = {{.property = "${node.unique.id}"}};
  world.pending = {Waiting(group, 3)};
  EXPECT_EQ(Of(world).added, 3) << "n2 has one of the group";
  world.nodes[1].work[0].group = "other";
  EXPECT_EQ(Of(world).added, 2) << "a group counts its own";
  group.distinct[0].whole_job = true;
  world.pending = {Waiting(group, 3)};
  EXPECT_EQ(Of(world).added, 3) << "a job counts all its groups";
}

TEST(Demand, groups_of_a_job_share_the_nodes_that_its_distinct_hosts_leave) {
  World world = WorldThatIsFull();
  Group one = MakeWork("a", 100, 0);
  one.distinct = {{.property = "${node.unique.id}", .limit = 1, .whole_job = true}};
  Group two = one;
  two.name = "h";
  world.pending = {Waiting(one, 2), Waiting(two, 2)};
  EXPECT_EQ(Of(world).added, 4);
}

TEST(Demand, distinct_property_counts_what_runs_and_what_a_new_node_shares) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 100, 0);
  group.distinct = {{.property = "${node.datacenter}", .limit = 2}};
  world.pending = {Waiting(group, 5)};
  Demand demand = Of(world);
  EXPECT_EQ(demand.added, 1) << "two fit on it, and no more in its datacenter";
  EXPECT_EQ(First(demand).verdict, Verdict::kNeedsNodes);
  world.nodes[0].work = {Running(group), Running(group), Running(MakeWork("x", 3800, 0))};
  demand = Of(world);
  EXPECT_EQ(demand.added, 0);
  EXPECT_EQ(First(demand).verdict, Verdict::kImpossible);
  EXPECT_EQ(First(demand).why,
            "distinct_property ${node.datacenter}: a new node has a value that is used up");
  group.distinct[0].property = "${meta.rack}";
  world.pending = {Waiting(group, 5)};
  EXPECT_EQ(First(Of(world)).why, "distinct_property ${meta.rack}: a new node lacks it");
}

TEST(Demand, a_distinct_property_of_each_node_is_like_a_host) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 100, 0);
  group.distinct = {{.property = "${attr.unique.hostname}", .limit = 2}};
  world.pending = {Waiting(group, 5)};
  EXPECT_EQ(Of(world).added, 3);
}

TEST(Demand, a_static_port_is_once_on_each_node) {
  World world = WorldOfOne();
  Group group = MakeWork("a", 100, 0);
  group.static_ports = {80};
  world.nodes[0] = With(world.nodes[0], group);
  world.pending = {Waiting(group, 2)};
  EXPECT_EQ(Of(world).added, 2);
  Group system = group;
  system.job = "edge";
  world.system = {std::make_shared<const Group>(system)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.added, 0);
  EXPECT_EQ(First(demand).why,
            "needs port 80, which is taken on an empty node beside its system jobs");
}

TEST(Demand, devices_are_counted_by_kind) {
  Resources capacity = MakeNode("").capacity;
  capacity.devices = {{"nvidia/gpu/T4", 2}};
  World world;
  world.nodes = {MakeNode("n1", capacity)};
  Group group = MakeWork("a", 100, 0);
  group.devices = {{.name = "gpu", .count = 1}};
  world.nodes[0] = With(world.nodes[0], group);
  world.nodes[0].work[0].uses.devices = {{"nvidia/gpu/T4", 1}};
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(Of(world).added, 2) << "one on n1, three on new ones";
  group.devices = {{.name = "nvidia/gpu", .count = 2}, {.name = "gpu", .count = 1}};
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(Of(world).added, 0);
  EXPECT_EQ(First(Of(world)).why,
            "needs 2 nvidia/gpu and 1 gpu, and there are not as many devices on an empty node");
}

TEST(Demand, host_volumes_count_if_a_new_node_has_them_too) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 100, 0);
  group.host_volumes = {{.name = "db"}};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(First(Of(world)).why,
            "a new node lacks what it asks for: the host volume db to write to");
  Edit(world.nodes[0]).host_volumes = {{.name = "db", .read_only = true}};
  EXPECT_EQ(Of(world).added, 0);
  Edit(world.nodes[0]).host_volumes = {{.name = "db"}};
  EXPECT_EQ(Of(world).added, 1);
  Edit(world.nodes[0]).dynamic_host_volumes = {"db"};
  EXPECT_EQ(Of(world).added, 0) << "it was made on that node alone";
}

TEST(Demand, a_network_mode_that_no_client_has_is_impossible) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 100, 0);
  group.network_mode = "bridge";
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 1) << "the client reports none at all";
  Edit(world.nodes[0]).network_modes = {"host"};
  EXPECT_EQ(First(Of(world)).verdict, Verdict::kImpossible);
  Edit(world.nodes[0]).network_modes = {"host", "bridge"};
  EXPECT_EQ(Of(world).added, 1);
}

TEST(Demand, csi_volumes_and_host_networks_are_taken_to_be_there_until_nomad_leaves_room) {
  for (bool Group::*const has : {&Group::csi_volumes, &Group::host_networks}) {
    World world = WorldThatIsFull();
    Group group = MakeWork("a", 100, 0);
    group.*has = true;
    world.pending = {Waiting(group, 1, /*overdue=*/true)};
    EXPECT_EQ(Of(world).added, 1) << "there is no room that Nomad could use";
    world.nodes.push_back(MakeNode("n2"));
    const Demand demand = Of(world);
    EXPECT_EQ(demand.added, 0);
    EXPECT_EQ(demand.used_idle, 1) << "or it would be made anew";
    EXPECT_EQ(First(demand).verdict, Verdict::kCannotTell);
    EXPECT_EQ(First(demand).why,
              "Nomad has not placed it for 30s although there is room: nodes may lack its volume "
              "or its host network");
  }
}

TEST(Demand, D2_work_of_other_pools_and_datacenters_orders_nothing) {
  World world = WorldThatIsFull();
  Group pool = MakeWork("a", 100, 0);
  pool.node_pool = "gpu";
  Group datacenter = MakeWork("b", 100, 0);
  datacenter.datacenters = {"eu-*", "dc2"};
  Group node_class = MakeWork("c", 100, 0);
  node_class.constraints = {{"${node.class}", "=", "web"}};
  Group here = MakeWork("z", 100, 0);
  here.node_pool = "all";
  here.datacenters = {"eu", "dc*"};
  world.pending = {Waiting(pool, 1), Waiting(datacenter, 1), Waiting(node_class, 1),
                   Waiting(here, 1)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.added, 1);
  ASSERT_THAT(demand.groups, SizeIs(4));
  EXPECT_EQ(demand.groups[0].verdict, Verdict::kNeedsNodes);
  EXPECT_EQ(demand.groups[1].verdict, Verdict::kOtherPool);
  EXPECT_EQ(demand.groups[1].why, "its datacenters are *, its node pool is gpu");
  EXPECT_EQ(demand.groups[2].verdict, Verdict::kOtherPool);
  EXPECT_EQ(demand.groups[3].group->job, "c");
  EXPECT_EQ(demand.groups[3].verdict, Verdict::kOtherPool);
  EXPECT_EQ(demand.groups[3].why, "${node.class} = web");
}

TEST(Demand, D2_work_fits_a_node_that_boots_where_no_other_one_is) {
  World world = WorldThatIsFull();
  world.nodes.push_back(MakeNode("n2"));
  Edit(world.nodes[1]).status = nomad::NodeStatus::kInitializing;
  Edit(world.nodes[1]).datacenter = "dc2";
  Group group = MakeWork("a", 100, 0);
  group.datacenters = {"dc2"};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(First(Of(world)).verdict, Verdict::kFits);
}

TEST(Demand, D2_work_that_may_not_run_orders_nothing) {
  World world = WorldThatIsFull();
  Group group = MakeWork("a", 100, 0);
  group.runnable = false;
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 0);
  EXPECT_EQ(First(Of(world)).verdict, Verdict::kNotRunnable);
}

TEST(Demand, D2_overdue_work_does_not_wait_for_room_that_nomad_does_not_use) {
  World world;
  world.at = base::WallTime(std::chrono::hours(1));
  world.nodes = {With(MakeNode("n1"), MakeWork("old", 100, 0))};
  world.pending = {Waiting(MakeWork("a", 100, 0), 1)};
  EXPECT_EQ(Of(world).needed, 1);
  world.pending[0].overdue = true;
  EXPECT_EQ(Of(world).needed, 2);
  EXPECT_EQ(First(Of(world)).verdict, Verdict::kNeedsNodes);
  EXPECT_EQ(First(Of(world)).why,
            "Nomad has not placed it for 30s although there is room: see why");
  world.nodes.push_back(MakeNode("n2"));
  EXPECT_EQ(Of(world).needed, 2) << "n2 was the try";
}

TEST(Demand, overdue_work_gets_one_more_node_than_the_idle_one_that_nomad_does_not_use) {
  World world;
  world.at = base::WallTime(std::chrono::hours(1));
  world.nodes = {MakeNode("n1")};
  world.pending = {Waiting(MakeWork("a", 3000, 0), 1, /*overdue=*/true)};
  Demand demand = Of(world);
  EXPECT_EQ(demand.used_idle, 1);
  EXPECT_EQ(demand.added, 1) << "beside the idle one, which is one of the count";
  world.nodes.push_back(MakeNode("n2"));
  EXPECT_EQ(Of(world).needed, 2) << "once, not for ever";
  Edit(world.nodes[1]).status_updated_at = world.at - std::chrono::seconds(29);
  demand = Of(world);
  EXPECT_EQ(demand.needed, 1) << "Nomad may just place it on n2";
  EXPECT_EQ(First(demand).verdict, Verdict::kFits);
}

TEST(Demand, a_node_that_boots_too_long_takes_no_overdue_work) {
  World world = WorldThatIsFull();
  world.at = base::WallTime(std::chrono::hours(1));
  world.nodes.push_back(MakeNode("n2"));
  Edit(world.nodes[1]).status = nomad::NodeStatus::kInitializing;
  Edit(world.nodes[1]).status_updated_at = world.at - std::chrono::seconds(299);
  world.pending = {Waiting(MakeWork("a", 3000, 0), 1, /*overdue=*/true)};
  EXPECT_EQ(Of(world).needed, 2);
  Edit(world.nodes[1]).status_updated_at = world.at - std::chrono::seconds(300);
  EXPECT_EQ(Of(world).needed, 3);
}

TEST(Demand, headroom_stays_free_behind_all_work) {
  Query query = BatchQuery();
  query.headroom = {{.count = 2, .unit = {.cpu = 2000}}};
  World world = WorldOfOne();
  Demand demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.needed, 1);
  EXPECT_EQ(demand.used_idle, 1);
  world.pending = {Waiting(MakeWork("a", 3000, 0), 1)};
  demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.needed, 2);
  ASSERT_THAT(demand.groups, SizeIs(2));
  EXPECT_EQ(demand.groups[1].group->job, "headroom");
  EXPECT_EQ(demand.groups[1].group->name, "2x(cpu=2000)");
  EXPECT_EQ(demand.groups[1].verdict, Verdict::kNeedsNodes);
  query.headroom[0].unit.cpu = 5000;
  demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.groups[1].verdict, Verdict::kImpossible);
}

TEST(Demand, the_smallest_node_shows_what_a_new_one_holds) {
  World world;
  world.nodes = {With(MakeNode("big", {.cpu = 8000, .memory_mb = 16384}), MakeWork("old", 8000, 0)),
                 With(MakeNode("small"), MakeWork("old", 4000, 0))};
  world.pending = {Waiting(MakeWork("a", 2000, 0), 4)};
  EXPECT_EQ(Of(world).added, 2);
  world.pending = {Waiting(MakeWork("a", 6000, 0), 2)};
  EXPECT_EQ(Of(world).added, 2) << "the pool has had nodes that hold it";
}

TEST(Demand, an_empty_pool_is_as_it_was_seen_last) {
  World world;
  world.last_seen = std::make_shared<const PoolNode>(MakeNode("gone"));
  world.pending = {Waiting(MakeWork("a", 2000, 0), 4)};
  Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 2);
  EXPECT_FALSE(demand.probe);
  Group group = MakeWork("a", 2000, 0);
  group.constraints = {{"${attr.kernel.name}", "=", "windows"}};
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(Of(world).needed, 0);
}

TEST(Demand, an_empty_pool_that_was_never_seen_is_as_the_query_says) {
  Query query = BatchQuery();
  query.node = Resources{.cpu = 4000, .cores = 4, .memory_mb = 8192, .disk_mb = 1000};
  World world;
  world.pending = {Waiting(MakeWork("a", 2000, 0), 4)};
  Demand demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.needed, 2) << "drivers are taken to be there";
  EXPECT_FALSE(demand.probe);
  Group cores = MakeWork("a", 500, 0);
  cores.need.cores = 1;
  world.pending = {Waiting(cores, 4)};
  EXPECT_EQ(ComputeDemand(query, world).needed, 2) << "a core takes its 1000 MHz";
}

TEST(Demand, what_the_query_does_not_say_of_a_node_is_not_limited) {
  // The example of docs/demand.md.
  const auto query = ParseQuery(
      "nodes-needed node_class=batch datacenter=dc1 headroom=2x(cpu=500,memory=1024) idle_for=10m "
      "node=(cpu=8000,memory=16384)");
  ASSERT_TRUE(query.ok()) << query.status();
  World world;
  Group group = MakeWork("a", 4000, 4096);
  group.need.disk_mb = 300;
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(ComputeDemand(*query, world).needed, 3) << "two for the work, one for the headroom";
  group.need = {.cores = 2, .memory_mb = 8192, .disk_mb = 300};
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(ComputeDemand(*query, world).needed, 3);
  group.devices = {{.name = "gpu"}};
  world.pending = {Waiting(group, 4)};
  EXPECT_EQ(First(ComputeDemand(*query, world)).verdict, Verdict::kImpossible)
      << "devices are named";
}

TEST(Demand, a_place_that_nothing_shows_orders_a_probe) {
  Query query = BatchQuery();
  query.node = Resources{.cpu = 4000, .memory_mb = 8192};
  World world;
  Group group = MakeWork("a", 4000, 0);
  group.node_pool = "gpu";
  world.pending = {Waiting(group, 5)};
  EXPECT_EQ(ComputeDemand(query, world).needed, 1);
  EXPECT_TRUE(ComputeDemand(query, world).probe);
  query.node_pool = "gpu";
  EXPECT_EQ(ComputeDemand(query, world).needed, 5);
  query.node_pool = "other";
  EXPECT_EQ(ComputeDemand(query, world).needed, 0);
  group.node_pool = "default";
  group.datacenters = {"dc2"};
  query.node_pool.reset();
  world.pending = {Waiting(group, 5)};
  EXPECT_EQ(ComputeDemand(query, world).needed, 1);
  query.datacenter = "dc2";
  EXPECT_EQ(ComputeDemand(query, world).needed, 5);
}

TEST(Demand, a_new_node_may_be_where_any_node_of_its_pool_is) {
  World world = WorldThatIsFull();
  world.nodes.push_back(With(MakeNode("n2"), MakeWork("old", 4000, 0)));
  Edit(world.nodes[1]).datacenter = "dc2";
  Group group = MakeWork("a", 4000, 0);
  group.datacenters = {"dc2"};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(Of(world).added, 1);
  group.datacenters = {"dc3"};
  world.pending = {Waiting(group, 1)};
  EXPECT_EQ(First(Of(world)).verdict, Verdict::kOtherPool);
}

TEST(Demand, what_only_a_node_can_show_orders_one_as_a_probe) {
  World world;
  world.pending = {Waiting(MakeWork("a", 2000, 0), 40)};
  Demand demand = Of(world);
  EXPECT_EQ(demand.needed, 1);
  EXPECT_TRUE(demand.probe);
  EXPECT_EQ(First(demand).why, "waits for the probe, which shows what a node of the pool holds");

  Query query = BatchQuery();
  query.node = Resources{.cpu = 4000};
  Group group = MakeWork("a", 2000, 0);
  group.constraints = {{"${meta.rack}", "is_set", ""}};
  world.pending = {Waiting(group, 40)};
  demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.needed, 1);
  EXPECT_TRUE(demand.probe);
  EXPECT_EQ(First(demand).verdict, Verdict::kCannotTell);

  PoolNode booting = MakeNode("n1");
  Edit(booting).status = nomad::NodeStatus::kInitializing;
  Edit(booting).drivers.clear();
  Edit(booting).attributes.clear();
  world.nodes = {booting};
  demand = ComputeDemand(query, world);
  EXPECT_EQ(demand.needed, 1) << "the probe boots";
  EXPECT_EQ(demand.used_idle, 1);
  group.constraints = {{"${node.class}", "=", "web"}};
  world.nodes.clear();
  world.pending = {Waiting(group, 40)};
  EXPECT_EQ(ComputeDemand(query, world).needed, 0) << "its class is known";
}

TEST(Demand, no_list_of_a_server_orders_nodes_without_end) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("a", 4000, 0), std::int64_t{1} << 40),
                   Waiting(MakeWork("b", 0, 0), std::int64_t{1} << 40)};
  EXPECT_EQ(Of(world).added, kMaxAddedForGroup) << "the second group lies beside the first one";
}

TEST(Demand, D2_a_group_without_end_keeps_no_other_one_from_its_nodes) {
  World world = WorldThatIsFull();
  world.pending = {Waiting(MakeWork("endless", 4000, 0), 1'000'000),
                   Waiting(MakeWork("web", 4000, 0), 3)};
  const Demand demand = Of(world);
  EXPECT_EQ(demand.added, kMaxAddedForGroup + 3);
  EXPECT_EQ(First(demand).why, "more nodes are not counted");
  EXPECT_EQ(demand.groups.back().nodes, 3);
  EXPECT_EQ(demand.groups.back().why, "");
}

}  // namespace
}  // namespace nomad_harvester::demand
