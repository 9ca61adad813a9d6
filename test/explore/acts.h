// SPDX-License-Identifier: Apache-2.0
// From the advice of NextStep to a request, as actor.cc sends it.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_

#include <array>

#include "decision_cache.h"

namespace nomad_harvester::explore {

// Steps that come before a plan (rule C14).
bool IsRepair(ActKind kind);
// Steps that lead to the end of a VM: they wait while the mass-loss guard holds.
bool IsRemoval(ActKind kind);
// What the loop does about an advice; kNone: nothing, or only a word in the log.
Act ActFor(const Advice& advice, const Vm& vm, const std::array<Node, kNodesPerVm>& nodes);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_
