// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_call.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/selector.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "drivers/acceptance.h"
#include "drivers/drain_fit.h"
#include "drivers/intent.h"
#include "drivers/preflight.h"
#include "drivers/replace_call.h"
#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

// How long to wait for the template that tells which VMs have drifted.
constexpr base::Duration kTemplateLimit = std::chrono::seconds(3);

// How often a write is attempted on a VM that has changed since it was read.
constexpr int kMaxConflicts = 4;

// Returns the region's allocations or, if that list fails because it is too large, those of the
// pool's nodes.
absl::StatusOr<AllocationList> ReadAllocations(const runtime::Context& context,
                                               const PoolDependencies& deps,
                                               const PoolSnapshot& snapshot) {
  auto all = deps.observer().ReadAllocations(context);
  if (all.ok() || IsRetryable(all.status())) return all;
  deps.logger.Warn("Could not list all allocations; asking for those of each node of the pool",
                   {{"action_id", deps.call}, {"error", all.status()}});
  std::vector<std::string> nodes;
  for (const VmView* view : snapshot.vms()) {
    const nomad::Node* node = LinkedNode(*view, snapshot);
    if (view->member && node != nullptr) nodes.push_back(node->id);
  }
  auto read = ReadAllocationsOf(context, deps.executor, deps.nomad(), nodes, deps.parallelism());
  AllocationList list;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NH_ASSIGN_OR_RETURN(list.by_node[nodes[i]], std::move(read[i]));
  }
  return list;
}

// VMs that the reconciler would mark at any time.
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

ScaleCall::ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request)
    : deps_(ForAction(std::move(deps), request.reason, request.terms.policy_id)),
      policy_(std::move(policy)),
      request_(std::move(request)),
      result_{.action_id = deps_.call},
      reconciler_(deps_, policy_),
      read_job_(base::Unavailable("not read")) {
  BeginPreflight();
}

void ScaleCall::BeginPreflight() {
  preflight_.emplace(deps_, policy_, reconciler_, request_.terms);
}

absl::Status ScaleCall::ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                                   std::map<std::string, std::string> left_out) {
  inputs_ = {.left_out = std::move(left_out)};
  for (const auto& [vm, refused] : deps_.backlog.removal_refusals) {
    if (deps_.clock.Now() - refused.last < kVictimCooldown) inputs_.refusals[vm] = refused.count;
  }
  inputs_.failing_zones = deps_.backlog.FailingZones(deps_.clock.Now());
  inputs_.one_removal = RemovalsWereRefused(deps_.lease.record().back_off);
  result_.plan = {.from = CountToPlanFrom(snapshot, inputs_.left_out),
                  .desired = request_.count,
                  .to = request_.count};
  if (request_.count >= result_.plan->from) return absl::OkStatus();
  // What the policy's strategy needs, and what can refuse the removal, all at once.
  absl::StatusOr<AllocationList> allocations = AllocationList{};
  std::vector<std::function<void()>> reads = {
      [&] { preflight_->ReadRules(context); },
      [&] {
        inputs_.cordoned_hosts =
            deps_.hosts.ListCordoned(context.WithTimeout(kHostsLimit), EvacuatesHosts(policy_));
      }};
  if (nodepool::NeedsAllocations(policy_.selector)) {
    reads.emplace_back([&] { allocations = ReadAllocations(context, deps_, snapshot); });
    reads.emplace_back([&] { read_job_ = deps_.nomad().VerifyReadJob(context); });
  }
  runtime::CallAtOnce(context, deps_.executor, reads);
  NH_RETURN_IF_ERROR(context.Check());
  NH_RETURN_IF_ERROR(allocations);
  allocations_incomplete_ = allocations->incomplete;
  inputs_.allocations = std::move(allocations->by_node);
  // What the last growth was made of may be old: the policy can have changed since.
  if (policy_.replace_drifted != config::ReplaceDrifted::kOff && IsMixed(snapshot)) {
    UpdateCurrentTemplate(context.WithTimeout(kTemplateLimit), deps_, policy_);
    inputs_.current_template = deps_.backlog.new_vms.current;
  }
  return absl::OkStatus();
}

absl::StatusOr<ScalePlan> ScaleCall::Plan(const runtime::Context& context,
                                          const PoolSnapshot& snapshot) {
  auto plan = PlanScale(snapshot, request_.count, inputs_);
  const bool knows_work = nodepool::NeedsAllocations(policy_.selector) && !allocations_incomplete_;
  if (plan.ok() && plan->direction == Direction::kIn &&
      policy_.scale_in_fit == config::ScaleInFit::kRequire) {
    const absl::Status fits = KeepWhatFits(context, deps_, snapshot, inputs_, knows_work, &*plan);
    if (!fits.ok()) plan = fits;
  }
  moves_work_ = policy_.scale_in_fit == config::ScaleInFit::kReport && plan.ok() &&
                MovesWork(*plan, inputs_, knows_work);
  inputs_.allocations.clear();  // covers the whole region; only the plan needs it
  return plan;
}

