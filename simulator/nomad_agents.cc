// SPDX-License-Identifier: Apache-2.0
// Nomad's agents on machines: how they register, fall silent and come back.
#include <algorithm>
#include <utility>

#include "nomad_state.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kDatacenter[] = "dc1";  // Nomad's default
constexpr base::Duration kHeartbeatInterval = std::chrono::seconds(5);

}  // namespace

std::string NomadState::NextAddress() {
  ++addresses_;
  return "10.0." + std::to_string(100 + addresses_ / 250) + "." +
         std::to_string(1 + addresses_ % 250);
}

std::string NomadState::AddClient(NodeSpec spec, std::string address,
                                  const ClientBehaviour& behaviour) {
  const std::string id = world_.NextUuid();
  if (spec.node_pool.empty()) spec.node_pool = "default";
  if (spec.datacenter.empty()) spec.datacenter = kDatacenter;
  spec.attributes.emplace("unique.hostname", spec.name);
  Client client;
  client.spec = std::move(spec);
  client.address = std::move(address);
  client.behaviour = behaviour;
  clients_.emplace(id, std::move(client));
  Begin(id, {});
  Register(id);
  return id;
}

bool NomadState::IsAlive(const std::string& id) const {
  const auto client = clients_.find(id);
  return client != clients_.end() && client->second.alive;
}

// A known node keeps its eligibility, drain and last drain
// (hashicorp/nomad:nomad/state/state_store.go, upsertNodeTxn). One that is down is ready by its
// first heartbeat (nomad/node_endpoint.go, UpdateStatus), as is one that was purged and registers
// again: its client says so (client/client.go, registerNode).
void NomadState::Register(const std::string& id) {
  Client& client = clients_.at(id);
  const auto [entry, is_new] = nodes_.try_emplace(id);
  NomadNode& node = entry->second;
  if (!is_new && node.status == "ready") return;
  const bool may_wait = is_new ? !client.has_registered : node.status != "down";
  const bool waits = may_wait && IsInitializing(client);
  client.has_registered = true;
  if (is_new) node.eligible = !client.behaviour.starts_ineligible;
  node.id = id;
  node.spec = SpecOf(client);
  node.drivers = DriversOf(client);
  node.address = client.address;
  node.status = waits ? "initializing" : "ready";
  node.status_updated_at = world_.wall();
  Touch(node);
  if (is_new) node.create_index = node.modify_index;
  EmitNode(EventKind::kNodeRegistered, node);
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id) continue;
    if (allocation.client_status == "lost") EndLost(key);
    if (allocation.client_status == "unknown") Reconnect(allocation);
    if (allocation.evicted) Stop(allocation);
  }
  if (!waits) FallBackLater(id);
  Schedule();
}

void NomadState::RegisterAgain(const std::string& id) {
  world_.After(kHeartbeatInterval, [this, id] {
    if (IsAlive(id) && FindNode(id) == nullptr) Register(id);
  });
}

// Observed on Nomad 1.10.5: ID, CreateIndex and eligibility stay; the ModifyIndex moves. The status
// is not the registration's to change (hashicorp/nomad:nomad/node_endpoint.go, Register).
bool NomadState::ReRegister(const std::string& id, const std::function<void(NodeSpec&)>& change) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return false;
  NodeSpec& spec = client->second.spec;
  const std::string old_name = spec.name;
  change(spec);
  std::string& host = spec.attributes["unique.hostname"];
  if (host == old_name) host = spec.name;
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || !client->second.alive) return true;
  found->second.spec = SpecOf(client->second);
  Touch(found->second);
  EmitNode(EventKind::kNodeRegistered, found->second);
  Schedule();
  return true;
}

// "initializing": its servers keep it so (nomad_behaviour.cc, Begin). "disconnected": it is silent,
// but its work may stay where it is.
bool NomadState::SetStatus(const std::string& id, const std::string& status) {
  const auto entry = clients_.find(id);
  const auto found = nodes_.find(id);
  if (entry == clients_.end() || found == nodes_.end()) return false;
  Client& client = entry->second;
  const bool speaks = status == "ready" || status == "initializing";
  const bool returns = speaks && !client.alive;
  if (client.alive != speaks) {
    client.alive = speaks;
    ++client.life;
  }
  client.fell_silent = status == "disconnected";
  client.behaviour.ready_for = kForever;
  client.initializing_until = world_.now();
  ++client.turn;
  if (status == "ready") {
    Register(id);
    if (returns) TakeUpWork(id);
  } else if (status == "down") {
    MarkDown(id);
  } else if (status == "disconnected") {
    Disconnect(found->second);
  } else {
    SetNodeStatus(found->second, status);
  }
  return true;
}

