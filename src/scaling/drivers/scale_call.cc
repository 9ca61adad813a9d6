// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_call.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/host.h"
#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nodepool/selector.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "execution/rights.h"
#include "rules/back_off.h"
#include "rules/foresight.h"
#include "rules/tracker.h"
#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

// A Scale by another policy within this time is reported.
constexpr base::Duration kTwoPolicies = std::chrono::minutes(10);

// How long to wait for the template that tells which VMs have drifted.
constexpr base::Duration kTemplateLimit = std::chrono::seconds(3);

// How often an unanswered creation is sent.
constexpr int kMaxCreations = 3;

// How often a write is attempted on a VM that has changed since it was read.
constexpr int kMaxConflicts = 4;

// Keeps the first `count` creations. Names left over by an earlier action come first in the list.
void KeepCreations(ScalePlan* plan, std::size_t count) {
  plan->to -= static_cast<std::int64_t>(plan->create.size() - count);
  plan->create.resize(count);
  plan->capped = true;
}

// VMs that the reconciler would mark during any Scale.
std::vector<SkippedVm> ReplacedVms(const PoolSnapshot& snapshot) {
  std::vector<SkippedVm> replaced;
  const Decisions decisions(snapshot);
  if (decisions.snapshot().mass_loss().alarming) return replaced;
  for (const Decisions::Entry& entry : decisions.all()) {
    const StepKind kind = entry.step.kind;
    if (kind != StepKind::kMarkBroken && kind != StepKind::kMarkUnhealthy) continue;
    replaced.push_back({entry.view->vm->name, entry.step.reason});
  }
  return replaced;
}

}  // namespace

ScaleCall::ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request,
                     ScaleMemory* memory)
    : deps_([&] {
        deps.logger = deps.logger.With({{"policy_id", request.policy_id}});
        deps.agents_reason = request.reason;
        deps.call = NewActionId(deps.random);
        return deps;
      }()),
      policy_(std::move(policy)),
      request_(std::move(request)),
      memory_(memory),
      action_id_(deps_.call),
      reconciler_(deps_, policy_),
      reads_(deps_, policy_, request_.count, request_.last_count, request_.policy_id) {}

