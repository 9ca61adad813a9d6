// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/identity.h"

namespace nomad_harvester::nodepool {
namespace {

// The class name that means "no class"
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/nodepool/class.go). An empty class in the
// policy therefore selects no node.
constexpr const char* kNoClass = "autoscaler-default-pool";

bool HasClass(const nomad::Node& node, std::string_view wanted) {
  return node.node_class.empty() ? wanted == kNoClass : node.node_class == wanted;
}

void Append(std::string& text, const char* key, std::optional<std::string_view> value) {
  if (!value.has_value()) return;
  text += (text.empty() ? "" : ", ") + std::string(key) + "=" + std::string(*value);
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

bool Contradict(const PoolIdentity& a, const PoolIdentity& b) {
  const auto differ = [](const auto& one, const auto& other) {
    return one.has_value() && other.has_value() && *one != *other;
  };
  return differ(a.node_class, b.node_class) || differ(a.datacenter, b.datacenter) ||
         differ(a.node_pool, b.node_pool);
}

}  // namespace nomad_harvester::nodepool
