// SPDX-License-Identifier: Apache-2.0
#include "decode.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::nomad {
namespace {

using Json = nlohmann::json;

// Bounds the amounts, so that sums cannot overflow for any response of the server.
constexpr std::int64_t kMaxAmount = std::int64_t{1} << 40;

std::uint64_t Index(const Json& json, std::string_view key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, base::GetInt(json, key)));
}

std::int64_t Amount(const Json* json, std::string_view key) {
  if (json == nullptr) return 0;
  return std::clamp<std::int64_t>(base::GetInt(*json, key), 0, kMaxAmount);
}

std::map<std::string, std::string> StringMap(const Json& json, std::string_view key) {
  std::map<std::string, std::string> map;
  const Json* object = base::FindMember(json, key);
  if (object == nullptr || !object->is_object()) return map;
  for (const auto& [name, value] : object->items()) {
    if (const auto* text = value.get_ptr<const std::string*>()) map.emplace(name, *text);
  }
  return map;
}

// Go encodes an unset time as year 1, which is out of range for 64-bit nanoseconds.
std::optional<base::WallTime> Time(const Json& json, std::string_view key) {
  const std::string text = base::GetString(json, key);
  if (text.empty() || text.compare(0, 4, "0001") == 0) return std::nullopt;
  auto time = base::ParseRfc3339(text);
  if (!time.ok()) return std::nullopt;
  return *time;
}

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

std::optional<LastDrain> DecodeLastDrain(const Json& node) {
  const Json* json = base::FindMember(node, "LastDrain");
  if (json == nullptr || !json->is_object()) return std::nullopt;
  LastDrain drain;
  drain.status = ToDrainStatus(base::GetString(*json, "Status"));
  drain.started_at = base::GetString(*json, "StartedAt");
  drain.updated_at = Time(*json, "UpdatedAt");
  drain.meta = StringMap(*json, "Meta");
  return drain;
}

NodeResources DecodeResources(const Json& json) {
  NodeResources resources;
  resources.cpu_shares = Amount(base::FindMember(json, "Cpu"), "CpuShares");
  resources.memory_mb = Amount(base::FindMember(json, "Memory"), "MemoryMB");
  return resources;
}

std::vector<std::string> DecodeDynamicHostVolumes(const Json& node) {
  std::vector<std::string> names;
  const Json* volumes = base::FindMember(node, "HostVolumes");
  if (volumes == nullptr || !volumes->is_object()) return names;
  for (const auto& [name, volume] : volumes->items()) {
    if (!base::GetString(volume, "ID").empty()) names.push_back(name);
  }
  return names;
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

absl::StatusOr<Node> DecodeCommon(const Json& json) {
  Node node;
  node.id = base::GetString(json, "ID");
  if (node.id.empty()) return base::Internal("a node without an ID");
  node.name = base::GetString(json, "Name");
  node.datacenter = base::GetString(json, "Datacenter");
  node.node_class = base::GetString(json, "NodeClass");
  node.node_pool = base::GetString(json, "NodePool");
  node.status = ToNodeStatus(base::GetString(json, "Status"));
  node.eligible = base::GetString(json, "SchedulingEligibility") == "eligible";
  node.draining = base::GetBool(json, "Drain");
  node.last_drain = DecodeLastDrain(json);
  if (const Json* total = base::FindMember(json, "NodeResources");
      total != nullptr && total->is_object()) {
    node.resources = DecodeResources(*total);
  }
  if (const Json* reserved = base::FindMember(json, "ReservedResources"); reserved != nullptr) {
    node.reserved = DecodeResources(*reserved);
  }
  node.dynamic_host_volumes = DecodeDynamicHostVolumes(json);
  node.create_index = Index(json, "CreateIndex");
  node.modify_index = Index(json, "ModifyIndex");
  return node;
}

void AddResources(const Json& json, Allocation& allocation) {
  const Json* tasks = base::FindPath(json, {"AllocatedResources", "Tasks"});
  if (tasks != nullptr && tasks->is_object() && !tasks->empty()) {
    for (const auto& [name, task] : tasks->items()) {
      const NodeResources part = DecodeResources(task);
      allocation.cpu_shares = std::min(kMaxAmount, allocation.cpu_shares + part.cpu_shares);
      allocation.memory_mb = std::min(kMaxAmount, allocation.memory_mb + part.memory_mb);
    }
    return;
  }
  // Deprecated since 0.9, still filled by 2.0 (hashicorp/nomad:nomad/structs/structs.go).
  const Json* resources = base::FindMember(json, "Resources");
  allocation.cpu_shares = Amount(resources, "CPU");
  allocation.memory_mb = Amount(resources, "MemoryMB");
}

bool AllTasksDead(const Json& json) {
  const Json* states = base::FindMember(json, "TaskStates");
  if (states == nullptr || !states->is_object()) return true;
  for (const auto& [name, state] : states->items()) {
    if (base::GetString(state, "State") != "dead") return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<Node> DecodeNodeStub(const Json& json) {
  NH_ASSIGN_OR_RETURN(Node node, DecodeCommon(json));
  node.address = base::GetString(json, "Address");
  return node;
}

absl::StatusOr<Node> DecodeFullNode(const Json& json) {
  NH_ASSIGN_OR_RETURN(Node node, DecodeCommon(json));
  node.full = true;
  node.address = HostOf(base::GetString(json, "HTTPAddr"));
  node.attributes = StringMap(json, "Attributes");
  node.meta = StringMap(json, "Meta");
  const Json* strategy = base::FindMember(json, "DrainStrategy");
  node.draining = node.draining || (strategy != nullptr && strategy->is_object());
  return node;
}

absl::StatusOr<Allocation> DecodeAllocation(const Json& json) {
  Allocation allocation;
  allocation.id = base::GetString(json, "ID");
  if (allocation.id.empty()) return base::Internal("an allocation without an ID");
  allocation.ns = base::GetString(json, "Namespace");
  allocation.node_id = base::GetString(json, "NodeID");
  allocation.job_type = base::GetString(json, "JobType");
  if (const Json* job = base::FindMember(json, "Job");
      job != nullptr && allocation.job_type.empty()) {
    allocation.job_type = base::GetString(*job, "Type");
  }
  allocation.desired_status = base::GetString(json, "DesiredStatus");
  allocation.client_status = ToClientStatus(base::GetString(json, "ClientStatus"));
  AddResources(json, allocation);
  allocation.all_tasks_dead = AllTasksDead(json);
  allocation.create_index = Index(json, "CreateIndex");
  return allocation;
}

}  // namespace nomad_harvester::nomad
