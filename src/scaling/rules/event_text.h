// SPDX-License-Identifier: Apache-2.0
// Composes a VM's Kubernetes Events (rule T1). Pure. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
#define NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_

#include <string>
#include <string_view>

#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/scaling/rules.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// The id of the action to which a step belongs: the VM's removal, even while it is being undone;
// otherwise the VM's creation.
std::string ActionOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot);

// True if a step of this kind causes an Event once it is done (kReport: once it is decided).
bool HasEvent(StepKind kind);
// The Event of a step. Requires HasEvent of its kind.
harvester::VmEvent EventOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot);
// An additional Event for a deletion that waited for a drain.
harvester::VmEvent EventOfDrained(const Step& step, const VmView& view,
                                  const PoolSnapshot& snapshot);

// The Events of a VM that an action created, and of one that it chose for removal. `reason`: why
// the agent scales.
harvester::VmEvent EventOfCreation(const std::string& vm, const std::string& uid,
                                   const PoolSnapshot& snapshot, const std::string& action_id,
                                   const std::string& reason);
harvester::VmEvent EventOfChoice(const std::string& vm, const std::string& uid,
                                 const PoolSnapshot& snapshot, const std::string& action_id,
                                 const std::string& reason);

// The Event for a refused step of a removal. `what`: what it does, as in the log.
harvester::VmEvent EventOfRefusal(const harvester::VirtualMachine& vm, std::string_view step,
                                  std::string_view what, const absl::Status& refusal);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
