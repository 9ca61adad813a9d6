// SPDX-License-Identifier: Apache-2.0
// Which nodes can be drained so that their work has another place.
#include "nomad_harvester/demand/fit.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "demand/builders.h"
#include "demand/dice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As Reader::WorldOf would have read it.
World ReadOf(std::vector<PoolNode> nodes, const std::vector<Group>& groups) {
  World world{.nodes = std::move(nodes)};
  for (const Group& group : groups) {
    world.groups[{group.ns, group.job, group.name}] = std::make_shared<const Group>(group);
  }
  return world;
}

std::string WaitsOf(const World& world, const std::string& node,
                    const std::set<std::string>& leaving = {}) {
  return ToString(CheckFit(world, leaving, {node}, Misfit::kPassedOver).nodes.at(0));
}

std::vector<bool> FitOf(const World& world, const std::vector<std::string>& nodes,
                        Misfit misfit = Misfit::kPassedOver) {
  std::vector<bool> fits;
  for (const NodeFit& each : CheckFit(world, {}, nodes, misfit).nodes) fits.push_back(each.fits());
  return fits;
}

TEST(Fit, C19_work_with_room_elsewhere_has_a_place) {
  const Group web = MakeWork("web", 1000, 1024);
  const World world = ReadOf({With(MakeNode("n1"), web, 2), With(MakeNode("n2"), web, 2)}, {web});
  EXPECT_EQ(WaitsOf(world, "n1"), "");
}

TEST(Fit, C19_what_has_no_place_is_named_with_its_number_and_its_size) {
  const Group web = MakeWork("web", 1000, 256);
  const World world = ReadOf({With(MakeNode("n1"), web, 3), With(MakeNode("n2"), web, 3)}, {web});
  EXPECT_EQ(WaitsOf(world, "n1"), "default/web.g: 2 of 3 allocations (1000 MHz, 256 MiB each)");
}

TEST(Fit, C19_the_only_node_of_a_pool_can_not_be_drained) {
  const Group web = MakeWork("web", 1000, 256);
  EXPECT_EQ(WaitsOf(ReadOf({With(MakeNode("n1"), web)}, {web}), "n1"),
            "default/web.g: 1 allocation (1000 MHz, 256 MiB)");
}

TEST(Fit, C19_a_node_without_such_work_needs_no_place) {
  Group logs = MakeWork("logs", 1000, 256);
  logs.job_type = "system";
  Group ends = MakeWork("ends", 1000, 256);
  PoolNode node = With(With(MakeNode("n1"), logs), ends);
  node.work.back().stops = true;
  EXPECT_EQ(WaitsOf(ReadOf({node}, {logs, ends}), "n1"), "");
  EXPECT_EQ(WaitsOf(ReadOf({}, {}), "n1"), "") << "Nomad does not know the node";
}

TEST(Fit, C19_of_a_node_that_is_down_nomad_has_moved_the_work) {
  const Group web = MakeWork("web", 1000, 256);
  PoolNode node = With(MakeNode("n1"), web);
  Edit(node).status = nomad::NodeStatus::kDown;
  EXPECT_EQ(WaitsOf(ReadOf({node}, {web}), "n1"), "");
}

TEST(Fit, C19_batch_work_moves_too) {
  Group batch = MakeWork("crunch", 1000, 256);
  batch.job_type = "batch";
  EXPECT_THAT(WaitsOf(ReadOf({With(MakeNode("n1"), batch)}, {batch}), "n1"), HasSubstr("crunch"));
}

TEST(Fit, C19_places_are_ready_nodes_that_take_work) {
  const Group web = MakeWork("web", 1000, 256);
  PoolNode ineligible = MakeNode("n2");
  Edit(ineligible).eligible = false;
  PoolNode boots = MakeNode("n3");
  Edit(boots).status = nomad::NodeStatus::kInitializing;
  PoolNode drains = MakeNode("n4");
  DrainByTarget(drains);
  for (const PoolNode& other : {ineligible, boots, drains}) {
    EXPECT_NE(WaitsOf(ReadOf({With(MakeNode("n1"), web), other}, {web}), "n1"), "")
        << other.node->id;
  }
  const World world = ReadOf({With(MakeNode("n1"), web), MakeNode("n5")}, {web});
  EXPECT_EQ(WaitsOf(world, "n1"), "");
  EXPECT_NE(WaitsOf(world, "n1", /*leaving=*/{"n5"}), "") << "its drain has just begun";
}

