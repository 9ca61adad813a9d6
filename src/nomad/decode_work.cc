// SPDX-License-Identifier: Apache-2.0
// What decides how many nodes a pool needs: jobs, what their allocations hold, and why Nomad does
// not place them. The members are those of hashicorp/nomad:nomad/structs/structs.go.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

#include "decode.h"
#include "decode_fields.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;
using base::JsonEvent;
using base::SetBool;
using base::SetText;
using Kind = JsonEvent::Kind;

PlacementRecord::Use& UseOf(PlacementRecord& record, const JsonEvent& event) {
  const auto found = std::find_if(record.tasks.begin(), record.tasks.end(),
                                  [&](const auto& use) { return use.task == event.name; });
  if (found != record.tasks.end()) return *found;
  return record.tasks.emplace_back(PlacementRecord::Use{.task = std::string(event.name)});
}

// Events of a list of devices: its elements begin and end here.
void TakeDevice(PlacementRecord& record, const JsonEvent& event) {
  if (event.kind == Kind::kEnd && record.device_ids > 0) {
    const auto& [vendor, type, name] = record.device;
    Add(record.device_ids, record.devices[vendor + "/" + type + "/" + name]);
  }
  record.device = {};
  record.device_ids = 0;
}
template <std::size_t kPart>
void SetDevicePart(PlacementRecord& record, const JsonEvent& event) {
  record.device[kPart] = event.text;
}

// Pass an event on to the failure of the group that is being read.
template <auto kMap>
void PutOfFailure(EvaluationRecord& record, const JsonEvent& event) {
  PutAmount<kMap>(record.failures[record.group], event);
}
template <auto kMember>
void SetOfFailure(EvaluationRecord& record, const JsonEvent& event) {
  SetAmount<kMember>(record.failures[record.group], event);
}

// Of Go's time.Time.
bool IsZeroTime(std::string_view text) { return text == "0001-01-01T00:00:00Z"; }

// The elements of a list that are objects.
std::vector<const Json*> Objects(const Json& object, const char* key) {
  std::vector<const Json*> objects;
  const Json* const list = base::FindMember(object, key);
  if (list == nullptr || !list->is_array()) return objects;
  for (const Json& element : *list) {
    if (element.is_object()) objects.push_back(&element);
  }
  return objects;
}

std::int64_t AmountOf(const Json& object, const char* key) {
  return std::clamp<std::int64_t>(base::GetInt(object, key), 0, kMaxAmount);
}

std::vector<Constraint> ConstraintsOf(const Json& object) {
  std::vector<Constraint> constraints;
  for (const Json* c : Objects(object, "Constraints")) {
    constraints.push_back({.left = base::GetString(*c, "LTarget"),
                           .operand = base::GetString(*c, "Operand"),
                           .right = base::GetString(*c, "RTarget")});
  }
  return constraints;
}

// Nomad uses the first network alone (hashicorp/nomad:scheduler/rank.go).
std::vector<std::uint16_t> StaticPorts(const Json& object) {
  std::vector<std::uint16_t> ports;
  const auto networks = Objects(object, "Networks");
  if (networks.empty()) return ports;
  for (const Json* port : Objects(*networks.front(), "ReservedPorts")) {
    const std::int64_t value = base::GetInt(*port, "Value");
    if (value > 0 && value <= kMaxPort) ports.push_back(static_cast<std::uint16_t>(value));
  }
  return ports;
}

bool HasHostNetwork(const Json& network) {
  const auto is_named = [](const Json* port) {
    const std::string name = base::GetString(*port, "HostNetwork");
    return !name.empty() && name != "default";
  };
  const auto dynamic = Objects(network, "DynamicPorts");
  const auto reserved = Objects(network, "ReservedPorts");
  return std::any_of(dynamic.begin(), dynamic.end(), is_named) ||
         std::any_of(reserved.begin(), reserved.end(), is_named);
}

Task TaskOf(const Json& json) {
  Task task;
  task.name = base::GetString(json, "Name");
  task.driver = base::GetString(json, "Driver");
  task.constraints = ConstraintsOf(json);
  if (const Json* lifecycle = base::FindMember(json, "Lifecycle")) {
    task.hook = base::GetString(*lifecycle, "Hook");
    task.sidecar = base::GetBool(*lifecycle, "Sidecar");
  }
  const Json* const resources = base::FindMember(json, "Resources");
  if (resources == nullptr) return task;
  task.cores = AmountOf(*resources, "Cores");
  task.cpu_shares = task.cores > 0 ? 0 : AmountOf(*resources, "CPU");
  task.memory_mb = AmountOf(*resources, "MemoryMB");
  task.static_ports = StaticPorts(*resources);
  for (const Json* device : Objects(*resources, "Devices")) {
    task.devices.push_back({.name = base::GetString(*device, "Name"),
                            .count = AmountOf(*device, "Count"),
                            .constraints = ConstraintsOf(*device)});
  }
  return task;
}

