// SPDX-License-Identifier: Apache-2.0
#include "execution/deleted_vms.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kListLeftovers[] = "list-leftovers";
// How long the background waits for a VM's leftovers before it retries in rounds.
constexpr base::Duration kLeftoversTimeout = std::chrono::minutes(4);

}  // namespace

void LogReplaced(const PoolDependencies& deps, const std::string& old, const std::string& by) {
  deps.logger.Info("Replaced VM " + old + " by " + by);
}

void DeletedVms::Observe(const Decisions& decisions, base::MonoTime now) {
  for (const auto& [view, step] : decisions.all()) {
    if (!view->member) continue;
    if (!view->vm->has_mark) {
      const std::string& name = view->vm->name;
      std::erase_if(deps_.backlog.seen_claims,
                    [&](const auto& seen) { return seen.second == name; });
      continue;
    }
    const std::optional<harvester::Mark>& mark = view->vm->mark;
    deps_.backlog.marked[view->vm->name] = mark.has_value() ? mark->action : "";
    for (std::string& claim : harvester::ClaimsThatGoWith(view->vm)) {
      deps_.backlog.seen_claims.insert_or_assign(std::move(claim), view->vm->name);
    }
  }
  const auto gone = [&](const std::string& vm) {
    deps_.backlog.gone_since.try_emplace(vm, now);
    deps_.backlog.leftovers.try_emplace(vm, Leftover{.what = "volumes and Secret"});
  };
  std::erase_if(deps_.backlog.marked, [&](const auto& marked) {
    const std::string& vm = marked.first;
    const Decisions::Entry* entry = decisions.Find(vm);
    if (entry == nullptr) {
      gone(vm);
      deps_.logger.Info("Removed a VM", {{"vm", vm}, {"action_id", marked.second}});
      for (const VmView* by : decisions.snapshot().vms()) {
        const bool replaces = by->vm->replaces.has_value() && by->vm->replaces->vm == vm;
        if (replaces && harvester::WasReady(by->vm)) LogReplaced(deps_, vm, by->vm->name);
      }
    }
    return entry == nullptr || !entry->view->vm->has_mark;
  });
  for (const OrphanedNode& node : decisions.to_purge()) gone(std::string(node.mark.vm));
  const std::optional<harvester::LeaseAction>& action = decisions.snapshot().action;
  if (!action.has_value()) return;
  for (const std::string& vm : action->names) {
    if (!action->create.contains(vm) && decisions.snapshot().seen->FindVm(vm) == nullptr) gone(vm);
  }
}

// Every sweep looks for leftovers of gone VMs, and for Secrets that the Lease names.
SweepScope DeletedVms::Scope() const {
  SweepScope scope{.seen_claims = deps_.backlog.seen_claims};
  for (const auto& [vm, since] : deps_.backlog.gone_since) scope.deleted.insert(vm);
  const base::MonoTime now = deps_.clock.Now();
  std::erase_if(deps_.backlog.unanswered,
                [&](const auto& entry) { return now - entry.second >= kLeaseDuration; });
  for (const auto& [vm, at] : deps_.backlog.unanswered) scope.unanswered.insert(vm);
  if (const auto action = deps_.lease.record().action; action.has_value()) {
    scope.named_by_action = action->names;
    for (const auto& [vm, id] : action->create) scope.named_by_action.insert(vm);
  }
  return scope;
}

// Adds the nodes of gone VMs that wait to be purged.
void DeletedVms::AddNodesToPurge(const PoolSnapshot& snapshot) {
  for (const OrphanedNode& gone : snapshot.orphaned_nodes()) {
    const std::string vm(gone.mark.vm);
    if (!AwaitsPurge(gone, snapshot) || !deps_.backlog.gone_since.contains(vm)) continue;
    AddLeftover(vm, "Nomad node " + gone.node->id, deps_.backlog.retries,
                {StepName(StepKind::kPurge), gone.node->id}, &deps_.backlog.leftovers);
  }
}

Effect DeletedVms::Sweep(const runtime::Context& context, const PoolSnapshot& snapshot) {
  PoolBacklog& backlog = deps_.backlog;
  const SweepScope scope = Scope();
  const Retries::Key key(kListLeftovers, deps_.key.pool);
  const base::MonoTime now = deps_.clock.Now();
  if (!backlog.retries.MayTry(key, now)) {
    return {Verdict::kRefused, backlog.retries.LastOf(key)};
  }
  auto swept = SweepLeftovers(context, deps_, scope);
  Effect effect = EffectOf(swept.ok() ? absl::OkStatus() : swept.status());
  if (effect.verdict == Verdict::kCancelled) return effect;
  const bool should_log = backlog.retries.Record(key, effect, now);
  if (!swept.ok()) {
    if (should_log) {
      deps_.logger.Warn("Could not look for leftovers; trying again later",
                        {{"error", swept.status()}});
    }
    for (const std::string& vm : scope.deleted) {
      backlog.leftovers[vm] = {.what = "volumes and Secret, which cannot be listed",
                               .in_trouble = true};
    }
    return effect;
  }
  sweep_requested_ = !swept->unowned.ok();
  backlog.leftovers = std::move(swept->left);
  AddNodesToPurge(snapshot);
  for (const auto& [vm, leftover] : backlog.leftovers) backlog.gone_since.try_emplace(vm, now);
  std::erase_if(backlog.gone_since,
                [&](const auto& entry) { return !backlog.leftovers.contains(entry.first); });
  std::erase_if(backlog.seen_claims, [&](const auto& entry) {
    return !backlog.leftovers.contains(entry.second) && !backlog.marked.contains(entry.second);
  });
  if (!swept->unowned.ok()) return {Verdict::kRefused, swept->unowned};
  return effect;
}

bool DeletedVms::IsCleanUpInProgress(base::MonoTime now) const {
  const PoolBacklog& backlog = deps_.backlog;
  return std::any_of(backlog.leftovers.begin(), backlog.leftovers.end(), [&](const auto& entry) {
    const auto since = backlog.gone_since.find(entry.first);
    return !entry.second.in_trouble && since != backlog.gone_since.end() &&
           now - since->second < kLeftoversTimeout;
  });
}

}  // namespace nomad_harvester::scaling
