// SPDX-License-Identifier: Apache-2.0
// Nodes: look-up, and the writes of the node endpoints.
#include <algorithm>
#include <utility>

#include "nomad_json.h"
#include "nomad_state.h"

namespace nomad_harvester::simulator {
namespace {

base::WallTime WholeSeconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

}  // namespace

std::uint64_t NomadState::Touch(NomadNode& node) {
  nodes_index_ = ++index_;
  node.modify_index = index_;
  node.stubs = {};
  if (node.status == "down") CollectLater(node);
  return node.modify_index;
}

void NomadState::EmitNode(EventKind kind, const NomadNode& node, std::string detail) {
  Event event;
  event.kind = kind;
  event.name = node.spec.name;
  event.id = node.id;
  event.detail = std::move(detail);
  event.node = std::make_shared<const nlohmann::json>(NodeJson(node));
  if (node.last_drain) event.meta = node.last_drain->meta;
  world_.Emit(std::move(event));
}

const NomadNode* NomadState::FindNode(const std::string& id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

const NomadNode* NomadState::LookUp(const std::string& id_or_name) const {
  if (const NomadNode* node = FindNode(id_or_name)) return node;
  const NomadNode* newest = nullptr;
  for (const auto& [id, node] : nodes_) {
    if (node.spec.name != id_or_name) continue;
    if (newest == nullptr || node.create_index > newest->create_index) newest = &node;
  }
  return newest;
}

// hashicorp/nomad:nomad/node_endpoint.go UpdateDrain and nomad/state/state_store.go
// updateNodeDrainImpl: an update keeps StartedAt and, without a Meta, the old one; the deadline is
// counted from now.
bool NomadState::Drain(const std::string& id, base::Duration deadline, bool ignore_system_jobs,
                       const StringMap& meta) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  NomadNode& node = found->second;
  CommitLatePlans(node);
  const bool update = node.drain.has_value();
  DrainStrategy strategy;
  strategy.deadline = deadline;
  strategy.ignore_system_jobs = ignore_system_jobs;
  strategy.started_at = update ? node.drain->started_at : world_.wall();
  if (deadline > base::Duration::zero()) {
    strategy.force_at = world_.wall() + deadline;
    strategy.force_at_mono = world_.now() + deadline;
  }
  node.drain = strategy;
  node.eligible = false;
  if (!update || !node.last_drain) {
    node.last_drain = LastDrain{WholeSeconds(world_.wall()), {}, "draining", meta};
  } else if (!meta.empty()) {
    node.last_drain->meta = meta;
  }
  node.last_drain->status = "draining";
  node.last_drain->updated_at = WholeSeconds(world_.wall());
  Touch(node);
  EmitNode(update ? EventKind::kDrainUpdated : EventKind::kDrainStarted, node);
  WatchDrain(id);
  return true;
}

// A null DrainSpec cancels a running drain, which keeps its Meta. On a node without a drain
// MarkEligible still applies, and LastDrain stays (observed on Nomad 1.10.5).
bool NomadState::CancelDrain(const std::string& id, bool mark_eligible, const StringMap& meta) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  NomadNode& node = found->second;
  const bool was_draining = node.drain.has_value();
  const bool was_eligible = node.eligible;
  node.drain.reset();
  if (mark_eligible) node.eligible = true;
  if (was_draining && node.last_drain) {
    node.last_drain->status = "canceled";
    node.last_drain->updated_at = WholeSeconds(world_.wall());
    if (!meta.empty()) node.last_drain->meta = meta;
  }
  Touch(node);
  if (was_draining) EmitNode(EventKind::kDrainCancelled, node);
  if (!was_eligible && node.eligible) EmitNode(EventKind::kEnabled, node);
  Schedule();
  return true;
}

NomadState::Eligibility NomadState::SetEligibility(const std::string& id, bool eligible) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return Eligibility::kUnknownNode;
  NomadNode& node = found->second;
  if (eligible && node.drain) return Eligibility::kDraining;
  if (node.eligible == eligible) return Eligibility::kUnchanged;
  if (!eligible) CommitLatePlans(node);
  node.eligible = eligible;
  Touch(node);
  EmitNode(eligible ? EventKind::kEnabled : EventKind::kMadeIneligible, node);
  if (eligible) Schedule();
  return Eligibility::kChanged;
}

bool NomadState::Purge(const std::string& id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  nodes_index_ = ++index_;
  EmitNode(EventKind::kPurged, found->second);
  nodes_.erase(found);
  LoseAllOn(id);
  // A live client registers again (hashicorp/nomad#3444).
  RegisterAgain(id);
  return true;
}

}  // namespace nomad_harvester::simulator