TaskGroup GroupOf(const Json& json) {
  TaskGroup group;
  group.name = base::GetString(json, "Name");
  group.count = AmountOf(json, "Count");
  group.constraints = ConstraintsOf(json);
  group.static_ports = StaticPorts(json);
  if (const auto networks = Objects(json, "Networks"); !networks.empty()) {
    group.network_mode = base::GetString(*networks.front(), "Mode");
    if (group.network_mode.empty()) group.network_mode = "host";
    group.host_networks = HasHostNetwork(*networks.front());
  }
  if (const Json* disk = base::FindMember(json, "EphemeralDisk")) {
    group.disk_mb = AmountOf(*disk, "SizeMB");
  }
  const Json* const volumes = base::FindMember(json, "Volumes");
  if (volumes != nullptr && volumes->is_object()) {
    for (const Json& volume : *volumes) {
      group.volumes.push_back({.type = base::GetString(volume, "Type"),
                               .source = base::GetString(volume, "Source"),
                               .read_only = base::GetBool(volume, "ReadOnly"),
                               .per_alloc = base::GetBool(volume, "PerAlloc")});
    }
  }
  for (const Json* task : Objects(json, "Tasks")) group.tasks.push_back(TaskOf(*task));
  return group;
}

}  // namespace

const base::JsonFields<PlacementRecord>& PlacementFields() {
  using Record = PlacementRecord;
  static const auto* const kFields = new base::JsonFields<Record>({
      {"ID", &SetText<&Record::id, Record>},
      {"Namespace", &SetText<&Record::ns, Record>},
      {"NodeID", &SetText<&Record::node_id, Record>},
      {"JobID", &SetText<&Record::job, Record>},
      {"TaskGroup", &SetText<&Record::group, Record>},
      {"JobType", &SetText<&Record::job_type, Record>},
      {"DesiredStatus", &SetText<&Record::desired_status, Record>},
      {"ClientStatus",
       [](Record& r, const JsonEvent& e) {
         r.client_status = ByName<ClientStatus>(kClientStatuses, e.text);
       }},
      {"DesiredTransition.Migrate", &SetBool<&Record::migrate, Record>},
      {"AllocatedResources.Tasks.*.Cpu.CpuShares",
       [](Record& r, const JsonEvent& e) { UseOf(r, e).cpu_shares = Amount(e); }},
      {"AllocatedResources.Tasks.*.Cpu.ReservedCores",
       [](Record& r, const JsonEvent& e) { r.cores += e.kind == Kind::kInt ? 1 : 0; }},
      {"AllocatedResources.Tasks.*.Memory.MemoryMB",
       [](Record& r, const JsonEvent& e) { UseOf(r, e).memory_mb = Amount(e); }},
      {"AllocatedResources.Tasks.*.Networks.ReservedPorts.Value", &AddPort<&Record::ports, Record>},
      {"AllocatedResources.Tasks.*.Networks.DynamicPorts.Value", &AddPort<&Record::ports, Record>},
      {"AllocatedResources.Tasks.*.Devices", &TakeDevice},
      {"AllocatedResources.Tasks.*.Devices.Vendor", &SetDevicePart<0>},
      {"AllocatedResources.Tasks.*.Devices.Type", &SetDevicePart<1>},
      {"AllocatedResources.Tasks.*.Devices.Name", &SetDevicePart<2>},
      {"AllocatedResources.Tasks.*.Devices.DeviceIDs",
       [](Record& r, const JsonEvent& e) { r.device_ids += e.kind == Kind::kText ? 1 : 0; }},
      {"AllocatedResources.TaskLifecycles.*.Hook",
       [](Record& r, const JsonEvent& e) { UseOf(r, e).hook = std::string(e.text); }},
      {"AllocatedResources.TaskLifecycles.*.Sidecar",
       [](Record& r, const JsonEvent& e) { UseOf(r, e).sidecar = e.boolean; }},
      {"AllocatedResources.Shared.DiskMB", &SetAmount<&Record::disk_mb, Record>},
      {"AllocatedResources.Shared.Ports.Value", &AddPort<&Record::ports, Record>},
  });
  return *kFields;
}

absl::Status FinishPlacementRecord(PlacementRecord& record) {
  if (record.id.empty()) return base::Internal("an allocation without an ID");
  LifecycleSum cpu;
  LifecycleSum memory;
  for (const auto& use : record.tasks) {
    cpu.Add(use.hook, use.sidecar, use.cpu_shares);
    memory.Add(use.hook, use.sidecar, use.memory_mb);
  }
  record.cpu_shares = std::min(kMaxAmount, cpu.Total());
  record.memory_mb = std::min(kMaxAmount, memory.Total());
  return absl::OkStatus();
}

