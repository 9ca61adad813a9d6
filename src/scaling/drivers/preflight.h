// SPDX-License-Identifier: Apache-2.0
// The checks that can refuse an action before its first effect (rule C2). Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_PREFLIGHT_H_
#define NOMAD_HARVESTER_SCALING_PREFLIGHT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/quota.h"
#include "nomad_harvester/kube/access.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/intent.h"
#include "execution/creation.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

// The Lease's back-off, and the failures that could not be stored yet.
harvester::BackOff KnownBackOff(const PoolDependencies& deps, base::WallTime now);

// The preflight of one plan. Used by one thread; its reads run in parallel on the executor.
class Preflight {
 public:
  // The references must outlive this object.
  Preflight(const PoolDependencies& deps, const config::PoolPolicy& policy,
            const Reconciler& reconciler, ActionTerms terms);

  // Reads the token's rights. Run reads them if nothing else has.
  void ReadRules(const runtime::Context& context);
  // Refuses the action, or takes creations out of its plan that must wait or have no room. Reads
  // only, including the trial creation of a VM.
  absl::Status Run(const runtime::Context& context, const PoolSnapshot& snapshot,
                   const PlanInputs& inputs, ScalePlan* plan);
  // Checks that Nomad makes introduction tokens, by one that is valid for a second. Called after
  // Run, because it is no read.
  absl::Status CheckTokens(const runtime::Context& context);

  // What new VMs are made of; null if Run has planned no creation.
  CreationPlan* creation() { return creation_.has_value() ? &*creation_ : nullptr; }
  // Why a quota or the hosts have no room for some of the new VMs; OK: they have.
  const absl::Status& lacks_room() const { return lacks_room_; }
  // Why creations were taken out of a plan that still does something else.
  const absl::Status& deferred() const { return deferred_; }
  // A back-off refused it, which an earlier refusal or failure began.
  bool backs_off() const { return backs_off_; }
  // The background has yet to record a failure, which refused it.
  bool unrecorded() const { return unrecorded_; }

 private:
  absl::Status CheckRights(const runtime::Context& context, const ScalePlan& plan);
  void WarnOfCreations();
  // `keys`: of the Nomad cluster that answers now.
  absl::Status CheckCreations(const runtime::Context& context, const PoolSnapshot& snapshot,
                              CreationSources sources, absl::StatusOr<std::string> keys);
  absl::Status CheckBackOff(ScalePlan* plan, base::WallTime now);
  // RESOURCE_EXHAUSTED: no new VM fits now, and the plan does nothing else. FAILED_PRECONDITION: no
  // host could ever hold one.
  absl::Status CheckRoom(const PoolSnapshot& snapshot, const PlanInputs& inputs, ScalePlan* plan);
  // Both keep what fits in the plan, and return why the rest does not; empty: all fits, as far as
  // that is known. `wanted`: what was planned at first.
  absl::StatusOr<std::string> FitHosts(const PoolSnapshot& snapshot, const PlanInputs& inputs,
                                       std::size_t wanted, ScalePlan* plan);
  std::string FitQuotas(std::size_t wanted, ScalePlan* plan) const;
  // True if the forecast has refused new VMs for so long that one is to be tried.
  bool DoubtsForecast();

  const PoolDependencies& deps_;
  const config::PoolPolicy& policy_;
  const Reconciler& reconciler_;
  const ActionTerms terms_;
  std::optional<absl::StatusOr<kube::AccessRules>> rules_;
  std::optional<CreationPlan> creation_;
  absl::StatusOr<std::vector<harvester::ResourceQuota>> quotas_;  // read with creation_
  absl::StatusOr<HostRooms> rooms_;                               // likewise
  absl::Status lacks_room_;
  absl::Status deferred_;
  bool backs_off_ = false;
  bool unrecorded_ = false;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PREFLIGHT_H_