absl::Status ScaleCall::ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                                   std::map<std::string, std::string> left_out) {
  inputs_ = {.left_out = std::move(left_out)};
  for (const auto& [vm, refused] : deps_.backlog.removal_refusals) {
    if (deps_.clock.Now() - refused.last < kVictimCooldown) inputs_.refusals[vm] = refused.count;
  }
  for (const auto& [zone, at] : deps_.backlog.zone_failures) {
    if (deps_.clock.Now() - at < kZoneAvoidedFor) inputs_.failing_zones.insert(zone);
  }
  inputs_.one_removal = RemovalsWereRefused(deps_.lease.record().back_off);
  range_ = {.from = CountOf(snapshot), .to = request_.count};
  if (request_.count < range_->from && nodepool::NeedsAllocations(policy_.selector)) {
    NH_ASSIGN_OR_RETURN(AllocationList allocations, reads_.Allocations(context, snapshot));
    allocations_incomplete_ = allocations.incomplete;
    inputs_.allocations = std::move(allocations.by_node);
  }
  if (request_.count < range_->from) {
    inputs_.cordoned_hosts = reads_.CordonedHosts(context);
    // What the last growth was made of may be old: the policy can have changed since.
    if (policy_.replace_drifted != config::ReplaceDrifted::kOff && IsMixed(snapshot)) {
      UpdateCurrentTemplate(context.WithTimeout(kTemplateLimit), deps_, policy_,
                            &memory_->current_template);
      inputs_.current_template = memory_->current_template;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ScalePlan> ScaleCall::Plan(const PoolSnapshot& snapshot) {
  auto plan = PlanScale(snapshot, request_.count, inputs_);
  inputs_.allocations.clear();  // covers the whole region; only the plan needs it
  return plan;
}

// The pool may have changed since somebody agreed to a plan.
absl::Status ScaleCall::EnforceConsent(ScalePlan* plan) const {
  if (!request_.consent.has_value()) return absl::OkStatus();
  const RemovalConsent& consent = *request_.consent;
  for (const PlannedRemoval& removal : plan->remove) {
    if (consent.vms.contains(removal.vm)) continue;
    return base::FailedPrecondition("the pool has changed since its plan was agreed to: VM " +
                                    removal.vm + " would be removed now (" + removal.reason +
                                    "); nothing was done: repeat it and look at the new plan");
  }
  std::erase_if(plan->reserve, [&](const PlannedRemoval& removal) {
    return !consent.vms.contains(removal.vm) && !consent.reserve.contains(removal.vm);
  });
  return absl::OkStatus();
}

absl::Status ScaleCall::CheckReadJob(const runtime::Context& context, const ScalePlan& plan) const {
  if (plan.direction != Direction::kIn || !nodepool::NeedsAllocations(policy_.selector)) {
    return absl::OkStatus();
  }
  nomad::ReadJob read_job = nomad::ReadJob::kDenied;
  if (!allocations_incomplete_) {
    NH_ASSIGN_OR_RETURN(read_job, reads_.ReadJob(context));
  }
  if (read_job == nomad::ReadJob::kEverywhere) return absl::OkStatus();
  return base::FailedPrecondition(
      std::string("node_selector_strategy: ") + std::string(policy::NameOf(policy_.selector)) +
      " needs to see the allocations of every namespace, but the Nomad token " +
      (read_job == nomad::ReadJob::kDenied ? "lacks the capability read-job"
                                           : "does not let its capability read-job be verified") +
      "; grant namespace \"*\" { capabilities = [\"read-job\"] }");
}

absl::Status ScaleCall::CheckRights(const runtime::Context& context, const ScalePlan& plan) const {
  NH_ASSIGN_OR_RETURN(const kube::AccessRules rules, reads_.Rules(context));
  NH_ASSIGN_OR_RETURN(const std::vector<Right> missing,
                      MissingRights(context, *deps_.clients.kube, rules, deps_.key.ns,
                                    plan.create.empty() ? RemovalRights() : CreationRights()));
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::string> texts;
  texts.reserve(missing.size());
  for (const Right& right : missing) texts.push_back(RightText(right));
  return absl::Status(
      absl::StatusCode::kPermissionDenied,
      "the token may not, in namespace " + deps_.key.ns + ": " + absl::StrJoin(texts, ", "));
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
    KeepCreations(plan, 0);
    return absl::OkStatus();
  }
  if (CreationCircuitIsOpen(back_off) && plan->create.size() > 1) {
    deps_.logger.Warn("New VMs have failed several times in a row; creating only one",
                      {{"action_id", action_id_}, {"wanted", plan->create.size()}});
    KeepCreations(plan, 1);
  }
  return absl::OkStatus();
}

// Warns at each growth about differences from the template, and once about classes that cannot be
// checked.
void ScaleCall::WarnOfCreations() {
  if (!creation_->template_notes.empty()) {
    deps_.logger.Warn(
        "Parts of the VM template are not used",
        {{"action_id", action_id_},
         {"vm_template", policy_.vm_template->name.ns + "/" + policy_.vm_template->name.name},
         {"left_out", absl::StrJoin(creation_->template_notes, "; ")}});
  }
  std::string unread = absl::StrJoin(creation_->unread_classes, ", ");
  if (unread == memory_->unread_classes) return;
  if (!unread.empty()) {
    deps_.logger.Warn(
        "The token may not read what the policy names, so it is not checked; if it is missing, VMs "
        "do not start. Grant get on storageclasses.storage.k8s.io and "
        "priorityclasses.scheduling.k8s.io, as the optional ClusterRole of examples/rbac.yaml does",
        {{"action_id", action_id_}, {"not_checked", unread}});
  }
  memory_->unread_classes = std::move(unread);
}

// Runs all of Harvester's checks that can refuse a VM.
absl::Status ScaleCall::CheckCreations(const runtime::Context& context,
                                       const PoolSnapshot& snapshot) {
  NH_ASSIGN_OR_RETURN(creation_, reads_.Creation(context, snapshot.look().nomad_index));
  if (snapshot.look().nomad_cluster.has_value()) {
    // The keys in the Look may be outdated if Nomad was rebuilt.
    NH_ASSIGN_OR_RETURN(creation_->vm_spec.nomad_cluster, reads_.ClusterKeys(context));
    if (!IsSameCluster(creation_->vm_spec.nomad_cluster, *snapshot.look().nomad_cluster)) {
      return base::Unavailable(
          "another Nomad cluster answers than a moment ago; the next Scale "
          "looks again");
    }
  }
  creation_->halted = request_.old_goes_first;
  WarnOfCreations();
  memory_->current_template = {.hash = creation_->vm_spec.template_hash,
                               .parts = creation_->vm_spec.template_parts};
  return reads_.Admit(context, *creation_);
}

// Runs after all checks that Harvester may fail, because it makes a token that is valid for a
// second. Other tokens are only made during creation.
absl::Status ScaleCall::CheckTokens(const runtime::Context& context) {
  if (!creation_.has_value()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckIntroTokens(context, deps_, policy_, &*creation_));
  const bool without = policy_.intro_token != config::IntroToken::kOff && !creation_->intro_tokens;
  if (std::exchange(memory_->without_intro_tokens, without) != without && without) {
    deps_.logger.Warn(
        "Nomad has no introduction tokens (1.11 and newer have): {{nomad_intro_token}} is empty",
        {{"action_id", action_id_}});
  }
  return absl::OkStatus();
}

// Reduces the plan to as many VMs as fit; the action returns an error for the rest.
absl::Status ScaleCall::CheckQuotas(ScalePlan* plan) {
  if (request_.old_goes_first) return absl::OkStatus();  // the old VM leaves room for it
  const auto& quotas = reads_.quotas();
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
  if (absl::Status waits = CheckBackOff(&plan, snapshot.now()); !waits.ok()) {
    told_by_record_ = true;
    return waits;
  }
  // A removal needs to know where the autoscaler itself runs; growth goes on without (rule C7).
  if (plan.direction == Direction::kIn) NH_RETURN_IF_ERROR(snapshot.look().own_node_problem);
  NH_RETURN_IF_ERROR(CheckRights(context, plan));
  if (plan.direction == Direction::kIn && !request_.mass_loss_over) {
    const MassLoss loss = snapshot.mass_loss();
    if (loss.alarming) {
      return base::FailedPrecondition(std::to_string(loss.lost) + " of " + std::to_string(loss.of) +
                                      " running VMs have lost their Nomad node at once: nothing is "
                                      "removed; check Nomad first");
    }
  }
  if (plan.create.empty()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckCreations(context, snapshot));
  return CheckQuotas(&plan);
}

absl::Status ScaleCall::CheckPaused(base::WallTime now) const {
  const harvester::Hold paused = deps_.lease.record().paused;
  return paused.HoldsAt(now) ? base::FailedPrecondition(PausedText(deps_.key, paused))
                             : absl::OkStatus();
}

// Two policies that scale one pool keep changing its size in turns (rule L11). A policy's id may
// change when the agent restarts, so a new id alone is no evidence and nothing is refused.
void ScaleCall::RecordPolicy(base::WallTime now, PoolRecord* record) const {
  if (request_.policy_id.empty()) return;
  const std::optional<harvester::PolicyRecord>& last = record->policy;
  const bool changes = last.has_value() && last->id != request_.policy_id;
  if (changes && last->before == request_.policy_id && now - last->at < kTwoPolicies) {
    deps_.logger.Warn("Another policy has scaled this pool, too: give each pool one policy",
                      {{"other_policy_id", last->id},
                       {"scaled_at", base::FormatRfc3339(last->at)},
                       {"action_id", action_id_}});
  }
  harvester::PolicyRecord policy{.id = request_.policy_id, .at = now};
  if (last.has_value()) {
    policy.before = changes ? last->id : last->before;
    policy.unknown_members = last->unknown_members;
  }
  record->policy = std::move(policy);
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
  action.back.insert(plan->cancel_removals.begin(), plan->cancel_removals.end());
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
    action.unknown_members = record.action->unknown_members;
  }
  record.action = std::move(action);
  RecordPolicy(snapshot.now(), &record);
  // Stores the cluster with the nodes on which the plan was based.
  return deps_.lease.Store(context, record, snapshot.look().nomad_cluster.value_or(""));
}

absl::Status ScaleCall::Run(const runtime::Context& context) {
  absl::Status outcome = Act(context);
  // A cancelled call did not fail because of the pool. A pause or a back-off is on the Lease
  // anyway.
  const bool is_idle = outcome.ok() && !acted_ && !deps_.lease.record().last_error.has_value();
  const bool says_nothing = absl::IsCancelled(outcome) || is_idle || told_by_record_;
  // What did not fit is still refused once the rest of the action has ended.
  const bool is_deferred = !deferred_.ok() && outcome == deferred_;
  if (!says_nothing) reconciler_.RecordOutcome(is_deferred ? "" : action_id_, outcome);
  return outcome;
}

// A Scale takes precedence: pending replacements turn into counted VMs (rule R4). This is written
// once nothing refuses the Scale.
absl::StatusOr<ScaleCall::Planned> ScaleCall::PlanWithout(const runtime::Context& context,
                                                          const Reconciler::Settled& settled,
                                                          const std::set<std::string>& stuck) {
  std::vector<const VmView*> pending = ReplacementsToCount(settled.snapshot, request_.count);
  std::erase_if(pending, [&](const VmView* view) { return stuck.contains(view->vm->name); });
  Planned planned{.snapshot = WithoutReplacements(settled.snapshot, pending)};
  const PoolSnapshot& snapshot = planned.snapshot;
  for (const VmView* view : pending) planned.to_count.insert(view->vm->name);
  std::map<std::string, std::string> left_out = settled.left_out;
  for (const VmView* view : settled.snapshot.vms()) {
    // Without the old VM the new one would count in its place.
    if (!stuck.contains(view->vm->name) || !view->vm->replaces.has_value()) continue;
    left_out[view->vm->replaces->vm] =
        "VM " + view->vm->name + ", which is to take its place, cannot be written";
  }
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, std::move(left_out)));
  inputs_.newly_counted = CountOf(snapshot) - CountOf(settled.snapshot);
  NH_ASSIGN_OR_RETURN(planned.plan, Plan(snapshot));
  ScalePlan& plan = planned.plan;
  range_ = {.from = plan.from, .to = plan.to};
  deferred_ = absl::OkStatus();
  if (plan.direction != Direction::kNone) {
    NH_RETURN_IF_ERROR(EnforceConsent(&plan));
    NH_RETURN_IF_ERROR(CheckReadJob(context, plan));
    NH_RETURN_IF_ERROR(Preflight(context, &plan, snapshot));
    NH_RETURN_IF_ERROR(CheckTokens(context));
  }
  // Logged after the checks, because a refused plan would be logged at every tick.
  deps_.logger.Info("Planned", {{"action_id", action_id_},
                                {"reason", request_.reason},
                                {"from", plan.from},
                                {"to", plan.to},
                                {"capped", plan.capped},
                                {"plan", Describe(plan)}});
  return planned;
}

