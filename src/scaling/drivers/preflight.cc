// SPDX-License-Identifier: Apache-2.0
#include "drivers/preflight.h"

#include <functional>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/access.h"

#include "absl/strings/str_join.h"
#include "execution/pass_task.h"
#include "execution/rights.h"
#include "rules/back_off.h"
#include "rules/room.h"

namespace nomad_harvester::scaling {
namespace {

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

harvester::BackOff KnownBackOff(const PoolDependencies& deps, base::WallTime now) {
  harvester::BackOff back_off = deps.lease.record().back_off;
  for (const auto& [cause, action] : deps.backlog.unrecorded.failures) {
    RecordFailure(&back_off, cause, now, action);
  }
  if (deps.backlog.unrecorded.no_room.has_value()) RecordNoRoom(&back_off, now);
  return back_off;
}

Preflight::Preflight(const PoolDependencies& deps, const config::PoolPolicy& policy,
                     const Reconciler& reconciler, ActionTerms terms)
    : deps_(deps),
      policy_(policy),
      reconciler_(reconciler),
      terms_(std::move(terms)),
      quotas_(base::Unavailable("not read")),
      rooms_(base::Unavailable("not read")) {}

void Preflight::ReadRules(const runtime::Context& context) {
  rules_ = kube::FetchAccessRules(context, *deps_.clients.kube, deps_.key.ns);
}

absl::Status Preflight::CheckRights(const runtime::Context& context, const ScalePlan& plan) {
  if (!rules_.has_value()) ReadRules(context);
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

// If creation must wait, removes the creations from the plan; only cancellations of removals may
// remain.
absl::Status Preflight::CheckBackOff(ScalePlan* plan, base::WallTime now) {
  const harvester::BackOff back_off = KnownBackOff(deps_, now);
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
                      {{"action_id", deps_.call}, {"wanted", plan->create.size()}});
    KeepCreations(plan, 1);
  }
  return absl::OkStatus();
}

// Warns at each growth about differences from the template, and once about classes that cannot be
// checked.
void Preflight::WarnOfCreations() {
  if (!creation_->template_notes.empty()) {
    deps_.logger.Warn(
        "Parts of the VM template are not used",
        {{"action_id", deps_.call},
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
        {{"action_id", deps_.call}, {"not_checked", unread}});
  }
  deps_.backlog.unread_classes = std::move(unread);
}

// Runs all of Harvester's checks that can refuse a VM.
absl::Status Preflight::CheckCreations(const runtime::Context& context,
                                       const PoolSnapshot& snapshot, CreationSources sources,
                                       absl::StatusOr<std::string> keys) {
  NH_ASSIGN_OR_RETURN(
      creation_,
      PlanCreation(deps_, policy_, sources, snapshot.observation().nomad_index, terms_.policy_id));
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
  creation_->halted = terms_.old_goes_first;
  WarnOfCreations();
  deps_.backlog.new_vms.current = {.hash = creation_->vm_spec.template_hash,
                                   .parts = creation_->vm_spec.template_parts};
  absl::StatusOr<std::optional<harvester::VmNeed>> need = base::Unavailable("not read");
  std::vector<std::function<void()>> reads = {
      [&] { need = DryRunCreation(context, deps_, policy_, *creation_); }};
  if (!terms_.old_goes_first) {
    reads.emplace_back([&] { rooms_ = deps_.hosts.ListRooms(context.WithTimeout(kHostsLimit)); });
  }
  runtime::CallAtOnce(context, deps_.executor, reads);
  NH_RETURN_IF_ERROR(context.Check());
  NH_ASSIGN_OR_RETURN(deps_.backlog.need, std::move(need));
  return absl::OkStatus();
}

// Runs after all checks that Harvester may fail, because it makes a token that is valid for a
// second. Other tokens are only made during creation.
absl::Status Preflight::CheckTokens(const runtime::Context& context) {
  if (!creation_.has_value()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckIntroTokens(context, deps_, policy_, &*creation_));
  const bool without = policy_.intro_token != config::IntroToken::kOff && !creation_->intro_tokens;
  if (std::exchange(deps_.backlog.without_intro_tokens, without) != without && without) {
    deps_.logger.Warn(
        "Nomad has no introduction tokens (1.11 and newer have): {{nomad_intro_token}} is empty",
        {{"action_id", deps_.call}});
  }
  return absl::OkStatus();
}

// The scheduler may have room where the forecast has none: something is counted that does not count
// there.
bool Preflight::DoubtsForecast() {
  const base::MonoTime now = deps_.clock.Now();
  auto& refused = deps_.backlog.refused_by_forecast;
  // Growth that was not wanted for so long begins anew.
  if (!refused.has_value() || now - refused->last >= kForecastAloneFor) refused = {now, now};
  refused->last = now;
  return now - refused->first >= kForecastAloneFor;
}

// The right to read the hosts is optional, and the scheduler decides in any case.
absl::StatusOr<std::string> Preflight::FitHosts(const PoolSnapshot& snapshot,
                                                const PlanInputs& inputs, std::size_t wanted,
                                                ScalePlan* plan) {
  const std::optional<harvester::VmNeed>& need = deps_.backlog.need;
  if (!rooms_.ok() || !need.has_value()) {
    deps_.logger.Debug("The room on the hosts is not known",
                       {{"action_id", deps_.call}, {"error", rooms_.status()}});
    return std::string();
  }
  harvester::RoomForecast forecast = ForecastPlan(*rooms_, *need, snapshot, inputs, plan);
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
        {{"action_id", deps_.call}, {"forecast", why}});
  }
  KeepCreations(plan, forecast.fits);
  return why;
}

