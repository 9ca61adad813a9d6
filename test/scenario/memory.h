// SPDX-License-Identifier: Apache-2.0
// What a process of the plugin keeps in memory (rule I7).
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_MEMORY_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_MEMORY_H_

#include <cstdint>

namespace nomad_harvester::scenario {

struct MemoryUse {
  // Allocated and not freed by the process, at rest with two VMs.
  std::int64_t held = 0;
  // The same after the process has ended: what no object of the plugin owned.
  std::int64_t leaked = 0;
  int requests = 0;
  // VMs that have come and gone, each with names, a node, volumes and a Secret of its own.
  int vms = 0;
};

// After so many Scales of one pool: in and out, with failing requests, starts and joins, reloads,
// and nodes that come back under new IDs; by a seed. A program that uses this counts its
// allocations.
MemoryUse UseMemory(int actions, std::uint64_t seed);

// I7: what `many` actions may leave beyond what a few have left.
inline constexpr std::int64_t kMemoryGrowth = 64 * 1024;

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_MEMORY_H_