absl::Status ScaleCall::Act(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(Reconciler::Settled settled,
                      reconciler_.FinishRollBacks(context, reads_.TakeObserved()));
  reads_.ForgetIfLate();
  if (absl::Status paused = CheckPaused(settled.snapshot.now()); !paused.ok()) {
    told_by_record_ = true;
    return paused;
  }
  if (CountOf(settled.snapshot) != request_.count) {
    NH_RETURN_IF_ERROR(CheckSwap(settled.snapshot));
  }
  std::optional<Planned> planned;
  std::set<std::string> stuck;
  for (bool is_written = false; !is_written;) {
    NH_ASSIGN_OR_RETURN(planned, PlanWithout(context, settled, stuck));
    NH_ASSIGN_OR_RETURN(std::set<std::string> more,
                        EndReplacements(context, *planned, &settled.snapshot));
    is_written = more.empty();
    stuck.merge(more);
  }
  ScalePlan& plan = planned->plan;
  if (plan.direction == Direction::kNone) return absl::OkStatus();
  NH_RETURN_IF_ERROR(StoreAction(context, &plan, planned->snapshot));
  leaves_work_ = acted_ = true;
  Tracker tracker({.action_id = action_id_,
                   .until_accepted = plan.direction == Direction::kIn && !policy_.scale_in_wait,
                   .despite_mass_loss = request_.mass_loss_over,
                   .uncounted = planned->to_count,
                   .logger = deps_.logger},
                  plan);
  const absl::Status ended = reconciler_.RunScale(
      context, settled.snapshot,
      {.tracker = tracker, .creation = creation_.has_value() ? &*creation_ : nullptr});
  if (ended.ok()) reconciler_.CloseRecord(&tracker);
  reconciler_.LeaveToBackground(tracker);
  absl::Status final_status = tracker.FinalStatus(ended);
  leaves_work_ =
      reconciler_.has_unowned_secret() || !final_status.ok() || !deps_.backlog.leftovers.empty();
  if (final_status.ok()) final_status = deferred_;
  deps_.logger.Log(final_status.ok() ? log::Level::kInfo : log::Level::kWarn, "Scaled",
                   {{"action_id", action_id_},
                    {"reason", request_.reason},
                    {"from", plan.from},
                    {"to", plan.to},
                    {"outcome", final_status}});
  return final_status;
}

