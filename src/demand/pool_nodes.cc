// SPDX-License-Identifier: Apache-2.0
#include "pool_nodes.h"

#include <algorithm>
#include <chrono>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/link.h"

namespace nomad_harvester::demand {

using nomad::NodeStatus;

namespace {
constexpr base::Duration kBootsFor = std::chrono::minutes(5);  // as for the target (rule S2)
}  // namespace

bool IsWork(const Placed& placed) {
  return placed.job_type == "service" || placed.job_type == "batch";
}

bool Moves(const Placed& placed) { return IsWork(placed) && !placed.stops; }

bool IsBusy(const PoolNode& node) {
  return !node.node->draining && node.node->status != NodeStatus::kDown &&
         std::any_of(node.work.begin(), node.work.end(), IsWork);
}

bool IsKept(const PoolNode& node, base::WallTime now) {
  return node.node->status != NodeStatus::kDown &&
         (nodepool::IsProtected(*node.node, now) || !node.node->dynamic_host_volumes.empty());
}

bool TakesWork(const PoolNode& node) {
  const NodeStatus status = node.node->status;
  return !node.node->draining && node.node->eligible &&
         (status == NodeStatus::kReady || status == NodeStatus::kInitializing);
}

bool IsEmptied(const PoolNode& node) {
  const nomad::Node& shown = *node.node;
  return shown.draining || (!shown.eligible && shown.last_drain.has_value() &&
                            shown.last_drain->status == nomad::DrainStatus::kComplete);
}

bool IsFresh(const PoolNode& node, base::WallTime now) {
  const bool boots = node.node->status == NodeStatus::kInitializing;
  return node.node->status_updated_at.has_value() &&
         now - *node.node->status_updated_at < (boots ? kBootsFor : kOverdueAfter);
}

bool HasVmThatCounts(const PoolNode& node) {
  if (!nodepool::ParseDrainMark(*node.node).has_value()) return true;
  const nomad::DrainStatus drain = node.node->last_drain->status;
  return drain != nomad::DrainStatus::kDraining && drain != nomad::DrainStatus::kComplete;
}

// Batch work stays on a draining node until the deadline, when Nomad migrates it
// (hashicorp/nomad:nomad/drainer/watch_jobs.go, handleTaskGroup).
bool Leaves(const PoolNode& node, const Placed& placed) {
  if (!Moves(placed) || node.node->status == NodeStatus::kDown) return false;
  return placed.leaves || (node.node->draining && placed.job_type != "batch");
}

std::vector<const PoolNode*> NodesWith(const World& world, bool (*has)(const PoolNode&)) {
  std::vector<const PoolNode*> nodes;
  for (const PoolNode& node : world.nodes) {
    if (has(node)) nodes.push_back(&node);
  }
  const auto before = [](const auto* a, const auto* b) { return a->node->id < b->node->id; };
  if (!std::is_sorted(nodes.begin(), nodes.end(), before)) {  // as Nomad lists them
    std::sort(nodes.begin(), nodes.end(), before);
  }
  return nodes;
}

std::vector<const PoolNode*> KnownNodes(const World& world) {
  auto nodes = NodesWith(
      world, [](const PoolNode& node) { return node.node->status == NodeStatus::kReady; });
  if (nodes.empty() && world.last_seen != nullptr) nodes.push_back(world.last_seen.get());
  if (!nodes.empty()) return nodes;
  nodes = NodesWith(
      world, [](const PoolNode& node) { return node.node->status != NodeStatus::kInitializing; });
  return nodes.empty() ? NodesWith(world, [](const PoolNode&) { return true; }) : nodes;
}

std::vector<const nomad::Node*> Informed(const std::vector<const PoolNode*>& known) {
  std::vector<const nomad::Node*> nodes;
  for (const PoolNode* node : known) {
    if (node->node->status != NodeStatus::kInitializing) nodes.push_back(node->node.get());
  }
  return nodes;
}

}  // namespace nomad_harvester::demand
