// SPDX-License-Identifier: Apache-2.0
// Orders the nodes of a pool for removal
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodeselector).
#ifndef NOMAD_HARVESTER_NODEPOOL_SELECTOR_H_
#define NOMAD_HARVESTER_NODEPOOL_SELECTOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/nomad/types.h"
#include "nomad_harvester/policy/strategies.h"

namespace nomad_harvester::nodepool {

using policy::SelectorStrategy;

// True if the strategy needs the nodes' allocations.
bool NeedsAllocations(SelectorStrategy strategy);

using AllocationsByNode = std::map<std::string, std::vector<nomad::Allocation>>;

// Indexes into `nodes` in the order in which the strategy removes them. Nodes that the strategy
// excludes (busy ones, for empty) are left out. Ties: for least_busy and empty the higher create
// index first, as in the SDK's lists, then the ID; oldest_create_index is the exact reverse of
// newest_create_index. A node without an entry in `allocations` has no allocations.
std::vector<std::size_t> SelectNodes(SelectorStrategy strategy,
                                     const std::vector<nomad::Node>& nodes,
                                     const AllocationsByNode& allocations);

// True if a drain of their node moves any of them: live ones of service and batch jobs, and those
// whose job's type is not reported.
bool HasWorkToMove(const std::vector<nomad::Allocation>& allocations);

// The SDK's least_busy score: the ceiling of the mean of two rounded-up percentages, the CPU and
// the memory that *running* allocations use of the node's resources after its reservation. A node
// without resources scores 100.
std::int64_t BusyScore(const nomad::Node& node, const std::vector<nomad::Allocation>& allocations);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_SELECTOR_H_
