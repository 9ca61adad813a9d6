// SPDX-License-Identifier: Apache-2.0
#include "scale_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/access.h"

#include "back_off.h"
#include "executor.h"
#include "victims.h"

namespace nomad_harvester::scaling {
namespace {

struct Right {
  const char* verb;
  const char* group;
  const char* resource;
};
constexpr std::array<Right, 6> kCreationRights = {{{"create", "kubevirt.io", "virtualmachines"},
                                                   {"patch", "kubevirt.io", "virtualmachines"},
                                                   {"delete", "kubevirt.io", "virtualmachines"},
                                                   {"create", "", "secrets"},
                                                   {"patch", "", "secrets"},
                                                   {"delete", "", "persistentvolumeclaims"}}};
constexpr std::array<Right, 3> kRemovalRights = {{{"patch", "kubevirt.io", "virtualmachines"},
                                                  {"delete", "kubevirt.io", "virtualmachines"},
                                                  {"delete", "", "persistentvolumeclaims"}}};

// Names that an earlier action left over are first in the list and are kept.
void KeepCreations(ScalePlan* plan, std::size_t count) {
  plan->to -= static_cast<std::int64_t>(plan->create.size() - count);
  plan->create.resize(count);
  plan->capped = true;
}

}  // namespace

ScaleCall::ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request,
                     ScaleMemory* memory)
    : deps_([&] {
        deps.logger = deps.logger.With({{"policy_id", request.policy_id}});
        return deps;
      }()),
      policy_(std::move(policy)),
      request_(std::move(request)),
      memory_(memory),
      action_id_(NewActionId(deps_.random)),
      loop_(deps_, policy_) {}

absl::StatusOr<ScalePlan> ScaleCall::Plan(const runtime::Context& context,
                                          const PoolSnapshot& snapshot) {
  PlanInputs inputs{.own_node_id = request_.own_node_id};
  range_ = {.from = CountOf(snapshot), .to = request_.count};
  if (request_.count < range_->from && nodepool::NeedsAllocations(policy_.selector)) {
    NH_ASSIGN_OR_RETURN(AllocationList allocations, loop_.ReadAllocations(context));
    allocations_incomplete_ = allocations.incomplete;
    inputs.allocations = std::move(allocations.by_node);
  }
  return PlanScale(snapshot, request_.count, inputs);
}

absl::Status ScaleCall::CheckReadJob(const runtime::Context& context, const ScalePlan& plan) const {
  if (plan.direction != Direction::kIn || !nodepool::NeedsAllocations(policy_.selector) ||
      deps_.clients.config->allow_unverified_read_job) {
    return absl::OkStatus();
  }
  nomad::ReadJob read_job = nomad::ReadJob::kDenied;
  if (!allocations_incomplete_) {
    NH_ASSIGN_OR_RETURN(read_job, deps_.nomad().VerifyReadJob(context));
  }
  if (read_job == nomad::ReadJob::kEverywhere) return absl::OkStatus();
  return base::FailedPrecondition(
      std::string("node_selector_strategy: ") + std::string(policy::NameOf(policy_.selector)) +
      " needs to see the allocations of every namespace, but the Nomad token " +
      (read_job == nomad::ReadJob::kDenied ? "lacks the capability read-job"
                                           : "does not let its capability read-job be verified") +
      "; grant namespace \"*\" { capabilities = [\"read-job\"] }, or set "
      "allow_unverified_read_job = \"true\" in the plugin block");
}

absl::Status ScaleCall::CheckRights(const runtime::Context& context, const ScalePlan& plan) const {
  NH_ASSIGN_OR_RETURN(const kube::AccessRules rules,
                      kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns));
  std::string missing;
  const auto require = [&](const Right& right) -> absl::Status {
    if (rules.Allows(right.verb, right.group, right.resource)) return absl::OkStatus();
    if (rules.incomplete()) {
      NH_ASSIGN_OR_RETURN(const bool allowed, kube::IsAllowed(context, *deps_.clients.kube,
                                                              {.verb = right.verb,
                                                               .group = right.group,
                                                               .resource = right.resource,
                                                               .ns = deps_.key.ns,
                                                               .subresource = ""}));
      if (allowed) return absl::OkStatus();
    }
    missing += (missing.empty() ? "" : ", ") + std::string(right.verb) + " " + right.resource +
               (*right.group == '\0' ? "" : std::string(".") + right.group);
    return absl::OkStatus();
  };
  if (!plan.create.empty()) {
    for (const Right& right : kCreationRights) NH_RETURN_IF_ERROR(require(right));
  } else {
    for (const Right& right : kRemovalRights) NH_RETURN_IF_ERROR(require(right));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kPermissionDenied,
                      "the token may not, in namespace " + deps_.key.ns + ": " + missing);
}