TEST(Fit, C19_what_a_node_lacks_makes_it_no_place) {
  Group web = MakeWork("web", 100, 128);
  web.constraints = {{"${attr.kernel.name}", "=", "windows"}};
  EXPECT_NE(WaitsOf(ReadOf({With(MakeNode("n1"), web), MakeNode("n2")}, {web}), "n1"), "");
  Group gpu = MakeWork("gpu", 100, 128);
  gpu.devices = {{.name = "gpu", .count = 1}};
  PoolNode with_gpu = MakeNode("n1");
  with_gpu.capacity.devices = {{"nvidia/gpu/T4", 1}};
  PoolNode other = with_gpu;
  Edit(other).id = "n2";
  EXPECT_NE(WaitsOf(ReadOf({With(with_gpu, gpu), MakeNode("n2")}, {gpu}), "n1"), "");
  EXPECT_EQ(WaitsOf(ReadOf({With(with_gpu, gpu), other}, {gpu}), "n1"), "");
  Group port = MakeWork("port", 100, 128);
  port.static_ports = {80};
  EXPECT_NE(WaitsOf(ReadOf({With(MakeNode("n1"), port), With(MakeNode("n2"), port)}, {port}), "n1"),
            "");
  EXPECT_EQ(WaitsOf(ReadOf({With(MakeNode("n1"), port), MakeNode("n2")}, {port}), "n1"), "");
}

TEST(Fit, C19_distinct_hosts_and_values_are_used_by_the_work_that_stays) {
  Group alone = MakeWork("alone", 100, 128);
  alone.distinct = {{.property = "${node.unique.id}", .whole_job = true}};
  EXPECT_NE(
      WaitsOf(ReadOf({With(MakeNode("n1"), alone), With(MakeNode("n2"), alone)}, {alone}), "n1"),
      "");
  EXPECT_EQ(
      WaitsOf(ReadOf({With(MakeNode("n1"), alone), With(MakeNode("n2"), alone), MakeNode("n3")},
                     {alone}),
              "n1"),
      "");
  Group rack = MakeWork("rack", 100, 128);
  rack.distinct = {{.property = "${meta.rack}", .limit = 1}};
  const auto in = [](PoolNode node, const std::string& value) {
    Edit(node).meta["rack"] = value;
    return node;
  };
  const PoolNode first = in(With(MakeNode("n1"), rack), "a");
  const PoolNode second = in(With(MakeNode("n2"), rack), "b");
  EXPECT_EQ(WaitsOf(ReadOf({first, second, in(MakeNode("n3"), "a")}, {rack}), "n1"), "")
      << "its own value is free once it has left";
  EXPECT_NE(WaitsOf(ReadOf({first, second, in(MakeNode("n3"), "b")}, {rack}), "n1"), "");
  EXPECT_NE(WaitsOf(ReadOf({first, second, MakeNode("n3")}, {rack}), "n1"), "") << "it has no rack";
}

TEST(Fit, C19_a_host_is_used_until_the_client_has_ended_the_work_and_a_value_is_not) {
  Group alone = MakeWork("alone", 100, 128);
  alone.distinct = {{.property = "${node.unique.id}", .whole_job = true}};
  const PoolNode victim = With(MakeNode("n1"), alone);
  PoolNode ends = With(MakeNode("n2"), alone);
  Edit(ends).meta["rack"] = "a";
  ends.work.back().stops = true;
  EXPECT_NE(WaitsOf(ReadOf({victim, ends}, {alone}), "n1"), "");
  PoolNode leaves = With(MakeNode("n2"), alone);
  leaves.work.back().leaves = true;
  EXPECT_NE(WaitsOf(ReadOf({victim, leaves, MakeNode("n3")}, {alone}), "n1"), "");
  alone.distinct = {{.property = "${meta.rack}", .whole_job = true}};
  EXPECT_EQ(WaitsOf(ReadOf({victim, ends}, {alone}), "n1"), "");
}

// Nomad may put the small one where the large one must go.
TEST(Fit, C19_a_place_that_other_moving_work_can_take_away_is_none) {
  const Group large = MakeWork("large", 3000, 256);
  const Group small = MakeWork("small", 1500, 256);
  const Group stays = MakeWork("stays", 2500, 256);
  const PoolNode victim = With(With(MakeNode("n1"), large), small);
  World world = ReadOf({victim, MakeNode("n2"), With(MakeNode("n3"), stays)}, {large, small});
  EXPECT_EQ(WaitsOf(world, "n1"),
            "default/large.g: 1 allocation (3000 MHz, 256 MiB), if Nomad puts other work into the "
            "room that there is");
  world.nodes.push_back(MakeNode("n4"));
  EXPECT_EQ(WaitsOf(world, "n1"), "");
}

