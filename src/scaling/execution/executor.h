// SPDX-License-Identifier: Apache-2.0
// Executes one step for one VM: performs the reads of the step's spec, decides again, and writes
// once. Necessary because the snapshot of the first decision may be a second old.
#ifndef NOMAD_HARVESTER_SCALING_EXECUTOR_H_
#define NOMAD_HARVESTER_SCALING_EXECUTOR_H_

#include <string>

#include "nomad_harvester/scaling/step_spec.h"

#include "execution/pool_dependencies.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// All functions block for their requests.

// Executes a step for a VM of the snapshot behind `decisions`.
Effect Execute(const runtime::Context& context, const PoolDependencies& deps,
               const Decisions& decisions, const VmView& view, const Step& step);

// Purges the node of a VM that no longer exists, after confirming that by GET by name.
Effect Purge(const runtime::Context& context, const PoolDependencies& deps,
             const Decisions& decisions, const OrphanedNode& gone);

// Reads the node in full, writes the mark of a scale-in and starts the drain. `snapshot` holds the
// action that names the VM. kUnsuitable: the VM must not be marked with that node. kDone: the mark
// is set, whether or not the drain has started.
Effect MarkVictim(const runtime::Context& context, const PoolDependencies& deps,
                  const PoolSnapshot& snapshot, const VmView& view, const std::string& action_id,
                  const std::string& node_id);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_EXECUTOR_H_
