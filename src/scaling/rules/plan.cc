// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/plan.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/rules.h"

#include "rules/victims.h"
#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

// The Lease names every VM of an action, and an object's annotations are limited to 256 KiB
// (kubernetes/apimachinery:pkg/api/validation/objectmeta.go, TotalAnnotationSizeLimitB).
constexpr std::int64_t kMaxVms = 1000;

// Refuses an action on more VMs than its Lease can name.
absl::Status CheckSize(const ScalePlan& plan, const char* side, const char* key) {
  const std::int64_t difference = std::max(plan.to - plan.from, plan.from - plan.to);
  if (difference <= kMaxVms) return absl::OkStatus();
  return base::InvalidArgument("count " + std::to_string(plan.desired) + " is more than " +
                               std::to_string(kMaxVms) + " VMs " + side + " the present " +
                               std::to_string(plan.from) + "; set " + key);
}

std::string IdentityText(const nomad::Node& node) {
  return "node_class=" + node.node_class + ", datacenter=" + node.datacenter +
         ", node_pool=" + node.node_pool;
}

// Returns the node_class shared by all nodes of the pool's VMs if the policy names another. nullopt
// if there is none, or if the nodes also differ from the policy in another identifier.
std::optional<std::string> CommonOtherClass(const PoolSnapshot& snapshot) {
  const nodepool::PoolIdentity wanted = IdentityOf(*snapshot.policy);
  if (!wanted.node_class.has_value()) return std::nullopt;
  nodepool::PoolIdentity others = wanted;
  std::optional<std::string> common;
  for (const VmView* view : snapshot.vms()) {
    const nomad::Node* node = LinkedNode(*view, snapshot);
    if (node == nullptr || !IsPoolMember(*view, snapshot)) continue;
    if (!common.has_value()) common = node->node_class;
    others.node_class = *common;
    if (node->node_class != *common || wanted.Contains(*node) || !others.Contains(*node)) {
      return std::nullopt;
    }
  }
  return common;
}

// Returns the marked VMs whose removal may be cancelled: their node is ready, and they were not
// marked as broken.
std::vector<std::string> CancelRemovals(const PoolSnapshot& snapshot, const PlanInputs& inputs,
                                        std::int64_t wanted) {
  std::vector<const VmView*> candidates;
  for (const VmView* each : snapshot.vms()) {
    const VmView& view = *each;
    if (!IsPoolMember(view, snapshot) || harvester::IsTerminating(view.vm)) continue;
    if (!view.vm->mark.has_value() || view.vm->mark->reason != harvester::MarkReason::kScaleIn) {
      continue;
    }
    const nomad::Node* node = LinkedNode(view, snapshot);
    if (node == nullptr || node->status != nomad::NodeStatus::kReady) continue;
    if (IsOtherNomad(view.vm, snapshot.observation())) continue;
    if (inputs.left_out.contains(view.vm->name)) continue;
    candidates.push_back(&view);
  }
  // The youngest mark first, because the least of its work has been moved.
  std::sort(candidates.begin(), candidates.end(), [](const VmView* a, const VmView* b) {
    if (a->vm->mark->marked_at != b->vm->mark->marked_at) {
      return a->vm->mark->marked_at > b->vm->mark->marked_at;
    }
    return a->vm->name < b->vm->name;
  });
  std::vector<std::string> names;
  for (const VmView* view : candidates) {
    if (std::cmp_greater_equal(names.size(), wanted)) break;
    names.push_back(view->vm->name);
  }
  return names;
}

// Of the VMs that are left out those whose removal a growth has cancelled in vain, at most `count`:
// a scale-in lets it go on, because their nodes take no work meanwhile (rule C14).
std::vector<PlannedRemoval> RemovalsThatGoOn(const PoolSnapshot& snapshot, const PlanInputs& inputs,
                                             std::size_t count) {
  std::vector<PlannedRemoval> removals;
  for (const VmView* view : snapshot.vms()) {
    if (removals.size() == count) break;
    const bool is_cancelled = IsLeftOut(*view, snapshot, inputs.left_out) &&
                              NextStep(*view, snapshot).row == Row::kMarkedRemovalCancelled;
    if (!is_cancelled) continue;
    removals.push_back({.vm = view->vm->name,
                        .node_id = view->vm->mark->node_id,
                        .reason = "its removal goes on"});
  }
  return removals;
}

// The first few.
std::string PassedOverText(const ScalePlan& plan, const std::string& before) {
  constexpr std::size_t kNamed = 10;
  const std::size_t count = plan.passed_over.size();
  std::string text;
  for (std::size_t i = 0; i < std::min(count, kNamed); ++i) {
    text += before + plan.passed_over[i].vm + ": " + plan.passed_over[i].reason;
  }
  if (count > kNamed) text += "; and " + std::to_string(count - kNamed) + " more";
  if (plan.not_looked_at > 0) {
    text += "; VMs that were not looked at: " + std::to_string(plan.not_looked_at);
  }
  return text;
}

