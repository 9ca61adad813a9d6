// SPDX-License-Identifier: Apache-2.0
// Nomad's agents on machines: how they register, fall silent and come back.
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

std::string NomadState::AddClient(NodeSpec spec, std::string address) {
  const std::string id = world_.random.NextUuid();
  if (spec.node_pool.empty()) spec.node_pool = "default";
  if (spec.datacenter.empty()) spec.datacenter = kDatacenter;
  spec.attributes.emplace("unique.hostname", spec.name);
  Client client;
  client.spec = std::move(spec);
  client.address = std::move(address);
  clients_.emplace(id, std::move(client));
  Register(id);
  return id;
}

bool NomadState::IsAlive(const std::string& id) const {
  const auto client = clients_.find(id);
  return client != clients_.end() && client->second.alive;
}

// A known node keeps its eligibility, drain and last drain
// (hashicorp/nomad:nomad/state/state_store.go, upsertNodeTxn).
void NomadState::Register(const std::string& id) {
  const Client& client = clients_.at(id);
  const auto [entry, is_new] = nodes_.try_emplace(id);
  NomadNode& node = entry->second;
  if (!is_new && node.status == "ready") return;
  node.id = id;
  node.spec = SpecOf(client);
  node.address = client.address;
  node.status = "ready";
  node.status_updated_at = world_.wall();
  Touch(node);
  if (is_new) node.create_index = node.modify_index;
  EmitNode(EventKind::kNodeRegistered, node);
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id) continue;
    if (allocation.client_status == "lost") EndLost(key);
    if (allocation.client_status == "unknown") Reconnect(allocation);
  }
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

// "initializing": the node's pool does not exist here yet (nomad/node_endpoint.go, Register).
// "disconnected": it is silent, but its work may stay where it is (nomad/heartbeat.go,
// disconnectState); the scheduler makes that work's status "unknown".
bool NomadState::SetStatus(const std::string& id, const std::string& status) {
  const auto client = clients_.find(id);
  const auto found = nodes_.find(id);
  if (client == clients_.end() || found == nodes_.end()) return false;
  const bool speaks = status == "ready" || status == "initializing";
  if (status == "ready" && !client->second.alive) {
    ReturnClient(id);
    return true;
  }
  if (client->second.alive != speaks) {
    client->second.alive = speaks;
    ++client->second.life;
  }
  if (status == "ready") {
    Register(id);
    return true;
  }
  if (status == "down") {
    MarkDown(id);
    return true;
  }
  NomadNode& node = found->second;
  node.status = status;
  node.status_updated_at = world_.wall();
  Touch(node);
  EmitNode(EventKind::kNodeStatus, node, status);
  if (status != "disconnected") return true;
  for (auto& [key, allocation] : allocations_) {
    if (allocation.node_id != id || allocation.client_status != "running") continue;
    allocation.client_status = "unknown";
    Touch(allocation);
  }
  return true;
}

void NomadState::LoseClient(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || !found->second.alive) return;
  found->second.alive = false;
  const std::uint64_t life = ++found->second.life;
  world_.After(world_.options.heartbeat_timeout, [this, id, life] {
    const auto client = clients_.find(id);
    if (client != clients_.end() && client->second.life == life) MarkDown(id);
  });
}

void NomadState::ReturnClient(const std::string& id) {
  const auto found = clients_.find(id);
  if (found == clients_.end() || found->second.alive) return;
  found->second.alive = true;
  ++found->second.life;
  Register(id);
  // The client fetches its allocations from the servers again.
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

// hashicorp/nomad:nomad/heartbeat.go, invalidateHeartbeat; the scheduler then marks the node's
// allocations as lost.
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
