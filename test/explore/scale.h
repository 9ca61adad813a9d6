// SPDX-License-Identifier: Apache-2.0
// The beginning of a Scale, as in scale_call.cc.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_SCALE_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_SCALE_H_

#include "worker.h"

namespace nomad_harvester::explore {

// StoreIntent, then the first requests: steps by the rules, among them cancelled removals, marks,
// creations. False: the plan needs more names than the model has.
bool BeginAction(const Worker& worker, const Plan& plan, int names, int p, State* state);
// Lets VMs count by themselves that were to take the places of others, before the Scale acts.
void EndReplacements(const Worker& worker, const Plan& plan, State* state);
// Run of replace_call.cc: stores the name of the new VM and creates it. False: the model has no
// more names.
bool BeginReplacement(const Worker& worker, int names, State* state);
// Begins the creations: once each cancelled removal has an outcome.
void StartCreations(const Worker& worker, State* state);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_SCALE_H_
