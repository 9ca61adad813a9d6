// SPDX-License-Identifier: Apache-2.0
#include "rules/zones.h"

#include <algorithm>
#include <iterator>

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
  const std::vector<std::string>& all = snapshot.policy->zones;
  std::vector<std::string> zones;
  std::copy_if(all.begin(), all.end(), std::back_inserter(zones),
               [&](const std::string& zone) { return !inputs.failing_zones.contains(zone); });
  if (zones.empty()) zones = all;
  for (PlannedCreation& creation : plan->create) {
    creation.zone = *std::min_element(
        zones.begin(), zones.end(),
        [&](const std::string& a, const std::string& b) { return vms[a] < vms[b]; });
    ++vms[creation.zone];
  }
}

}  // namespace nomad_harvester::scaling
