// SPDX-License-Identifier: Apache-2.0
// Runs one Scale: preflight, plan, store the intent, act, and report the outcome of every VM.
#ifndef NOMAD_HARVESTER_SCALING_SCALE_CALL_H_
#define NOMAD_HARVESTER_SCALING_SCALE_CALL_H_

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/scaling/proposal.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/status.h"
#include "execution/creation.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

// The limit of what a Scale, or the begin of a replacement, does at once (rule C16).
inline constexpr base::Duration kAcceptedWithin = std::chrono::minutes(1);

// What was asked of a pool: an action whose meta was read.
struct ScaleRequest {
  PoolKey pool{};
  std::int64_t count = 0;
  bool dry_run = false;
  std::string reason{};
  std::string policy_id{};
  // The timeout of a mass loss has expired: the Scale removes nevertheless (rule C15).
  bool mass_loss_over = false;
  // Unset: any victims chosen by the plan may be removed.
  std::optional<RemovalConsent> consent{};
};

// What a Scale has come to, besides its status.
struct ScaleResult {
  std::string action_id{};
  // As it was before the checks. Unset until the pool was observed; only counts until it was made.
  std::optional<ScalePlan> plan{};
  bool acted = false;       // the action was stored: the background continues it
  bool unrecorded = false;  // refused, because the background has yet to record a failure
  bool lacks_room = false;  // of a replacement: refused for want of room (rule C2)
  bool backs_off = false;   // refused by a back-off, which an earlier refusal or failure began
};

