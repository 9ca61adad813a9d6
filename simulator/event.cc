// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/simulator/event.h"

#include <cstddef>
#include <iterator>

namespace nomad_harvester::simulator {
namespace {

// In the order of EventKind.
constexpr std::string_view kNames[] = {"VmCreated",
                                       "VmRunning",
                                       "VmStopped",
                                       "VmFailing",
                                       "VmDeleteRequested",
                                       "VmGone",
                                       "Marked",
                                       "Unmarked",
                                       "JoinRecorded",
                                       "VmAnnotated",
                                       "SecretCreated",
                                       "SecretOwned",
                                       "SecretGone",
                                       "ClaimCreated",
                                       "ClaimGone",
                                       "LeaseWritten",
                                       "EventRecorded",
                                       "NodeRegistered",
                                       "NodeDown",
                                       "NodeStatus",
                                       "DrainStarted",
                                       "DrainUpdated",
                                       "DrainCancelled",
                                       "DrainComplete",
                                       "Enabled",
                                       "MadeIneligible",
                                       "Purged",
                                       "AllocationPlaced",
                                       "AllocationRunning",
                                       "AllocationStopping",
                                       "AllocationStopped",
                                       "AllocationIdle",
                                       "AllocationLost"};
static_assert(std::size(kNames) == static_cast<std::size_t>(EventKind::kAllocationLost) + 1);

}  // namespace

std::string_view EventKindName(EventKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

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