// The agent reads its metrics after the Status: a node that became ready in between counts twice
// there. The next evaluation finds the pool not ready (rule R3).
absl::Status ScaleCall::CheckSwap(const PoolSnapshot& snapshot) {
  const std::string swap = DescribeSwap(snapshot);
  if (swap.empty() || request_.count > CountOf(snapshot)) return absl::OkStatus();
  told_by_record_ = true;
  return base::MakeStatus(absl::StatusCode::kAborted,
                          swap + ": the metrics may count both; nothing is removed meanwhile");
}

absl::StatusOr<std::set<std::string>> ScaleCall::EndReplacements(const runtime::Context& context,
                                                                 const Planned& planned,
                                                                 PoolSnapshot* snapshot) {
  const auto is_removed = [&](const std::string& vm) {
    const std::vector<PlannedRemoval>& remove = planned.plan.remove;
    return std::any_of(remove.begin(), remove.end(),
                       [&](const PlannedRemoval& removal) { return removal.vm == vm; });
  };
  std::set<std::string> stuck;
  std::set<std::string> written;
  // KubeVirt and Harvester update a booting VM continuously, so conflicts are normal.
  for (int attempt = 1;; ++attempt) {
    std::vector<const VmView*> pending = PendingReplacements(*snapshot);
    std::erase_if(pending, [&](const VmView* view) {
      return !planned.to_count.contains(view->vm->name) || stuck.contains(view->vm->name);
    });
    if (pending.empty()) return stuck;
    for (const VmView* view : pending) {
      const harvester::VirtualMachine& vm = view->vm;
      const Effect counted = written.contains(vm.name)
                                 ? WithoutEffect()
                                 : EffectOf(EndReplacement(context, deps_, vm, is_removed(vm.name),
                                                           policy_.join_timeout, snapshot->now()));
      if (counted.verdict == Verdict::kDone) {
        written.insert(vm.name);
        deps_.logger.Info(
            "A Scale goes first: a VM that was to replace another one counts by itself",
            {{"vm", vm.name}, {"replaces", vm.replaces->vm}, {"action_id", action_id_}});
      } else if (counted.verdict != Verdict::kConflict || attempt == kMaxConflicts) {
        // An unanswered write may still take effect, so no other plan may depend on it.
        if (counted.verdict != Verdict::kRefused) return counted.status;
        stuck.insert(vm.name);
        deps_.logger.Warn(
            "A VM that is to replace another one cannot be written; the Scale goes on "
            "without it",
            {{"vm", vm.name}, {"error", counted.status}, {"action_id", action_id_}});
      }
    }
    NH_ASSIGN_OR_RETURN(*snapshot, ObserveWithNomad(context));
  }
}

