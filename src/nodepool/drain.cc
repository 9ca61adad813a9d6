// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nodepool/drain.h"

#include <algorithm>
#include <set>

#include "nomad_harvester/base/text.h"

namespace nomad_harvester::nodepool {
namespace {

// The SDK's key and value, which operators and their scripts search for
// (hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_drain.go). The other keys are the
// plugin's.
constexpr char kDrainedBy[] = "drained_by";
constexpr char kAutoscaler[] = "nomad-autoscaler";
constexpr char kAction[] = "action";
constexpr char kVm[] = "vm";
constexpr char kVmUid[] = "vm_uid";
constexpr char kPool[] = "pool";
constexpr char kHarvester[] = "harvester";
constexpr char kPurge[] = "purge";
constexpr char kWas[] = "was";
constexpr char kIneligible[] = "ineligible";

// A deadline of zero would mean "no deadline".
constexpr base::Duration kMinDeadline = std::chrono::seconds(1);
// Any negative deadline means "stop all allocations now" (hashicorp/nomad:nomad/structs/structs.go,
// DrainStrategy.DeadlineTime).
constexpr base::Duration kNow = std::chrono::seconds(-1);

}  // namespace

std::map<std::string, std::string> ToMeta(const DrainMark& mark) {
  std::map<std::string, std::string> meta = {
      {kDrainedBy, kAutoscaler},
      {kAction, std::string(mark.action)},
      {kVm, std::string(mark.vm)},
      {kVmUid, std::string(mark.vm_uid)},
      {kPool, std::string(mark.pool)},
      {kPurge, mark.purge ? "true" : "false"},
      {kWas, mark.was_ineligible ? kIneligible : "eligible"}};
  if (!mark.harvester.empty()) meta[kHarvester] = mark.harvester;
  return meta;
}

std::optional<DrainMark> ParseDrainMark(const nomad::Node& node) {
  if (!node.last_drain.has_value()) return std::nullopt;
  DrainMark mark;
  bool ours = false;
  for (const auto& [key, value] : node.last_drain->meta) {
    if (key == kDrainedBy) ours = value == kAutoscaler;
    if (key == kAction) mark.action = value;
    if (key == kVm) mark.vm = value;
    if (key == kVmUid) mark.vm_uid = value;
    if (key == kPool) mark.pool = value;
    if (key == kHarvester) mark.harvester = value;
    if (key == kPurge) mark.purge = value == "true";
    if (key == kWas) mark.was_ineligible = value == kIneligible;
  }
  if (!ours || mark.action.empty() || mark.vm_uid.empty()) return std::nullopt;
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
  return mark.has_value() ? std::string(mark->action) + "@" + node.last_drain->started_at : "";
}

bool IsLive(const nomad::Allocation& allocation) {
  return allocation.client_status == nomad::ClientStatus::kPending ||
         allocation.client_status == nomad::ClientStatus::kRunning;
}

bool IsIdle(const std::vector<nomad::Allocation>& allocations, bool ignore_system,
            bool ignore_lost) {
  return std::all_of(allocations.begin(), allocations.end(),
                     [=](const nomad::Allocation& allocation) {
                       if (ignore_system && allocation.job_type == "system") return true;
                       const bool is_lost = allocation.client_status == nomad::ClientStatus::kLost;
                       if (ignore_lost && is_lost) return true;
                       return !IsLive(allocation) && allocation.all_tasks_dead;
                     });
}

std::string WorkOn(const std::vector<nomad::Allocation>& allocations, bool ignore_system) {
  std::set<std::string> work;
  for (const nomad::Allocation& allocation : allocations) {
    if (ignore_system && allocation.job_type == "system") continue;
    if (!allocation.work.empty()) work.insert(allocation.work);
  }
  return base::FirstFew({work.begin(), work.end()});
}

bool WantsToRun(const std::vector<nomad::Allocation>& allocations, bool ignore_system) {
  return std::any_of(allocations.begin(), allocations.end(),
                     [ignore_system](const nomad::Allocation& allocation) {
                       if (ignore_system && allocation.job_type == "system") return false;
                       return IsLive(allocation) && allocation.desired_status == "run";
                     });
}

PostedDeadline DeadlineToPost(bool none, bool at_once, base::WallTime deadline,
                              base::WallTime now) {
  if (none) return {true, base::Duration::zero()};
  if (at_once) return {true, kNow};
  // Compared before subtracting: the difference to a time far in the past would overflow.
  if (deadline <= now) return {false, kMinDeadline};
  return {true, std::max(kMinDeadline, base::Duration(deadline - now))};
}

}  // namespace nomad_harvester::nodepool
