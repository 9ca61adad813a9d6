// What Nomad's servers forget by themselves. Defaults of node_gc_threshold, eval_gc_threshold and
// batch_eval_gc_threshold (hashicorp/nomad:nomad/config.go, core_sched.go); the servers look every
// few minutes, here it happens on time.
#include <algorithm>

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
                 const auto found = allocations_.find(id);
                 if (found == allocations_.end() || found->second.modify_index != index) return;
                 allocations_.erase(found);
                 allocations_index_ = ++index_;
               });
}

void NomadState::CollectLater(const NomadNode& node) {
  world_.After(kNodeThreshold, [this, id = node.id, index = node.modify_index] {
    const auto found = nodes_.find(id);
    if (found == nodes_.end() || found->second.modify_index != index) return;
    const bool busy = std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
      return entry.second.node_id == id && !entry.second.Terminal();
    });
    if (busy) return;
    nodes_index_ = ++index_;
    EmitNode(EventKind::kPurged, found->second, "collected");
    nodes_.erase(found);
  });
}

}  // namespace nomad_harvester::simulator