std::vector<SkippedVm> ScaleCall::WhatMayWait(const runtime::Context& context,
                                              const PoolSnapshot& snapshot,
                                              const ScalePlan& plan) const {
  if (!moves_work_) return {};
  return FindWhatMayWait(context, deps_, snapshot, plan.remove);
}

// The pool may have changed since somebody agreed to a plan.
absl::Status ScaleCall::EnforceConsent(const PoolSnapshot& snapshot, ScalePlan* plan) const {
  if (!request_.consent.has_value()) return absl::OkStatus();
  const RemovalConsent& consent = *request_.consent;
  for (const PlannedRemoval& removal : plan->remove) {
    // What has a mark was agreed to when it was marked: its removal goes on (rule C14).
    const VmView* view = snapshot.seen->FindVm(removal.vm);
    if (consent.vms.contains(removal.vm) || (view != nullptr && view->vm->has_mark)) continue;
    return base::FailedPrecondition("the pool has changed since its plan was agreed to: VM " +
                                    removal.vm + " would be removed now (" + removal.reason +
                                    "); nothing was done: repeat it and look at the new plan");
  }
  std::erase_if(plan->reserve, [&](const PlannedRemoval& removal) {
    return !consent.vms.contains(removal.vm) && !consent.reserve.contains(removal.vm);
  });
  return absl::OkStatus();
}

absl::Status ScaleCall::CheckReadJob(const ScalePlan& plan) const {
  if (plan.direction != Direction::kIn || !nodepool::NeedsAllocations(policy_.selector)) {
    return absl::OkStatus();
  }
  nomad::ReadJob read_job = nomad::ReadJob::kDenied;
  if (!allocations_incomplete_) {
    NH_ASSIGN_OR_RETURN(read_job, read_job_);
  }
  if (read_job == nomad::ReadJob::kEverywhere) return absl::OkStatus();
  return base::FailedPrecondition(
      std::string("node_selector_strategy: ") + std::string(policy::NameOf(policy_.selector)) +
      " needs to see the allocations of every namespace, but the Nomad token " +
      (read_job == nomad::ReadJob::kDenied ? "lacks the capability read-job"
                                           : "does not let its capability read-job be verified") +
      "; grant namespace \"*\" { capabilities = [\"read-job\"] }");
}

absl::Status ScaleCall::CheckPaused(base::WallTime now) const {
  const base::Hold paused = deps_.lease.record().paused;
  return paused.HoldsAt(now) ? base::FailedPrecondition(PausedText(deps_.key, paused))
                             : absl::OkStatus();
}

absl::Status ScaleCall::Run(const runtime::Context& context) {
  absl::Status outcome = Act(context);
  // A cancelled call did not fail because of the pool. A pause or a back-off is on the Lease
  // anyway.
  if (absl::IsCancelled(outcome) || told_by_record_) return outcome;
  const absl::Status& lacks_room = preflight_->lacks_room();
  if (!lacks_room.ok()) deps_.backlog.unrecorded.no_room.emplace();
  // Room still lacks once the rest of the action has ended.
  const bool is_of_room = !outcome.ok() && outcome == lacks_room;
  deps_.backlog.unrecorded.AddOutcome(is_of_room ? "" : deps_.call, outcome);
  return outcome;
}

// A Scale takes precedence: pending replacements turn into counted VMs (rule R4). This is written
// once nothing refuses the Scale.
absl::StatusOr<ScalePlan> ScaleCall::PlanWithout(const runtime::Context& context,
                                                 const Reconciler::Settled& settled,
                                                 const std::set<std::string>& stuck) {
  BeginPreflight();
  std::vector<const VmView*> pending = ReplacementsToCount(settled.snapshot, request_.count);
  std::erase_if(pending, [&](const VmView* view) { return stuck.contains(view->vm->name); });
  const PoolSnapshot snapshot = WithoutReplacements(settled.snapshot, pending);
  std::map<std::string, std::string> left_out = settled.left_out;
  for (const VmView* view : settled.snapshot.vms()) {
    // Without the old VM the new one would count in its place.
    if (!stuck.contains(view->vm->name) || !view->vm->replaces.has_value()) continue;
    left_out[view->vm->replaces->vm] =
        "VM " + view->vm->name + ", which is to take its place, cannot be written";
  }
  if (request_.count < CountToPlanFrom(snapshot, left_out)) {
    // A removal that must wait reads nothing more at each tick.
    const absl::Status waits = CheckRemoval(KnownBackOff(deps_, snapshot.now()), snapshot.now());
    told_by_record_ = !waits.ok();
    NH_RETURN_IF_ERROR(waits);
  }
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, std::move(left_out)));
  inputs_.newly_counted = CountOf(snapshot) - CountOf(settled.snapshot);
  NH_ASSIGN_OR_RETURN(ScalePlan plan, Plan(context, snapshot));
  for (const VmView* view : pending) plan.newly_counted.insert(view->vm->name);
  result_.plan = plan;
  if (plan.direction != Direction::kNone) {
    NH_RETURN_IF_ERROR(EnforceConsent(snapshot, &plan));
    NH_RETURN_IF_ERROR(CheckReadJob(plan));
    const absl::Status refused = preflight_->Run(context, snapshot, inputs_, &plan);
    result_.backs_off = preflight_->backs_off();
    result_.unrecorded = preflight_->unrecorded();
    told_by_record_ |= result_.backs_off;
    NH_RETURN_IF_ERROR(refused);
    NH_RETURN_IF_ERROR(preflight_->CheckTokens(context));
  }
  return plan;
}