absl::Status ScaleCall::CheckReplaced(const runtime::Context& context, const PoolSnapshot& snapshot,
                                      const Replaceable& old) const {
  const nomad::Node* listed = LinkedNode(*old.vm, snapshot);
  if (listed == nullptr) {
    return old.is_unhealthy() ? absl::OkStatus() : base::FailedPrecondition("it has no Nomad node");
  }
  NH_ASSIGN_OR_RETURN(const auto node, deps_.nodes.GetNode(context, deps_.nomad(), listed->id));
  if (old.is_unhealthy()) {
    Overlay seen(snapshot, *old.vm);
    seen.SetNode(listed->id, node.value);
    if (node.value.status == nomad::NodeStatus::kDisconnected &&
        seen.AllocationsOf(listed->id) == nullptr) {
      return base::FailedPrecondition("what may come back with its node has not been read");
    }
    const Step step = Decide(FactsOf(seen, nullptr));
    return step.row == Row::kUnmarkedUnhealthyWaits ? absl::OkStatus()
                                                    : base::FailedPrecondition(step.reason);
  }
  const std::string objection = ObjectionTo(*old.vm, &node.value, snapshot);
  return objection.empty() ? absl::OkStatus() : base::FailedPrecondition(objection);
}

absl::StatusOr<ScalePlan> ScaleCall::PlanReplacement(const runtime::Context& context,
                                                     const PoolSnapshot& snapshot,
                                                     const harvester::VirtualMachine& vm) {
  const std::int64_t count = CountOf(snapshot);
  ScalePlan plan{.direction = Direction::kOut, .from = count, .desired = count, .to = count};
  plan.create = PlanCreations(snapshot, 1);
  const std::vector<std::string>& zones = policy_.zones;
  if (std::find(zones.begin(), zones.end(), vm.zone) != zones.end()) {
    plan.create[0].zone = vm.zone;
  } else {
    AssignZones(snapshot, inputs_, &plan);
  }
  NH_RETURN_IF_ERROR(Preflight(context, &plan, snapshot));
  NH_RETURN_IF_ERROR(deferred_);
  plan.to = count;  // a quota may have reduced it
  return plan;
}

