// SPDX-License-Identifier: Apache-2.0
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_

#include "model.h"

namespace nomad_harvester::explore {

// What no order of requests can close, because Nomad's writes have no precondition: between our
// last read of a node and the request that rests on it, an operator, the machine or a request that
// comes late changed the node (ARCHITECTURE.md lists it).
void Excuse(Slot* slot);
// The VM was written: every writer that read it before has an old resourceVersion now.
void TouchVm(Slot* slot);
void RemoveMark(Vm* vm);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_TOUCH_H_
