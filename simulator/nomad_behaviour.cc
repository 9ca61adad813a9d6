// SPDX-License-Identifier: Apache-2.0
// How Nomad's clients come up, which drivers they have, and how they fall back.
#include <algorithm>
#include <utility>

#include "nomad_state.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kHealthy[] = "Healthy";  // hashicorp/nomad:plugins/drivers, DriverHealthy

bool IsInTime(base::Duration after) { return after != kForever; }

}  // namespace

// A client registers as initializing. Its first heartbeat makes it ready, unless its servers keep
// it so (hashicorp/nomad:client/client.go, registerAndHeartbeat; nomad/node_endpoint.go,
// UpdateStatus).
void NomadState::Begin(const std::string& id, base::Duration shortest_start) {
  Client& client = clients_.at(id);
  const ClientBehaviour& behaviour = client.behaviour;
  client.since = world_.now();
  client.since_wall = world_.wall();
  client.initializing_until.reset();
  const std::uint64_t turn = ++client.turn;
  if (IsInTime(behaviour.initializing_for)) {
    const base::Duration start = std::max(behaviour.initializing_for, shortest_start);
    client.initializing_until = world_.now() + start;
    world_.After(start, [this, id, turn] { BecomeReady(id, turn); });
  }
  for (const auto& [name, driver] : behaviour.drivers) {
    if (driver.at_first == DriverHealth::kHealthy || !IsInTime(driver.healthy_after)) continue;
    world_.After(driver.healthy_after, [this, id] { ShowDrivers(id); });
  }
}

bool NomadState::IsInitializing(const Client& client) const {
  return !client.initializing_until || world_.now() < *client.initializing_until;
}

void NomadState::BecomeReady(const std::string& id, std::uint64_t turn) {
  const auto client = clients_.find(id);
  const auto node = nodes_.find(id);
  if (client == clients_.end() || client->second.turn != turn || !client->second.alive) return;
  if (node == nodes_.end() || node->second.status != "initializing") return;
  SetNodeStatus(node->second, "ready");
  FallBackLater(id);
  Schedule();
}

// In Nomad a node is initializing again by way of disconnected only, and stays so while its client
// reports nothing about the work it has (hashicorp/nomad#18541; nomad/node_endpoint.go,
// UpdateStatus).
void NomadState::FallBackLater(const std::string& id) {
  const Client& client = clients_.at(id);
  if (!IsInTime(client.behaviour.ready_for)) return;
  world_.After(client.behaviour.ready_for, [this, id, turn = client.turn] {
    const auto found = clients_.find(id);
    const NomadNode* node = FindNode(id);
    if (found == clients_.end() || found->second.turn != turn || !found->second.alive) return;
    if (node == nullptr || node->status != "ready") return;
    SetStatus(id, "initializing");
  });
}

ClientBehaviour NomadState::BehaviourOf(const std::string& id) const {
  const auto client = clients_.find(id);
  return client == clients_.end() ? world_.options.client : client->second.behaviour;
}

// hashicorp/nomad:nomad/structs/node.go, DriverInfo. A driver is absent until its first
// fingerprint, for which a client waits 55 s before it registers (client/client.go,
// batchFirstFingerprintsProcessingGrace).
DriverInfos NomadState::DriversOf(const Client& client) const {
  DriverInfos infos;
  for (const auto& [name, driver] : client.behaviour.drivers) {
    const bool at_first = driver.at_first == DriverHealth::kHealthy;
    const bool later =
        IsInTime(driver.healthy_after) && world_.now() >= client.since + driver.healthy_after;
    DriverInfo info;
    info.healthy = at_first || later;
    info.detected = info.healthy || driver.at_first == DriverHealth::kUnhealthy;
    info.description = info.healthy ? kHealthy : driver.trouble;
    info.updated_at =
        at_first || !later ? client.since_wall : client.since_wall + driver.healthy_after;
    if (info.healthy || driver.at_first != DriverHealth::kAbsent) infos[name] = std::move(info);
  }
  return infos;
}

// A client registers again when a driver changes; neither its status nor its work does
// (hashicorp/nomad:client/node_updater.go, updateNodeFromDriver).
void NomadState::ShowDrivers(const std::string& id) {
  const auto client = clients_.find(id);
  const auto node = nodes_.find(id);
  if (client == clients_.end() || !client->second.alive || node == nodes_.end()) return;
  DriverInfos infos = DriversOf(client->second);
  if (infos == node->second.drivers) return;
  node->second.drivers = std::move(infos);
  Touch(node->second);
  EmitNode(EventKind::kNodeRegistered, node->second);
  Schedule();
}

}  // namespace nomad_harvester::simulator
