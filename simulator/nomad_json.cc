// SPDX-License-Identifier: Apache-2.0
#include "nomad_json.h"

#include <string>

namespace nomad_harvester::simulator {
namespace {

using Json = nlohmann::json;

constexpr char kVersion[] = "1.10.5";
constexpr char kZeroTime[] = "0001-01-01T00:00:00Z";  // as Go writes an unset time

Json LastDrainJson(const NomadNode& node) {
  if (!node.last_drain) return nullptr;
  const LastDrain& drain = *node.last_drain;
  return {{"StartedAt", base::FormatRfc3339(drain.started_at)},
          {"UpdatedAt", base::FormatRfc3339(drain.updated_at)},
          {"Status", drain.status},
          {"AccessorID", ""},
          {"Meta", drain.meta.empty() ? Json(nullptr) : Json(drain.meta)}};
}

Json DrainStrategyJson(const NomadNode& node) {
  if (!node.drain) return nullptr;
  const DrainStrategy& drain = *node.drain;
  return {{"Deadline", drain.deadline.count()},
          {"IgnoreSystemJobs", drain.ignore_system_jobs},
          {"StartedAt", base::FormatRfc3339Nanos(drain.started_at)},
          {"ForceDeadline",
           drain.force_at ? base::FormatRfc3339Nanos(*drain.force_at) : std::string(kZeroTime)}};
}

// hashicorp/nomad:nomad/structs/volumes.go, ClientHostVolumeConfig; the path of a dynamic one: as
// client/client.go defaults HostVolumesDir. Without any: an empty object (observed on
// Nomad 1.10.5).
Json HostVolumesJson(const NomadNode& node) {
  Json volumes = Json::object();
  for (const auto& [name, id] : node.spec.host_volumes) {
    const std::string path =
        id.empty() ? "/srv/" + name : "/opt/nomad/data/client/host_volumes/" + id;
    volumes[name] = {{"Name", name}, {"Path", path}, {"ReadOnly", false}, {"ID", id}};
  }
  return volumes;
}

// hashicorp/nomad:nomad/structs/node.go, DriverInfo.
Json DriversJson(const NomadNode& node) {
  Json drivers = Json::object();
  for (const auto& [name, driver] : node.drivers) {
    Json attributes = Json::object();
    if (driver.healthy) attributes["driver." + name] = "true";
    drivers[name] = {{"Attributes", attributes},
                     {"Detected", driver.detected},
                     {"Healthy", driver.healthy},
                     {"HealthDescription", driver.description},
                     {"UpdateTime", base::FormatRfc3339Nanos(driver.updated_at)}};
  }
  return drivers;
}

Json NodeResourcesJson(const NodeSpec& spec) {
  return {{"Cpu",
           {{"CpuShares", spec.cpu},
            {"TotalCpuCores", 2},
            {"ReservableCpuCores", Json::array({0, 1})}}},
          {"Memory", {{"MemoryMB", spec.memory_mb}, {"MemoryMaxMB", 0}}},
          {"Disk", {{"DiskMB", 20000}}},
          {"Networks", Json::array()},
          {"Devices", nullptr}};
}

Json ReservedResourcesJson() {
  return {{"Cpu", {{"CpuShares", 0}, {"ReservedCpuCores", nullptr}}},
          {"Memory", {{"MemoryMB", 0}}},
          {"Disk", {{"DiskMB", 0}}},
          {"Networks", {{"ReservedHostPorts", ""}}}};
}

Json Common(const NomadNode& node) {
  return {{"ID", node.id},
          {"Name", node.spec.name},
          {"Datacenter", node.spec.datacenter},
          {"NodeClass", node.spec.node_class},
          {"NodePool", node.spec.node_pool},
          {"Drain", node.drain.has_value()},
          {"SchedulingEligibility", node.eligible ? "eligible" : "ineligible"},
          {"Status", node.status},
          {"Drivers", DriversJson(node)},
          {"HostVolumes", HostVolumesJson(node)},
          {"LastDrain", LastDrainJson(node)},
          {"CreateIndex", node.create_index},
          {"ModifyIndex", node.modify_index}};
}

Json TimeOrNull(const std::optional<base::WallTime>& time) {
  return time ? Json(base::FormatRfc3339Nanos(*time)) : Json(nullptr);
}

Json TaskState(const std::string& state, bool failed, const std::optional<base::WallTime>& started,
               const std::optional<base::WallTime>& finished) {
  return {{"State", state},
          {"Failed", failed},
          {"Restarts", 0},
          {"StartedAt", TimeOrNull(started)},
          {"FinishedAt", TimeOrNull(finished)},
          {"Events", Json::array()}};
}

Json TaskStates(const NomadAllocation& allocation) {
  // The client has not reported a state yet.
  if (allocation.client_status == "pending") return nullptr;
  Json states = {{"main", TaskState(allocation.main_state, allocation.client_status == "failed",
                                    allocation.main_started, allocation.main_finished)}};
  if (allocation.job.poststop > base::Duration::zero()) {
    states["cleanup"] = TaskState(allocation.poststop_state, false, allocation.poststop_started,
                                  allocation.poststop_finished);
  }
  return states;
}

Json AllocatedResources(const NomadAllocation& allocation) {
  const Json main = {{"Cpu", {{"CpuShares", allocation.job.cpu}, {"ReservedCores", nullptr}}},
                     {"Memory", {{"MemoryMB", allocation.job.memory_mb}, {"MemoryMaxMB", 0}}}};
  return {{"Tasks", {{"main", main}}}, {"Shared", {{"DiskMB", 300}}}};
}

Json CommonAllocation(const NomadAllocation& allocation) {
  const std::int64_t created = allocation.created_at.time_since_epoch().count();
  return {{"ID", allocation.id},
          {"Namespace", allocation.job.ns},
          {"Name", allocation.job_id + "." + allocation.job.group + "[0]"},
          {"NodeID", allocation.node_id},
          {"NodeName", allocation.node_name},
          {"JobID", allocation.job_id},
          {"TaskGroup", allocation.job.group},
          {"ClientStatus", allocation.client_status},
          {"DesiredStatus", allocation.desired},
          {"CreateIndex", allocation.create_index},
          {"ModifyIndex", allocation.modify_index},
          {"CreateTime", created},
          {"ModifyTime", created}};
}

}  // namespace

Json NodeJson(const NomadNode& node) {
  Json json = Common(node);
  json["HTTPAddr"] = node.address + ":4646";
  json["SecretID"] = "";
  json["Attributes"] = node.spec.attributes;
  json["Attributes"]["os.name"] = "ubuntu";
  // hashicorp/nomad:client/node_updater.go, applyNodeUpdatesFromDriver.
  for (const auto& [name, driver] : node.drivers) {
    if (driver.detected) json["Attributes"]["driver." + name] = "1";
  }
  json["Attributes"]["unique.network.ip-address"] = node.address;
  json["Meta"] = node.spec.meta;
  json["NodeResources"] = NodeResourcesJson(node.spec);
  json["ReservedResources"] = ReservedResourcesJson();
  json["DrainStrategy"] = DrainStrategyJson(node);
  json["StatusUpdatedAt"] =
      std::chrono::floor<std::chrono::seconds>(node.status_updated_at).time_since_epoch().count();
  json["Events"] = Json::array();
  return json;
}

Json NodeStub(const NomadNode& node, bool resources, bool os) {
  Json json = Common(node);
  json["Address"] = node.address;
  json["Version"] = kVersion;
  if (os) json["Attributes"] = {{"os.name", "ubuntu"}};
  if (resources) {
    json["NodeResources"] = NodeResourcesJson(node.spec);
    json["ReservedResources"] = ReservedResourcesJson();
  }
  return json;
}

Json AllocationJson(const NomadAllocation& allocation) {
  Json json = CommonAllocation(allocation);
  json["Job"] = {{"ID", allocation.job_id},
                 {"Name", allocation.job_id},
                 {"Namespace", allocation.job.ns},
                 {"Type", allocation.job.type}};
  json["Resources"] = {{"CPU", allocation.job.cpu}, {"MemoryMB", allocation.job.memory_mb}};
  json["AllocatedResources"] = AllocatedResources(allocation);
  json["TaskStates"] = TaskStates(allocation);
  return json;
}

Json AllocationStub(const NomadAllocation& allocation, bool resources, bool task_states) {
  Json json = CommonAllocation(allocation);
  json["JobType"] = allocation.job.type;
  if (resources) json["AllocatedResources"] = AllocatedResources(allocation);
  json["TaskStates"] = task_states ? TaskStates(allocation) : Json(nullptr);
  return json;
}

// A dead job is not told from a running one, unless it was stopped.
Json JobStub(const NomadJob& job) {
  const JobSpec& spec = job.spec;
  return {{"ID", spec.id},
          {"Name", spec.id},
          {"Namespace", spec.ns},
          {"Type", spec.type},
          {"Priority", 50},
          {"Datacenters", Json::array({spec.datacenter.empty() ? "*" : spec.datacenter})},
          {"NodePool", spec.node_pool.empty() ? "all" : spec.node_pool},
          {"Stop", job.stopped},
          {"Status", job.stopped      ? "dead"
                     : job.queued > 0 ? "pending"
                                      : "running"},
          {"JobSummary", {{"Summary", {{spec.group, {{"Queued", job.queued}}}}}}},
          {"CreateIndex", job.modify_index},
          {"ModifyIndex", job.modify_index},
          {"JobModifyIndex", job.modify_index}};
}

Json JobJson(const NomadJob& job) {
  const JobSpec& spec = job.spec;
  Json json = JobStub(job);
  json.erase("JobSummary");
  Json constraints = Json::array();
  for (const auto& [left, right] : {std::pair("${node.unique.name}", spec.node_name),
                                    std::pair("${node.class}", spec.node_class)}) {
    if (right.empty()) continue;
    constraints.push_back({{"LTarget", left}, {"RTarget", right}, {"Operand", "="}});
  }
  json["Constraints"] = constraints.empty() ? Json(nullptr) : constraints;
  json["Version"] = 0;
  const Json main = {{"Name", "main"},
                     {"Driver", spec.driver},
                     {"Resources",
                      {{"CPU", spec.cpu},
                       {"Cores", 0},
                       {"MemoryMB", spec.memory_mb},
                       {"MemoryMaxMB", 0},
                       {"Networks", nullptr},
                       {"Devices", nullptr}}},
                     {"Constraints", nullptr},
                     {"Lifecycle", nullptr}};
  json["TaskGroups"] = Json::array({{{"Name", spec.group},
                                     {"Count", spec.count},
                                     {"Constraints", nullptr},
                                     {"EphemeralDisk", {{"SizeMB", 300}}},
                                     {"Networks", nullptr},
                                     {"Volumes", nullptr},
                                     {"Tasks", Json::array({main})}}});
  return json;
}

Json EvaluationJson(const NomadJob& job, const NomadEvaluation& evaluation) {
  int exhausted = 0;
  for (const auto& [dimension, nodes] : evaluation.exhausted) exhausted += nodes;
  int filtered = 0;
  for (const auto& [constraint, nodes] : evaluation.filtered) filtered += nodes;
  const auto or_null = [](const std::map<std::string, int>& nodes) {
    return nodes.empty() ? Json(nullptr) : Json(nodes);
  };
  Json metric = {{"NodesEvaluated", filtered + exhausted},
                 {"NodesFiltered", filtered},
                 {"NodesExhausted", exhausted},
                 {"ConstraintFiltered", or_null(evaluation.filtered)},
                 {"DimensionExhausted", or_null(evaluation.exhausted)},
                 {"CoalescedFailures", evaluation.unplaced - 1}};
  return {{"ID", evaluation.id},
          {"Namespace", job.spec.ns},
          {"JobID", job.spec.id},
          {"Type", job.spec.type},
          {"Priority", 50},
          {"Status", "blocked"},
          {"StatusDescription", "created to place remaining allocations"},
          {"FailedTGAllocs", {{job.spec.group, std::move(metric)}}},
          {"JobModifyIndex", job.modify_index},
          {"CreateIndex", evaluation.create_index},
          {"ModifyIndex", evaluation.create_index}};
}

}  // namespace nomad_harvester::simulator
