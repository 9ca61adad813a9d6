// SPDX-License-Identifier: Apache-2.0
// The intent of an action: what it is about to do, on the pool's Lease before its first effect.
// Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_INTENT_H_
#define NOMAD_HARVESTER_SCALING_INTENT_H_

#include <string>

#include "nomad_harvester/scaling/plan.h"

#include "absl/status/status.h"
#include "execution/pool_dependencies.h"

namespace nomad_harvester::scaling {

// What an action was begun with, besides its plan.
struct ActionTerms {
  std::string policy_id{};      // of a Scale that the agent asked for
  bool mass_loss_over = false;  // its timeout is over: removals go on nevertheless (rule C15)
  bool old_goes_first = false;  // of a replacement: the old VM leaves its room (rule R8)
};

// The dependencies of a new action: its id is in `call` and its policy's in each log line.
PoolDependencies ForAction(PoolDependencies deps, std::string reason, const std::string& policy_id);

// Names the new VMs of the plan, and stores it with the observed Nomad cluster, as the action
// `deps.call`. Keeps what an earlier action has yet to finish. Blocks for one write; its error is
// that of PoolLease::Store.
absl::Status StoreIntent(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy, const PoolSnapshot& snapshot,
                         const ActionTerms& terms, ScalePlan* plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_INTENT_H_