// The right to read quotas is optional, and Harvester enforces them in any case (rule C3).
std::string Preflight::FitQuotas(std::size_t wanted, ScalePlan* plan) const {
  if (!quotas_.ok()) {
    deps_.logger.Debug("Could not read the namespace's quotas", {{"error", quotas_.status()}});
    return "";
  }
  const auto room = harvester::FindQuotaRoom(*quotas_, creation_->vm_spec, deps_.backlog.need);
  if (!room.has_value() || std::cmp_greater_equal(room->vms, plan->create.size())) return "";
  KeepCreations(plan, static_cast<std::size_t>(room->vms));
  return std::to_string(room->vms) + " of " + std::to_string(wanted) +
         " VMs fit the quota of namespace " + deps_.key.ns + ": " + room->limit + "; " +
         kCureOfNoQuota;
}

// Reduces the plan to as many VMs as fit; the action returns an error for the rest.
absl::Status Preflight::CheckRoom(const PoolSnapshot& snapshot, const PlanInputs& inputs,
                                  ScalePlan* plan) {
  if (terms_.old_goes_first) return absl::OkStatus();  // the old VM leaves room for it
  const std::size_t wanted = plan->create.size();
  std::string why = FitQuotas(wanted, plan);
  if (plan->create.empty()) {
    deps_.backlog.refused_by_forecast.reset();  // the forecast is not alone
  } else {
    NH_ASSIGN_OR_RETURN(std::string of_hosts, FitHosts(snapshot, inputs, wanted, plan));
    if (!of_hosts.empty()) why = std::move(of_hosts);
  }
  const std::size_t made = plan->create.size();
  if (made == wanted) return absl::OkStatus();
  lacks_room_ = absl::Status(absl::StatusCode::kResourceExhausted, why);
  if (made == 0 && plan->cancel_removals.empty()) return lacks_room_;
  deps_.logger.Warn("There is no room for all new VMs",
                    {{"action_id", deps_.call}, {"wanted", wanted}, {"made", made}, {"why", why}});
  deferred_ = lacks_room_;
  return absl::OkStatus();
}

absl::Status Preflight::Run(const runtime::Context& context, const PoolSnapshot& snapshot,
                            const PlanInputs& inputs, ScalePlan* wanted) {
  ScalePlan& plan = *wanted;
  if (absl::Status waits = CheckBackOff(&plan, snapshot.now()); !waits.ok()) {
    backs_off_ = true;
    return waits;
  }
  // While a broken VM must not be marked, nothing is counted.
  if (!plan.create.empty() &&
      reconciler_.ReasonToWait(snapshot, StepKind::kMarkBroken) == nullptr) {
    const absl::Status counted = CheckFailuresAreCounted(snapshot, deps_.backlog);
    unrecorded_ = !counted.ok();
    NH_RETURN_IF_ERROR(counted);
  }
  // A removal needs to know where the autoscaler itself runs; growth goes on without (rule C7).
  if (plan.direction == Direction::kIn) NH_RETURN_IF_ERROR(snapshot.observation().own_node_problem);
  CreationSources sources;
  absl::StatusOr<std::string> keys = base::Unavailable("not read");
  if (!plan.create.empty()) {
    runtime::CallAtOnce(
        context, deps_.executor,
        {[&] { ReadRules(context); }, [&] { sources = ReadSources(context, deps_, policy_); },
         [&] { keys = deps_.nodes.ReadCluster(context); }});
    NH_RETURN_IF_ERROR(context.Check());
  }
  NH_RETURN_IF_ERROR(CheckRights(context, plan));
  if (plan.direction == Direction::kIn && !terms_.mass_loss_over) {
    const MassLoss loss = snapshot.mass_loss();
    if (loss.alarming) {
      return base::FailedPrecondition(std::to_string(loss.lost) + " of " + std::to_string(loss.of) +
                                      " running VMs have lost their Nomad node at once: nothing is "
                                      "removed; check Nomad first");
    }
  }
  if (plan.create.empty()) return absl::OkStatus();
  NH_RETURN_IF_ERROR(CheckCreations(context, snapshot, std::move(sources), std::move(keys)));
  return CheckRoom(snapshot, inputs, &plan);
}

}  // namespace nomad_harvester::scaling
