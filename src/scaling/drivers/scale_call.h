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

#include "nomad_harvester/scaling/proposal.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/status.h"
#include "drivers/intent.h"
#include "drivers/preflight.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

// The limit of what a Scale does at once (rule C16).
inline constexpr base::Duration kAcceptedWithin = std::chrono::minutes(1);

// What was asked of a pool: an action whose meta was read.
struct ScaleRequest {
  PoolKey pool{};
  std::int64_t count = 0;
  bool dry_run = false;
  std::string reason{};
  ActionTerms terms{};
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
  bool backs_off = false;   // refused by a back-off, which an earlier refusal or failure began
};

class ScaleCall {
 public:
  ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request);

  // Requires the pool's Lease. `context` carries its write permit.
  absl::Status Run(const runtime::Context& context);
  // Logs what Run would do (rule C13). Only reads.
  absl::Status DryRun(const runtime::Context& context);
  // Reports what Run would do, and what would refuse it. Only reads, including the trial creation
  // of a VM; makes no introduction token. UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<Proposal> Propose(const runtime::Context& context);
  const ScaleResult& result() const { return result_; }
  // Writes what the Lease has yet to say of the call.
  Reconciler& reconciler() { return reconciler_; }

 private:
  // Forgets what an earlier plan of this call was refused for.
  void BeginPreflight();
  // UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<PoolSnapshot> ObserveWithNomad(const runtime::Context& context);
  // Collects the plan's inputs besides the snapshot. Reads allocations if the victim selection
  // needs them.
  absl::Status ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                          std::map<std::string, std::string> left_out);
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
  absl::Status CheckPaused(base::WallTime now) const;

  const PoolDependencies deps_;
  const config::PoolPolicy policy_;
  const ScaleRequest request_;
  ScaleResult result_;
  Reconciler reconciler_;
  PlanInputs inputs_;
  std::optional<Preflight> preflight_;       // of the present plan; always set
  absl::StatusOr<nomad::ReadJob> read_job_;  // read for a removal
  bool allocations_incomplete_ = false;
  bool moves_work_ = false;      // with scale_in_fit = "report": a victim may have work
  bool told_by_record_ = false;  // the pool's record already says why the action was refused
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SCALE_CALL_H_