TEST(Fit, C19_a_static_port_may_be_taken_as_a_dynamic_one) {
  Group port = MakeWork("port", 100, 128);
  port.static_ports = {26257};
  const Group other = MakeWork("other", 100, 128);
  World world = ReadOf({With(With(MakeNode("n1"), port), other), MakeNode("n2")}, {port, other});
  EXPECT_EQ(WaitsOf(world, "n1"), "");
  world.nodes[0].work.back().ports = {20001};
  EXPECT_THAT(WaitsOf(world, "n1"), HasSubstr("default/port.g: 1 allocation"));
  world.nodes.push_back(MakeNode("n3"));
  EXPECT_EQ(WaitsOf(world, "n1"), "") << "it takes one place at most";
}

TEST(Fit, C19_work_that_is_alike_fills_nodes_to_the_brim) {
  const Group web = MakeWork("web", 500, 256);
  const World world = ReadOf(
      {With(MakeNode("n1"), web, 8), With(MakeNode("n2"), web, 4), With(MakeNode("n3"), web, 4)},
      {web});
  EXPECT_EQ(WaitsOf(world, "n1"), "");
}

TEST(Fit, C19_pending_work_competes_for_the_room) {
  const Group web = MakeWork("web", 1000, 256);
  World world = ReadOf({With(MakeNode("n1"), web), MakeNode("n2")}, {web});
  world.pending = {Waiting(MakeWork("new", 1000, 256), 4)};
  EXPECT_NE(WaitsOf(world, "n1"), "");
  world.pending = {Waiting(MakeWork("new", 1000, 256), 3)};
  EXPECT_EQ(WaitsOf(world, "n1"), "");
  world.pending = {Waiting(MakeWork("huge", 9000, 256), 3)};
  EXPECT_EQ(WaitsOf(world, "n1"), "") << "it has no place anyway";
  world.pending = {Waiting(MakeWork("new", 1000, 256), 4, /*overdue=*/true)};
  EXPECT_EQ(WaitsOf(world, "n1"), "") << "Nomad does not place it there";
}

TEST(Fit, C19_work_that_nomad_leaves_waiting_has_no_place_that_is_known) {
  const Group web = MakeWork("web", 1000, 256);
  World world = ReadOf({With(MakeNode("n1"), web), MakeNode("n2")}, {web});
  world.pending = {Waiting(web, 1, /*overdue=*/true)};
  EXPECT_THAT(WaitsOf(world, "n1"),
              HasSubstr("which cannot be told: Nomad leaves other allocations of it waiting"));
}

TEST(Fit, C19_a_drain_takes_no_place_from_what_waits_and_has_one) {
  World world = ReadOf({MakeNode("n1"), With(MakeNode("n2"), MakeWork("web", 4000, 256))}, {});
  world.pending = {Waiting(MakeWork("new", 1000, 256), 1)};
  EXPECT_THAT(WaitsOf(world, "n1"), HasSubstr("default/new.g: 1 allocation"));
}

TEST(Fit, C19_a_drain_takes_no_place_from_what_other_drains_move) {
  const Group web = MakeWork("web", 1000, 256);
  World world = ReadOf({With(MakeNode("n1"), web), MakeNode("n2")}, {web});
  EXPECT_NE(WaitsOf(world, "n2", /*leaving=*/{"n1"}), "");
  world.nodes.push_back(MakeNode("n3"));
  EXPECT_EQ(WaitsOf(world, "n2", /*leaving=*/{"n1"}), "");
}

// The placements are read before the node, and show nothing of the drain.
TEST(Fit, C19_the_work_of_a_node_whose_drain_has_just_ended_needs_a_place) {
  const Group web = MakeWork("web", 1000, 256);
  PoolNode drained = With(MakeNode("n1"), web);
  DrainByTarget(drained);
  Edit(drained).draining = false;
  Edit(drained).last_drain->status = nomad::DrainStatus::kComplete;
  World world = ReadOf({drained, MakeNode("n2")}, {web});
  EXPECT_NE(WaitsOf(world, "n2"), "");
  Edit(world.nodes[0]).eligible = true;
  EXPECT_EQ(WaitsOf(world, "n2"), "") << "its drain is long over";
}

