// SPDX-License-Identifier: Apache-2.0
// Chooses the VMs that a scale-in removes, and their order (rules C7 and C8).
#ifndef NOMAD_HARVESTER_SCALING_VICTIMS_H_
#define NOMAD_HARVESTER_SCALING_VICTIMS_H_

#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {

// Sets `remove` (at most `count`), `reserve` and `passed_over` of the plan. The snapshot must have
// a policy.
void ChooseVictims(const PoolSnapshot& snapshot, std::size_t count, const PlanInputs& inputs,
                   ScalePlan* plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_VICTIMS_H_
