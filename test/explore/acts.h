// SPDX-License-Identifier: Apache-2.0
// Translates the advice of the rules to the acts of a process, by the real specs of the steps.
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

// The phases of an act follow from the reads of its step (scaling::ReadsOf); reads of nodes that
// follow each other are one phase. kSent after the last one.
ActPhase FirstPhase(const Act& act);
ActPhase PhaseAfter(const Act& act);
// Whether the act reads the whole list of nodes.
bool ReadsAllNodes(const Act& act);
// Whether its present phase ends with a read of Nomad's keys. Those that it reads first are a
// phase.
bool ComparesKeys(const Act& act);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_ACTS_H_
