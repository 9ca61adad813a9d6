// SPDX-License-Identifier: Apache-2.0
#include "rules/zones.h"

#include <algorithm>
#include <tuple>

namespace nomad_harvester::scaling {

bool SplitsZones(const PoolSnapshot& snapshot) {
  return snapshot.policy->evenly_split_zones && !snapshot.policy->zones.empty();
}

std::map<std::string, std::int64_t> VmsByZone(const PoolSnapshot& snapshot) {
  std::map<std::string, std::int64_t> vms;
  for (const VmView* view : snapshot.vms()) {
    if (Counts(*view, snapshot)) ++vms[view->vm->zone];
  }
  return vms;
}

void AssignZones(const PoolSnapshot& snapshot, const PlanInputs& inputs, ScalePlan* plan) {
  if (!SplitsZones(snapshot)) return;
  std::map<std::string, std::int64_t> vms = VmsByZone(snapshot);
  for (const std::string& name : plan->cancel_removals)
    ++vms[snapshot.seen->FindVm(name)->vm->zone];
  const std::vector<std::string>& zones = snapshot.policy->zones;
  std::map<std::string, std::size_t> room = inputs.zone_room;
  const auto rank = [&](const std::string& zone) {
    const auto left = room.find(zone);
    const bool is_full = left != room.end() && left->second == 0;
    return std::tuple(is_full, inputs.failing_zones.contains(zone), vms[zone]);
  };
  for (PlannedCreation& creation : plan->create) {
    creation.zone = *std::min_element(
        zones.begin(), zones.end(),
        [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
    ++vms[creation.zone];
    const auto left = room.find(creation.zone);
    if (left != room.end() && left->second > 0) --left->second;
  }
}

}  // namespace nomad_harvester::scaling