// After the checks, because a refused plan would be logged at every tick.
void ScaleCall::LogPlan(const ScalePlan& plan) const {
  deps_.logger.Info("Planned", {{"action_id", deps_.call},
                                {"reason", request_.reason},
                                {"from", plan.from},
                                {"to", plan.to},
                                {"capped", plan.capped},
                                {"plan", Describe(plan)}});
}

absl::Status ScaleCall::Act(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(Reconciler::Settled settled, reconciler_.FinishRollBacks(context));
  if (absl::Status paused = CheckPaused(settled.snapshot.now()); !paused.ok()) {
    told_by_record_ = true;
    return paused;
  }
  if (CountOf(settled.snapshot) != request_.count) {
    NH_RETURN_IF_ERROR(CheckSwap(settled.snapshot));
  }
  ScalePlan plan;
  std::set<std::string> stuck;
  for (bool is_written = false; !is_written;) {
    NH_ASSIGN_OR_RETURN(plan, PlanWithout(context, settled, stuck));
    NH_ASSIGN_OR_RETURN(std::set<std::string> more,
                        EndReplacements(context, plan, &settled.snapshot));
    is_written = more.empty();
    stuck.merge(more);
  }
  if (plan.direction == Direction::kNone) {
    LogPlan(plan);
    return CheckLeftOut(settled);
  }
  // What may wait refuses nothing: the intent is written beside its reading.
  NH_RETURN_IF_ERROR(context.Check());
  absl::Status stored = base::Unavailable("not written");
  runtime::CallAtOnce(
      context, deps_.executor,
      {[&] {
         stored = StoreIntent(context, deps_, policy_, settled.snapshot, request_.terms, &plan);
         result_.acted = stored.ok();
       },
       [&] { result_.plan->would_wait = WhatMayWait(context, settled.snapshot, plan); }});
  LogPlan(*result_.plan);  // without the names that the intent gives to new VMs
  NH_RETURN_IF_ERROR(stored);
  Acceptance acceptance(deps_, reconciler_, plan, preflight_->creation());
  absl::Status outcome = acceptance.Run(context, settled.snapshot);
  if (outcome.ok()) outcome = preflight_->deferred();
  deps_.logger.Log(outcome.ok() ? log::Level::kInfo : log::Level::kWarn,
                   outcome.ok() ? "Scale accepted" : "Scale failed",
                   {{"action_id", deps_.call},
                    {"reason", request_.reason},
                    {"from", plan.from},
                    {"to", plan.to},
                    {"outcome", outcome}});
  return outcome;
}

// The agent counts without the VMs that are left out, and would take an OK for success.
absl::Status ScaleCall::CheckLeftOut(const Reconciler::Settled& settled) {
  for (const VmView* view : settled.snapshot.vms()) {
    if (!IsLeftOut(*view, settled.snapshot, settled.left_out)) continue;
    const std::string& vm = view->vm->name;
    return base::FailedPrecondition(
        "nothing is made in the place of VM " + vm +
        ", which counts although it is marked for removal: " + settled.left_out.at(vm) +
        "; end what refuses its write, or delete the VM");
  }
  return absl::OkStatus();
}

// The agent reads its metrics after the Status: a node that became ready in between counts twice
// there. The next evaluation finds the pool not ready (rule R3).
absl::Status ScaleCall::CheckSwap(const PoolSnapshot& snapshot) {
  const auto swap = DescribeSwap(snapshot);
  if (!swap.has_value() || request_.count > CountOf(snapshot)) return absl::OkStatus();
  told_by_record_ = true;
  return base::MakeStatus(absl::StatusCode::kAborted,
                          *swap + ": the metrics may count both; nothing is removed meanwhile");
}

