// SPDX-License-Identifier: Apache-2.0
//
// Collects the leftovers of an interrupted action, at an operator's request.

#include <utility>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/maintenance.h"

#include "commands/command_run.h"
#include "drivers/resumption.h"
#include "execution/read_only.h"

namespace nomad_harvester::scaling {
namespace {

// Objects that a policy keeps on purpose are not leftovers. Without a policy there are none.
bool IsKeptOnPurpose(const Step& step, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() &&
         (step.row == Row::kUnmarkedBrokenKept || step.row == Row::kUnmarkedUnhealthyKept);
}

std::vector<Unfinished> FindUnfinished(const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  std::vector<Unfinished> unfinished;
  for (const auto& [view, step] : decisions.all()) {
    if (!IsPoolMember(*view, snapshot)) continue;
    // After a finished run, only marks remain that it must not or cannot remove.
    const bool still_marked = view->vm->has_mark && step.kind != StepKind::kReport;
    if (still_marked) {
      unfinished.push_back({view->vm->name, step.reason});
    } else if (step.kind == StepKind::kReport && !IsKeptOnPurpose(step, snapshot)) {
      const bool wants_policy =
          step.row == Row::kUnmarkedBrokenKept && !snapshot.policy.has_value();
      unfinished.push_back(
          {view->vm->name, step.reason + (wants_policy ? ", because no policy is known" : "")});
    }
  }
  return unfinished;
}

}  // namespace

Maintenance::Maintenance(MaintenanceOptions options, Clients clients)
    : options_(std::move(options)), clients_(std::move(clients)) {}

absl::StatusOr<std::set<PoolKey>> Maintenance::FindPools(const runtime::Context& caller,
                                                         const std::string& ns) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  const harvester::VmStore store(clients_.kube, ns);
  std::set<PoolKey> pools;
  const auto add = [&](const std::string& pool) {
    if (!pool.empty()) pools.insert({.ns = ns, .pool = pool});
  };
  NH_ASSIGN_OR_RETURN(const auto vms, store.ListManaged(context));
  for (const harvester::VirtualMachine& vm : vms.value) add(vm.pool);
  NH_ASSIGN_OR_RETURN(const auto secrets, store.ListSecrets(context));
  for (const harvester::CloudInitSecret& secret : secrets.value) add(secret.pool);
  NH_ASSIGN_OR_RETURN(const auto claims, store.ListClaims(context));
  for (const harvester::Claim& claim : claims) add(claim.pool);
  struct PoolsLease {
    std::string pool;
  };
  static const auto* const kPoolOfLease = new base::JsonFields<PoolsLease>(
      {{"metadata.labels.*", [](PoolsLease& lease, const base::JsonEvent& event) {
          if (event.name == harvester::kPoolLabel) lease.pool = event.text;
        }}});
  const auto leases = clients_.kube->List<PoolsLease>(
      context, kube::kLeases, ns, {.labels = harvester::ManagedSelector()}, *kPoolOfLease);
  // A token without access to Leases is acceptable, and a Lease alone is not a leftover.
  if (!leases.ok() && !kube::IsForbidden(leases.status())) return leases.status();
  if (leases.ok()) {
    for (const PoolsLease& lease : leases->value) add(lease.pool);
  }
  const auto nodes = clients_.nomad->ListNodes(context);
  if (!nodes.ok()) return base::Annotate(nodes.status(), "Nomad cannot be read");
  for (const nomad::Node& node : nodes->value) {
    const auto mark = nodepool::ParseDrainMark(node);
    if (mark.has_value() && mark->pool.starts_with(ns + "/"))
      add(std::string(mark->pool.substr(ns.size() + 1)));
  }
  return pools;
}

Collection Maintenance::Collect(const runtime::Context& context, const PoolKey& key,
                                const std::optional<config::PoolPolicy>& policy,
                                const ReconcileListener& events,
                                const LeaseWaitListener& waits) const {
  CommandRun run(options_, clients_, key, waits);
  PoolDependencies deps = run.Deps(options_, events);
  deps.collects = true;
  const Resumed resumed = ResumePool(context, deps, policy, /*may_begin=*/nullptr);
  if (!resumed.lease.ok()) return {.outcome = resumed.lease};
  Collection collection{.outcome = resumed.outcome};
  if (resumed.outcome.ok() && resumed.last.has_value()) {
    collection.unfinished = FindUnfinished(*resumed.last);
  }
  if (const auto action = run.lease.record().action; action.has_value()) {
    for (const auto& [name, id] : action->create) collection.not_made.push_back(name);
  }
  return collection;
}

Collection Maintenance::Preview(const runtime::Context& caller, const PoolKey& key,
                                const std::optional<config::PoolPolicy>& policy,
                                const ReconcileListener& events) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  CommandRun run(options_, clients_, key);
  if (absl::Status refreshed = run.lease.Refresh(context); !refreshed.ok())
    return {.outcome = refreshed};
  PoolDependencies deps = run.Deps(options_, events);
  deps.collects = true;
  return {.outcome = Reconciler(std::move(deps), policy).Preview(context)};
}

}  // namespace nomad_harvester::scaling
