// SPDX-License-Identifier: Apache-2.0
// Composes a VM's Kubernetes Events (rule T1). Pure. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
#define NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/rules.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// The id of the action to which a step belongs: the VM's removal, even while it is being undone;
// otherwise the VM's creation.
std::string ActionOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot);

// The Events of a step that is done (kReport: decided): none if its kind has none, and one more for
// a deletion that waited for a drain.
std::vector<harvester::VmEvent> EventsOf(const Step& step, const VmView& view,
                                         const PoolSnapshot& snapshot);

// The Event of a VM that an action created (kOut) or chose for removal (kIn). `reason`: why the
// agent scales.
harvester::VmEvent EventOfAction(Direction direction, const std::string& vm, const std::string& uid,
                                 const PoolSnapshot& snapshot, const std::string& action_id,
                                 const std::string& reason);

// The Event for a refused step of a removal. `what`: what it does, as in the log.
harvester::VmEvent EventOfRefusal(const harvester::VirtualMachine& vm, std::string_view step,
                                  std::string_view what, const absl::Status& refusal);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