TEST(Fit, C19_a_victim_uses_up_room_and_one_that_stays_does_not) {
  const Group web = MakeWork("web", 2000, 256);
  const Group whale = MakeWork("whale", 4000, 256);
  const World world = ReadOf({With(MakeNode("n1"), whale), With(MakeNode("n2"), web),
                              With(MakeNode("n3"), web), With(MakeNode("n4"), web)},
                             {web, whale});
  EXPECT_THAT(FitOf(world, {"n1", "n2", "n3"}), ElementsAre(false, true, false));
  EXPECT_THAT(FitOf(world, {"n3", "n1", "n4"}), ElementsAre(true, false, false));
}

TEST(Fit, C19_with_report_each_victim_is_drained_and_work_is_named_once) {
  const Group whale = MakeWork("whale", 4000, 256);
  const Group web = MakeWork("web", 2000, 256);
  const World world =
      ReadOf({With(MakeNode("n1"), whale), With(MakeNode("n2"), web), With(MakeNode("n3"), web)},
             {web, whale});
  const std::vector<NodeFit> fits = CheckFit(world, {}, {"n1", "n2"}, Misfit::kDrained).nodes;
  EXPECT_THAT(ToString(fits.at(0)), HasSubstr("whale"));
  EXPECT_EQ(ToString(fits.at(1)), "") << "the whale has no place on n3, which is left for web";
}

TEST(Fit, C19_what_is_not_compared_cannot_be_told) {
  Group volume = MakeWork("db", 100, 128);
  volume.csi_volumes = true;
  Group network = MakeWork("dns", 100, 128);
  network.host_networks = true;
  Group device = MakeWork("gpu", 100, 128);
  device.devices = {
      {.name = "gpu", .count = 1, .constraints = {{"${device.attr.memory}", ">", "8"}}}};
  for (const Group& group : {volume, network, device}) {
    EXPECT_THAT(WaitsOf(ReadOf({With(MakeNode("n1"), group), MakeNode("n2")}, {group}), "n1"),
                HasSubstr("which cannot be told: nodes "))
        << group.job;
  }
  const Group gone = MakeWork("gone", 100, 128);
  EXPECT_EQ(WaitsOf(ReadOf({With(MakeNode("n1"), gone), MakeNode("n2")}, {}), "n1"),
            "default/gone.g: 1 allocation (100 MHz, 128 MiB), which cannot be told: its job is "
            "gone, or has no such group any more");
}

TEST(Fit, C19_of_a_job_that_is_stopped_nothing_moves) {
  Group web = MakeWork("web", 1000, 256);
  web.runnable = false;
  EXPECT_EQ(WaitsOf(ReadOf({With(MakeNode("n1"), web)}, {web}), "n1"), "");
}

TEST(Fit, C19_work_is_as_large_as_what_runs_if_its_job_is_smaller_now) {
  const Group was = MakeWork("web", 3000, 256);
  const Group is = MakeWork("web", 1000, 256);
  const Group stays = MakeWork("stays", 2000, 256);
  const World world = ReadOf({With(MakeNode("n1"), was), With(MakeNode("n2"), stays)}, {is});
  EXPECT_THAT(WaitsOf(world, "n1"), HasSubstr("(3000 MHz, 256 MiB)"));
  const Group had = MakeWork("web", 100, 8000);
  const Group has = MakeWork("web", 100, 256);
  EXPECT_THAT(
      WaitsOf(ReadOf({With(MakeNode("n1"), had), With(MakeNode("n2"), stays)}, {has}), "n1"),
      HasSubstr("(100 MHz, 8000 MiB)"));
}

TEST(Fit, C19_cores_take_the_share_of_each_node) {
  Group cores = MakeWork("cores", 0, 256);
  cores.need.cores = 2;
  PoolNode victim = MakeNode("n1");
  victim.work.push_back(Running(cores));
  victim.work.back().uses.cpu = 2000;
  const Group stays = MakeWork("stays", 2500, 256);
  EXPECT_NE(WaitsOf(ReadOf({victim, With(MakeNode("n2"), stays)}, {cores}), "n1"), "");
  EXPECT_EQ(WaitsOf(ReadOf({victim, MakeNode("n2")}, {cores}), "n1"), "");
}

// --- Whatever Nomad does. Each allocation goes to any node that can hold it, in any order.

constexpr unsigned kMixes = 1000;
constexpr int kOrders = 10;

// A node by its sums alone, without the code under test.
struct Machine {
  std::string id;
  std::string rack;
  bool takes_work = true;
  std::int64_t cpu = 4000;
  std::int64_t memory_mb = 8192;
  std::int64_t gpus = 2;
  std::set<std::uint16_t> ports{};
  std::multiset<std::string> jobs{};
};

