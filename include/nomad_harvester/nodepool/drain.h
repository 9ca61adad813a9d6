// SPDX-License-Identifier: Apache-2.0
// Drains of ours: how they are marked, recognised and judged.
#ifndef NOMAD_HARVESTER_NODEPOOL_DRAIN_H_
#define NOMAD_HARVESTER_NODEPOOL_DRAIN_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// The Meta that our drains carry in Nomad. LastDrain.Meta survives the drain and the process.
struct DrainMark {
  std::string action{};
  std::string vm{};
  std::string vm_uid{};
  std::string pool{};  // "<namespace>/<name>"
  bool purge = false;
  bool was_ineligible = false;  // the node was ineligible before, other than by a drain of ours
};
std::map<std::string, std::string> ToMeta(const DrainMark& mark);
// Nothing if the Meta is not of ours (drained_by=nomad-autoscaler with action and vm_uid).
std::optional<DrainMark> ParseDrainMark(const nomad::Node& node);

// LastDrain.Meta names this action and VM.
bool IsDrainOf(const nomad::Node& node, const std::string& action, const std::string& vm_uid);
// LastDrain.Meta names this VM, by whatever action.
bool IsDrainOfVm(const nomad::Node& node, const std::string& vm_uid);
// "<action>@<LastDrain.StartedAt>": the value of the annotation rolled-back. Empty without a drain
// of ours.
std::string RollbackMarker(const nomad::Node& node);

// No allocation pending or running and every task dead, poststop tasks included; allocations of
// system jobs do not count if `ignore_system`.
bool IsIdle(const std::vector<nomad::Allocation>& allocations, bool ignore_system);

// What Nomad is told at a (re)POST at `now` for a deadline given when the mark was made: what is
// left, at least 1 s; nothing if the deadline is over; 0 for none; negative for "now".
struct PostedDeadline {
  bool post = true;
  base::Duration deadline{};
};
PostedDeadline DeadlineToPost(bool none, bool at_once, base::WallTime deadline, base::WallTime now);

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_NODEPOOL_DRAIN_H_
