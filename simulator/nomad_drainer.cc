// SPDX-License-Identifier: Apache-2.0
// The drainer (hashicorp/nomad:nomad/drainer): stops allocations and completes drains.
#include "nomad_state.h"

namespace nomad_harvester::simulator {

// The drainer reacts shortly after the request; later it checks whenever an allocation changes, and
// at the deadline.
void NomadState::WatchDrain(const std::string& id) {
  const NomadNode& node = nodes_.at(id);
  world_.After(world_.options.reaction_time, [this, id] { DrainStep(id); });
  if (node.drain->force_at_mono) {
    world_.After(node.drain->deadline, [this, id] { DrainStep(id); });
  }
}

void NomadState::DrainStep(const std::string& id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || !found->second.drain) return;
  NomadNode& node = found->second;
  const DrainStrategy& drain = *node.drain;
  const bool late = drain.deadline < base::Duration::zero() ||
                    (drain.force_at_mono && *drain.force_at_mono <= world_.now());
  bool waits = hanging_.count(id) != 0;
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id || allocation.Terminal()) continue;
    const bool system = allocation.job.type == "system";
    if (system && drain.ignore_system_jobs) continue;
    // Batch work may run until the deadline; system jobs are stopped last.
    const bool stop = late || (!system && allocation.job.type != "batch");
    if (stop) Stop(allocation);
    if (!system) waits = true;
  }
  // At the deadline the other allocations are stopped and the drain completes in the same step:
  // tasks may outlive it (hashicorp/nomad#9902).
  if (late || !waits) CompleteDrain(node, late);
  Schedule();
}

void NomadState::CompleteDrain(NomadNode& node, bool deadline_reached) {
  const bool ignore_system = node.drain->ignore_system_jobs;
  node.drain.reset();
  node.last_drain->status = "complete";
  node.last_drain->updated_at = std::chrono::floor<std::chrono::seconds>(world_.wall());
  Touch(node);
  EmitNode(EventKind::kDrainComplete, node, deadline_reached ? "deadline_reached" : "");
  if (ignore_system) return;
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id == node.id && !allocation.Terminal()) Stop(allocation);
  }
}

}  // namespace nomad_harvester::simulator
