// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::nomad {
namespace {

using base::JsonEvent;
using base::SetText;
using Kind = JsonEvent::Kind;

// Bounds the amounts, so that sums cannot overflow for any response of the server.
constexpr std::int64_t kMaxAmount = std::int64_t{1} << 40;

// Go encodes an unset time as year 1, which is out of range for 64-bit nanoseconds.
std::optional<base::WallTime> Time(std::string_view text) {
  if (text.empty() || text.substr(0, 4) == "0001") return std::nullopt;
  auto time = base::ParseRfc3339(text);
  if (!time.ok()) return std::nullopt;
  return *time;
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
void Add(std::int64_t amount, std::int64_t& sum) { sum = std::min(kMaxAmount, sum + amount); }

NodeStatus ToNodeStatus(std::string_view text) {
  if (text == "initializing") return NodeStatus::kInitializing;
  if (text == "ready") return NodeStatus::kReady;
  if (text == "down") return NodeStatus::kDown;
  if (text == "disconnected") return NodeStatus::kDisconnected;
  return NodeStatus::kUnknown;
}

DrainStatus ToDrainStatus(std::string_view text) {
  if (text == "draining") return DrainStatus::kDraining;
  if (text == "complete") return DrainStatus::kComplete;
  if (text == "canceled") return DrainStatus::kCanceled;
  return DrainStatus::kUnknown;
}

ClientStatus ToClientStatus(std::string_view text) {
  if (text == "pending") return ClientStatus::kPending;
  if (text == "running") return ClientStatus::kRunning;
  if (text == "complete") return ClientStatus::kComplete;
  if (text == "failed") return ClientStatus::kFailed;
  if (text == "lost") return ClientStatus::kLost;
  return ClientStatus::kUnknown;
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

// What both forms of a node have. hashicorp/nomad:api/nodes.go, Node and NodeListStub.
std::vector<base::JsonFields<Node>::Field> NodeFields(
    std::initializer_list<base::JsonFields<Node>::Field> more) {
  std::vector<base::JsonFields<Node>::Field> fields = {
      {"ID", &SetText<&Node::id>},
      {"Name", &SetText<&Node::name>},
      {"Datacenter", &SetText<&Node::datacenter>},
      {"NodeClass", &SetText<&Node::node_class>},
      {"NodePool", &SetText<&Node::node_pool>},
      {"Status", [](Node& n, const JsonEvent& e) { n.status = ToNodeStatus(e.text); }},
      {"SchedulingEligibility",
       [](Node& n, const JsonEvent& e) { n.eligible = e.text == "eligible"; }},
      {"Drain", [](Node& n, const JsonEvent& e) { n.draining = n.draining || e.boolean; }},
      {"LastDrain",
       [](Node& n, const JsonEvent& e) {
         if (e.kind == Kind::kObject) n.last_drain.emplace();
       }},
      {"LastDrain.Status",
       [](Node& n, const JsonEvent& e) {
         if (n.last_drain) n.last_drain->status = ToDrainStatus(e.text);
       }},
      {"LastDrain.StartedAt",
       [](Node& n, const JsonEvent& e) {
         if (n.last_drain) SetText<&LastDrain::started_at>(*n.last_drain, e);
       }},
      {"LastDrain.UpdatedAt",
       [](Node& n, const JsonEvent& e) {
         if (n.last_drain) n.last_drain->updated_at = Time(e.text);
       }},
      {"LastDrain.Meta.*",
       [](Node& n, const JsonEvent& e) {
         if (n.last_drain) base::PutText<&LastDrain::meta>(*n.last_drain, e);
       }},
      {"NodeResources",
       [](Node& n, const JsonEvent& e) {
         if (e.kind == Kind::kObject) n.resources.emplace();
       }},
      {"NodeResources.Cpu.CpuShares",
       [](Node& n, const JsonEvent& e) {
         if (n.resources) n.resources->cpu_shares = Amount(e);
       }},
      {"NodeResources.Memory.MemoryMB",
       [](Node& n, const JsonEvent& e) {
         if (n.resources) n.resources->memory_mb = Amount(e);
       }},
      {"ReservedResources.Cpu.CpuShares",
       [](Node& n, const JsonEvent& e) { n.reserved.cpu_shares = Amount(e); }},
      {"ReservedResources.Memory.MemoryMB",
       [](Node& n, const JsonEvent& e) { n.reserved.memory_mb = Amount(e); }},
      {"HostVolumes.*.ID",
       [](Node& n, const JsonEvent& e) {
         if (!e.text.empty()) n.dynamic_host_volumes.emplace_back(e.name);
       }},
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
       [](Record& r, const JsonEvent& e) { r.client_status = ToClientStatus(e.text); }},
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
      {"TaskStates.*",
       [](Record& r, const JsonEvent& e) { r.tasks_alive += e.kind != Kind::kEnd ? 1 : 0; }},
      {"TaskStates.*.State",
       [](Record& r, const JsonEvent& e) { r.tasks_alive -= e.text == "dead" ? 1 : 0; }},
      {"CreateIndex", &SetIndex<&Record::create_index, Record>},
  });
  return *kFields;
}

absl::Status FinishNode(Node& node) {
  if (node.id.empty()) return base::Internal("a node without an ID");
  std::sort(node.dynamic_host_volumes.begin(), node.dynamic_host_volumes.end());
  return absl::OkStatus();
}

absl::Status FinishAllocation(AllocationRecord& record) {
  if (record.id.empty()) return base::Internal("an allocation without an ID");
  if (!record.has_task_resources) {
    record.cpu_shares = record.deprecated.cpu_shares;
    record.memory_mb = record.deprecated.memory_mb;
  }
  record.all_tasks_dead = record.tasks_alive == 0;
  return absl::OkStatus();
}

absl::StatusOr<Node> DecodeFullNode(const nlohmann::json& json) {
  Node node;
  FullNodeFields().Read(json, node);
  node.full = true;
  NH_RETURN_IF_ERROR(FinishNode(node));
  return node;
}

}  // namespace nomad_harvester::nomad
