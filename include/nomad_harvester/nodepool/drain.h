// SPDX-License-Identifier: Apache-2.0
// Drains started by the plugin ("our drains"): their Meta, and whether they have finished.
#ifndef NOMAD_HARVESTER_NODEPOOL_DRAIN_H_
#define NOMAD_HARVESTER_NODEPOOL_DRAIN_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// The Meta of our drains in Nomad. LastDrain.Meta outlasts the drain and the plugin's process. The
// members are views; those of a parsed mark point into the node, which must outlive it.
struct DrainMark {
  std::string_view action{};
  std::string_view vm{};
  std::string_view vm_uid{};
  std::string_view pool{};  // "<namespace>/<name>"
  // The uid of the pool's namespace, which identifies the Harvester cluster; empty: it could not be
  // read.
  std::string_view harvester{};
  bool purge = false;
  bool was_ineligible = false;  // it was ineligible before, for a reason other than our drain
};
std::map<std::string, std::string> ToMeta(const DrainMark& mark);
// nullopt if the Meta is not the plugin's (drained_by=nomad-autoscaler with action and vm_uid).
std::optional<DrainMark> ParseDrainMark(const nomad::Node& node);

// True if LastDrain.Meta names this action and VM.
bool IsDrainOf(const nomad::Node& node, const std::string& action, const std::string& vm_uid);
// True if LastDrain.Meta names this VM, in any action.
bool IsDrainOfVm(const nomad::Node& node, const std::string& vm_uid);
// Returns "<action>@<LastDrain.StartedAt>", the value of the annotation rolled-back. Empty if the
// last drain is not ours.
std::string RollbackMarker(const nomad::Node& node);

// Names what holds a drain: "job web (server), job db". Empty: nothing.
std::string WorkOn(const std::vector<nomad::Allocation>& allocations, bool ignore_system);

// True if pending or running, as last reported by its client.
bool IsLive(const nomad::Allocation& allocation);
// True if no allocation is pending or running and every task is dead, poststop tasks included.
// Ignores allocations of system jobs if `ignore_system`, and lost ones if `ignore_lost`.
bool IsIdle(const std::vector<nomad::Allocation>& allocations, bool ignore_system,
            bool ignore_lost = false);
// True if Nomad wants one of them to run: it is live, and has not been asked to stop. Ignores
// allocations of system jobs as IsIdle does.
bool WantsToRun(const std::vector<nomad::Allocation>& allocations, bool ignore_system);

// The deadline to post for a drain that starts at `now`, given the mark's deadline: the remaining
// time, at least 1 s; 0 for no deadline; negative for "now". If the deadline has passed, `post` is
// false and the remaining time is 1 s.
struct PostedDeadline {
  bool post = true;
  base::Duration deadline{};
};
PostedDeadline DeadlineToPost(bool none, bool at_once, base::WallTime deadline, base::WallTime now);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_DRAIN_H_
