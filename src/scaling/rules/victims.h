// SPDX-License-Identifier: Apache-2.0
// Chooses the VMs that a scale-in removes, and their order (rules C7 and C8).
#ifndef NOMAD_HARVESTER_SCALING_VICTIMS_H_
#define NOMAD_HARVESTER_SCALING_VICTIMS_H_

#include <vector>

#include "nomad_harvester/nodepool/selector.h"
#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {

struct Victims {
  std::vector<PlannedRemoval> chosen;   // at most `count`, in order
  std::vector<PlannedRemoval> reserve;  // the others, in order
  std::vector<SkippedVm> passed_over;   // members that may not be removed, and why
};

// The snapshot must have a policy.
Victims ChooseVictims(const PoolSnapshot& snapshot, std::size_t count, const PlanInputs& inputs);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_VICTIMS_H_
