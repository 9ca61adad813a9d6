// SPDX-License-Identifier: Apache-2.0
// Translates the advice of NextStep to the request that actor.cc sends for it.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_

#include <array>

#include "decision_cache.h"

namespace nomad_harvester::explore {

// Steps that are carried out before a plan (rule C14).
bool IsRepair(ActKind kind);
// Steps that lead to the removal of a VM: they wait while the mass-loss guard holds.
bool IsRemoval(ActKind kind);
// The act that the loop starts for an advice; kNone: none, or only a log entry.
Act ActFor(const Advice& advice, const Vm& vm, const std::array<Node, kNodesPerVm>& nodes);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_
