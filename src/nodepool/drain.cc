// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/drain.h"

#include <algorithm>

namespace nomad_harvester::nodepool {
namespace {

// The SDK's key and value, which operators and their scripts search for
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_drain.go). The other keys are the
// plugin's.
constexpr const char* kDrainedBy = "drained_by";
constexpr const char* kAutoscaler = "nomad-autoscaler";
constexpr const char* kAction = "action";
constexpr const char* kVm = "vm";
constexpr const char* kVmUid = "vm_uid";
constexpr const char* kPool = "pool";
constexpr const char* kPurge = "purge";
constexpr const char* kWas = "was";
constexpr const char* kIneligible = "ineligible";

std::string Value(const std::map<std::string, std::string>& meta, const char* key) {
  const auto found = meta.find(key);
  return found == meta.end() ? "" : found->second;
}

// A deadline of zero would mean "no deadline".
constexpr base::Duration kLeastDeadline = std::chrono::seconds(1);
// Any negative deadline means "stop all allocations now" (hashicorp/nomad:nomad/structs/structs.go,
// DrainStrategy.DeadlineTime).
constexpr base::Duration kNow = std::chrono::seconds(-1);

}  // namespace

std::map<std::string, std::string> ToMeta(const DrainMark& mark) {
  return {{kDrainedBy, kAutoscaler},
          {kAction, mark.action},
          {kVm, mark.vm},
          {kVmUid, mark.vm_uid},
          {kPool, mark.pool},
          {kPurge, mark.purge ? "true" : "false"},
          {kWas, mark.was_ineligible ? kIneligible : "eligible"}};
}

std::optional<DrainMark> ParseDrainMark(const nomad::Node& node) {
  if (!node.last_drain.has_value()) return std::nullopt;
  const auto& meta = node.last_drain->meta;
  DrainMark mark;
  mark.action = Value(meta, kAction);
  mark.vm_uid = Value(meta, kVmUid);
  if (Value(meta, kDrainedBy) != kAutoscaler || mark.action.empty() || mark.vm_uid.empty()) {
    return std::nullopt;
  }
  mark.vm = Value(meta, kVm);
  mark.pool = Value(meta, kPool);
  mark.purge = Value(meta, kPurge) == "true";
  mark.was_ineligible = Value(meta, kWas) == kIneligible;
  return mark;
}

bool IsDrainOf(const nomad::Node& node, const std::string& action, const std::string& vm_uid) {
  const auto mark = ParseDrainMark(node);
  return mark.has_value() && mark->action == action && mark->vm_uid == vm_uid;
}

bool IsDrainOfVm(const nomad::Node& node, const std::string& vm_uid) {
  const auto mark = ParseDrainMark(node);
  return mark.has_value() && mark->vm_uid == vm_uid;
}

std::string RollbackMarker(const nomad::Node& node) {
  const auto mark = ParseDrainMark(node);
  return mark.has_value() ? RollbackMarker(node, *mark) : "";
}

std::string RollbackMarker(const nomad::Node& node, const DrainMark& mark) {
  return mark.action + "@" + node.last_drain->started_at;
}

bool IsIdle(const std::vector<nomad::Allocation>& allocations, bool ignore_system) {
  return std::all_of(allocations.begin(), allocations.end(),
                     [ignore_system](const nomad::Allocation& allocation) {
                       if (ignore_system && allocation.job_type == "system") return true;
                       return allocation.client_status != nomad::ClientStatus::kPending &&
                              allocation.client_status != nomad::ClientStatus::kRunning &&
                              allocation.all_tasks_dead;
                     });
}

PostedDeadline DeadlineToPost(bool none, bool at_once, base::WallTime deadline,
                              base::WallTime now) {
  if (none) return {true, base::Duration::zero()};
  if (at_once) return {true, kNow};
  // Compared before subtracting: the difference to a time far in the past would overflow.
  if (deadline <= now) return {false, base::Duration::zero()};
  return {true, std::max(kLeastDeadline, base::Duration(deadline - now))};
}

}  // namespace nomad_harvester::nodepool