absl::Status NoVictims(const ScalePlan& plan) {
  std::string text = "no VM of the pool may be removed" + PassedOverText(plan, "; ");
  for (const PlannedRemoval& removal : plan.remove) {
    text += "; " + removal.vm + ": without another one its removal would not lower the count";
  }
  return base::FailedPrecondition(text);
}

}  // namespace

bool IsRemoved(const ScalePlan& plan, std::string_view vm) {
  return std::any_of(plan.remove.begin(), plan.remove.end(),
                     [&](const PlannedRemoval& removal) { return removal.vm == vm; });
}

bool IsLeftOut(const VmView& view, const PoolSnapshot& snapshot,
               const std::map<std::string, std::string>& left_out) {
  return IsPoolMember(view, snapshot) && view.vm->has_mark && !harvester::IsTerminating(view.vm) &&
         left_out.contains(view.vm->name);
}

std::int64_t CountToPlanFrom(const PoolSnapshot& snapshot,
                             const std::map<std::string, std::string>& left_out) {
  const std::vector<const VmView*>& vms = snapshot.vms();
  return CountOf(snapshot) + std::count_if(vms.begin(), vms.end(), [&](const VmView* view) {
           return IsLeftOut(*view, snapshot, left_out);
         });
}

absl::Status CheckGrowth(const PoolSnapshot& snapshot) {
  const nodepool::PoolIdentity wanted = IdentityOf(*snapshot.policy);
  for (const VmView* each : snapshot.vms()) {
    const VmView& view = *each;
    if (!IsPoolMember(view, snapshot) || view.vm->has_mark || harvester::IsTerminating(view.vm)) {
      continue;
    }
    if (IsBroken(view, snapshot)) {
      const Step step = NextStep(view, snapshot);
      if (step.kind == StepKind::kMarkBroken) continue;
      return base::FailedPrecondition("the pool does not grow while VM " + view.vm->name +
                                      " is broken and stays: " + step.reason +
                                      "; repair it or delete it: kubectl -n " + view.vm->ns +
                                      " delete vm " + view.vm->name);
    }
    const bool other_identifiers =
        view.vm->nodes.has_value() && IdentityOf(*view.vm->nodes) != wanted;
    const nomad::Node* node = LinkedNode(view, snapshot);
    if (node == nullptr || other_identifiers || IsOtherNomad(view.vm, snapshot.observation()))
      continue;
    if (!BelongsToPool(*node, view, snapshot.policy)) {
      return base::FailedPrecondition("the pool does not grow while the node of VM " +
                                      view.vm->name +
                                      " is in another pool: " + WrongPool(*node, snapshot));
    }
  }
  return absl::OkStatus();
}

std::vector<PlannedCreation> PlanCreations(const PoolSnapshot& snapshot, std::int64_t wanted) {
  std::vector<PlannedCreation> creations;
  if (snapshot.action.has_value()) {
    for (const auto& [name, action_id] : snapshot.action->create) {
      if (std::cmp_greater_equal(creations.size(), wanted)) break;
      if (snapshot.seen->FindVm(name) == nullptr)
        creations.push_back({.name = name, .action_id = action_id});
    }
  }
  while (std::cmp_less(creations.size(), wanted)) creations.push_back({});
  return creations;
}

absl::StatusOr<ScalePlan> PlanScale(const PoolSnapshot& snapshot, std::int64_t desired,
                                    const PlanInputs& inputs) {
  if (desired < 0) {
    return base::InvalidArgument("count " + std::to_string(desired) + " is negative");
  }
  ScalePlan plan;
  plan.desired = desired;
  plan.from = CountToPlanFrom(snapshot, inputs.left_out);
  plan.to = desired;
  const config::PoolPolicy& policy = *snapshot.policy;
  const std::int64_t before = plan.from - inputs.newly_counted;
  if (desired > plan.from) {
    plan.direction = Direction::kOut;
    if (policy.max_scale_out) {
      plan.to = before + std::min(desired - before, *policy.max_scale_out);
    }
    NH_RETURN_IF_ERROR(CheckGrowth(snapshot));
    NH_RETURN_IF_ERROR(CheckSize(plan, "above", "max_scale_out to grow in steps"));
    plan.cancel_removals = CancelRemovals(snapshot, inputs, plan.to - plan.from);
    plan.create = PlanCreations(
        snapshot, plan.to - plan.from - static_cast<std::int64_t>(plan.cancel_removals.size()));
    AssignZones(snapshot, inputs, &plan);
  } else if (desired < plan.from) {
    plan.direction = Direction::kIn;
    if (policy.max_scale_in) plan.to = std::max(desired, before - *policy.max_scale_in);
    if (inputs.one_removal) plan.to = std::max(plan.to, before - 1);
    NH_RETURN_IF_ERROR(CheckSize(plan, "below", "max_scale_in to shrink in steps"));
    const auto count = static_cast<std::size_t>(plan.from - plan.to);
    plan.remove = RemovalsThatGoOn(snapshot, inputs, count);
    ChooseVictims(snapshot, count, inputs, &plan);
    for (const auto& [vm, why] : inputs.left_out) {
      const VmView* view = snapshot.seen->FindVm(vm);
      if (view == nullptr || !view->vm->has_mark || IsRemoved(plan, vm)) continue;
      plan.passed_over.push_back({vm, why});
    }
    plan.missing_victims = static_cast<std::int64_t>(count - plan.remove.size());
    // The new VMs of replacements count only in this plan: removing as many is no progress (R4).
    if (std::cmp_less_equal(plan.remove.size(), inputs.newly_counted)) return NoVictims(plan);
  }
  plan.capped = plan.to != desired;
  return plan;
}

