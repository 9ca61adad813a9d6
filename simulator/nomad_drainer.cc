// SPDX-License-Identifier: Apache-2.0
// The drainer (hashicorp/nomad:nomad/drainer): stops allocations and completes drains.
#include <algorithm>

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
  if (!node.drain->watched_jobs) node.drain->watched_jobs = JobsOn(id);
  const DrainStrategy& drain = *node.drain;
  const bool late = drain.deadline < base::Duration::zero() ||
                    (drain.force_at_mono && *drain.force_at_mono <= world_.now());
  bool waits = hanging_.count(id) != 0;
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id || allocation.Terminal()) continue;
    const bool system = allocation.job.type == "system";
    if (system && drain.ignore_system_jobs) continue;
    // Batch work may run until the deadline; system jobs are stopped last.
    const bool moves = !system && allocation.job.type != "batch" && IsWatched(allocation.job_id);
    if (late || moves) Evict(allocation);
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
    if (allocation.node_id == node.id && !allocation.Terminal()) Evict(allocation);
  }
}

// hashicorp/nomad:nomad/drainer/draining_node.go, DrainingJobs.
std::set<std::string> NomadState::JobsOn(const std::string& node_id) const {
  std::set<std::string> jobs;
  for (const auto& [id, allocation] : allocations_) {
    const bool moves = !allocation.Terminal() && allocation.job.type != "system";
    if (allocation.node_id == node_id && moves) jobs.insert(allocation.job_id);
  }
  return jobs;
}

// The drainer follows jobs, whatever node they are on; it looks which ones only when a drain begins
// or is changed (nomad/drainer/watch_nodes.go, Update; watch_jobs.go, handleTaskGroup).
bool NomadState::IsWatched(const std::string& job_id) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const std::optional<DrainStrategy>& drain = entry.second.drain;
    return drain && drain->watched_jobs && drain->watched_jobs->contains(job_id);
  });
}

// Unknown work is not touched until its node speaks again, or until it is lost
// (hashicorp/nomad:scheduler/reconciler/filters.go, classificationRules).
void NomadState::Evict(NomadAllocation& allocation) {
  allocation.evicted = true;
  if (allocation.client_status != "unknown") Stop(allocation);
}

void NomadState::PlaceLate(const JobSpec& job, base::Duration delay, const std::string& node) {
  late_plans_.push_back({job, delay, node});
}

// A plan is checked against a snapshot of the state; nothing is checked again when it is committed
// (hashicorp/nomad:nomad/plan_apply.go, evaluateNodePlan: "There is a potential race").
void NomadState::CommitLatePlans(const NomadNode& node) {
  if (!TakesWork(node)) return;
  std::erase_if(late_plans_, [&](const LatePlan& plan) {
    if (!plan.node.empty() && plan.node != node.id && plan.node != node.spec.name) return false;
    world_.After(plan.delay, [this, job = plan.job, id = node.id] { CommitLate(job, id); });
    return true;
  });
}

void NomadState::CommitLate(const JobSpec& job, const std::string& node_id) {
  const NomadNode* node = FindNode(node_id);
  if (node == nullptr || node->status != "ready") return;
  jobs_.try_emplace(job.id, NomadJob{.spec = job, .modify_index = index_});
  Place(job, *node);
  // A drainer that watches the job sees it.
  world_.After(world_.options.reaction_time, [this, node_id] { DrainStep(node_id); });
}

}  // namespace nomad_harvester::simulator
