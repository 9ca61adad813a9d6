// SPDX-License-Identifier: Apache-2.0
// Carries out one step for one VM. Every act reads again first, because the step was decided from a
// snapshot that may be a second old.
#ifndef NOMAD_HARVESTER_SCALING_ACTOR_H_
#define NOMAD_HARVESTER_SCALING_ACTOR_H_

#include "nomad_harvester/scaling/next_step.h"

#include "absl/status/status.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

// Blocks for the requests. OK: done, or the fresh read no longer asks for it; the next observation
// shows which. FAILED_PRECONDITION: the object changed in between, observe again. Other errors come
// from the two systems.
absl::Status CarryOut(const runtime::Context& context, const PoolDependencies& deps,
                      const Step& step, const VmView& view, const PoolSnapshot& snapshot);

// Purges the node of a VM that no longer exists, after GET by name has confirmed that.
absl::Status PurgeNode(const runtime::Context& context, const PoolDependencies& deps,
                       const nomad::Node& node, const PoolSnapshot& snapshot);

// Writes the mark of a scale-in and starts the drain. Reads the node in full first and skips the VM
// (FAILED_PRECONDITION) if the node differs from the plan's. `snapshot` holds the action that names
// the VM. OK: the mark is set, whether the drain has started or not.
absl::Status MarkAndDrain(const runtime::Context& context, const PoolDependencies& deps,
                          const std::string& action_id, const std::string& node_id,
                          const VmView& view, const PoolSnapshot& snapshot);

// Removes the mark; the rows for VMs without a mark then roll back the drain.
absl::Status RemoveMark(const runtime::Context& context, const PoolDependencies& deps,
                        const VmView& view);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ACTOR_H_
