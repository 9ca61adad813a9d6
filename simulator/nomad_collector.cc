// SPDX-License-Identifier: Apache-2.0
// Garbage collection of Nomad's servers. Defaults of node_gc_threshold, eval_gc_threshold and
// batch_eval_gc_threshold (hashicorp/nomad:nomad/config.go, core_sched.go); the servers check every
// few minutes, the simulation collects at the exact time.
#include "nomad_state.h"

namespace nomad_harvester::simulator {
namespace {

constexpr base::Duration kNodeThreshold = std::chrono::hours(24);
constexpr base::Duration kAllocationThreshold = std::chrono::hours(1);
constexpr base::Duration kBatchThreshold = std::chrono::hours(24);

}  // namespace

void NomadState::ForgetLater(const NomadAllocation& allocation) {
  const bool batch = allocation.job.type == "batch";
  world_.After(batch ? kBatchThreshold : kAllocationThreshold,
               [this, id = allocation.id, index = allocation.modify_index] {
                 const NomadAllocation* found = FindAllocation(id);
                 if (found == nullptr || found->modify_index != index) return;
                 const bool held = HoldsDisconnected(*found);
                 const std::string node_id = found->node_id;
                 allocations_.erase(id);
                 allocations_index_ = ++index_;
                 if (held) WatchSilence(node_id);
               });
}

void NomadState::CollectLater(const NomadNode& node) {
  world_.After(kNodeThreshold, [this, id = node.id, index = node.modify_index] {
    const NomadNode* found = FindNode(id);
    if (found != nullptr && found->modify_index == index) Purge(id);
  });
}

}  // namespace nomad_harvester::simulator