absl::StatusOr<std::set<std::string>> ScaleCall::EndReplacements(const runtime::Context& context,
                                                                 const ScalePlan& plan,
                                                                 PoolSnapshot* snapshot) {
  std::set<std::string> stuck;
  std::set<std::string> written;
  // KubeVirt and Harvester update a booting VM continuously, so conflicts are normal.
  for (int attempt = 1;; ++attempt) {
    std::vector<const VmView*> pending = PendingReplacements(*snapshot);
    std::erase_if(pending, [&](const VmView* view) {
      return !plan.newly_counted.contains(view->vm->name) || stuck.contains(view->vm->name);
    });
    if (pending.empty()) return stuck;
    for (const VmView* view : pending) {
      const harvester::VirtualMachine& vm = view->vm;
      const Effect counted =
          written.contains(vm.name)
              ? WithoutEffect()
              : EffectOf(EndReplacement(context, deps_, vm, IsRemoved(plan, vm.name),
                                        policy_.join_timeout, snapshot->now()));
      if (counted.verdict == Verdict::kDone) {
        written.insert(vm.name);
        deps_.logger.Info(
            "A Scale goes first: a VM that was to replace another one counts by itself",
            {{"vm", vm.name}, {"replaces", vm.replaces->vm}, {"action_id", deps_.call}});
      } else if (counted.verdict != Verdict::kConflict || attempt == kMaxConflicts) {
        // An unanswered write may still take effect, so no other plan may depend on it.
        if (counted.verdict != Verdict::kRefused) return counted.status;
        stuck.insert(vm.name);
        deps_.logger.Warn(
            "A VM that is to replace another one cannot be written; the Scale goes on "
            "without it",
            {{"vm", vm.name}, {"error", counted.status}, {"action_id", deps_.call}});
      }
    }
    NH_ASSIGN_OR_RETURN(*snapshot, ObserveWithNomad(context));
  }
}

absl::StatusOr<PoolSnapshot> ScaleCall::ObserveWithNomad(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(PoolSnapshot snapshot, reconciler_.Observe(context));
  NH_RETURN_IF_ERROR(CheckNomad(snapshot));
  return snapshot;
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
      proposal->replacement_blocked_reason =
          "which VMs have drifted is not known: " + base::Message(read.status());
    }
  }
  const auto [vms, blocked_reason] = QueueOfReplacements(snapshot, record, current);
  if (vms.empty()) return;
  for (const Replaceable& each : vms) {
    proposal->to_replace.push_back({each.vm->vm->name, Describe(each.reason)});
  }
  proposal->replacement_blocked_reason = blocked_reason.value_or("");
  if (blocked_reason.has_value()) return;
  ReplaceCall call(deps_, policy_, snapshot, vms[0]);
  absl::Status refused = call.CheckOld(context);
  if (refused.ok()) refused = call.Plan(context).status();
  if (!refused.ok()) proposal->replacement_blocked_reason = base::Message(refused);
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
  absl::StatusOr<ScalePlan> plan = Plan(context, snapshot);
  if (!plan.ok()) {
    proposal.plan = *result_.plan;
    proposal.plan.direction =
        request_.count > proposal.plan.from ? Direction::kOut : Direction::kIn;
    proposal.refusal.Update(plan.status());
    return proposal;
  }
  plan->would_wait = WhatMayWait(context, snapshot, *plan);
  proposal.replaced = ReplacedVms(snapshot);
  if (plan->direction != Direction::kNone) {
    proposal.refusal.Update(CheckReadJob(*plan));
    proposal.refusal.Update(preflight_->Run(context, snapshot, inputs_, &*plan));
    if (context.Done()) return proposal.refusal.ok() ? context.Check() : proposal.refusal;
  }
  proposal.plan = *std::move(plan);
  proposal.left_out = preflight_->deferred();
  if (const CreationPlan* creation = preflight_->creation(); creation != nullptr) {
    proposal.notes = creation->template_notes;
    if (policy_.intro_token == config::IntroToken::kRequired) {
      proposal.notes.emplace_back(
          "nomad_intro_token is required, and a plan makes no token: nomad-harvester check tells "
          "whether Nomad has them");
    }
    for (const std::string& name : creation->unread_classes) {
      proposal.notes.push_back(name + " is not checked: the token may not read it");
    }
  }
  return proposal;
}

absl::Status ScaleCall::DryRun(const runtime::Context& context) {
  NH_ASSIGN_OR_RETURN(const PoolSnapshot snapshot, ObserveWithNomad(context));
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, {}));
  NH_ASSIGN_OR_RETURN(ScalePlan plan, Plan(context, snapshot));
  plan.would_wait = WhatMayWait(context, snapshot, plan);
  deps_.logger.Info("Dry run: nothing is changed", {{"reason", request_.reason},
                                                    {"from", plan.from},
                                                    {"to", plan.to},
                                                    {"plan", Describe(plan)}});
  return absl::OkStatus();
}

}  // namespace nomad_harvester::scaling