void NomadState::SetNodeStatus(NomadNode& node, const std::string& status) {
  node.status = status;
  node.status_updated_at = world_.wall();
  Touch(node);
  EmitNode(EventKind::kNodeStatus, node, status);
}

void NomadState::LoseClient(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if (!std::exchange(client.fell_silent, false) && !client.alive) return;
  client.alive = false;
  ++client.life;
  WatchSilence(id);
}

// From disconnected it is initializing by its first heartbeat and ready by its second
// (hashicorp/nomad:nomad/node_endpoint.go, UpdateStatus).
void NomadState::ReturnClient(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.alive) return;
  found->second.alive = true;
  found->second.fell_silent = false;
  ++found->second.life;
  const NomadNode* node = FindNode(id);
  const bool was_disconnected = node != nullptr && node->status == "disconnected";
  Begin(id, was_disconnected ? kHeartbeatInterval : base::Duration{});
  ShowDrivers(id);
  Register(id);
  TakeUpWork(id);
}

// A client that is back fetches its allocations from the servers.
void NomadState::TakeUpWork(const std::string& id) {
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id || allocation.Terminal()) continue;
    if (allocation.desired == "run") {
      Start(key);
    } else {
      allocation.desired = "run";
      Stop(allocation);
    }
  }
}

void NomadState::WatchSilence(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.alive) return;
  world_.After(world_.options.heartbeat_timeout, [this, id, life = found->second.life] {
    const auto client = clients_.find(id);
    if (client != clients_.end() && client->second.life == life) MissHeartbeat(id);
  });
}

// hashicorp/nomad:nomad/heartbeat.go, disconnectState: every allocation that is to run counts, one
// that has ended too, until it is forgotten.
bool NomadState::HoldsDisconnected(const NomadAllocation& allocation) const {
  return allocation.job.lost_after > base::Duration::zero() && allocation.desired == "run" &&
         allocation.client_status != "lost";
}

// hashicorp/nomad:nomad/heartbeat.go, invalidateHeartbeat. A node that is initializing is never
// disconnected. One that is disconnected is asked about at every timeout, and is down when no work
// holds it.
void NomadState::MissHeartbeat(const std::string& id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  NomadNode& node = found->second;
  const bool held = std::any_of(allocations_.begin(), allocations_.end(), [&](const auto& entry) {
    return entry.second.node_id == id && HoldsDisconnected(entry.second);
  });
  if (!held || node.status == "initializing") {
    MarkDown(id);
    return;
  }
  if (node.status != "ready") return;
  // hashicorp/nomad:scheduler/reconciler/filters.go, classificationRules.
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id || allocation.Terminal()) continue;
    if (allocation.client_status == "pending" || !HoldsDisconnected(allocation)) Lose(allocation);
  }
  Disconnect(node);
  DrainStep(id);
  Schedule();
}

// The scheduler makes the status of its running work "unknown".
void NomadState::Disconnect(NomadNode& node) {
  SetNodeStatus(node, "disconnected");
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != node.id || allocation.client_status != "running") continue;
    allocation.client_status = "unknown";
    allocation.unknown_since = world_.now();
    Touch(allocation);
    if (!HoldsDisconnected(allocation)) continue;
    world_.After(allocation.job.lost_after, [this, key = key] { Expire(key); });
  }
}

void NomadState::Expire(const std::string& allocation_id) {
  NomadAllocation* found = FindAllocation(allocation_id);
  if (found == nullptr || found->client_status != "unknown") return;
  // It was back meanwhile, and is unknown again.
  if (world_.now() - found->unknown_since < found->job.lost_after) return;
  const std::string node_id = found->node_id;
  Lose(*found);
  DrainStep(node_id);
  Schedule();
  WatchSilence(node_id);
}

// The scheduler then marks the node's allocations as lost.
void NomadState::MarkDown(const std::string& id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || found->second.status == "down") return;
  NomadNode& node = found->second;
  node.status = "down";
  node.status_updated_at = world_.wall();
  Touch(node);
  EmitNode(EventKind::kNodeDown, node);
  LoseAllOn(id);
}

// hashicorp/nomad:client/client.go: an agent whose heartbeat is answered "node not found" registers
// again, under its old ID.
void NomadState::Restore(bool agents_return) {
  nodes_.clear();
  allocations_.clear();
  jobs_.clear();
  hanging_.clear();
  index_ = nodes_index_ = allocations_index_ = 1;
  if (!agents_return) clients_.clear();
  for (const auto& [id, client] : clients_) {
    if (client.alive) RegisterAgain(id);
  }
}

}  // namespace nomad_harvester::simulator
