// SPDX-License-Identifier: Apache-2.0
// What is free on one node, and how much work of a group fits (hashicorp/nomad:scheduler/rank.go,
// Next; nomad/structs/funcs.go, AllocsFit).
#ifndef NOMAD_HARVESTER_SRC_DEMAND_ROOM_H_
#define NOMAD_HARVESTER_SRC_DEMAND_ROOM_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "nomad_harvester/demand/work.h"

namespace nomad_harvester::demand {

// True if the device "vendor/type/name" is what a group asks for by "type", "vendor/type" or all
// three. Constraints on attributes of devices, which are not read, count as met.
bool MatchesDevice(std::string_view asked, std::string_view device);

// Makes `need` as large as what the allocation uses. Not its devices.
void GrowToHold(const Placed& placed, std::int64_t cpu_per_core, Resources& need);
// Makes what the group needs as large as that, and names it after the allocation.
void GrowToHold(const Placed& placed, std::int64_t cpu_per_core, Group& group);

inline double ShareOf(std::int64_t amount, std::int64_t all) {
  return static_cast<double>(amount) / static_cast<double>(std::max<std::int64_t>(1, all));
}

class Room {
 public:
  Room(const Resources& capacity, std::int64_t cpu_per_core)
      : free_(capacity), cpu_per_core_(cpu_per_core) {}

  // A node with more work than it has room for has none.
  void Occupy(const Placed& placed);
  // How many allocations of the group fit, `wanted` at most.
  std::int64_t HowMany(const Group& group, std::int64_t wanted) const;
  // For `count` that fit.
  void Take(const Group& group, std::int64_t count);
  // Why not one fits: "needs 2048 MiB of memory, there are 1024"; empty if one does.
  std::string WhyNone(const Group& group) const;

  const Resources& free() const { return free_; }
  // The smallest free part of its CPU and memory, from 0 to 1.
  double FreeShareOf(const Resources& capacity) const;

 private:
  // With the CPU of its cores.
  std::int64_t NeedOf(const Group& group, std::int64_t Resources::*amount) const {
    const bool is_cpu = amount == &Resources::cpu;
    return group.need.*amount + (is_cpu ? group.need.cores * cpu_per_core_ : 0);
  }

  Resources free_;
  std::int64_t cpu_per_core_;
  std::set<std::uint16_t> ports_{};
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_ROOM_H_
