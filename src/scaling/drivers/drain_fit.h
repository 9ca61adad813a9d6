// SPDX-License-Identifier: Apache-2.0
// Whether the work of a scale-in's victims has another place (rule C19). Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_
#define NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_

#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/status.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// With scale_in_fit = "require" keeps of the plan's victims and reserve those whose work has
// another place; otherwise notes which work may wait. Blocks for reads, unless no victim has work.
// `knows_work`: inputs.allocations are those of all nodes. Only "require" fails: what it says
// refuses the action.
absl::Status CheckDrainFit(const runtime::Context& context, const PoolDependencies& deps,
                           const PoolSnapshot& snapshot, const PlanInputs& inputs, bool knows_work,
                           ScalePlan* plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_DRAIN_FIT_H_
