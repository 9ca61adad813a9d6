// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/selector.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace nomad_harvester::nodepool {
namespace {

// The limit of a sum: 100 times it still fits in 64 bits.
constexpr std::int64_t kMaxSum = std::int64_t{1} << 55;

const std::vector<nomad::Allocation>& AllocationsOf(const nomad::Node& node,
                                                    const AllocationsByNode& allocations) {
  static const std::vector<nomad::Allocation>* const kNone = new std::vector<nomad::Allocation>();
  const auto found = allocations.find(node.id);
  return found == allocations.end() ? *kNone : found->second;
}

// True if neither client status nor desired status is terminal (hashicorp/nomad:api/allocations.go,
// ClientTerminalStatus and ServerTerminalStatus). An allocation with client status "unknown" is
// live.
bool IsLive(const nomad::Allocation& allocation) {
  return allocation.client_status != nomad::ClientStatus::kComplete &&
         allocation.client_status != nomad::ClientStatus::kFailed &&
         allocation.client_status != nomad::ClientStatus::kLost &&
         allocation.desired_status != "stop" && allocation.desired_status != "evict";
}

bool MovesInDrain(const nomad::Allocation& allocation) {
  return IsLive(allocation) && allocation.job_type != "system" && allocation.job_type != "sysbatch";
}

bool IsEmpty(const std::vector<nomad::Allocation>& allocations, bool ignore_system) {
  return std::none_of(allocations.begin(), allocations.end(),
                      [ignore_system](const nomad::Allocation& allocation) {
                        // Only "system": "sysbatch" is work that a removal would interrupt.
                        const bool ignored = ignore_system && allocation.job_type == "system";
                        return !ignored && IsLive(allocation);
                      });
}

std::int64_t CeilOfRatio(std::int64_t numerator, std::int64_t denominator) {
  return numerator / denominator + (numerator % denominator != 0 ? 1 : 0);
}

std::int64_t Percentage(std::int64_t allocated, std::int64_t total) {
  return total <= 0 ? 100 : CeilOfRatio(allocated * 100, total);
}

using Order = std::vector<std::size_t>;

// The order of the SDK's lists: Nomad's Go client sorts by create index, highest first
// (hashicorp/nomad:api/nodes.go, NodeIndexSort). The ID breaks ties.
Order ListOrder(const std::vector<nomad::Node>& nodes) {
  Order order(nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&nodes](std::size_t a, std::size_t b) {
    return std::tie(nodes[b].create_index, nodes[a].id) <
           std::tie(nodes[a].create_index, nodes[b].id);
  });
  return order;
}

void SortByScore(const std::vector<nomad::Node>& nodes, const AllocationsByNode& allocations,
                 Order& order) {
  std::vector<std::int64_t> scores(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    scores[i] = BusyScore(nodes[i], AllocationsOf(nodes[i], allocations));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&scores](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
}

void KeepEmpty(const std::vector<nomad::Node>& nodes, const AllocationsByNode& allocations,
               bool ignore_system, Order& order) {
  std::erase_if(order, [&](std::size_t i) {
    return !IsEmpty(AllocationsOf(nodes[i], allocations), ignore_system);
  });
}

}  // namespace

bool NeedsAllocations(SelectorStrategy strategy) {
  return strategy != SelectorStrategy::kNewestCreateIndex &&
         strategy != SelectorStrategy::kOldestCreateIndex;
}

std::vector<std::size_t> SelectNodes(SelectorStrategy strategy,
                                     const std::vector<nomad::Node>& nodes,
                                     const AllocationsByNode& allocations) {
  Order order = ListOrder(nodes);
  switch (strategy) {
    case SelectorStrategy::kLeastBusy:
      SortByScore(nodes, allocations, order);
      break;
    case SelectorStrategy::kNewestCreateIndex:
      break;
    case SelectorStrategy::kOldestCreateIndex:
      std::reverse(order.begin(), order.end());
      break;
    case SelectorStrategy::kEmpty:
    case SelectorStrategy::kEmptyIgnoreSystem:
      KeepEmpty(nodes, allocations, strategy == SelectorStrategy::kEmptyIgnoreSystem, order);
      break;
  }
  return order;
}

bool HasWorkToMove(const std::vector<nomad::Allocation>& allocations) {
  return std::any_of(allocations.begin(), allocations.end(), MovesInDrain);
}

std::int64_t BusyScore(const nomad::Node& node, const std::vector<nomad::Allocation>& allocations) {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  for (const nomad::Allocation& allocation : allocations) {
    if (allocation.client_status != nomad::ClientStatus::kRunning) continue;
    cpu = std::min(kMaxSum, cpu + std::clamp<std::int64_t>(allocation.cpu_shares, 0, kMaxSum));
    memory = std::min(kMaxSum, memory + std::clamp<std::int64_t>(allocation.memory_mb, 0, kMaxSum));
  }
  const nomad::NodeResources total = node.resources.value_or(nomad::NodeResources{});
  return CeilOfRatio(Percentage(cpu, total.cpu_shares - node.reserved.cpu_shares) +
                         Percentage(memory, total.memory_mb - node.reserved.memory_mb),
                     2);
}

}  // namespace nomad_harvester::nodepool