// If creation must wait, removes the creations from the plan; only cancellations of removals may
// remain.
absl::Status ScaleCall::CheckBackOff(ScalePlan* plan, base::WallTime now) {
  const harvester::BackOff back_off = deps_.lease.record().back_off;
  if (plan->direction == Direction::kIn) return CheckRemoval(back_off, now);
  if (plan->create.empty()) return absl::OkStatus();
  const absl::Status waits = CheckCreation(back_off, now);
  if (!waits.ok()) {
    // A broken image must not block cancelling removals (rule C12).
    if (plan->cancel_removals.empty()) return waits;
    deferred_ = waits;
    plan->create.clear();
    return absl::OkStatus();
  }
  if (CreationCircuitIsOpen(back_off) && plan->create.size() > 1) {
    deps_.logger.Warn("New VMs have failed several times in a row; creating only one",
                      {{"action_id", action_id_}, {"wanted", plan->create.size()}});
    KeepCreations(plan, 1);
  }
  return absl::OkStatus();
}

// Creates as many VMs as fit; for the rest the action returns an error.
absl::Status ScaleCall::CheckQuotas(const runtime::Context& context, ScalePlan* plan) {
  const auto quotas = deps_.vms.ListQuotas(context);
  if (!quotas.ok()) {
    // The right to read quotas is optional, and Harvester enforces them in any case (rule C3).
    deps_.logger.Debug("Could not read the namespace's quotas", {{"error", quotas.status()}});
    return absl::OkStatus();
  }
  const auto room = harvester::FindQuotaRoom(*quotas, creation_->vm_spec);
  const std::size_t wanted = plan->create.size();
  if (!room.has_value() || room->vms >= static_cast<std::int64_t>(wanted)) return absl::OkStatus();
  const absl::Status why(absl::StatusCode::kResourceExhausted,
                         std::to_string(room->vms) + " of " + std::to_string(wanted) +
                             " VMs fit the quota of namespace " + deps_.key.ns + ": " +
                             room->limit);
  if (room->vms == 0 && plan->cancel_removals.empty()) return why;
  deps_.logger.Warn(
      "A quota has no room for all new VMs",
      {{"action_id", action_id_}, {"wanted", wanted}, {"room", room->vms}, {"why", room->limit}});
  KeepCreations(plan, static_cast<std::size_t>(room->vms));
  deferred_ = why;
  return absl::OkStatus();
}

absl::Status ScaleCall::Preflight(const runtime::Context& context, ScalePlan* wanted,
                                  const PoolSnapshot& snapshot) {
  ScalePlan& plan = *wanted;
  NH_RETURN_IF_ERROR(CheckBackOff(&plan, snapshot.now()));
  NH_RETURN_IF_ERROR(CheckRights(context, plan));
  if (plan.direction == Direction::kIn && !memory_->mass_loss_over) {
    const MassLoss loss = FindMassLoss(snapshot);
    if (loss.alarming) {
      return base::FailedPrecondition(std::to_string(loss.lost) + " of " + std::to_string(loss.of) +
                                      " running VMs have lost their Nomad node at once: nothing is "
                                      "removed; check Nomad first");
    }
  }
  if (plan.create.empty()) return absl::OkStatus();
  NH_ASSIGN_OR_RETURN(creation_, PrepareCreation(context, deps_, policy_, snapshot.look().nomad_index,
                                                 request_.policy_id));
  memory_->template_hash = creation_->vm_spec.template_hash;
  return CheckQuotas(context, &plan);
}

