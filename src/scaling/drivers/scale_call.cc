// SPDX-License-Identifier: Apache-2.0
#include "drivers/scale_call.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nodepool/selector.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"
#include "drivers/acceptance.h"
#include "drivers/drain_fit.h"
#include "execution/pass_task.h"
#include "execution/rights.h"
#include "rules/back_off.h"
#include "rules/room.h"
#include "rules/zones.h"

namespace nomad_harvester::scaling {
namespace {

// A Scale by another policy within this time is reported.
constexpr base::Duration kTwoPolicies = std::chrono::minutes(10);

// How long to wait for the template that tells which VMs have drifted.
constexpr base::Duration kTemplateLimit = std::chrono::seconds(3);

// How long the background waits for the creation of a replacement: drains and roll-backs wait
// meanwhile (rule L1). A VM that appears later takes its place all the same.
constexpr base::Duration kReplacementLimit = std::chrono::seconds(10);

// How often a write is attempted on a VM that has changed since it was read.
constexpr int kMaxConflicts = 4;

// For how long the forecast alone may refuse new VMs.
constexpr base::Duration kForecastAloneFor = std::chrono::minutes(10);

// Keeps the first `count` creations. Names left over by an earlier action come first in the list.
void KeepCreations(ScalePlan* plan, std::size_t count) {
  plan->to -= static_cast<std::int64_t>(plan->create.size() - count);
  plan->create.resize(count);
  plan->capped = true;
}

// Keeps the creations that fit, in their order.
void KeepCreations(ScalePlan* plan, const std::vector<bool>& fits) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < plan->create.size(); ++i) {
    if (fits[i]) std::swap(plan->create[kept++], plan->create[i]);
  }
  KeepCreations(plan, kept);
}

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

// The back-off does not know yet of a VM that has failed and is about to be marked (rule C12).
absl::Status CheckFailuresAreCounted(const PoolSnapshot& snapshot, const PoolBacklog& backlog) {
  const Decisions decisions(snapshot);
  for (const Decisions::Entry& entry : decisions.all()) {
    const harvester::VirtualMachine& vm = entry.view->vm;
    if (entry.step.kind != StepKind::kMarkBroken || vm.removal_undone.has_value() ||
        backlog.counted.contains(vm.name) || !backlog.retries.LastOf(KeyOfStep(entry)).ok()) {
      continue;
    }
    return base::Unavailable("the creation of VM " + vm.name + " has just failed (" +
                             entry.step.reason + "); the next Scale knows for how long to wait");
  }
  return absl::OkStatus();
}

}  // namespace

ScaleCall::ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request)
    : deps_([&] {
        deps.logger = deps.logger.With({{"policy_id", request.policy_id}});
        deps.agents_reason = request.reason;
        deps.call = NewActionId(deps.random);
        return deps;
      }()),
      policy_(std::move(policy)),
      request_(std::move(request)),
      action_id_(deps_.call),
      result_{.action_id = action_id_},
      reconciler_(deps_, policy_),
      read_job_(base::Unavailable("not read")),
      quotas_(base::Unavailable("not read")),
      rooms_(base::Unavailable("not read")) {}

