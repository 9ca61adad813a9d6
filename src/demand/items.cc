// SPDX-License-Identifier: Apache-2.0
#include "items.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "pool_nodes.h"
#include "room.h"

namespace nomad_harvester::demand {
namespace {

double LargestShare(const Group& group, const Resources& of) {
  double share = 0;
  for (const auto each : kEachAmount) share = std::max(share, ShareOf(group.need.*each, of.*each));
  return share;
}

// Of allocations that Nomad has told to migrate, a blocked evaluation may count some or all.
void AddLeaving(const World& world, std::vector<Item>& items) {
  struct Leaving {
    Group group{};
    std::int64_t migrating = 0;
    std::int64_t others = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Leaving> leaving;
  for (const PoolNode& node : world.nodes) {
    for (const Placed& placed : node.work) {
      if (!Leaves(node, placed)) continue;
      Leaving& entry = leaving[GroupKey(placed, placed.group)];
      ++(placed.leaves ? entry.migrating : entry.others);
      GrowToHold(placed, node.cpu_per_core, entry.group);
    }
  }
  for (Item& item : items) {
    const auto found = leaving.find(GroupKey(*item.demand.group, item.demand.group->name));
    if (found == leaving.end()) continue;
    item.demand.pending =
        std::max(item.demand.pending, found->second.migrating) + found->second.others;
    leaving.erase(found);
  }
  for (auto& [key, entry] : leaving) {
    const std::int64_t count = entry.migrating + entry.others;
    items.push_back({.demand = {.group = std::make_shared<const Group>(std::move(entry.group)),
                                .pending = count}});
  }
}

Item MakeHeadroom(const Headroom& headroom) {
  Group group{.job = "headroom", .name = ToString(headroom), .need = headroom.unit};
  for (const auto& [device, count] : headroom.unit.devices) {
    group.devices.push_back({.name = device, .count = count});
  }
  Item item{.is_headroom = true};
  item.demand.group = std::make_shared<const Group>(std::move(group));
  item.demand.pending = headroom.count;
  return item;
}

}  // namespace

std::vector<Item> ItemsOf(const Query& query, const World& world, const Resources& scale) {
  std::vector<Item> items;
  for (const Pending& pending : world.pending) {
    if (pending.count <= 0) continue;
    items.push_back({.demand = {.group = pending.group, .pending = pending.count},
                     .create_index = pending.create_index,
                     .overdue = pending.overdue,
                     .blocked = pending.count});
  }
  AddLeaving(world, items);
  for (const Headroom& headroom : query.headroom) items.push_back(MakeHeadroom(headroom));
  for (Item& item : items) item.share = LargestShare(*item.demand.group, scale);
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    const auto key = [](const Item& item) {
      const Group& group = *item.demand.group;
      return std::tuple(item.is_headroom, -group.priority, item.create_index, -item.share,
                        GroupKey(group, group.name), -item.demand.pending, item.overdue);
    };
    return key(a) < key(b);
  });
  return items;
}

}  // namespace nomad_harvester::demand
