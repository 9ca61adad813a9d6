// SPDX-License-Identifier: Apache-2.0
// Jobs and allocations: placement and end.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_json.h"
#include "nomad_state.h"

namespace nomad_harvester::simulator {

std::uint64_t NomadState::Touch(NomadAllocation& allocation) {
  allocations_index_ = ++index_;
  allocation.modify_index = index_;
  const bool cleans_up = allocation.poststop_state == "running";
  if (allocation.Terminal() && !cleans_up) ForgetLater(allocation);
  return allocation.modify_index;
}

NomadAllocation* NomadState::FindAllocation(const std::string& id) {
  const auto found = allocations_.find(id);
  return found == allocations_.end() ? nullptr : &found->second;
}

void NomadState::EmitAllocation(EventKind kind, const NomadAllocation& allocation) {
  Event event;
  event.kind = kind;
  event.name = allocation.id;
  event.id = allocation.node_id;
  event.detail = allocation.job_id;
  event.object = std::make_shared<const nlohmann::json>(AllocationJson(allocation));
  world_.Emit(std::move(event));
}

void NomadState::RunJob(const JobSpec& job) {
  jobs_index_ = ++index_;
  jobs_[job.id] = NomadJob{.spec = job, .modify_index = index_};
  Schedule();
}

bool NomadState::StopJob(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  found->second.stopped = true;
  jobs_index_ = found->second.modify_index = ++index_;
  SetQueued(found->second, 0);
  for (auto& [key, allocation] : allocations_) {
    if (allocation.job_id == id && !allocation.Terminal()) Stop(allocation);
  }
  return true;
}

void NomadState::Hang(const std::string& node_id, bool hang) {
  if (hang) {
    hanging_.insert(node_id);
    return;
  }
  if (hanging_.erase(node_id) == 0) return;
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != node_id || allocation.Terminal() || allocation.desired == "run") {
      continue;
    }
    allocation.desired = "run";  // so that Stop stops it again
    Stop(allocation);
  }
  DrainStep(node_id);
}

void NomadState::Schedule() {
  for (auto& [id, job] : jobs_) {
    if (job.stopped) continue;
    if (job.spec.type == "system") {
      ScheduleSystemJob(job);
    } else {
      ScheduleJob(job);
    }
  }
}

// Places missing allocations as far as there is room; the others stay a blocked evaluation until
// there is more. Batch work that a drain's deadline stopped is not run again, lost batch
// work is.
void NomadState::ScheduleJob(NomadJob& job) {
  int have = 0;
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.job_id != job.spec.id || allocation.client_status == "lost") continue;
    const bool live = allocation.desired == "run" && !allocation.Terminal();
    if (live || job.spec.type == "batch") ++have;
  }
  for (; have < job.spec.count; ++have) {
    const NomadNode* node = LeastLoaded(job.spec);
    if (node == nullptr) break;
    Place(job.spec, *node);
  }
  SetQueued(job, std::max(0, job.spec.count - have));
}

// hashicorp/nomad:scheduler/generic_sched.go, Process: an evaluation that is blocked again keeps
// its ID and its counts.
void NomadState::SetQueued(NomadJob& job, int queued) {
  if (job.queued != queued) jobs_index_ = ++index_;
  job.queued = queued;
  if (queued == 0 ? !job.blocked : job.blocked && queued <= job.blocked->unplaced) return;
  evaluations_index_ = ++index_;
  if (queued == 0) {
    job.blocked.reset();
    return;
  }
  NomadEvaluation blocked{.id = world_.NextUuid(),
                          .unplaced = queued,
                          .filtered = {},
                          .exhausted = {},
                          .create_index = index_};
  for (const auto& [id, node] : nodes_) {
    if (!TakesWork(node) || !IsAmongNodesOf(job.spec, node)) continue;
    if (const std::string unmet = Unmet(node, job.spec); !unmet.empty()) {
      ++blocked.filtered[unmet];
    } else {
      ++blocked.exhausted[std::string(Lacking(node, LoadOf(node), job.spec))];
    }
  }
  job.blocked = std::move(blocked);
}

