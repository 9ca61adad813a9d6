// SPDX-License-Identifier: Apache-2.0
// What holds for any work, on random worlds.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nomad_harvester/demand/packing.h"

#include "demand/builders.h"
#include "demand/dice.h"
#include "gtest/gtest.h"

namespace nomad_harvester::demand {
namespace {

constexpr int kWorlds = 400;

Group RandomGroup(Dice& dice, const std::string& job) {
  Group group = MakeWork(job, 100 * (1 + dice.Below(35)), 256 * (1 + dice.Below(30)));
  group.need.disk_mb = 100 * dice.Below(20);
  group.priority = 10 * (1 + dice.Below(9));
  if (dice.OneIn(6)) group.need.cores = 1 + dice.Below(3);
  if (dice.OneIn(5)) group.static_ports = {static_cast<std::uint16_t>(80 + dice.Below(2))};
  if (dice.OneIn(6)) group.devices = {{.name = "gpu", .count = 1 + dice.Below(2)}};
  if (dice.OneIn(5)) group.distinct = {{.property = "${node.unique.id}", .whole_job = true}};
  if (dice.OneIn(8)) group.distinct.push_back({.property = "${meta.rack}", .limit = 2});
  if (dice.OneIn(6)) group.constraints = {{"${meta.rack}", "is_set", ""}};
  if (dice.OneIn(9)) group.constraints = {{"${attr.kernel.name}", "=", "windows"}};
  return group;
}

World RandomWorld(Dice& dice) {
  World world;
  Resources capacity = MakeNode("").capacity;
  capacity.devices = {{"nvidia/gpu/T4", 2}};
  const std::int64_t nodes = 1 + dice.Below(8);
  for (std::int64_t i = 0; i < nodes; ++i) {
    PoolNode node = MakeNode("n" + std::to_string(i), capacity);
    Edit(node).meta["rack"] = "r" + std::to_string(dice.Below(3));
    if (dice.OneIn(6)) Edit(node).status = nomad::NodeStatus::kInitializing;
    if (dice.OneIn(6)) Edit(node).eligible = false;
    if (dice.OneIn(9)) Edit(node).meta["harvester_protect"] = "true";
    const std::int64_t works = dice.Below(3);
    for (std::int64_t k = 0; k < works; ++k) {
      Group group = MakeWork("j" + std::to_string(dice.Below(6)), 500, 512);
      if (dice.OneIn(3)) group.static_ports = {80};
      node = With(node, group);
    }
    if (dice.OneIn(9) && !node.work.empty()) DrainByTarget(node);
    world.nodes.push_back(node);
  }
  const std::int64_t groups = 1 + dice.Below(6);
  for (std::int64_t i = 0; i < groups; ++i) {
    world.pending.push_back(
        Waiting(RandomGroup(dice, "j" + std::to_string(i)), 1 + dice.Below(12), dice.OneIn(4)));
  }
  if (dice.OneIn(3)) {
    Group system = MakeWork("logs", 300, 256);
    system.job_type = "system";
    world.system = {std::make_shared<const Group>(system)};
  }
  return world;
}

Query RandomQuery(Dice& dice) {
  Query query = BatchQuery();
  if (dice.OneIn(3)) query.headroom = {{.count = 2, .unit = {.cpu = 900, .memory_mb = 700}}};
  return query;
}

using Outcome = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::int64_t,
                           Verdict, std::string>;
std::vector<Outcome> OutcomesOf(const Demand& demand) {
  std::vector<Outcome> all;
  for (const GroupDemand& group : demand.groups) {
    all.emplace_back(group.group->job, group.group->name, group.pending, group.fits, group.nodes,
                     group.verdict, group.why);
  }
  return all;
}

TEST(DemandProperty, the_order_of_what_was_read_changes_nothing) {
  for (unsigned seed = 1; seed <= kWorlds; ++seed) {
    Dice dice(seed);
    World world = RandomWorld(dice);
    const Query query = RandomQuery(dice);
    const Demand demand = ComputeDemand(query, world);
    std::shuffle(world.nodes.begin(), world.nodes.end(), dice.engine());
    std::shuffle(world.pending.begin(), world.pending.end(), dice.engine());
    for (PoolNode& node : world.nodes) {
      std::shuffle(node.work.begin(), node.work.end(), dice.engine());
    }
    const Demand shuffled = ComputeDemand(query, world);
    ASSERT_EQ(shuffled.needed, demand.needed) << "seed " << seed;
    ASSERT_EQ(OutcomesOf(shuffled), OutcomesOf(demand)) << "seed " << seed;
  }
}

TEST(DemandProperty, D1_the_count_is_the_sum_of_its_parts_and_never_less_than_what_stays) {
  for (unsigned seed = 1; seed <= kWorlds; ++seed) {
    Dice dice(seed);
    const World world = RandomWorld(dice);
    const Demand demand = ComputeDemand(RandomQuery(dice), world);
    ASSERT_EQ(demand.needed,
              demand.busy + demand.kept + demand.used_idle + demand.away + demand.added);
    std::int64_t stays = 0;
    for (const PoolNode& node : world.nodes) {
      const bool has_work = !node.work.empty() && !node.node->draining;
      stays += has_work || node.node->meta.count("harvester_protect") > 0 ? 1 : 0;
    }
    ASSERT_EQ(demand.busy + demand.kept, stays) << "seed " << seed;
    std::int64_t begun = 0;
    for (const GroupDemand& group : demand.groups) begun += group.nodes;
    ASSERT_EQ(begun, demand.added) << "seed " << seed;
  }
}

// Adds the new nodes to the world as Nomad would list them once they are ready.
World WithAdded(World world, const Demand& demand) {
  PoolNode model = MakeNode("");
  for (const PoolNode& node : world.nodes) model.capacity = node.capacity;
  for (std::int64_t i = 0; i < demand.added; ++i) {
    PoolNode node = MakeNode("new" + std::to_string(world.nodes.size()), model.capacity);
    // A value that all nodes share is one that a new node has.
    const auto& first = world.nodes.front().node->meta;
    const bool shared = std::all_of(world.nodes.begin(), world.nodes.end(), [&](const auto& n) {
      return n.node->meta.at("rack") == first.at("rack");
    });
    Edit(node).status_updated_at = world.at;
    Edit(node).meta["rack"] = shared ? first.at("rack") : "x";
    for (const auto& group : world.system) node = With(node, *group);
    world.nodes.push_back(node);
  }
  return world;
}

// Without what orders nothing, which nodes that are there may hold all the same.
World WithoutWhatOrdersNothing(World world, const Demand& demand) {
  for (const GroupDemand& group : demand.groups) {
    if (group.why.empty()) continue;
    std::erase_if(world.pending,
                  [&](const Pending& pending) { return pending.group == group.group; });
  }
  return world;
}

// With the nodes that were ordered, all that may order nodes fits. First fit packs them in another
// order once they are there, which asks for another node in a few worlds, and ends.
TEST(DemandProperty, D2_the_nodes_that_it_orders_are_enough) {
  int again = 0;
  for (unsigned seed = 1; seed <= kWorlds; ++seed) {
    Dice dice(seed);
    World world = RandomWorld(dice);
    const Query query = RandomQuery(dice);
    world = WithoutWhatOrdersNothing(world, ComputeDemand(query, world));
    Demand demand = ComputeDemand(query, world);
    int rounds = 0;
    for (; demand.added > 0; ++rounds) {
      ASSERT_LT(rounds, 3) << "seed " << seed;
      world = WithAdded(world, demand);
      demand = ComputeDemand(query, world);
    }
    again += rounds > 1 ? 1 : 0;
  }
  EXPECT_LE(again, kWorlds / 100);
}

// By the sums of what is needed alone, without the code under test.
TEST(DemandProperty, the_nodes_that_it_orders_have_as_much_as_the_work_needs) {
  for (unsigned seed = 1; seed <= kWorlds; ++seed) {
    Dice dice(seed);
    World world = RandomWorld(dice);
    for (PoolNode& node : world.nodes) Edit(node).eligible = false;  // all is new
    const Demand demand = ComputeDemand(BatchQuery(), world);
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    for (const GroupDemand& group : demand.groups) {
      if (group.verdict != Verdict::kNeedsNodes || !group.why.empty()) continue;
      cpu += group.pending * (group.group->need.cpu + 1000 * group.group->need.cores);
      memory += group.pending * group.group->need.memory_mb;
      if (!group.group->static_ports.empty() || !group.group->distinct.empty()) {
        const std::int64_t limit = group.group->distinct.empty() ? 1 : 2;
        ASSERT_GE(demand.added * limit, group.pending) << "seed " << seed;
      }
    }
    const std::int64_t system = world.system.empty() ? 0 : 1;
    ASSERT_GE(demand.added * (4000 - 300 * system), cpu) << "seed " << seed;
    ASSERT_GE(demand.added * (8192 - 256 * system), memory) << "seed " << seed;
  }
}

// First fit is not monotone in general: one more task can change where the others go. It never
// needs more than one node less for it.
TEST(DemandProperty, more_of_a_groups_work_never_needs_fewer_nodes_than_one_less) {
  int fewer = 0;
  for (unsigned seed = 1; seed <= kWorlds; ++seed) {
    Dice dice(seed);
    World world = RandomWorld(dice);
    const Query query = RandomQuery(dice);
    const std::int64_t before = ComputeDemand(query, world).needed;
    ++world.pending.front().count;
    const std::int64_t after = ComputeDemand(query, world).needed;
    ASSERT_GE(after, before - 1) << "seed " << seed;
    fewer += after < before ? 1 : 0;
  }
  EXPECT_LE(fewer, kWorlds / 50);
}

TEST(DemandProperty, a_large_cluster_is_packed_node_by_node_not_allocation_by_allocation) {
  World world;
  for (int i = 0; i < 2000; ++i) {
    world.nodes.push_back(With(MakeNode("n" + std::to_string(i)),
                               MakeWork("j" + std::to_string(i % 500), 100, 0), 5));
  }
  for (int i = 0; i < 200; ++i) {
    world.pending.push_back(Waiting(MakeWork("p" + std::to_string(i), 10, 1), 1'000'000));
  }
  const Demand demand = ComputeDemand(BatchQuery(), world);
  EXPECT_EQ(demand.added, kMaxAdded);
}

}  // namespace
}  // namespace nomad_harvester::demand