const base::JsonFields<EvaluationRecord>& EvaluationFields() {
  using Record = EvaluationRecord;
  using Failure = PlacementFailure;
  static const auto* const kFields = new base::JsonFields<Record>({
      {"ID", &SetText<&Record::id, Record>},
      {"Namespace", &SetText<&Record::ns, Record>},
      {"JobID", &SetText<&Record::job, Record>},
      {"Type", &SetText<&Record::type, Record>},
      {"Status", &SetText<&Record::status, Record>},
      {"WaitUntil",
       [](Record& r, const JsonEvent& e) { r.delayed |= !e.text.empty() && !IsZeroTime(e.text); }},
      // Of an evaluation that follows a failed one, for minutes
      // (hashicorp/nomad:nomad/structs/structs.go, CreateFailedFollowUpEval).
      {"Wait",
       [](Record& r, const JsonEvent& e) { r.delayed |= e.kind == Kind::kInt && e.integer > 0; }},
      {"TriggeredBy", &SetText<&Record::triggered_by, Record>},
      {"QuotaLimitReached", &SetText<&Record::quota_limit_reached, Record>},
      {"CreateIndex", &SetIndex<&Record::create_index, Record>},
      {"ModifyIndex", &SetIndex<&Record::modify_index, Record>},
      {"FailedTGAllocs.*",
       [](Record& r, const JsonEvent& e) {
         if (e.kind != Kind::kObject) return;
         r.group = std::string(e.name);
         r.failures.try_emplace(r.group);
       }},
      {"FailedTGAllocs.*.CoalescedFailures",
       [](Record& r, const JsonEvent& e) { r.failures[r.group].unplaced = 1 + Amount(e); }},
      {"FailedTGAllocs.*.NodesEvaluated", &SetOfFailure<&Failure::nodes_evaluated>},
      {"FailedTGAllocs.*.NodesFiltered", &SetOfFailure<&Failure::nodes_filtered>},
      {"FailedTGAllocs.*.NodesExhausted", &SetOfFailure<&Failure::nodes_exhausted>},
      {"FailedTGAllocs.*.ClassFiltered.*", &PutOfFailure<&Failure::class_filtered>},
      {"FailedTGAllocs.*.ConstraintFiltered.*", &PutOfFailure<&Failure::constraint_filtered>},
      {"FailedTGAllocs.*.DimensionExhausted.*", &PutOfFailure<&Failure::dimension_exhausted>},
      {"FailedTGAllocs.*.QuotaExhausted",
       [](Record& r, const JsonEvent& e) {
         if (e.kind == Kind::kText) r.failures[r.group].quota_exhausted.emplace_back(e.text);
       }},
  });
  return *kFields;
}

absl::Status FinishEvaluation(EvaluationRecord& record) {
  if (record.id.empty()) return base::Internal("an evaluation without an ID");
  return absl::OkStatus();
}

const base::JsonFields<JobStub>& JobStubFields() {
  static const auto* const kFields = new base::JsonFields<JobStub>({
      {"ID", &SetText<&JobStub::id>},
      {"Namespace", &SetText<&JobStub::ns>},
      {"Type", &SetText<&JobStub::type>},
      {"Status", &SetText<&JobStub::status>},
      {"Stop", &SetBool<&JobStub::stop>},
      {"JobModifyIndex", &SetIndex<&JobStub::job_modify_index>},
      {"JobSummary.Summary.*.Queued", &PutAmount<&JobStub::queued>},
  });
  return *kFields;
}

absl::Status FinishJobStub(JobStub& stub) {
  if (stub.id.empty()) return base::Internal("a job without an ID");
  return absl::OkStatus();
}

absl::StatusOr<Job> DecodeJob(const Json& json) {
  Job job;
  job.id = base::GetString(json, "ID");
  if (job.id.empty()) return base::Internal("a job without an ID");
  job.ns = base::GetString(json, "Namespace");
  job.type = base::GetString(json, "Type");
  job.node_pool = base::GetString(json, "NodePool");
  job.datacenters = base::GetStrings(json, "Datacenters");
  job.priority = AmountOf(json, "Priority");
  job.stop = base::GetBool(json, "Stop");
  job.job_modify_index =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, base::GetInt(json, "JobModifyIndex")));
  job.constraints = ConstraintsOf(json);
  for (const Json* group : Objects(json, "TaskGroups")) job.groups.push_back(GroupOf(*group));
  return job;
}

}  // namespace nomad_harvester::nomad