absl::Status ScaleCall::CheckReplacement(const runtime::Context& context,
                                         const PoolSnapshot& snapshot, const Replaceable& old) {
  NH_RETURN_IF_ERROR(CheckReplaced(context, snapshot, old));
  return PlanReplacement(context, snapshot, old.vm->vm).status();
}

absl::Status ScaleCall::Replace(const runtime::Context& context, const PoolSnapshot& snapshot,
                                const Replaceable& old) {
  const harvester::VirtualMachine& vm = old.vm->vm;
  NH_ASSIGN_OR_RETURN(ScalePlan plan, PlanReplacement(context, snapshot, vm));
  // The template was just read, and the old VM may already match it.
  const ReplacementQueue queue =
      QueueOfReplacements(snapshot, deps_.lease.record(), memory_->current_template);
  const bool is_wanted =
      queue.rests.empty() && std::any_of(queue.vms.begin(), queue.vms.end(),
                                         [&](const Replaceable& vm) { return vm.vm == old.vm; });
  if (!is_wanted) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckTokens(context));
  plan.create[0].replaces = ReplacesOf(old, memory_->current_template, snapshot.now());
  harvester::VmSpec& vm_spec = creation_->vm_spec;
  if (request_.old_goes_first) {
    plan.create[0].replaces->start = policy::NameOf(vm_spec.run_strategy);
    vm_spec.join_timeout = "none";  // until it is started
  } else {
    // Applies whatever wait_for says: without a deadline the old VM could wait for the new one
    // forever (rule R5).
    vm_spec.join_timeout = base::FormatGoDuration(policy_.join_timeout);
  }
  NH_RETURN_IF_ERROR(StoreAction(context, &plan, snapshot));
  leaves_work_ = acted_ = true;
  const PlannedCreation& creation = plan.create[0];
  deps_.logger.Info(
      "Replacing a VM",
      {{"vm", vm.name}, {"by", creation.name}, {"why", old.reason}, {"action_id", action_id_}});
  if (creation.action_id != action_id_) {
    NH_RETURN_IF_ERROR(ClearLeftoverSecret(context, deps_, creation.name));
  }
  // As in a Scale, until it is answered (rule C3): a VM whose creation arrives after its Secret was
  // removed as a leftover would never boot.
  const auto make = [&] {
    return MakeVm(context, deps_, *creation_, creation, action_id_, snapshot);
  };
  absl::StatusOr<CreatedVm> created = make();
  for (int i = 1; i < kMaxCreations && MayRepeatCreation(EffectOf(created.status())); ++i) {
    created = make();
  }
  NH_RETURN_IF_ERROR(created);
  return OwnSecret(context, deps_, *created);
}