absl::Status ScaleCall::StoreAction(const runtime::Context& context, ScalePlan* plan,
                                    const PoolSnapshot& snapshot) {
  PoolRecord record = deps_.lease.record();
  harvester::LeaseAction action{.id = action_id_, .from = plan->from, .to = plan->to};
  for (PlannedCreation& creation : plan->create) {
    if (creation.name.empty()) {
      do {
        creation.name = NewVmName(policy_, deps_.random);
      } while (snapshot.seen->FindVm(creation.name) != nullptr);
      creation.action_id = action_id_;
    }
    action.names.insert(creation.name);
    action.create[creation.name] = creation.action_id;
  }
  for (const PlannedRemoval& removal : plan->remove) action.names.insert(removal.vm);
  for (const VmView* view : snapshot.vms()) {
    if (IsPoolMember(*view, snapshot) && view->vm.has_mark) action.names.insert(view->vm.name);
  }
  if (record.action.has_value()) {
    // Names that an earlier action left over and this one does not use are kept for the next.
    for (const auto& [name, id] : record.action->create) {
      if (snapshot.seen->FindVm(name) != nullptr) continue;
      action.names.insert(name);
      action.create.try_emplace(name, id);
    }
    action.unknown_members = record.action->unknown_members;
  }
  record.action = std::move(action);
  return deps_.lease.Store(context, record);
}

void ScaleCall::CancelRemovals(const runtime::Context& context, const ScalePlan& plan,
                               const PoolSnapshot& snapshot) {
  std::vector<Effect> effects(plan.cancel_removals.size());
  (void)runtime::ForEachBounded(
      context, deps_.executor, effects.size(), deps_.parallelism(), [&](std::size_t i) {
        const VmView* view = snapshot.seen->FindVm(plan.cancel_removals[i]);
        if (view != nullptr) effects[i] = RemoveMark(context, deps_, *view);
        return absl::OkStatus();
      });
  for (std::size_t i = 0; i < effects.size(); ++i) {
    deps_.logger.Info("Cancelling the removal of a VM", {{"vm", plan.cancel_removals[i]},
                                                         {"action_id", action_id_},
                                                         {"outcome", effects[i].status}});
    // After a conflict or a lost reply, the next observation shows whether the VM is still marked.
    loop_.ExpectCancelledRemoval(plan.cancel_removals[i], action_id_);
  }
}

void ScaleCall::MarkVictims(const runtime::Context& context, const ScalePlan& plan,
                            PoolSnapshot snapshot) {
  snapshot.action = deps_.lease.record().action;
  const std::vector<absl::Status> results = runtime::ForEachBounded(
      context, deps_.executor, plan.remove.size(), deps_.parallelism(), [&](std::size_t i) {
        const VmView* view = snapshot.seen->FindVm(plan.remove[i].vm);
        return view == nullptr ? base::Internal("VM vanished from the plan")
                               : MarkVictim(context, deps_, snapshot, *view, action_id_,
                                            plan.remove[i].node_id)
                                     .status;
      });
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PlannedRemoval& removal = plan.remove[i];
    if (results[i].ok() || !kube::GetKubeError(results[i]).has_value()) {
      deps_.logger.Info("Marked a VM for removal", {{"vm", removal.vm},
                                                    {"node_id", removal.node_id},
                                                    {"why", removal.reason},
                                                    {"action_id", action_id_},
                                                    {"outcome", results[i]}});
    }
    // Without a reply the mark may have been written: then the loop observes it and carries out the
    // removal.
    const bool unknown = absl::IsUnavailable(results[i]) || absl::IsDeadlineExceeded(results[i]);
    if (results[i].ok() || unknown) {
      loop_.ExpectRemoval(removal.vm);
    } else {
      loop_.FailRemoval(removal.vm, results[i]);
    }
  }
}

void ScaleCall::Create(const runtime::Context& context, const ScalePlan& plan) {
  for (const PlannedCreation& creation : plan.create) loop_.ExpectCreation(creation.name);
  std::vector<absl::Status> owned(plan.create.size());
  const std::vector<absl::Status> results = runtime::ForEachBounded(
      context, deps_.executor, plan.create.size(), deps_.parallelism(), [&](std::size_t i) {
        deps_.logger.Info("Creating a VM",
                          {{"vm", plan.create[i].name}, {"action_id", plan.create[i].action_id}});
        if (plan.create[i].action_id != action_id_) {
          NH_RETURN_IF_ERROR(ClearLeftoverSecret(context, deps_, plan.create[i].name));
        }
        return CreateVm(context, deps_, *creation_, plan.create[i], &owned[i]);
      });
  for (std::size_t i = 0; i < results.size(); ++i) {
    unowned_ = unowned_ || !owned[i].ok();
    if (results[i].ok()) continue;
    deps_.logger.Warn("Could not create a VM", {{"vm", plan.create[i].name},
                                                {"action_id", plan.create[i].action_id},
                                                {"error", results[i]}});
    loop_.FailCreation(plan.create[i].name, results[i]);
  }
}

