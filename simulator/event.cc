// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/simulator/event.h"

namespace nomad_harvester::simulator {

std::string_view EventKindName(EventKind kind) {
  switch (kind) {
    case EventKind::kVmCreated:
      return "VmCreated";
    case EventKind::kVmRunning:
      return "VmRunning";
    case EventKind::kVmStopped:
      return "VmStopped";
    case EventKind::kVmFailing:
      return "VmFailing";
    case EventKind::kVmDeleteRequested:
      return "VmDeleteRequested";
    case EventKind::kVmGone:
      return "VmGone";
    case EventKind::kMarked:
      return "Marked";
    case EventKind::kUnmarked:
      return "Unmarked";
    case EventKind::kJoinRecorded:
      return "JoinRecorded";
    case EventKind::kVmAnnotated:
      return "VmAnnotated";
    case EventKind::kSecretCreated:
      return "SecretCreated";
    case EventKind::kSecretOwned:
      return "SecretOwned";
    case EventKind::kSecretGone:
      return "SecretGone";
    case EventKind::kClaimCreated:
      return "ClaimCreated";
    case EventKind::kClaimGone:
      return "ClaimGone";
    case EventKind::kLeaseWritten:
      return "LeaseWritten";
    case EventKind::kEventRecorded:
      return "EventRecorded";
    case EventKind::kNodeRegistered:
      return "NodeRegistered";
    case EventKind::kNodeDown:
      return "NodeDown";
    case EventKind::kNodeStatus:
      return "NodeStatus";
    case EventKind::kDrainStarted:
      return "DrainStarted";
    case EventKind::kDrainUpdated:
      return "DrainUpdated";
    case EventKind::kDrainCancelled:
      return "DrainCancelled";
    case EventKind::kDrainComplete:
      return "DrainComplete";
    case EventKind::kEnabled:
      return "Enabled";
    case EventKind::kMadeIneligible:
      return "MadeIneligible";
    case EventKind::kPurged:
      return "Purged";
    case EventKind::kAllocationPlaced:
      return "AllocationPlaced";
    case EventKind::kAllocationRunning:
      return "AllocationRunning";
    case EventKind::kAllocationStopping:
      return "AllocationStopping";
    case EventKind::kAllocationStopped:
      return "AllocationStopped";
    case EventKind::kAllocationIdle:
      return "AllocationIdle";
    case EventKind::kAllocationLost:
      return "AllocationLost";
  }
  return "unknown";
}

std::string_view ActorName(Actor actor) {
  switch (actor) {
    case Actor::kApi:
      return "api";
    case Actor::kOperator:
      return "operator";
    case Actor::kController:
      return "controller";
  }
  return "unknown";
}

std::string Describe(const Event& event) {
  std::string text = base::FormatRfc3339Nanos(event.time);
  text.append(" ").append(EventKindName(event.kind)).append(" ");
  if (!event.ns.empty()) text += event.ns + "/";
  text += event.name;
  if (event.node != nullptr && !event.id.empty()) text += " " + event.id;
  if (!event.detail.empty()) text += ": " + event.detail;
  for (const auto& [key, value] : event.meta) text += " " + key + "=" + value;
  text.append(" (").append(ActorName(event.actor)).append(")");
  return text;
}

}  // namespace nomad_harvester::simulator
