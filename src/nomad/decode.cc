// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::nomad {
namespace {

using base::JsonEvent;
using base::SetText;
using Kind = JsonEvent::Kind;

// Bounds the amounts, so that sums cannot overflow for any response of the server.
constexpr std::int64_t kMaxAmount = std::int64_t{1} << 40;

// Go encodes an unset time as year 1, which is out of range for 64-bit nanoseconds.
std::optional<base::WallTime> Time(std::string_view text) {
  if (text.empty() || text.starts_with("0001")) return std::nullopt;
  return base::ToOptional(base::ParseRfc3339(text));
}

template <auto kMember, typename Record = base::RecordOf<kMember>>
void SetIndex(Record& record, const JsonEvent& event) {
  if (event.kind == Kind::kInt) {
    record.*kMember = static_cast<std::uint64_t>(std::max<std::int64_t>(0, event.integer));
  }
}

std::int64_t Amount(const JsonEvent& event) {
  return event.kind == Kind::kInt ? std::clamp<std::int64_t>(event.integer, 0, kMaxAmount) : 0;
}
template <auto kMember>
void SetAmount(NodeResources& resources, const JsonEvent& event) {
  resources.*kMember = Amount(event);
}
void Add(std::int64_t amount, std::int64_t& sum) { sum = std::min(kMaxAmount, sum + amount); }

constexpr std::array<std::string_view, 3> kDrainStatuses = {"draining", "complete", "canceled"};
constexpr std::array<std::string_view, 5> kClientStatuses = {"pending", "running", "complete",
                                                             "failed", "lost"};

// Returns the enum value at the position of its name; kUnknown comes after all names.
template <typename Enum, std::size_t kNames>
Enum ByName(const std::array<std::string_view, kNames>& names, std::string_view text) {
  static_assert(static_cast<std::size_t>(Enum::kUnknown) == kNames);
  return static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());
}

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
      {"ReservedResources.Cpu.CpuShares",
       [](Node& n, const JsonEvent& e) { n.reserved.cpu_shares = Amount(e); }},
      {"ReservedResources.Memory.MemoryMB",
       [](Node& n, const JsonEvent& e) { n.reserved.memory_mb = Amount(e); }},
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
      {"AllocatedResources.Tasks.*",
       [](Record& r, const JsonEvent& e) { r.has_task_resources |= e.kind != Kind::kEnd; }},
      {"AllocatedResources.Tasks.*.Cpu.CpuShares",
       [](Record& r, const JsonEvent& e) { Add(Amount(e), r.cpu_shares); }},
      {"AllocatedResources.Tasks.*.Memory.MemoryMB",
       [](Record& r, const JsonEvent& e) { Add(Amount(e), r.memory_mb); }},
      // Deprecated since 0.9, still filled by 2.0 (hashicorp/nomad:nomad/structs/structs.go).
      {"Resources.CPU", [](Record& r, const JsonEvent& e) { r.deprecated.cpu_shares = Amount(e); }},
      {"Resources.MemoryMB",
       [](Record& r, const JsonEvent& e) { r.deprecated.memory_mb = Amount(e); }},
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
  std::erase_if(node.drivers, [](const Driver& driver) {
    return !driver.detected && driver.description.empty();
  });
  return absl::OkStatus();
}

absl::Status FinishAllocation(AllocationRecord& record) {
  if (record.id.empty()) return base::Internal("an allocation without an ID");
  if (!record.has_task_resources) {
    record.cpu_shares = record.deprecated.cpu_shares;
    record.memory_mb = record.deprecated.memory_mb;
  }
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