void NomadState::ScheduleSystemJob(const NomadJob& job) {
  std::set<std::string> covered;
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.job_id == job.spec.id && allocation.desired == "run" && !allocation.Terminal()) {
      covered.insert(allocation.node_id);
    }
  }
  for (const auto& [id, node] : nodes_) {
    if (covered.count(id) != 0 || !CanPlace(node, job.spec)) continue;
    if (Lacking(node, LoadOf(node), job.spec).empty()) Place(job.spec, node);
  }
}

// hashicorp/nomad:nomad/structs/structs.go, Node.Ready.
bool NomadState::TakesWork(const NomadNode& node) {
  return node.eligible && !node.drain && node.status == "ready";
}

bool NomadState::IsAmongNodesOf(const JobSpec& job, const NomadNode& node) {
  return (job.datacenter.empty() || job.datacenter == node.spec.datacenter) &&
         (job.node_pool.empty() || job.node_pool == node.spec.node_pool);
}

// hashicorp/nomad:scheduler/feasible.go, ConstraintChecker and DriverChecker. A driver that fails
// later stops no work.
std::string NomadState::Unmet(const NomadNode& node, const JobSpec& job) {
  if (!job.node_name.empty() && job.node_name != node.spec.name)
    return "${node.unique.name} = " + job.node_name;
  if (!job.node_class.empty() && job.node_class != node.spec.node_class)
    return "${node.class} = " + job.node_class;
  if (job.driver.empty()) return "";
  const auto driver = node.drivers.find(job.driver);
  const bool works =
      driver != node.drivers.end() && driver->second.detected && driver->second.healthy;
  return works ? "" : "missing drivers";
}

bool NomadState::CanPlace(const NomadNode& node, const JobSpec& job) {
  return TakesWork(node) && IsAmongNodesOf(job, node) && Unmet(node, job).empty();
}

NomadState::Load NomadState::LoadOf(const NomadNode& node) const {
  Load load;
  for (const auto& [key, allocation] : allocations_) {
    if (allocation.node_id != node.id || allocation.Terminal()) continue;
    ++load.allocations;
    load.cpu += allocation.job.cpu;
    load.memory_mb += allocation.job.memory_mb;
  }
  return load;
}

std::string_view NomadState::Lacking(const NomadNode& node, const Load& load, const JobSpec& job) {
  if (load.cpu + job.cpu > node.spec.cpu) return "cpu";
  return load.memory_mb + job.memory_mb > node.spec.memory_mb ? "memory" : "";
}

const NomadNode* NomadState::LeastLoaded(const JobSpec& job) const {
  const NomadNode* best = nullptr;
  int best_load = 0;
  for (const auto& [id, node] : nodes_) {
    if (!CanPlace(node, job)) continue;
    const Load load = LoadOf(node);
    if (!Lacking(node, load, job).empty()) continue;
    const bool better = best == nullptr || load.allocations < best_load ||
                        (load.allocations == best_load && node.create_index < best->create_index);
    if (!better) continue;
    best = &node;
    best_load = load.allocations;
  }
  return best;
}

void NomadState::Place(const JobSpec& job, const NomadNode& node) {
  NomadAllocation allocation;
  allocation.id = world_.NextUuid();
  allocation.job_id = job.id;
  allocation.node_id = node.id;
  allocation.node_name = node.spec.name;
  allocation.job = job;
  allocation.created_at = world_.wall();
  allocation.create_index = Touch(allocation);
  const std::string id = allocation.id;
  const auto entry = allocations_.emplace(id, std::move(allocation)).first;
  EmitAllocation(EventKind::kAllocationPlaced, entry->second);
  world_.After(world_.options.start_time, [this, id] { Start(id); });
}

