// SPDX-License-Identifier: Apache-2.0
// What a VM's Kubernetes Events say (rule T1). Pure. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
#define NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/harvester/vm_event.h"
#include "nomad_harvester/scaling/rules.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// The action that a step belongs to: that of the VM's removal, also while that is undone; else that
// of its creation.
std::string ActionOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot);

// Whether there is an Event about such a step once it is done (kReport: once it is decided).
bool HasEvent(StepKind kind);
// That Event; requires HasEvent.
harvester::VmEvent EventOf(const Step& step, const VmView& view, const PoolSnapshot& snapshot);
// Beside it, of a deletion that waited for a drain.
harvester::VmEvent EventOfDrained(const Step& step, const VmView& view,
                                  const PoolSnapshot& snapshot);

// A VM that an action created, and one that it chose for removal. `action`: of the pool's Lease.
// `reason`: why the agent scales.
harvester::VmEvent EventOfCreation(const std::string& vm, const std::string& uid,
                                   const PoolKey& pool,
                                   const std::optional<harvester::LeaseAction>& action,
                                   const std::string& action_id, const std::string& reason);
harvester::VmEvent EventOfChoice(const std::string& vm, const std::string& uid, const PoolKey& pool,
                                 const std::optional<harvester::LeaseAction>& action,
                                 const std::string& action_id, const std::string& reason);

// A step of a removal, by its name in the log, that was refused.
harvester::VmEvent EventOfRefusal(const harvester::VirtualMachine& vm, std::string_view step,
                                  const absl::Status& refusal);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_EVENT_TEXT_H_
