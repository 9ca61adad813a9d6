// SPDX-License-Identifier: Apache-2.0
#include "drivers/replace_call.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "drivers/acceptance.h"
#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

// How long the background waits for the creation of a replacement: drains and roll-backs wait
// meanwhile (rule L1). A VM that appears later takes its place all the same.
constexpr base::Duration kReplacementLimit = std::chrono::seconds(10);

}  // namespace

ReplaceCall::ReplaceCall(const PoolDependencies& deps, const config::PoolPolicy& policy,
                         const PoolSnapshot& snapshot, const Replaceable& old)
    : deps_(ForAction(deps, "replacement of VM " + old.vm->vm->name + ": " + Describe(old.reason),
                      "")),
      policy_(policy),
      snapshot_(snapshot),
      old_(old),
      terms_{.old_goes_first = OldGoesFirst(policy)},
      reconciler_(deps_, policy),
      preflight_(deps_, policy_, reconciler_, terms_) {}

absl::Status ReplaceCall::CheckOld(const runtime::Context& context) const {
  const nomad::Node* listed = LinkedNode(*old_.vm, snapshot_);
  if (listed == nullptr) {
    return old_.is_unhealthy() ? absl::OkStatus()
                               : base::FailedPrecondition("it has no Nomad node");
  }
  NH_ASSIGN_OR_RETURN(const auto node, deps_.nodes.GetNode(context, deps_.nomad(), listed->id));
  if (old_.is_unhealthy()) {
    Overlay seen(snapshot_, *old_.vm);
    seen.SetNode(listed->id, node.value);
    if (node.value.status == nomad::NodeStatus::kDisconnected &&
        seen.AllocationsOf(listed->id) == nullptr) {
      return base::FailedPrecondition("what may come back with its node has not been read");
    }
    const Step step = Decide(FactsOf(seen, nullptr));
    return step.row == Row::kUnmarkedUnhealthyWaits ? absl::OkStatus()
                                                    : base::FailedPrecondition(step.reason);
  }
  const auto objection = ObjectionToRemoval(*old_.vm, &node.value, snapshot_);
  return objection.has_value() ? base::FailedPrecondition(*objection) : absl::OkStatus();
}

absl::StatusOr<ScalePlan> ReplaceCall::Plan(const runtime::Context& context) {
  const std::int64_t count = CountOf(snapshot_);
  ScalePlan plan{.direction = Direction::kOut, .from = count, .desired = count, .to = count};
  plan.create = PlanCreations(snapshot_, 1);
  const PlanInputs inputs{.failing_zones = deps_.backlog.FailingZones(deps_.clock.Now())};
  const std::vector<std::string>& zones = policy_.zones;
  const std::string& zone = old_.vm->vm->zone;
  if (SplitsZones(snapshot_) && std::find(zones.begin(), zones.end(), zone) != zones.end() &&
      !inputs.failing_zones.contains(zone)) {
    plan.create[0].zone = zone;
  } else {
    AssignZones(snapshot_, inputs, &plan);
  }
  NH_RETURN_IF_ERROR(preflight_.Run(context, snapshot_, inputs, &plan));
  NH_RETURN_IF_ERROR(preflight_.deferred());
  plan.to = count;
  return plan;
}

absl::Status ReplaceCall::Run(const runtime::Context& context) {
  const CurrentTemplate& current = deps_.backlog.new_vms.current;  // which Plan reads
  absl::StatusOr<ScalePlan> planned = Plan(context);
  if (lacks_room()) {
    harvester::StoppedReplacement& no_room = deps_.backlog.unrecorded.no_room.emplace();
    // In the place of an unhealthy VM it counts for the back-off alone (rule R5).
    if (!old_.is_unhealthy()) {
      no_room = {.template_hash = current.hash,
                 .why = base::Message(planned.status()),
                 .lacks_room = true};
    }
  }
  NH_ASSIGN_OR_RETURN(ScalePlan plan, std::move(planned));
  // The old VM may already match the template.
  const ReplacementQueue queue = QueueOfReplacements(snapshot_, deps_.lease.record(), current);
  const bool is_wanted =
      !queue.blocked_reason.has_value() &&
      std::any_of(queue.vms.begin(), queue.vms.end(),
                  [&](const Replaceable& wanted) { return wanted.vm == old_.vm; });
  if (!is_wanted) return absl::OkStatus();
  NH_RETURN_IF_ERROR(preflight_.CheckTokens(context));
  plan.create[0].replaces = ReplacesOf(old_, current, snapshot_.now());
  harvester::VmSpec& vm_spec = preflight_.creation()->vm_spec;
  if (terms_.old_goes_first) {
    plan.create[0].replaces->start = policy::NameOf(vm_spec.run_strategy);
    vm_spec.join_timeout = "none";  // until it is started
  }
  NH_RETURN_IF_ERROR(StoreIntent(context, deps_, policy_, snapshot_, terms_, &plan));
  acted_ = true;
  deps_.logger.Info("Replacing a VM", {{"vm", old_.vm->vm->name},
                                       {"by", plan.create[0].name},
                                       {"why", Describe(old_.reason)},
                                       {"action_id", deps_.call}});
  Acceptance acceptance(deps_, reconciler_, plan, preflight_.creation());
  return acceptance.Run(context.WithTimeout(kReplacementLimit), snapshot_);
}

}  // namespace nomad_harvester::scaling
