// SPDX-License-Identifier: Apache-2.0
// Changes of a simulated cluster.
#ifndef NOMAD_HARVESTER_SIMULATOR_EVENT_H_
#define NOMAD_HARVESTER_SIMULATOR_EVENT_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::simulator {

enum class EventKind {
  // VirtualMachines. Each annotation that is added, changed or removed is an event.
  kVmCreated,
  kVmRunning,
  kVmStopped,
  kVmFailing,          // its start fails; detail has status and message
  kVmDeleteRequested,  // `node` and `allocations` are those of the VM's guest at that moment
  kVmGone,
  kMarked,        // the annotation scale-in was added or changed
  kUnmarked,      // it was removed
  kJoinRecorded,  // the annotation joined-at was added
  kVmAnnotated,   // any other annotation: detail is its key
  // Objects that belong to VMs or pools.
  kSecretCreated,
  kSecretOwned,
  kSecretGone,
  kClaimCreated,
  kClaimGone,
  kLeaseWritten,
  kEventRecorded,  // a Kubernetes Event: detail is its reason
  // Nomad nodes: `node` is the state after the event (before it, when purged).
  kNodeRegistered,
  kNodeDown,
  kNodeStatus,      // it is initializing or disconnected, or ready again: detail says which
  kDrainStarted,    // meta is the drain's
  kDrainUpdated,    // meta is LastDrain's afterwards
  kDrainCancelled,  // meta is LastDrain's
  kDrainComplete,   // meta is LastDrain's; detail says whether the deadline was reached
  kEnabled,
  kMadeIneligible,  // by the eligibility endpoint; implied by a drain
  kPurged,
  // Allocations: name is the allocation's ID, id its node's, detail its job.
  kAllocationPlaced,
  kAllocationRunning,
  kAllocationStopping,
  kAllocationStopped,  // its main task is dead
  kAllocationIdle,     // its poststop task is dead, too
  kAllocationLost,
};
std::string_view EventKindName(EventKind kind);

enum class Actor {
  kApi,         // a request
  kOperator,    // a method of Cluster
  kController,  // the systems' own controllers
};
std::string_view ActorName(Actor actor);

struct Event {
  EventKind kind = EventKind::kVmCreated;
  Actor actor = Actor::kController;
  base::WallTime time{};
  std::string ns{};      // of Kubernetes objects
  std::string name{};    // of the object or node
  std::string id{};      // uid or node ID
  std::string detail{};  // see the kinds
  std::map<std::string, std::string> meta{};
  // The object after the change; for a removed object, before it.
  std::shared_ptr<const nlohmann::json> object{};
  // The object before the change; null if it is new.
  std::shared_ptr<const nlohmann::json> before{};
  // Nomad's node in full, if the event concerns one.
  std::shared_ptr<const nlohmann::json> node{};
  // Allocations of that node, in full; only for kVmDeleteRequested.
  std::vector<std::shared_ptr<const nlohmann::json>> allocations{};
};

// "2026-01-01T00:00:05.1Z Marked nomad/vm-1 (api)", one line.
std::string Describe(const Event& event);

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_EVENT_H_