absl::Status ScaleCall::ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                                   std::map<std::string, std::string> left_out) {
  inputs_ = {.left_out = std::move(left_out)};
  for (const auto& [vm, refused] : deps_.backlog.removal_refusals) {
    if (deps_.clock.Now() - refused.last < kVictimCooldown) inputs_.refusals[vm] = refused.count;
  }
  inputs_.failing_zones = FailingZones();
  inputs_.one_removal = RemovalsWereRefused(deps_.lease.record().back_off);
  result_.plan = {.from = CountToPlanFrom(snapshot, inputs_.left_out),
                  .desired = request_.count,
                  .to = request_.count};
  if (request_.count >= result_.plan->from) return absl::OkStatus();
  // What the policy's strategy needs, and what can refuse the removal, all at once.
  absl::StatusOr<AllocationList> allocations = AllocationList{};
  std::vector<std::function<void()>> reads = {
      [&] { rules_ = kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns); },
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

std::set<std::string> ScaleCall::FailingZones() const {
  std::set<std::string> failing;
  for (const auto& [zone, at] : deps_.backlog.zone_failures) {
    if (deps_.clock.Now() - at < kZoneAvoidedFor) failing.insert(zone);
  }
  return failing;
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

absl::Status ScaleCall::CheckRights(const runtime::Context& context, const ScalePlan& plan) {
  if (!rules_.has_value()) {
    rules_ = kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns);
  }
  NH_ASSIGN_OR_RETURN(const kube::AccessRules rules, *rules_);
  deps_.backlog.history.SetRights(rules);
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

harvester::BackOff ScaleCall::KnownBackOff(base::WallTime now) const {
  harvester::BackOff back_off = deps_.lease.record().back_off;
  for (const auto& [cause, action] : deps_.backlog.unrecorded.failures) {
    RecordFailure(&back_off, cause, now, action);
  }
  if (deps_.backlog.unrecorded.no_room.has_value()) RecordNoRoom(&back_off, now);
  return back_off;
}

// If creation must wait, removes the creations from the plan; only cancellations of removals may
// remain.
absl::Status ScaleCall::CheckBackOff(ScalePlan* plan, base::WallTime now) {
  const harvester::BackOff back_off = KnownBackOff(now);
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
  if (unread == deps_.backlog.unread_classes) return;
  if (!unread.empty()) {
    deps_.logger.Warn(
        "The token may not read what the policy names, so it is not checked; if it is missing, VMs "
        "do not start. Grant get on storageclasses.storage.k8s.io and "
        "priorityclasses.scheduling.k8s.io, as the optional ClusterRole of examples/rbac.yaml does",
        {{"action_id", action_id_}, {"not_checked", unread}});
  }
  deps_.backlog.unread_classes = std::move(unread);
}

// Runs all of Harvester's checks that can refuse a VM.
absl::Status ScaleCall::CheckCreations(const runtime::Context& context,
                                       const PoolSnapshot& snapshot, CreationSources sources,
                                       absl::StatusOr<std::string> keys) {
  NH_ASSIGN_OR_RETURN(creation_,
                      PlanCreation(deps_, policy_, sources, snapshot.observation().nomad_index,
                                   request_.policy_id));
  quotas_ = std::move(sources.quotas);
  if (snapshot.observation().nomad_cluster.ok()) {
    // The keys in the Observation may be outdated if Nomad was rebuilt.
    NH_ASSIGN_OR_RETURN(creation_->vm_spec.nomad_cluster, std::move(keys));
    if (!IsSameCluster(creation_->vm_spec.nomad_cluster, *snapshot.observation().nomad_cluster)) {
      return base::Unavailable(
          "another Nomad cluster answers than a moment ago; the next Scale "
          "looks again");
    }
  }
  creation_->halted = old_goes_first_;
  WarnOfCreations();
  deps_.backlog.new_vms.current = {.hash = creation_->vm_spec.template_hash,
                                   .parts = creation_->vm_spec.template_parts};
  absl::StatusOr<std::optional<harvester::VmNeed>> need = base::Unavailable("not read");
  std::vector<std::function<void()>> reads = {
      [&] { need = DryRunCreation(context, deps_, policy_, *creation_); }};
  if (!old_goes_first_) {
    reads.emplace_back([&] { rooms_ = deps_.hosts.ListRooms(context.WithTimeout(kHostsLimit)); });
  }
  runtime::CallAtOnce(context, deps_.executor, reads);
  NH_RETURN_IF_ERROR(context.Check());
  NH_ASSIGN_OR_RETURN(deps_.backlog.need, std::move(need));
  return absl::OkStatus();
}

// Runs after all checks that Harvester may fail, because it makes a token that is valid for a
// second. Other tokens are only made during creation.
absl::Status ScaleCall::CheckTokens(const runtime::Context& context) {
  if (!creation_.has_value()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckIntroTokens(context, deps_, policy_, &*creation_));
  const bool without = policy_.intro_token != config::IntroToken::kOff && !creation_->intro_tokens;
  if (std::exchange(deps_.backlog.without_intro_tokens, without) != without && without) {
    deps_.logger.Warn(
        "Nomad has no introduction tokens (1.11 and newer have): {{nomad_intro_token}} is empty",
        {{"action_id", action_id_}});
  }
  return absl::OkStatus();
}

// The scheduler may have room where the forecast has none: something is counted that does not count
// there.
bool ScaleCall::DoubtsForecast() {
  const base::MonoTime now = deps_.clock.Now();
  auto& refused = deps_.backlog.refused_by_forecast;
  // Growth that was not wanted for so long begins anew.
  if (!refused.has_value() || now - refused->last >= kForecastAloneFor) refused = {now, now};
  refused->last = now;
  return now - refused->first >= kForecastAloneFor;
}

// The right to read the hosts is optional, and the scheduler decides in any case.
absl::StatusOr<std::string> ScaleCall::FitHosts(const PoolSnapshot& snapshot, std::size_t wanted,
                                                ScalePlan* plan) {
  const std::optional<harvester::VmNeed>& need = deps_.backlog.need;
  if (!rooms_.ok() || !need.has_value()) {
    deps_.logger.Debug("The room on the hosts is not known",
                       {{"action_id", action_id_}, {"error", rooms_.status()}});
    return std::string();
  }
  harvester::RoomForecast forecast = ForecastPlan(*rooms_, *need, snapshot, inputs_, plan);
  if (forecast.never) {
    std::string why = NeverText(forecast) + "; " + kCureOfNever;
    lacks_room_ = base::FailedPrecondition(why);
    if (plan->cancel_removals.empty()) return lacks_room_;
    KeepCreations(plan, 0);
    return why;
  }
  const std::size_t fits = FitsIn(forecast);
  if (fits > 0) deps_.backlog.refused_by_forecast.reset();
  if (fits == plan->create.size()) return std::string();
  std::string why = std::to_string(fits) + " of " + std::to_string(wanted) +
                    " VMs fit now: " + forecast.why + "; " + kCureOfNoRoom;
  if (fits == 0 && DoubtsForecast()) {
    forecast.fits[0] = true;
    deps_.logger.Warn(
        "Nothing but the forecast has refused new VMs for ten minutes; one is made all the same",
        {{"action_id", action_id_}, {"forecast", why}});
  }
  KeepCreations(plan, forecast.fits);
  return why;
}

// The right to read quotas is optional, and Harvester enforces them in any case (rule C3).
std::string ScaleCall::FitQuotas(std::size_t wanted, ScalePlan* plan) const {
  if (!quotas_.ok()) {
    deps_.logger.Debug("Could not read the namespace's quotas", {{"error", quotas_.status()}});
    return "";
  }
  const auto room = harvester::FindQuotaRoom(*quotas_, creation_->vm_spec);
  if (!room.has_value() || std::cmp_greater_equal(room->vms, plan->create.size())) return "";
  KeepCreations(plan, static_cast<std::size_t>(room->vms));
  return std::to_string(room->vms) + " of " + std::to_string(wanted) +
         " VMs fit the quota of namespace " + deps_.key.ns + ": " + room->limit + "; " +
         kCureOfNoQuota;
}

// Reduces the plan to as many VMs as fit; the action returns an error for the rest.
absl::Status ScaleCall::CheckRoom(const PoolSnapshot& snapshot, ScalePlan* plan) {
  if (old_goes_first_) return absl::OkStatus();  // the old VM leaves room for it
  const std::size_t wanted = plan->create.size();
  std::string why = FitQuotas(wanted, plan);
  if (plan->create.empty()) {
    deps_.backlog.refused_by_forecast.reset();  // the forecast is not alone
  } else {
    NH_ASSIGN_OR_RETURN(std::string of_hosts, FitHosts(snapshot, wanted, plan));
    if (!of_hosts.empty()) why = std::move(of_hosts);
  }
  const std::size_t made = plan->create.size();
  if (made == wanted) return absl::OkStatus();
  lacks_room_ = absl::Status(absl::StatusCode::kResourceExhausted, why);
  if (made == 0 && plan->cancel_removals.empty()) return lacks_room_;
  deps_.logger.Warn("There is no room for all new VMs",
                    {{"action_id", action_id_}, {"wanted", wanted}, {"made", made}, {"why", why}});
  deferred_ = lacks_room_;
  return absl::OkStatus();
}

absl::Status ScaleCall::Preflight(const runtime::Context& context, ScalePlan* wanted,
                                  const PoolSnapshot& snapshot) {
  ScalePlan& plan = *wanted;
  if (absl::Status waits = CheckBackOff(&plan, snapshot.now()); !waits.ok()) {
    told_by_record_ = true;
    result_.backs_off = true;
    return waits;
  }
  // While a broken VM must not be marked, nothing is counted.
  if (!plan.create.empty() &&
      reconciler_.ReasonToWait(snapshot, StepKind::kMarkBroken) == nullptr) {
    const absl::Status counted = CheckFailuresAreCounted(snapshot, deps_.backlog);
    result_.unrecorded = !counted.ok();
    NH_RETURN_IF_ERROR(counted);
  }
  // A removal needs to know where the autoscaler itself runs; growth goes on without (rule C7).
  if (plan.direction == Direction::kIn) NH_RETURN_IF_ERROR(snapshot.observation().own_node_problem);
  CreationSources sources;
  absl::StatusOr<std::string> keys = base::Unavailable("not read");
  if (!plan.create.empty()) {
    runtime::CallAtOnce(
        context, deps_.executor,
        {[&] { rules_ = kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns); },
         [&] { sources = ReadSources(context, deps_, policy_); },
         [&] { keys = deps_.nodes.ReadCluster(context); }});
    NH_RETURN_IF_ERROR(context.Check());
  }
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
  NH_RETURN_IF_ERROR(CheckCreations(context, snapshot, std::move(sources), std::move(keys)));
  return CheckRoom(snapshot, &plan);
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
  action.despite_mass_loss =
      request_.mass_loss_over && plan->direction == Direction::kIn && snapshot.mass_loss().alarming;
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
  RecordPolicy(snapshot.now(), &record);
  // Stores the cluster with the nodes on which the plan was based.
  NH_RETURN_IF_ERROR(
      deps_.lease.Store(context, record, snapshot.observation().nomad_cluster.value_or("")));
  result_.acted = true;
  return absl::OkStatus();
}

absl::Status ScaleCall::Run(const runtime::Context& context) {
  absl::Status outcome = Act(context);
  // A cancelled call did not fail because of the pool. A pause or a back-off is on the Lease
  // anyway.
  if (absl::IsCancelled(outcome) || told_by_record_) return outcome;
  if (!lacks_room_.ok()) deps_.backlog.unrecorded.no_room.emplace();
  // Room still lacks once the rest of the action has ended.
  const bool is_of_room = !outcome.ok() && outcome == lacks_room_;
  deps_.backlog.unrecorded.AddOutcome(is_of_room ? "" : action_id_, outcome);
  return outcome;
}

// A Scale takes precedence: pending replacements turn into counted VMs (rule R4). This is written
// once nothing refuses the Scale.
absl::StatusOr<ScalePlan> ScaleCall::PlanWithout(const runtime::Context& context,
                                                 const Reconciler::Settled& settled,
                                                 const std::set<std::string>& stuck) {
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
    const absl::Status waits = CheckRemoval(KnownBackOff(snapshot.now()), snapshot.now());
    told_by_record_ = !waits.ok();
    NH_RETURN_IF_ERROR(waits);
  }
  NH_RETURN_IF_ERROR(ReadInputs(context, snapshot, std::move(left_out)));
  inputs_.newly_counted = CountOf(snapshot) - CountOf(settled.snapshot);
  NH_ASSIGN_OR_RETURN(ScalePlan plan, Plan(context, snapshot));
  for (const VmView* view : pending) plan.newly_counted.insert(view->vm->name);
  result_.plan = plan;
  deferred_ = absl::OkStatus();
  lacks_room_ = absl::OkStatus();
  if (plan.direction != Direction::kNone) {
    NH_RETURN_IF_ERROR(EnforceConsent(snapshot, &plan));
    NH_RETURN_IF_ERROR(CheckReadJob(plan));
    NH_RETURN_IF_ERROR(Preflight(context, &plan, snapshot));
    NH_RETURN_IF_ERROR(CheckTokens(context));
  }
  return plan;
}

