// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_

#include "model.h"

namespace nomad_harvester::explore {

// A race condition that remains because Nomad's writes have no precondition (docs/exploration.md,
// "What is accepted"): between our last read of a node and the request that depends on it, an
// operator, the machine or a delayed request changed the node.
void Excuse(Slot* slot);
// The VM was written: the resourceVersion of every earlier observation is stale.
void TouchVm(Slot* slot);
void RemoveMark(Vm* vm);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_
