// SPDX-License-Identifier: Apache-2.0
// Carries out one step for one VM. Every act looks again first: a step is a proposal from a
// snapshot that may be a second old.
#ifndef NOMAD_HARVESTER_SCALING_ACTOR_H_
#define NOMAD_HARVESTER_SCALING_ACTOR_H_

#include "nomad_harvester/scaling/next_step.h"

#include "absl/status/status.h"
#include "pool_dependencies.h"

namespace nomad_harvester::scaling {

// Blocks for the requests. OK: done, or no longer wanted by what was read just before; the next
// observation shows which. FAILED_PRECONDITION: the object changed in between, observe again. Other
// errors: the systems' own.
absl::Status CarryOut(const runtime::Context& context, const PoolDependencies& deps,
                      const Step& step, const VmView& view, const PoolSnapshot& snapshot);

// Purges the node of a VM that is gone, after GET by name showed that it is.
absl::Status PurgeNode(const runtime::Context& context, const PoolDependencies& deps,
                       const nomad::Node& node, const PoolSnapshot& snapshot);

// Writes the mark of a scale-in and starts the drain: reads the node in full first and passes the
// VM over (FAILED_PRECONDITION) if it is not what the plan saw. `snapshot` holds the action that
// names the VM. OK: the mark stands, whether the drain has begun or not.
absl::Status MarkAndDrain(const runtime::Context& context, const PoolDependencies& deps,
                          const std::string& action_id, const std::string& node_id,
                          const VmView& view, const PoolSnapshot& snapshot);

// Removes the mark, so that the rows without a mark undo the drain.
absl::Status RemoveMark(const runtime::Context& context, const PoolDependencies& deps,
                        const VmView& view);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ACTOR_H_