class ScaleCall {
 public:
  ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request);

  // Requires the pool's Lease. `context` carries its write permit.
  absl::Status Run(const runtime::Context& context);
  // OK if nothing keeps that VM, including facts that lists do not show, such as dynamic host
  // volumes. FAILED_PRECONDITION: something does.
  absl::Status CheckReplaced(const runtime::Context& context, const PoolSnapshot& snapshot,
                             const Replaceable& old) const;
  // Creates the VM that replaces `old`, without waiting for its node. Requires the pool's Lease,
  // and a snapshot without a ReplacementBlockedReason.
  absl::Status Replace(const runtime::Context& context, const PoolSnapshot& snapshot,
                       const Replaceable& old);
  // Logs what Run would do (rule C13). Only reads.
  absl::Status DryRun(const runtime::Context& context);
  // Reports what Run would do, and what would refuse it. Only reads, including the trial creation
  // of a VM; makes no introduction token. UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<Proposal> Propose(const runtime::Context& context);
  const ScaleResult& result() const { return result_; }
  // Writes what the Lease has yet to say of the call.
  Reconciler& reconciler() { return reconciler_; }

 private:
  // UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<PoolSnapshot> ObserveWithNomad(const runtime::Context& context);
  // Collects the plan's inputs besides the snapshot. Reads allocations if the victim selection
  // needs them.
  absl::Status ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                          std::map<std::string, std::string> left_out);
  // The zones in which a VM could not start of late.
  std::set<std::string> FailingZones() const;
  // Tells what is replaced besides. Reads what new VMs are made of, if that decides it.
  void ProposeReplacements(const runtime::Context& context, const PoolSnapshot& snapshot,
                           Proposal* proposal);
  // With scale_in_fit = "require" reads where the victims' work can go, if they have any.
  absl::StatusOr<ScalePlan> Plan(const runtime::Context& context, const PoolSnapshot& snapshot);
  // With "report" reads that for the plan's would_wait.
  std::vector<SkippedVm> WhatMayWait(const runtime::Context& context, const PoolSnapshot& snapshot,
                                     const ScalePlan& plan) const;
  void LogPlan(const ScalePlan& plan) const;
  // FAILED_PRECONDITION: the plan removes a VM that the operator did not agree to.
  absl::Status EnforceConsent(const PoolSnapshot& snapshot, ScalePlan* plan) const;
  absl::Status CheckReadJob(const ScalePlan& plan) const;
  // PERMISSION_DENIED names the rights that the plan needs and the token lacks.
  absl::Status CheckRights(const runtime::Context& context, const ScalePlan& plan);
  void WarnOfCreations();
  // `keys`: of the Nomad cluster that answers now.
  absl::Status CheckCreations(const runtime::Context& context, const PoolSnapshot& snapshot,
                              CreationSources sources, absl::StatusOr<std::string> keys);
  absl::Status CheckTokens(const runtime::Context& context);
  // The Lease's, and what the run that this Scale has interrupted could not store.
  harvester::BackOff KnownBackOff(base::WallTime now) const;
  absl::Status CheckBackOff(ScalePlan* plan, base::WallTime now);
  // RESOURCE_EXHAUSTED: no new VM fits now, and the plan does nothing else. FAILED_PRECONDITION: no
  // host could ever hold one.
  absl::Status CheckRoom(const PoolSnapshot& snapshot, ScalePlan* plan);
  // Both keep what fits in the plan, and return why the rest does not; empty: all fits, as far as
  // that is known. `wanted`: what was planned at first.
  absl::StatusOr<std::string> FitHosts(const PoolSnapshot& snapshot, std::size_t wanted,
                                       ScalePlan* plan);
  std::string FitQuotas(std::size_t wanted, ScalePlan* plan) const;
  // True if the forecast has refused new VMs for so long that one is to be tried.
  bool DoubtsForecast();
  // Runs all checks that can refuse this action, before its first effect (rule C2).
  absl::Status Preflight(const runtime::Context& context, ScalePlan* plan,
                         const PoolSnapshot& snapshot);
  absl::Status Act(const runtime::Context& context);
  // FAILED_PRECONDITION: the pool has its count only with a VM whose roll-back does not succeed.
  static absl::Status CheckLeftOut(const Reconciler::Settled& settled);
  // ABORTED: a scale-in that may be based on metrics that count both nodes of a replacement.
  absl::Status CheckSwap(const PoolSnapshot& snapshot);
  // Makes and checks the plan. The VMs in `stuck` stay replacements.
  absl::StatusOr<ScalePlan> PlanWithout(const runtime::Context& context,
                                        const Reconciler::Settled& settled,
                                        const std::set<std::string>& stuck);
  // Makes the VMs in `newly_counted` count on their own, and observes the pool again (rule R4).
  // Returns those that could not be written; another plan leaves them out (rule L1).
  absl::StatusOr<std::set<std::string>> EndReplacements(const runtime::Context& context,
                                                        const ScalePlan& plan,
                                                        PoolSnapshot* snapshot);
  // Plans the creation of the VM that replaces `vm`, and checks it.
  absl::StatusOr<ScalePlan> PlanReplacement(const runtime::Context& context,
                                            const PoolSnapshot& snapshot,
                                            const harvester::VirtualMachine& vm);
  absl::Status CheckPaused(base::WallTime now) const;
  void RecordPolicy(base::WallTime now, PoolRecord* record) const;
  absl::Status StoreAction(const runtime::Context& context, ScalePlan* plan,
                           const PoolSnapshot& snapshot);

  const PoolDependencies deps_;
  const config::PoolPolicy policy_;
  const ScaleRequest request_;
  const std::string action_id_;
  ScaleResult result_;
  Reconciler reconciler_;
  PlanInputs inputs_;
  std::optional<CreationPlan> creation_;
  std::optional<absl::StatusOr<kube::AccessRules>> rules_;
  absl::StatusOr<nomad::ReadJob> read_job_;                       // read for a removal
  absl::StatusOr<std::vector<harvester::ResourceQuota>> quotas_;  // read with creation_
  absl::StatusOr<HostRooms> rooms_;                               // likewise
  bool allocations_incomplete_ = false;
  bool moves_work_ = false;      // with scale_in_fit = "report": a victim may have work
  bool told_by_record_ = false;  // the pool's record already says why the action was refused
  bool old_goes_first_ = false;  // for Replace: the old VM is removed before the new one starts
  absl::Status lacks_room_;      // why a quota or the hosts have no room for some of the new VMs
  absl::Status deferred_;  // why creations were left out of a plan that still does something else
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SCALE_CALL_H_
