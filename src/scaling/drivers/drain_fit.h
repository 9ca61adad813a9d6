// SPDX-License-Identifier: Apache-2.0
// Whether the work of a scale-in's victims has another place (rule C19). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_
#define NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_

#include <vector>

#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/status.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// True if a VM that the plan removes may have work. `knows_work`: inputs.allocations are those of
// all nodes.
bool MovesWork(const ScalePlan& plan, const PlanInputs& inputs, bool knows_work);

// For scale_in_fit = "require": keeps of the plan's victims and reserve those whose work has
// another place. Blocks for reads, unless no victim has work. What it returns refuses the action.
absl::Status KeepWhatFits(const runtime::Context& context, const PoolDependencies& deps,
                          const PoolSnapshot& snapshot, const PlanInputs& inputs, bool knows_work,
                          ScalePlan* plan);

// For "report": of these VMs those whose work may have no other place, and which work. Blocks for
// reads; if they fail, the log says so.
std::vector<SkippedVm> FindWhatMayWait(const runtime::Context& context,
                                       const PoolDependencies& deps, const PoolSnapshot& snapshot,
                                       const std::vector<PlannedRemoval>& removals);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_
