// SPDX-License-Identifier: Apache-2.0
// Spreads the VMs of a pool evenly over its zones (key evenly_split_zones). Pure. Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_ZONES_H_
#define NOMAD_HARVESTER_SCALING_ZONES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {

// True if every new VM of the pool is assigned a zone. The snapshot must have a policy.
bool SplitsZones(const PoolSnapshot& snapshot);
// The number of counted VMs in each zone; "" stands for VMs made without a zone.
std::map<std::string, std::int64_t> VmsByZone(const PoolSnapshot& snapshot);
// Assigns to each creation the zone that then has the fewest VMs, including those whose removal is
// cancelled; among equal zones, the policy's first. Zones in which VMs do not start, or that have
// no room, are used only if there are no others.
void AssignZones(const PoolSnapshot& snapshot, const PlanInputs& inputs, ScalePlan* plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ZONES_H_
