// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <algorithm>

namespace nomad_harvester::cli {

std::string_view NodeStatusName(nomad::NodeStatus status) {
  switch (status) {
    case nomad::NodeStatus::kInitializing:
      return "initializing";
    case nomad::NodeStatus::kReady:
      return "ready";
    case nomad::NodeStatus::kDown:
      return "down";
    case nomad::NodeStatus::kDisconnected:
      return "disconnected";
    case nomad::NodeStatus::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view LinkName(nodepool::LinkState state) {
  switch (state) {
    case nodepool::LinkState::kNone:
      return "none";
    case nodepool::LinkState::kLinked:
      return "linked";
    case nodepool::LinkState::kTwoReady:
      return "two-ready";
    case nodepool::LinkState::kContradicted:
      break;
  }
  return "contradicted";
}

std::optional<std::string_view> CounterName(std::string_view meta_key) {
  constexpr std::string_view kPrefix = "harvester.";
  if (meta_key.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string_view name = meta_key.substr(kPrefix.size());
  // Only the plugin's process knows them.
  if (name == "drifted" || name == "leftovers") return std::nullopt;
  return name;
}

std::vector<const scaling::VmView*> VmsOf(const scaling::PoolSnapshot& snapshot) {
  std::vector<const scaling::VmView*> vms = snapshot.vms();
  std::sort(vms.begin(), vms.end(),
            [](const auto* a, const auto* b) { return a->vm.name < b->vm.name; });
  return vms;
}

const nomad::Node* ReadableNode(const scaling::VmView& view,
                                const scaling::PoolSnapshot& snapshot) {
  return snapshot.look().nomad_readable ? LinkedNode(view, snapshot) : nullptr;
}

std::vector<const nomad::Node*> UnlinkedNodesOf(const scaling::PoolSnapshot& snapshot) {
  if (!snapshot.look().nomad_readable) return {};
  std::vector<const nomad::Node*> nodes = scaling::UnlinkedNodes(snapshot);
  std::sort(nodes.begin(), nodes.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  return nodes;
}

}  // namespace nomad_harvester::cli