std::int64_t GpusOf(const Group& group) {
  return group.devices.empty() ? 0 : group.devices.front().count;
}

bool Holds(const Machine& machine, const Group& group, const std::vector<Machine>& all) {
  if (!machine.takes_work || machine.cpu < group.need.cpu + 1000 * group.need.cores) return false;
  if (machine.memory_mb < group.need.memory_mb || machine.gpus < GpusOf(group)) return false;
  for (const std::uint16_t port : group.static_ports) {
    if (machine.ports.contains(port)) return false;
  }
  if (!group.constraints.empty() && machine.rack.empty()) return false;
  for (const Distinct& distinct : group.distinct) {
    std::int64_t used = 0;
    const bool by_host = distinct.property == "${node.unique.id}";
    if (!by_host && machine.rack.empty()) return false;
    for (const Machine& other : all) {
      const bool same = by_host ? other.id == machine.id : other.rack == machine.rack;
      if (same) used += static_cast<std::int64_t>(other.jobs.count(group.job));
    }
    if (used >= distinct.limit) return false;
  }
  return true;
}

void Put(Machine& machine, const Group& group) {
  machine.cpu -= group.need.cpu + 1000 * group.need.cores;
  machine.memory_mb -= group.need.memory_mb;
  machine.gpus -= GpusOf(group);
  machine.ports.insert(group.static_ports.begin(), group.static_ports.end());
  machine.jobs.insert(group.job);
}

Group AnyGroup(Dice& dice, const std::string& job) {
  Group group = MakeWork(job, 100 * (1 + dice.Below(20)), 256 * (1 + dice.Below(10)));
  if (dice.OneIn(6)) group.need = {.cores = 1 + dice.Below(2), .memory_mb = 512};
  if (dice.OneIn(6)) group.static_ports = {static_cast<std::uint16_t>(80 + dice.Below(2))};
  if (dice.OneIn(6)) group.devices = {{.name = "gpu", .count = 1 + dice.Below(2)}};
  if (dice.OneIn(5)) group.distinct = {{.property = "${node.unique.id}", .whole_job = true}};
  if (dice.OneIn(8)) group.distinct = {{.property = "${meta.rack}", .limit = 2}};
  if (dice.OneIn(8)) group.constraints = {{"${meta.rack}", "is_set", ""}};
  return group;
}

struct Mix {
  std::vector<Machine> machines{};
  std::vector<std::vector<Group>> work{};  // of each machine
  std::vector<Group> groups{};
};

Mix AnyMix(Dice& dice) {
  Mix mix;
  const std::int64_t machines = 2 + dice.Below(7);
  for (std::int64_t i = 0; i < machines; ++i) {
    Machine machine{.id = "n" + std::to_string(i)};
    if (!dice.OneIn(4)) machine.rack = "r" + std::to_string(dice.Below(3));
    mix.machines.push_back(machine);
  }
  mix.work.resize(mix.machines.size());
  const std::int64_t groups = 1 + dice.Below(6);
  for (std::int64_t g = 0; g < groups; ++g) {
    const Group group = AnyGroup(dice, "j" + std::to_string(g));
    mix.groups.push_back(group);
    for (std::int64_t count = 1 + dice.Below(6); count > 0; --count) {
      const auto at = static_cast<std::size_t>(dice.Below(machines));
      if (!Holds(mix.machines[at], group, mix.machines)) continue;
      Put(mix.machines[at], group);
      mix.work[at].push_back(group);
    }
  }
  for (std::size_t i = 0; i < mix.machines.size(); ++i) {
    mix.machines[i].takes_work = !dice.OneIn(8);
  }
  return mix;
}

World WorldOf(const Mix& mix) {
  std::vector<PoolNode> nodes;
  for (std::size_t i = 0; i < mix.machines.size(); ++i) {
    const Machine& machine = mix.machines[i];
    PoolNode node = MakeNode(machine.id);
    node.capacity.devices = {{"nvidia/gpu/T4", 2}};
    if (!machine.rack.empty()) Edit(node).meta["rack"] = machine.rack;
    Edit(node).eligible = machine.takes_work;
    for (const Group& group : mix.work[i]) {
      Placed placed = Running(group);
      placed.uses.cpu += 1000 * group.need.cores;
      placed.uses.devices = {{"nvidia/gpu/T4", GpusOf(group)}};
      node.work.push_back(std::move(placed));
    }
    nodes.push_back(std::move(node));
  }
  return ReadOf(std::move(nodes), mix.groups);
}