absl::Status ScaleCall::FinalStatus(const absl::Status& loop) const {
  std::string lines;
  absl::Status first_failure;
  int failed = 0;
  int done = 0;
  int pending = 0;
  for (const auto& [name, outcome] : loop_.outcomes()) {
    lines += "\n" + name + ": ";
    switch (outcome.state) {
      case OutcomeState::kDone:
        ++done;
        lines += "done";
        break;
      case OutcomeState::kPending:
        ++pending;
        lines += "unfinished" + (outcome.text.empty() ? std::string() : ", " + outcome.text);
        break;
      case OutcomeState::kFailed:
        ++failed;
        if (first_failure.ok()) first_failure = outcome.error;
        lines += "failed: " + base::Message(outcome.error);
        break;
    }
  }
  if (!loop.ok()) {
    return base::MakeStatus(loop.code(), base::Message(loop) + lines);
  }
  if (failed == 0 && pending == 0) return absl::OkStatus();
  // If nothing succeeded and all failures have the same code, return that code. ABORTED is reserved
  // for "busy".
  const bool alike = done == 0 && first_failure.code() != absl::StatusCode::kAborted;
  return base::MakeStatus(alike ? first_failure.code() : absl::StatusCode::kInternal,
                          std::to_string(failed) + " of " +
                              std::to_string(failed + done + pending) + " VMs failed:" + lines);
}

// Removes marks, rolls back their drains, and only then creates (rule C14).
absl::Status ScaleCall::Act(const runtime::Context& context, const ScalePlan& plan,
                            const PoolSnapshot& snapshot) {
  loop_.AllowRemovals(memory_->mass_loss_over);
  if (!plan.cancel_removals.empty()) {
    CancelRemovals(context, plan, snapshot);
    NH_RETURN_IF_ERROR(loop_.RunScale(context, false));
  }
  MarkVictims(context, plan, snapshot);
  if (!plan.create.empty()) Create(context, plan);
  const bool until_accepted = plan.direction == Direction::kIn && !policy_.scale_in_wait;
  return loop_.RunScale(context, until_accepted);
}

absl::Status ScaleCall::Run(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(const PoolSnapshot snapshot, loop_.FinishRollBacks(context));
  NH_ASSIGN_OR_RETURN(ScalePlan plan, Plan(context, snapshot));
  range_ = {.from = plan.from, .to = plan.to};
  deps_.logger.Info("Planned", {{"action_id", action_id_},
                                {"reason", request_.reason},
                                {"from", plan.from},
                                {"to", plan.to},
                                {"capped", plan.capped},
                                {"plan", Describe(plan)}});
  if (plan.direction == Direction::kNone) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckReadJob(context, plan));
  NH_RETURN_IF_ERROR(Preflight(context, &plan, snapshot));
  NH_RETURN_IF_ERROR(StoreAction(context, &plan, snapshot));
  leaves_work_ = acted_ = true;
  const absl::Status loop = Act(context, plan, snapshot);
  if (loop.ok()) loop_.CloseRecord(context);
  absl::Status final_status = FinalStatus(loop);
  leaves_work_ = unowned_ || !final_status.ok();
  if (final_status.ok()) final_status = deferred_;
  deps_.logger.Log(final_status.ok() ? log::Level::kInfo : log::Level::kWarn, "Scaled",
                   {{"action_id", action_id_},
                    {"reason", request_.reason},
                    {"from", plan.from},
                    {"to", plan.to},
                    {"outcome", final_status}});
  return final_status;
}

absl::Status ScaleCall::DryRun(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(const PoolSnapshot snapshot, loop_.Observe(context));
  if (!snapshot.look().nomad_readable) {
    return base::Unavailable("Nomad cannot be read: " + snapshot.look().nomad_problem);
  }
  NH_ASSIGN_OR_RETURN(const ScalePlan plan, Plan(context, snapshot));
  deps_.logger.Info("Dry run: nothing is changed", {{"reason", request_.reason},
                                                    {"from", plan.from},
                                                    {"to", plan.to},
                                                    {"plan", Describe(plan)}});
  return absl::OkStatus();
}

}  // namespace nomad_harvester::scaling
