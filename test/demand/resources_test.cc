// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>

#include "nomad_harvester/demand/work.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "room.h"

namespace nomad_harvester::demand {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

nomad::Job Job() {
  nomad::Job job;
  job.id = "web";
  job.ns = "team";
  job.type = "service";
  job.node_pool = "gpu";
  job.datacenters = {"dc1"};
  job.priority = 70;
  return job;
}

nomad::TaskGroup TaskGroup() {
  nomad::TaskGroup group;
  group.name = "g";
  group.disk_mb = 300;
  group.network_mode = "bridge";
  group.static_ports = {80};
  group.tasks = {
      {.name = "main", .driver = "docker", .cpu_shares = 500, .memory_mb = 256},
      {.name = "init", .driver = "exec", .hook = "prestart", .cpu_shares = 900, .memory_mb = 64},
      {.name = "proxy",
       .driver = "docker",
       .hook = "prestart",
       .sidecar = true,
       .cpu_shares = 50,
       .memory_mb = 32}};
  return group;
}

TEST(MakeGroup, adds_up_what_runs_at_one_time) {
  const Group group = MakeGroup(Job(), TaskGroup());
  EXPECT_EQ(group.need.cpu, 950);
  EXPECT_EQ(group.need.memory_mb, 288);
  EXPECT_EQ(group.need.disk_mb, 300);
  EXPECT_EQ(group.priority, 70);
  EXPECT_EQ(group.node_pool, "gpu");
  EXPECT_EQ(group.network_mode, "bridge");
  EXPECT_THAT(group.drivers, ElementsAre("docker", "exec"));
  EXPECT_TRUE(group.runnable);
}

TEST(MakeGroup, each_task_has_cores_devices_and_ports_of_its_own) {
  nomad::TaskGroup tasks = TaskGroup();
  for (nomad::Task& task : tasks.tasks) {
    task.cores = 2;
    task.cpu_shares = 0;
    task.devices = {{.name = "gpu", .count = 0}};
  }
  tasks.tasks[0].static_ports = {22};
  const Group group = MakeGroup(Job(), tasks);
  EXPECT_EQ(group.need.cores, 6);
  EXPECT_EQ(group.need.cpu, 0);
  EXPECT_THAT(group.devices, SizeIs(3));
  EXPECT_EQ(group.devices[0].count, 1) << "a request is for one at least";
  EXPECT_THAT(group.static_ports, UnorderedElementsAre(22, 80));
}

TEST(MakeGroup, keeps_each_constraint_once_and_sets_distinct_ones_apart) {
  nomad::Job job = Job();
  nomad::TaskGroup tasks = TaskGroup();
  const Constraint linux = {"${attr.kernel.name}", "=", "linux"};
  job.constraints = {linux, {"", "distinct_hosts", ""}};
  tasks.constraints = {
      linux, {"${meta.rack}", "distinct_property", "3"}, {"", "distinct_hosts", "false"}};
  tasks.tasks[0].constraints = {{"${meta.disk}", "is_set", ""}, linux};
  const Group group = MakeGroup(job, tasks);
  EXPECT_THAT(group.constraints, ElementsAre(linux, Constraint{"${meta.disk}", "is_set", ""}));
  ASSERT_THAT(group.distinct, SizeIs(2));
  EXPECT_EQ(group.distinct[0].property, "${node.unique.id}");
  EXPECT_EQ(group.distinct[0].limit, 1);
  EXPECT_TRUE(group.distinct[0].whole_job);
  EXPECT_EQ(group.distinct[1].property, "${meta.rack}");
  EXPECT_EQ(group.distinct[1].limit, 3);
  EXPECT_FALSE(group.distinct[1].whole_job);
}

TEST(MakeGroup, tells_host_volumes_from_those_of_which_nodes_tell_nothing) {
  nomad::TaskGroup tasks = TaskGroup();
  tasks.volumes = {{.type = "host", .source = "db", .read_only = true}};
  Group group = MakeGroup(Job(), tasks);
  ASSERT_THAT(group.host_volumes, SizeIs(1));
  EXPECT_EQ(group.host_volumes[0].name, "db");
  EXPECT_TRUE(group.host_volumes[0].read_only);
  EXPECT_FALSE(group.csi_volumes);
  tasks.volumes = {{.type = "csi", .source = "db"}};
  EXPECT_TRUE(MakeGroup(Job(), tasks).csi_volumes);
  tasks.volumes = {{.type = "host", .source = "db", .per_alloc = true}};
  EXPECT_TRUE(MakeGroup(Job(), tasks).csi_volumes);
}

TEST(MakeGroup, keeps_that_ports_are_on_a_named_network_of_the_host) {
  nomad::TaskGroup tasks = TaskGroup();
  EXPECT_FALSE(MakeGroup(Job(), tasks).host_networks);
  tasks.host_networks = true;
  EXPECT_TRUE(MakeGroup(Job(), tasks).host_networks);
}

TEST(MakeGroup, a_stopped_job_is_not_runnable) {
  nomad::Job job = Job();
  job.stop = true;
  EXPECT_FALSE(MakeGroup(job, TaskGroup()).runnable);
}

TEST(MakePoolNode, has_what_its_client_does_not_reserve) {
  nomad::Node node;
  node.id = "n1";
  node.resources = nomad::NodeResources{
      .cpu_shares = 8000, .memory_mb = 1000, .disk_mb = 500, .cores = 4, .total_cores = 8};
  node.reserved = {.cpu_shares = 500, .memory_mb = 2000, .disk_mb = 100, .cores = 1};
  node.devices = {{.vendor = "nvidia", .type = "gpu", .name = "T4", .healthy = 2}};
  const PoolNode made = MakePoolNode(std::make_shared<const nomad::Node>(node));
  EXPECT_EQ(made.capacity.cpu, 7500);
  EXPECT_EQ(made.capacity.memory_mb, 0);
  EXPECT_EQ(made.capacity.disk_mb, 400);
  EXPECT_EQ(made.capacity.cores, 3);
  EXPECT_EQ(made.cpu_per_core, 1000);
  EXPECT_THAT(made.capacity.devices, ElementsAre(Pair("nvidia/gpu/T4", 2)));
  EXPECT_EQ(made.node->id, "n1");
  node.resources = std::nullopt;
  EXPECT_EQ(MakePoolNode(std::make_shared<const nomad::Node>(node)).capacity.cpu, 0);
}

TEST(MakePlaced, is_what_the_allocation_holds) {
  const Placed placed = MakePlaced({.ns = "team",
                                    .job = "web",
                                    .group = "g",
                                    .job_type = "service",
                                    .desired_status = "run",
                                    .migrate = true,
                                    .cpu_shares = 1,
                                    .memory_mb = 2,
                                    .disk_mb = 3,
                                    .cores = 4,
                                    .devices = {{"a/b/c", 5}},
                                    .ports = {80, 20000}});
  EXPECT_EQ(placed.job, "web");
  EXPECT_TRUE(placed.leaves);
  EXPECT_FALSE(placed.stops);
  EXPECT_TRUE(MakePlaced({.desired_status = "evict"}).stops);
  EXPECT_EQ(placed.uses.cpu, 1);
  EXPECT_EQ(placed.uses.memory_mb, 2);
  EXPECT_EQ(placed.uses.disk_mb, 3);
  EXPECT_EQ(placed.uses.cores, 4);
  EXPECT_THAT(placed.uses.devices, ElementsAre(Pair("a/b/c", 5)));
  EXPECT_THAT(placed.ports, ElementsAre(80, 20000));
}

TEST(CountPending, what_was_placed_since_the_evaluation_waits_no_more) {
  const nomad::PlacementFailure failure{.unplaced = 10};
  EXPECT_EQ(CountPending(failure, 7), 7);
  EXPECT_EQ(CountPending(failure, 0), 0) << "only another group of its job waits";
  EXPECT_EQ(CountPending(failure, 12), 10);
  EXPECT_EQ(CountPending(failure, std::nullopt), 10) << "the job was registered since";
}

TEST(MatchesDevice, by_type_by_vendor_and_type_or_by_all_three) {
  const char* const device = "nvidia/gpu/Tesla T4";
  for (const char* asked : {"gpu", "nvidia/gpu", "nvidia/gpu/Tesla T4"}) {
    EXPECT_TRUE(MatchesDevice(asked, device)) << asked;
  }
  for (const char* asked : {"fpga", "nvidia", "amd/gpu", "nvidia/fpga", "nvidia/gpu/T4"}) {
    EXPECT_FALSE(MatchesDevice(asked, device)) << asked;
  }
}

}  // namespace
}  // namespace nomad_harvester::demand