absl::StatusOr<PoolSnapshot> ScaleCall::ObserveWithNomad(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, reconciler_.Observe(context));
  std::string problem = NomadProblem(snapshot);
  if (problem.empty()) return snapshot;
  return base::Unavailable(std::move(problem));
}

void ScaleCall::ProposeReplacements(const runtime::Context& context, const PoolSnapshot& snapshot,
                                    Proposal* proposal) {
  const PoolRecord record = deps_.lease.record();
  CurrentTemplate current;
  if (policy_.replace_drifted == config::ReplaceDrifted::kRolling ||
      record.replacement.has_value()) {
    auto read = ReadCurrentTemplate(context.WithTimeout(kTemplateLimit), deps_, policy_);
    if (read.ok()) {
      current = *std::move(read);
    } else {
      proposal->replacement_rests =
          "which VMs have drifted is not known: " + base::Message(read.status());
    }
  }
  const auto [vms, rests] = QueueOfReplacements(snapshot, record, current);
  if (vms.empty()) return;
  for (const Replaceable& each : vms) {
    proposal->to_replace.push_back({each.vm->vm->name, each.reason});
  }
  proposal->replacement_rests = rests;
  if (!rests.empty()) return;
  ScaleCall call(deps_, policy_, {.old_goes_first = OldGoesFirst(policy_)}, memory_);
  const absl::Status refused = call.CheckReplacement(context, snapshot, vms[0]);
  if (!refused.ok()) proposal->replacement_rests = base::Message(refused);
}

absl::StatusOr<Proposal> ScaleCall::Propose(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(const PoolSnapshot observed, ObserveWithNomad(context));
  PoolSnapshot snapshot = AfterRepairs(observed);
  const std::vector<const VmView*> pending = ReplacementsToCount(snapshot, request_.count);
  const std::int64_t counted = CountOf(snapshot);
  snapshot = WithoutReplacements(snapshot, pending);
  Proposal proposal{.snapshot = snapshot};
  const Decisions decisions(observed);
  for (const Decisions::Entry& entry : decisions.all()) {
    if (!IsRepair(entry.step.kind)) continue;
    proposal.roll_backs.push_back({entry.view->vm->name, entry.step.reason});
  }
  ProposeReplacements(context, observed, &proposal);
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, {}));
  inputs_.newly_counted = CountOf(snapshot) - counted;
  proposal.refusal = CheckPaused(snapshot.now());
  absl::StatusOr<ScalePlan> plan = Plan(snapshot);
  if (!plan.ok()) {
    proposal.plan = {.direction = request_.count > range_->from ? Direction::kOut : Direction::kIn,
                     .from = range_->from,
                     .desired = request_.count,
                     .to = request_.count};
    proposal.refusal.Update(plan.status());
    return proposal;
  }
  if (plan->direction != Direction::kNone) {
    proposal.replaced = ReplacedVms(snapshot);
    proposal.refusal.Update(CheckReadJob(context, *plan));
    proposal.refusal.Update(Preflight(context, &*plan, snapshot));
    if (context.Done()) return proposal.refusal.ok() ? context.Check() : proposal.refusal;
  }
  proposal.plan = *std::move(plan);
  proposal.left_out = deferred_;
  if (creation_.has_value()) {
    proposal.notes = creation_->template_notes;
    if (policy_.intro_token == config::IntroToken::kRequired) {
      proposal.notes.emplace_back(
          "nomad_intro_token is required, and a plan makes no token: nomad-harvester check tells "
          "whether Nomad has them");
    }
    for (const std::string& name : creation_->unread_classes) {
      proposal.notes.push_back(name + " is not checked: the token may not read it");
    }
  }
  return proposal;
}

absl::Status ScaleCall::DryRun(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(const PoolSnapshot snapshot, ObserveWithNomad(context));
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, {}));
  NH_ASSIGN_OR_RETURN(const ScalePlan plan, Plan(snapshot));
  deps_.logger.Info("Dry run: nothing is changed", {{"reason", request_.reason},
                                                    {"from", plan.from},
                                                    {"to", plan.to},
                                                    {"plan", Describe(plan)}});
  return absl::OkStatus();
}

}  // namespace nomad_harvester::scaling