// After the checks, because a refused plan would be logged at every tick.
void ScaleCall::LogPlan(const ScalePlan& plan) const {
  deps_.logger.Info("Planned", {{"action_id", action_id_},
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
      {[&] { stored = StoreAction(context, &plan, settled.snapshot); },
       [&] { result_.plan->would_wait = WhatMayWait(context, settled.snapshot, plan); }});
  plan.would_wait = result_.plan->would_wait;
  LogPlan(plan);
  NH_RETURN_IF_ERROR(stored);
  Acceptance acceptance(deps_, reconciler_, action_id_, plan,
                        creation_.has_value() ? &*creation_ : nullptr);
  absl::Status outcome = acceptance.Run(context, settled.snapshot);
  if (outcome.ok()) outcome = deferred_;
  deps_.logger.Log(outcome.ok() ? log::Level::kInfo : log::Level::kWarn,
                   outcome.ok() ? "Scale accepted" : "Scale failed",
                   {{"action_id", action_id_},
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
  const auto objection = ObjectionToRemoval(*old.vm, &node.value, snapshot);
  return objection.has_value() ? base::FailedPrecondition(*objection) : absl::OkStatus();
}

absl::StatusOr<ScalePlan> ScaleCall::PlanReplacement(const runtime::Context& context,
                                                     const PoolSnapshot& snapshot,
                                                     const harvester::VirtualMachine& vm) {
  old_goes_first_ = OldGoesFirst(policy_);
  const std::int64_t count = CountOf(snapshot);
  ScalePlan plan{.direction = Direction::kOut, .from = count, .desired = count, .to = count};
  plan.create = PlanCreations(snapshot, 1);
  inputs_.failing_zones = FailingZones();
  const std::vector<std::string>& zones = policy_.zones;
  if (std::find(zones.begin(), zones.end(), vm.zone) != zones.end() &&
      !inputs_.failing_zones.contains(vm.zone)) {
    plan.create[0].zone = vm.zone;
  } else {
    AssignZones(snapshot, inputs_, &plan);
  }
  NH_RETURN_IF_ERROR(Preflight(context, &plan, snapshot));
  NH_RETURN_IF_ERROR(deferred_);
  plan.to = count;
  return plan;
}

absl::Status ScaleCall::Replace(const runtime::Context& context, const PoolSnapshot& snapshot,
                                const Replaceable& old) {
  const harvester::VirtualMachine& vm = old.vm->vm;
  absl::StatusOr<ScalePlan> planned = PlanReplacement(context, snapshot, vm);
  result_.lacks_room = !lacks_room_.ok();
  if (result_.lacks_room) {
    NoRoom& no_room = deps_.backlog.unrecorded.no_room.emplace();
    // In the place of an unhealthy VM it counts for the back-off alone (rule R5).
    if (!old.is_unhealthy()) {
      no_room = {.of_template = deps_.backlog.new_vms.current.hash,
                 .why = base::Message(planned.status())};
    }
  }
  NH_ASSIGN_OR_RETURN(ScalePlan plan, std::move(planned));
  // The template was just read, and the old VM may already match it.
  const ReplacementQueue queue =
      QueueOfReplacements(snapshot, deps_.lease.record(), deps_.backlog.new_vms.current);
  const bool is_wanted = !queue.blocked_reason.has_value() &&
                         std::any_of(queue.vms.begin(), queue.vms.end(),
                                     [&](const Replaceable& vm) { return vm.vm == old.vm; });
  if (!is_wanted) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckTokens(context));
  plan.create[0].replaces = ReplacesOf(old, deps_.backlog.new_vms.current, snapshot.now());
  harvester::VmSpec& vm_spec = creation_->vm_spec;
  if (old_goes_first_) {
    plan.create[0].replaces->start = policy::NameOf(vm_spec.run_strategy);
    vm_spec.join_timeout = "none";  // until it is started
  }
  NH_RETURN_IF_ERROR(StoreAction(context, &plan, snapshot));
  deps_.logger.Info("Replacing a VM", {{"vm", vm.name},
                                       {"by", plan.create[0].name},
                                       {"why", Describe(old.reason)},
                                       {"action_id", action_id_}});
  Acceptance acceptance(deps_, reconciler_, action_id_, plan, &*creation_);
  return acceptance.Run(context.WithTimeout(kReplacementLimit), snapshot);
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
  ScaleCall call(deps_, policy_, {});
  absl::Status refused = call.CheckReplaced(context, snapshot, vms[0]);
  if (refused.ok()) refused = call.PlanReplacement(context, snapshot, vms[0].vm->vm).status();
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
  if (plan->direction != Direction::kNone) {
    proposal.replaced = ReplacedVms(snapshot);
    proposal.refusal.Update(CheckReadJob(*plan));
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
  NH_ASSIGN_OR_RETURN(ScalePlan plan, Plan(context, snapshot));
  plan.would_wait = WhatMayWait(context, snapshot, plan);
  deps_.logger.Info("Dry run: nothing is changed", {{"reason", request_.reason},
                                                    {"from", plan.from},
                                                    {"to", plan.to},
                                                    {"plan", Describe(plan)}});
  return absl::OkStatus();
}

}  // namespace nomad_harvester::scaling
