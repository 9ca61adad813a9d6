// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/demand/work.h"

namespace nomad_harvester::demand {
namespace {

// Their product must not overflow for any reply of a server.
constexpr std::int64_t kMaxCpuPerCore = 1 << 30;

// A distinct_hosts whose value is "false" is none
// (hashicorp/nomad:scheduler/feasible.go, hasDistinctHostsConstraint). One without a valid limit
// lets Nomad place nothing (scheduler/propertyset.go, setConstraint).
std::optional<Distinct> DistinctOf(const Constraint& constraint, bool whole_job) {
  if (constraint.operand == "distinct_hosts") {
    if (!base::ParseGoBool(constraint.right).value_or(true)) return std::nullopt;
    return Distinct{.property = std::string(kEveryHost), .limit = 1, .whole_job = whole_job};
  }
  std::int64_t limit = 1;
  if (!constraint.right.empty()) {
    const auto parsed = base::ParseInt(constraint.right);
    limit = parsed.ok() ? std::max<std::int64_t>(0, *parsed) : 0;
  }
  return Distinct{.property = constraint.left, .limit = limit, .whole_job = whole_job};
}

void AddConstraints(const std::vector<Constraint>& from, bool whole_job, Group& group) {
  for (const Constraint& constraint : from) {
    if (constraint.operand == "distinct_hosts" || constraint.operand == "distinct_property") {
      if (auto distinct = DistinctOf(constraint, whole_job)) {
        group.distinct.push_back(*std::move(distinct));
      }
      continue;
    }
    auto& all = group.constraints;
    if (std::find(all.begin(), all.end(), constraint) == all.end()) all.push_back(constraint);
  }
}

}  // namespace

// Each task takes cores and devices of its own, also from tasks that run at another time
// (hashicorp/nomad:scheduler/rank.go, Next).
Group MakeGroup(const nomad::Job& job, const nomad::TaskGroup& group) {
  Group made;
  made.ns = job.ns;
  made.job = job.id;
  made.name = group.name;
  made.job_type = job.type;
  made.priority = job.priority;
  made.datacenters = job.datacenters;
  made.node_pool = job.node_pool;
  made.runnable = !job.stop;
  made.network_mode = group.network_mode;
  made.host_networks = group.host_networks;
  made.need.disk_mb = group.disk_mb;
  made.static_ports.insert(group.static_ports.begin(), group.static_ports.end());
  AddConstraints(job.constraints, /*whole_job=*/true, made);
  AddConstraints(group.constraints, /*whole_job=*/false, made);
  nomad::LifecycleSum cpu;
  nomad::LifecycleSum memory;
  for (const nomad::Task& task : group.tasks) {
    cpu.Add(task.hook, task.sidecar, task.cpu_shares);
    memory.Add(task.hook, task.sidecar, task.memory_mb);
    made.need.cores += task.cores;
    for (DeviceNeed device : task.devices) {
      device.count = std::max<std::int64_t>(1, device.count);
      made.devices.push_back(std::move(device));
    }
    made.static_ports.insert(task.static_ports.begin(), task.static_ports.end());
    if (!task.driver.empty()) made.drivers.insert(task.driver);
    AddConstraints(task.constraints, /*whole_job=*/false, made);
  }
  made.need.cores = std::min(made.need.cores, kMaxCores);
  made.need.cpu = cpu.Total();
  made.need.memory_mb = memory.Total();
  for (const nomad::VolumeRequest& volume : group.volumes) {
    if (volume.type == "host" && !volume.per_alloc) {
      made.host_volumes.push_back({.name = volume.source, .read_only = volume.read_only});
    } else {
      made.csi_volumes = true;
    }
  }
  return made;
}

PoolNode MakePoolNode(std::shared_ptr<const nomad::Node> node) {
  PoolNode made;
  const nomad::NodeResources all = node->resources.value_or(nomad::NodeResources());
  const auto less = [](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(0, a - b); };
  made.capacity.cpu = less(all.cpu_shares, node->reserved.cpu_shares);
  made.capacity.cores = less(all.cores, node->reserved.cores);
  made.capacity.memory_mb = less(all.memory_mb, node->reserved.memory_mb);
  made.capacity.disk_mb = less(all.disk_mb, node->reserved.disk_mb);
  for (const nomad::NodeDevice& device : node->devices) {
    made.capacity.devices[device.vendor + "/" + device.type + "/" + device.name] += device.healthy;
  }
  // hashicorp/nomad:nomad/structs/structs.go, NodeCpuResources.SharesPerCore.
  if (all.total_cores > 0)
    made.cpu_per_core = std::min(kMaxCpuPerCore, all.cpu_shares / all.total_cores);
  made.node = std::move(node);
  return made;
}

Placed MakePlaced(const nomad::Placement& placement) {
  return {.ns = placement.ns,
          .job = placement.job,
          .group = placement.group,
          .job_type = placement.job_type,
          .uses = {.cpu = placement.cpu_shares,
                   .cores = placement.cores,
                   .memory_mb = placement.memory_mb,
                   .disk_mb = placement.disk_mb,
                   .devices = placement.devices},
          .ports = {placement.ports.begin(), placement.ports.end()},
          .leaves = placement.migrate,
          .stops = placement.desired_status != "run"};
}

// The failures of a blocked evaluation are those of its first try, also when it has placed some
// since (hashicorp/nomad:scheduler/generic_sched.go, Process: ReblockEval of a copy). The list of
// jobs has what is left then, 0 included.
std::int64_t CountPending(const nomad::PlacementFailure& failure,
                          std::optional<std::int64_t> queued) {
  return std::min(queued.value_or(failure.unplaced), failure.unplaced);
}

}  // namespace nomad_harvester::demand