absl::Status KeepThoseThatFit(const std::map<std::string, std::string>& waits,
                              std::int64_t newly_counted, ScalePlan* plan) {
  const std::size_t wanted = plan->remove.size();
  std::vector<PlannedRemoval> fitting;
  std::size_t not_looked_at = 0;
  for (std::vector<PlannedRemoval>* const list : {&plan->remove, &plan->reserve}) {
    for (PlannedRemoval& removal : *list) {
      const auto looked_at = waits.find(removal.vm);
      if (looked_at == waits.end()) {
        ++not_looked_at;
      } else if (looked_at->second.empty()) {
        fitting.push_back(std::move(removal));
      } else {
        plan->passed_over.push_back(
            {removal.vm, "its work has no other place: " + looked_at->second});
      }
    }
  }
  if (fitting.size() < wanted) plan->not_looked_at = not_looked_at;
  const auto end_of_chosen =
      fitting.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, fitting.size()));
  plan->reserve.assign(std::make_move_iterator(end_of_chosen),
                       std::make_move_iterator(fitting.end()));
  fitting.erase(end_of_chosen, fitting.end());
  plan->remove = std::move(fitting);
  plan->missing_victims += static_cast<std::int64_t>(wanted - plan->remove.size());
  return std::cmp_less_equal(plan->remove.size(), newly_counted) ? NoVictims(*plan)
                                                                 : absl::OkStatus();
}

std::string WrongPool(const nomad::Node& node, const PoolSnapshot& snapshot) {
  const std::string text = "node " + node.id + " is " + IdentityText(node) + ", expected " +
                           IdentityOf(*snapshot.policy).ToString() + "; ";
  const std::optional<std::string> common = CommonOtherClass(snapshot);
  if (!common.has_value() || common->empty() || node.node_class != *common) {
    return text + "check the client configuration in user_data";
  }
  return text + "check the policy's key node_class: every node of the pool has class " + *common +
         "; if that is not meant, the client configuration in user_data";
}

std::string Describe(const ScalePlan& plan) {
  std::string text = std::to_string(plan.from) + " → " + std::to_string(plan.to);
  if (plan.capped) text += " (capped, desired " + std::to_string(plan.desired) + ")";
  if (plan.direction == Direction::kNone) return "nothing to do, " + text;
  text = (plan.direction == Direction::kOut ? "scale out " : "scale in ") + text;
  std::string separator = ": ";
  for (const std::string& name : plan.cancel_removals) {
    text += separator + "cancel the removal of " + name;
    separator = ", ";
  }
  if (!plan.create.empty()) {
    text += separator + "create " + std::to_string(plan.create.size());
    std::map<std::string, int> zones;
    for (const PlannedCreation& creation : plan.create) ++zones[creation.zone];
    zones.erase("");
    for (const auto& [zone, count] : zones) {
      text +=
          (zone == zones.begin()->first ? " (" : ", ") + std::to_string(count) + " in zone " + zone;
    }
    if (!zones.empty()) text += ")";
    for (const PlannedCreation& creation : plan.create) {
      if (!creation.name.empty()) text += " " + creation.name + " (left over)";
    }
    separator = ", ";
  }
  for (const PlannedRemoval& removal : plan.remove) {
    text += separator + "remove " + removal.vm;
    if (!removal.node_id.empty()) text += " (node " + removal.node_id + ")";
    text += ": " + removal.reason;
    separator = ", ";
  }
  for (const SkippedVm& waits : plan.would_wait) {
    text += "; of " + waits.vm + " may wait: " + waits.reason;
  }
  if (plan.missing_victims > 0) {
    text += "; " + std::to_string(plan.missing_victims) + " fewer than desired";
  }
  return text + PassedOverText(plan, "; passed over ");
}

}  // namespace nomad_harvester::scaling