// Drains the machines as Nomad does: each allocation leaves as it is placed anew. Returns the job
// that has no place; empty: none.
std::string JobWithoutPlace(Mix mix, const std::set<std::size_t>& drained, Dice& dice) {
  std::vector<std::pair<std::size_t, Group>> moving;
  for (const std::size_t at : drained) {
    mix.machines[at].takes_work = false;
    for (const Group& group : mix.work[at]) moving.emplace_back(at, group);
  }
  std::shuffle(moving.begin(), moving.end(), dice.engine());
  for (const auto& [from, group] : moving) {
    mix.machines[from].jobs.erase(mix.machines[from].jobs.find(group.job));
    std::vector<Machine*> able;
    for (Machine& machine : mix.machines) {
      if (Holds(machine, group, mix.machines)) able.push_back(&machine);
    }
    if (able.empty()) return group.job;
    Put(*able[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(able.size())))], group);
  }
  return "";
}

TEST(FitProperty, C19_what_fits_has_a_place_wherever_nomad_puts_the_rest) {
  int fitting = 0;
  int not_fitting = 0;
  int missed = 0;
  for (unsigned seed = 1; seed <= kMixes; ++seed) {
    Dice dice(seed);
    const Mix mix = AnyMix(dice);
    std::vector<std::size_t> order(mix.machines.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), dice.engine());
    order.resize(1 + static_cast<std::size_t>(dice.Below(3)) % order.size());
    std::vector<std::string> nodes;
    for (const std::size_t at : order) nodes.push_back(mix.machines[at].id);
    const std::vector<bool> fits = FitOf(WorldOf(mix), nodes);
    std::set<std::size_t> drained;
    for (std::size_t i = 0; i < order.size(); ++i) {
      (fits[i] ? fitting : not_fitting) += mix.work[order[i]].empty() ? 0 : 1;
      if (fits[i]) drained.insert(order[i]);
    }
    for (int i = 0; i < kOrders; ++i) {
      ASSERT_EQ(JobWithoutPlace(mix, drained, dice), "") << "seed " << seed;
    }
    // The first one that does not fit: does it in every order that is tried?
    const auto first = std::find(fits.begin(), fits.end(), false);
    if (first != fits.begin() || first == fits.end()) continue;
    bool waits = false;
    for (int i = 0; i < kOrders && !waits; ++i) {
      waits = !JobWithoutPlace(mix, {order.front()}, dice).empty();
    }
    missed += waits ? 0 : 1;
  }
  EXPECT_GE(fitting, static_cast<int>(kMixes) / 4);
  EXPECT_GE(not_fitting, static_cast<int>(kMixes) / 4);
  EXPECT_LE(missed, not_fitting / 3) << "nodes that are passed over needlessly";
}

TEST(FitProperty, C19_the_order_of_what_was_read_changes_nothing) {
  for (unsigned seed = 1; seed <= kMixes; ++seed) {
    Dice dice(seed);
    World world = WorldOf(AnyMix(dice));
    std::vector<std::string> nodes;
    for (const PoolNode& node : world.nodes) nodes.push_back(node.node->id);
    const std::vector<bool> before = FitOf(world, nodes);
    std::shuffle(world.nodes.begin(), world.nodes.end(), dice.engine());
    for (PoolNode& node : world.nodes) {
      std::shuffle(node.work.begin(), node.work.end(), dice.engine());
    }
    ASSERT_EQ(FitOf(world, nodes), before) << "seed " << seed;
  }
}

TEST(Fit, C19_a_full_pool_of_many_nodes_is_looked_at_in_a_moment) {
  std::vector<Group> groups;
  for (int i = 0; i < 100; ++i) groups.push_back(MakeWork("j" + std::to_string(i), 1000, 512));
  std::vector<PoolNode> all;
  std::vector<std::string> nodes;
  for (int i = 0; i < 1000; ++i) {
    PoolNode node = MakeNode("n" + std::to_string(1000 + i));
    for (int k = 0; k < 4; ++k) node = With(node, groups[static_cast<std::size_t>(i + k) % 100]);
    nodes.push_back(node.node->id);
    all.push_back(std::move(node));
  }
  const std::vector<bool> fits = FitOf(ReadOf(std::move(all), groups), nodes);
  EXPECT_THAT(std::set<bool>(fits.begin(), fits.end()), ElementsAre(false));
}

}  // namespace
}  // namespace nomad_harvester::demand
