// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "decode_fields.h"

namespace nomad_harvester::nomad {
namespace {

using base::JsonEvent;
using base::SetText;
using Kind = JsonEvent::Kind;

// Go encodes an unset time as year 1, which is out of range for 64-bit nanoseconds.
std::optional<base::WallTime> Time(std::string_view text) {
  if (text.empty() || text.starts_with("0001")) return std::nullopt;
  return base::ToOptional(base::ParseRfc3339(text));
}

// Of a WallTime.
constexpr auto kMaxSeconds = std::chrono::floor<std::chrono::seconds>(base::Duration::max());
constexpr std::array<std::string_view, 3> kDrainStatuses = {"draining", "complete", "canceled"};
void SetDrainStatus(LastDrain& drain, const JsonEvent& event) {
  drain.status = ByName<DrainStatus>(kDrainStatuses, event.text);
}
void SetUpdatedAt(LastDrain& drain, const JsonEvent& event) { drain.updated_at = Time(event.text); }

// Passes an event on to an optional part of the node, if the document has that part.
template <auto kPart, auto kSet>
void SetOf(Node& node, const JsonEvent& event) {
  if (node.*kPart) kSet(*(node.*kPart), event);
}
template <auto kPart>
void BeginPart(Node& node, const JsonEvent& event) {
  if (event.kind == Kind::kObject) (node.*kPart).emplace();
}

// For a list of numbers.
void CountCore(NodeResources& resources, const JsonEvent& event) {
  resources.cores += event.kind == Kind::kInt ? 1 : 0;
}
void CountHealthy(NodeDevice& device, const JsonEvent& event) {
  device.healthy += event.boolean ? 1 : 0;
}

// "10.0.0.7:4646" or "[fd00::7]:4646" without the port.
std::string HostOf(std::string address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return address;
  if (address.front() == '[') {
    const std::size_t end = address.find(']');
    if (end != std::string::npos) return address.substr(1, end - 1);
  }
  if (address.find(':') == colon) address.resize(colon);
  return address;
}

// Returns the driver to which a member belongs. The members of one driver are consecutive.
Driver& DriverAt(Node& node, const JsonEvent& event) {
  if (node.drivers.empty() || node.drivers.back().name != event.name) {
    node.drivers.push_back({.name = std::string(event.name)});
  }
  return node.drivers.back();
}

// The fields that a stub and a full node share. hashicorp/nomad:api/nodes.go, Node and
// NodeListStub.
std::vector<base::JsonFields<Node>::Field> NodeFields(
    std::initializer_list<base::JsonFields<Node>::Field> more) {
  std::vector<base::JsonFields<Node>::Field> fields = {
      {"ID", &SetText<&Node::id>},
      {"Name", &SetText<&Node::name>},
      {"Datacenter", &SetText<&Node::datacenter>},
      {"NodeClass", &SetText<&Node::node_class>},
      {"NodePool", &SetText<&Node::node_pool>},
      {"Status",
       [](Node& n, const JsonEvent& e) {
         n.status = ByName<NodeStatus>(kNodeStatusNames, e.text);
       }},
      {"SchedulingEligibility",
       [](Node& n, const JsonEvent& e) { n.eligible = e.text == "eligible"; }},
      {"Drain", [](Node& n, const JsonEvent& e) { n.draining = n.draining || e.boolean; }},
      {"LastDrain", &BeginPart<&Node::last_drain>},
      {"LastDrain.Status", &SetOf<&Node::last_drain, &SetDrainStatus>},
      {"LastDrain.StartedAt", &SetOf<&Node::last_drain, &SetText<&LastDrain::started_at>>},
      {"LastDrain.UpdatedAt", &SetOf<&Node::last_drain, &SetUpdatedAt>},
      {"LastDrain.Meta.*", &SetOf<&Node::last_drain, &base::PutText<&LastDrain::meta>>},
      {"NodeResources", &BeginPart<&Node::resources>},
      {"NodeResources.Cpu.CpuShares",
       &SetOf<&Node::resources, &SetAmount<&NodeResources::cpu_shares>>},
      {"NodeResources.Memory.MemoryMB",
       &SetOf<&Node::resources, &SetAmount<&NodeResources::memory_mb>>},
      {"NodeResources.Disk.DiskMB", &SetOf<&Node::resources, &SetAmount<&NodeResources::disk_mb>>},
      {"NodeResources.Cpu.TotalCpuCores",
       &SetOf<&Node::resources, &SetAmount<&NodeResources::total_cores>>},
      {"NodeResources.Cpu.ReservableCpuCores", &SetOf<&Node::resources, &CountCore>},
      {"NodeResources.Networks.Mode",
       [](Node& n, const JsonEvent& e) {
         if (e.kind == Kind::kText) n.network_modes.emplace_back(e.text.empty() ? "host" : e.text);
       }},
      {"NodeResources.Devices", &BeginLast<&Node::devices>},
      {"NodeResources.Devices.Vendor", &SetOfLast<&Node::devices, &SetText<&NodeDevice::vendor>>},
      {"NodeResources.Devices.Type", &SetOfLast<&Node::devices, &SetText<&NodeDevice::type>>},
      {"NodeResources.Devices.Name", &SetOfLast<&Node::devices, &SetText<&NodeDevice::name>>},
      {"NodeResources.Devices.Instances.Healthy", &SetOfLast<&Node::devices, &CountHealthy>},
      {"ReservedResources.Disk.DiskMB",
       [](Node& n, const JsonEvent& e) { n.reserved.disk_mb = Amount(e); }},
      {"ReservedResources.Cpu.ReservedCpuCores",
       [](Node& n, const JsonEvent& e) { CountCore(n.reserved, e); }},
      {"ReservedResources.Cpu.CpuShares",
       [](Node& n, const JsonEvent& e) { n.reserved.cpu_shares = Amount(e); }},
      {"ReservedResources.Memory.MemoryMB",
       [](Node& n, const JsonEvent& e) { n.reserved.memory_mb = Amount(e); }},
      {"HostVolumes.*",
       [](Node& n, const JsonEvent& e) {
         if (e.kind == Kind::kObject) n.host_volumes.push_back({.name = std::string(e.name)});
       }},
      {"HostVolumes.*.ReadOnly",
       &SetOfLast<&Node::host_volumes, &base::SetBool<&HostVolume::read_only>>},
      {"HostVolumes.*.ID",
       [](Node& n, const JsonEvent& e) {
         if (!e.text.empty()) n.dynamic_host_volumes.emplace_back(e.name);
       }},
      {"Drivers.*.Detected",
       [](Node& n, const JsonEvent& e) { DriverAt(n, e).detected = e.boolean; }},
      {"Drivers.*.Healthy",
       [](Node& n, const JsonEvent& e) { DriverAt(n, e).healthy = e.boolean; }},
      {"Drivers.*.HealthDescription",
       [](Node& n, const JsonEvent& e) { DriverAt(n, e).description = std::string(e.text); }},
      {"CreateIndex", &SetIndex<&Node::create_index>},
      {"ModifyIndex", &SetIndex<&Node::modify_index>},
  };
  fields.insert(fields.end(), more);
  return fields;
}

const base::JsonFields<Node>& FullNodeFields() {
  static const auto* const kFields = new base::JsonFields<Node>(NodeFields({
      {"HTTPAddr",
       [](Node& n, const JsonEvent& e) {
         if (e.kind == Kind::kText) n.address = HostOf(std::string(e.text));
       }},
      {"StatusUpdatedAt",
       [](Node& n, const JsonEvent& e) {
         const std::chrono::seconds since(Amount(e));
         if (since.count() > 0 && since < kMaxSeconds) n.status_updated_at = base::WallTime(since);
       }},
      {"Attributes.*", &base::PutText<&Node::attributes>},
      {"Meta.*", &base::PutText<&Node::meta>},
      {"DrainStrategy",
       [](Node& n, const JsonEvent& e) { n.draining = n.draining || e.kind == Kind::kObject; }},
  }));
  return *kFields;
}

}  // namespace

const base::JsonFields<Node>& NodeStubFields() {
  static const auto* const kFields =
      new base::JsonFields<Node>(NodeFields({{"Address", &SetText<&Node::address>}}));
  return *kFields;
}

const base::JsonFields<AllocationRecord>& AllocationFields() {
  using Record = AllocationRecord;
  static const auto* const kFields = new base::JsonFields<Record>({
      {"ID", &SetText<&Record::id, Record>},
      {"Namespace", &SetText<&Record::ns, Record>},
      {"NodeID", &SetText<&Record::node_id, Record>},
      {"JobType", &SetText<&Record::job_type, Record>},
      {"Job.Type",
       [](Record& r, const JsonEvent& e) {
         if (r.job_type.empty()) SetText<&Record::job_type, Record>(r, e);
       }},
      {"DesiredStatus", &SetText<&Record::desired_status, Record>},
      {"ClientStatus",
       [](Record& r, const JsonEvent& e) {
         r.client_status = ByName<ClientStatus>(kClientStatuses, e.text);
       }},
      {"AllocatedResources.Tasks.*.Cpu.CpuShares",
       [](Record& r, const JsonEvent& e) { Add(Amount(e), r.cpu_shares); }},
      {"AllocatedResources.Tasks.*.Memory.MemoryMB",
       [](Record& r, const JsonEvent& e) { Add(Amount(e), r.memory_mb); }},
      {"JobID", &SetText<&Record::job, Record>},
      {"TaskStates.*",
       [](Record& r, const JsonEvent& e) {
         if (e.kind != Kind::kEnd) r.tasks_alive.emplace_back(e.name);
       }},
      {"TaskStates.*.State",
       [](Record& r, const JsonEvent& e) {
         const bool dead = e.text == "dead" && !r.tasks_alive.empty();
         if (dead && r.tasks_alive.back() == e.name) r.tasks_alive.pop_back();
       }},
      {"CreateIndex", &SetIndex<&Record::create_index, Record>},
  });
  return *kFields;
}

absl::Status FinishNode(Node& node) {
  if (node.id.empty()) return base::Internal("a node without an ID");
  std::sort(node.dynamic_host_volumes.begin(), node.dynamic_host_volumes.end());
  std::sort(node.host_volumes.begin(), node.host_volumes.end(),
            [](const HostVolume& a, const HostVolume& b) { return a.name < b.name; });
  std::erase_if(node.drivers, [](const Driver& driver) {
    return !driver.detected && driver.description.empty();
  });
  node.drivers.shrink_to_fit();  // thousands of nodes are held
  return absl::OkStatus();
}

absl::Status FinishAllocation(AllocationRecord& record) {
  if (record.id.empty()) return base::Internal("an allocation without an ID");
  record.all_tasks_dead = record.tasks_alive.empty();
  return absl::OkStatus();
}

absl::Status FinishNodeAllocation(AllocationRecord& record) {
  NH_RETURN_IF_ERROR(FinishAllocation(record));
  const bool runs = record.client_status == ClientStatus::kPending ||
                    record.client_status == ClientStatus::kRunning;
  if (!runs && record.all_tasks_dead) return absl::OkStatus();
  record.work = "job " + record.job;
  if (!record.all_tasks_dead) record.work += " (" + absl::StrJoin(record.tasks_alive, ", ") + ")";
  return absl::OkStatus();
}

absl::Status FinishPlacement(AllocationRecord& record) {
  NH_RETURN_IF_ERROR(FinishAllocation(record));
  record.all_tasks_dead = false;
  return absl::OkStatus();
}

absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json) {
  Node node = FullNodeFields().Read(json);
  node.full = true;
  NH_RETURN_IF_ERROR(FinishNode(node));
  return node;
}

}  // namespace nomad_harvester::nomad
