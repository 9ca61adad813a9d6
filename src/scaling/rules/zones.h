// SPDX-License-Identifier: Apache-2.0
// Keeps the VMs of a pool even over its zones (key evenly_split_zones). Pure. Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_ZONES_H_
#define NOMAD_HARVESTER_SCALING_ZONES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {

// Whether each VM of the pool gets a zone. The snapshot must have a policy.
bool SplitsZones(const PoolSnapshot& snapshot);
// How many VMs that count each zone has; "": those that were made without one.
std::map<std::string, std::int64_t> VmsByZone(const PoolSnapshot& snapshot);
// Gives each creation the zone that has the fewest VMs by then, those that are taken back included;
// of equal ones the first of the policy. Zones in which VMs do not start are used only if all are
// such zones.
void AssignZones(const PoolSnapshot& snapshot, const PlanInputs& inputs, ScalePlan* plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ZONES_H_
