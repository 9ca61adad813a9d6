// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/identity.h"

#include <utility>

namespace nomad_harvester::nodepool {
namespace {

// The class name that means "no class"
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodepool/class.go). An empty class in the
// policy therefore selects no node.
constexpr const char* kNoClass = "autoscaler-default-pool";

constexpr std::size_t kMaxProblems = 10;

bool HasClass(const nomad::Node& node, const std::string& wanted) {
  return node.node_class.empty() ? wanted == kNoClass : node.node_class == wanted;
}

void Append(std::string& text, const char* key, const std::optional<std::string>& value) {
  if (!value.has_value()) return;
  text += (text.empty() ? "" : ", ") + std::string(key) + "=" + *value;
}

}  // namespace

bool PoolIdentity::Contains(const nomad::Node& node) const {
  if (empty()) return false;
  return (!node_class.has_value() || HasClass(node, *node_class)) &&
         (!datacenter.has_value() || node.datacenter == *datacenter) &&
         (!node_pool.has_value() || node.node_pool == *node_pool);
}

std::string PoolIdentity::ToString() const {
  std::string text;
  Append(text, "node_class", node_class);
  Append(text, "datacenter", datacenter);
  Append(text, "node_pool", node_pool);
  return text;
}

FilterResult FilterNodes(const std::vector<nomad::Node>& nodes, const PoolIdentity& identity,
                         const FilterOptions& options) {
  FilterResult result;
  for (const nomad::Node& node : nodes) {
    if (result.problems.size() >= kMaxProblems) break;
    if (!identity.Contains(node)) continue;
    if (!node.draining && node.status == nomad::NodeStatus::kReady) {
      if (node.eligible || options.ignore_ineligible) result.members.push_back(node);
      continue;
    }
    if (node.status == nomad::NodeStatus::kInitializing && !options.ignore_init) {
      result.problems.push_back("node " + node.id + " is initializing");
    } else if (node.draining && !options.ignore_drain) {
      result.problems.push_back("node " + node.id + " is draining");
    }
  }
  if (!result.problems.empty()) result.members.clear();
  return result;
}

}  // namespace nomad_harvester::nodepool