void NomadState::Start(const std::string& id) {
  NomadAllocation* found = FindAllocation(id);
  if (found == nullptr) return;
  NomadAllocation& allocation = *found;
  if (allocation.client_status != "pending" || allocation.desired != "run" ||
      !IsAlive(allocation.node_id)) {
    return;
  }
  allocation.client_status = "running";
  allocation.main_state = "running";
  allocation.main_started = world_.wall();
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationRunning, allocation);
  if (allocation.job.type == "batch" && allocation.job.run_for > base::Duration::zero()) {
    world_.After(allocation.job.run_for, [this, id] { EndMain(id, "complete"); });
  }
}

void NomadState::Stop(NomadAllocation& allocation) {
  if (allocation.desired == "stop") return;
  allocation.desired = "stop";
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationStopping, allocation);
  if (allocation.job.never_stops) return;
  const std::string id = allocation.id;
  // A killed batch allocation is "failed" (observed on Nomad 1.10.5).
  const std::string status = allocation.job.type == "batch" ? "failed" : "complete";
  world_.After(world_.options.stop_time, [this, id, status] {
    const NomadAllocation* found = FindAllocation(id);
    if (found != nullptr && hanging_.count(found->node_id) == 0) EndMain(id, status);
  });
}

// The main task determines the allocation's status: poststop tasks still run when the status is
// terminal (observed on Nomad 1.10.5).
void NomadState::EndMain(const std::string& id, const std::string& client_status) {
  NomadAllocation* found = FindAllocation(id);
  if (found == nullptr) return;
  NomadAllocation& allocation = *found;
  if (allocation.Terminal() || !IsAlive(allocation.node_id)) return;
  const bool ran = allocation.main_state == "running";
  allocation.client_status = client_status;
  allocation.main_state = "dead";
  allocation.main_finished = world_.wall();
  const bool cleans_up = ran && allocation.job.poststop > base::Duration::zero();
  allocation.poststop_state = cleans_up ? "running" : "dead";
  if (cleans_up) {
    allocation.poststop_started = world_.wall();
    world_.After(allocation.job.poststop, [this, id] { EndPoststop(id); });
  }
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationStopped, allocation);
  DrainStep(allocation.node_id);
  Schedule();
}

void NomadState::EndPoststop(const std::string& id) {
  NomadAllocation* found = FindAllocation(id);
  if (found == nullptr) return;
  NomadAllocation& allocation = *found;
  if (allocation.poststop_state != "running" || !IsAlive(allocation.node_id)) return;
  allocation.poststop_state = "dead";
  allocation.poststop_finished = world_.wall();
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationIdle, allocation);
}

// The tasks' states stay as last reported by the client.
void NomadState::Lose(NomadAllocation& allocation) {
  allocation.client_status = "lost";
  allocation.desired = "stop";
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationLost, allocation);
}

// A lost allocation may still run until its client reconnects and stops it; the server then takes
// over the status that the client reports (hashicorp/nomad:nomad/state/state_store.go,
// nestedUpdateAllocFromClient).
void NomadState::EndLost(const std::string& id) {
  world_.After(world_.options.stop_time, [this, id] {
    NomadAllocation* found = FindAllocation(id);
    if (found == nullptr || found->client_status != "lost" || !IsAlive(found->node_id)) return;
    NomadAllocation& allocation = *found;
    allocation.client_status = allocation.job.type == "batch" ? "failed" : "complete";
    allocation.main_state = "dead";
    allocation.poststop_state = "dead";
    if (!allocation.main_finished) allocation.main_finished = world_.wall();
    Touch(allocation);
    EmitAllocation(EventKind::kAllocationIdle, allocation);
  });
}

// Its node was disconnected; the work has never stopped.
void NomadState::Reconnect(NomadAllocation& allocation) {
  allocation.client_status = "running";
  Touch(allocation);
  EmitAllocation(EventKind::kAllocationRunning, allocation);
}

void NomadState::LoseAllOn(const std::string& node_id) {
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id == node_id && !allocation.Terminal()) Lose(allocation);
  }
  DrainStep(node_id);
  Schedule();
}

}  // namespace nomad_harvester::simulator
