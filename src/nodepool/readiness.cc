// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/readiness.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::nodepool {
namespace {

std::optional<std::string> WhyNotHealthy(const nomad::Node& node, const std::string& name) {
  const auto driver = std::find_if(node.drivers.begin(), node.drivers.end(),
                                   [&](const nomad::Driver& d) { return d.name == name; });
  if (driver == node.drivers.end()) return "its driver " + name + " is not detected";
  if (driver->detected && driver->healthy) return std::nullopt;
  return "its driver " + name + (driver->detected ? " is not healthy" : " is not detected") +
         (driver->description.empty() ? "" : ": " + driver->description);
}

// True if a drain shows that the node was eligible before it. Our drains record that, because even
// a VM that was never ready is drained before it is removed.
bool WasEligible(const nomad::Node& node) {
  const std::optional<DrainMark> ours = ParseDrainMark(node);
  if (ours.has_value()) return !ours->was_ineligible;
  return node.draining || node.last_drain.has_value();
}

}  // namespace

std::optional<std::string> WhyNotReady(const nomad::Node& node,
                                       const std::vector<std::string>& drivers) {
  if (node.status != nomad::NodeStatus::kReady) return "it is " + StatusText(node);
  if (!node.eligible && !WasEligible(node)) return "it is ineligible";
  for (const std::string& driver : drivers) {
    if (auto why = WhyNotHealthy(node, driver); why.has_value()) return why;
  }
  return std::nullopt;
}

bool IsSilent(const nomad::Node& node) {
  return node.status == nomad::NodeStatus::kDown || node.status == nomad::NodeStatus::kDisconnected;
}

std::string StatusText(const nomad::Node& node) {
  const auto index = static_cast<std::size_t>(node.status);
  return index < nomad::kNodeStatusNames.size() ? std::string(nomad::kNodeStatusNames[index])
                                                : "of an unknown status";
}

}  // namespace nomad_harvester::nodepool
