// SPDX-License-Identifier: Apache-2.0
#include "drivers/intent.h"

#include <optional>
#include <utility>

#include "execution/creation.h"

namespace nomad_harvester::scaling {
namespace {

// A Scale by another policy within this time is reported.
constexpr base::Duration kTwoPolicies = std::chrono::minutes(10);

// Two policies that scale one pool keep changing its size in turns (rule L11). A policy's id may
// change when the agent restarts, so a new id alone is no evidence and nothing is refused.
void RecordPolicy(const PoolDependencies& deps, const std::string& policy_id, base::WallTime now,
                  PoolRecord* record) {
  if (policy_id.empty()) return;
  const std::optional<harvester::PolicyRecord>& last = record->policy;
  const bool changes = last.has_value() && last->id != policy_id;
  if (changes && last->before == policy_id && IsWithin(last->at, kTwoPolicies, now)) {
    deps.logger.Warn("Another policy has scaled this pool, too: give each pool one policy",
                     {{"other_policy_id", last->id},
                      {"scaled_at", base::FormatRfc3339(last->at)},
                      {"action_id", deps.call}});
  }
  harvester::PolicyRecord policy{.id = policy_id, .at = now};
  if (last.has_value()) {
    policy.before = changes ? last->id : last->before;
    policy.unknown_members = last->unknown_members;
  }
  record->policy = std::move(policy);
}
}  // namespace

PoolDependencies ForAction(PoolDependencies deps, std::string reason,
                           const std::string& policy_id) {
  deps.logger = deps.logger.With({{"policy_id", policy_id}});
  deps.agents_reason = std::move(reason);
  deps.call = NewActionId(deps.random);
  return deps;
}

absl::Status StoreIntent(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy, const PoolSnapshot& snapshot,
                         const ActionTerms& terms, ScalePlan* plan) {
  PoolRecord record = deps.lease.record();
  harvester::LeaseAction action{.id = deps.call, .from = plan->from, .to = plan->to};
  action.despite_mass_loss =
      terms.mass_loss_over && plan->direction == Direction::kIn && snapshot.mass_loss().alarming;
  for (PlannedCreation& creation : plan->create) {
    if (creation.name.empty()) {
      do {
        creation.name = NewVmName(policy, deps.random);
      } while (snapshot.seen->FindVm(creation.name) != nullptr);
      creation.action_id = deps.call;
    }
    action.names.insert(creation.name);
    action.create[creation.name] = creation.action_id;
  }
  for (const PlannedRemoval& removal : plan->remove) action.names.insert(removal.vm);
  action.cancel.insert(plan->cancel_removals.begin(), plan->cancel_removals.end());
  if (record.action.has_value()) {
    // Keeps names left over by an earlier action that this one does not use, for the next.
    for (const auto& [name, id] : record.action->create) {
      if (snapshot.seen->FindVm(name) != nullptr) continue;
      action.names.insert(name);
      action.create.try_emplace(name, id);
    }
    // Marked VMs stay named. So do VMs that are gone, until their leftovers are cleaned up (rule
    // C10). This action validates neither a mark that no action has named nor one still in flight
    // (rule C11).
    for (const std::string& name : record.action->names) {
      if (record.action->create.contains(name)) continue;
      const VmView* view = snapshot.seen->FindVm(name);
      if (view == nullptr || view->vm->has_mark) action.names.insert(name);
    }
    // A cancelled removal stays cancelled until it is undone (rule L6).
    for (const std::string& name : record.action->cancel) {
      if (action.names.contains(name) && !IsRemoved(*plan, name)) action.cancel.insert(name);
    }
    action.unknown_members = record.action->unknown_members;
  }
  record.action = std::move(action);
  RecordPolicy(deps, terms.policy_id, snapshot.now(), &record);
  // Stores the cluster with the nodes on which the plan was based.
  return deps.lease.Store(context, record, snapshot.observation().nomad_cluster.value_or(""));
}

}  // namespace nomad_harvester::scaling
