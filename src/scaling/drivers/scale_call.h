// SPDX-License-Identifier: Apache-2.0
// Runs one Scale: preflight, plan, store the intent, act, and report the outcome of every VM.
#ifndef NOMAD_HARVESTER_SCALING_SCALE_CALL_H_
#define NOMAD_HARVESTER_SCALING_SCALE_CALL_H_

#include <optional>
#include <set>
#include <string>

#include "nomad_harvester/scaling/proposal.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/target_service.h"

#include "absl/status/status.h"
#include "drivers/scale_reads.h"
#include "execution/pool_dependencies.h"
#include "execution/pool_metrics.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

struct ScaleRequest {
  std::int64_t count = 0;
  bool dry_run = false;
  std::string reason;
  std::string policy_id;
  // The count of the last Status, or of a command's plan; 0: unknown. It tells which checks will
  // probably be needed, to read for them in advance.
  std::int64_t last_count = 0;
  // The timeout of a mass loss has expired: the Scale removes nevertheless (rule C15).
  bool mass_loss_over = false;
  // For Replace: the old VM is removed before the new one starts (rule R8).
  bool old_goes_first = false;
  // Unset: any victims chosen by the plan may be removed.
  std::optional<RemovalConsent> consent{};
};

// State of the pool kept between calls, in addition to the Lease's record.
struct ScaleMemory {
  CurrentTemplate current_template{};                // of the last preflight
  std::optional<base::MonoTime> template_read_at{};  // when it was read for a replacement
  std::string replacement_rests;                     // why, when that was logged last
  std::string unread_classes;                        // those of the last warning
  bool without_intro_tokens = false;                 // of the last preflight; the policy wants them
};

// What a call has come to, as its caller logs and remembers it.
struct ScaleFacts {
  std::string action_id;
  std::optional<ScaleRange> range{};  // unset until the pool was observed
  bool acted = false;  // the action was stored and carried out; its outcome is then logged
  // It acted and failed: it may have left something that the lists of Status do not show, such as a
  // Secret.
  bool leaves_work = false;
};

class ScaleCall {
 public:
  ScaleCall(PoolDependencies deps, config::PoolPolicy policy, ScaleRequest request,
            ScaleMemory* memory);

  // What Run needs. It may be read before Run.
  ScaleReads& reads() { return reads_; }
  // Requires the pool's Lease. `context` carries its write permit.
  absl::Status Run(const runtime::Context& context);
  // OK if nothing keeps that VM, including facts that lists do not show, such as dynamic host
  // volumes. FAILED_PRECONDITION: something does.
  absl::Status CheckReplaced(const runtime::Context& context, const PoolSnapshot& snapshot,
                             const Replaceable& old) const;
  // OK if nothing keeps that VM and nothing refuses a new one in its place. Only reads.
  absl::Status CheckReplacement(const runtime::Context& context, const PoolSnapshot& snapshot,
                                const Replaceable& old);
  // Creates the VM that replaces `old`, without waiting for it. Requires the pool's Lease, and a
  // snapshot for which ReplacementBlockedReason is empty.
  absl::Status Replace(const runtime::Context& context, const PoolSnapshot& snapshot,
                       const Replaceable& old);
  // Logs what Run would do (rule C13). Only reads.
  absl::Status DryRun(const runtime::Context& context);
  // Reports what Run would do, and what would refuse it. Only reads, including the trial creation
  // of a VM; makes no introduction token. UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<Proposal> Propose(const runtime::Context& context);
  std::optional<base::WallTime> last_event() const { return reconciler_.last_event(); }
  ScaleFacts facts() const { return {action_id_, range_, acted_, leaves_work_}; }
  // The record to write when the Lease is released; null: none.
  const PoolRecord* closed_record() const { return reconciler_.closed_record(); }

 private:
  // UNAVAILABLE: Nomad cannot be read.
  absl::StatusOr<PoolSnapshot> ObserveWithNomad(const runtime::Context& context);
  // Collects the plan's inputs besides the snapshot. Reads allocations if the victim selection
  // needs them.
  absl::Status ReadInputs(const runtime::Context& context, const PoolSnapshot& snapshot,
                          std::map<std::string, std::string> left_out);
  // Tells what is replaced besides. Reads what new VMs are made of, if that decides it.
  void ProposeReplacements(const runtime::Context& context, const PoolSnapshot& snapshot,
                           Proposal* proposal);
  absl::StatusOr<ScalePlan> Plan(const PoolSnapshot& snapshot);
  // FAILED_PRECONDITION: the plan removes a VM that the operator did not agree to.
  absl::Status EnforceConsent(ScalePlan* plan) const;
  absl::Status CheckReadJob(const runtime::Context& context, const ScalePlan& plan) const;
  absl::Status CheckRights(const runtime::Context& context, const ScalePlan& plan) const;
  void WarnOfCreations();
  absl::Status CheckCreations(const runtime::Context& context, const PoolSnapshot& snapshot);
  absl::Status CheckTokens(const runtime::Context& context);
  absl::Status CheckBackOff(ScalePlan* plan, base::WallTime now);
  absl::Status CheckQuotas(ScalePlan* plan);
  // Runs all checks that can refuse this action, before its first effect (rule C2).
  absl::Status Preflight(const runtime::Context& context, ScalePlan* plan,
                         const PoolSnapshot& snapshot);
  absl::Status Act(const runtime::Context& context);
  // ABORTED: a scale-in that may be based on metrics that count both nodes of a replacement.
  absl::Status CheckSwap(const PoolSnapshot& snapshot);
  struct Planned {
    PoolSnapshot snapshot;  // the one it was made from
    ScalePlan plan{};
    std::set<std::string> to_count{};  // the VMs that no longer replace another one in it
  };
  // Makes and checks the plan. The VMs in `stuck` stay replacements.
  absl::StatusOr<Planned> PlanWithout(const runtime::Context& context,
                                      const Reconciler::Settled& settled,
                                      const std::set<std::string>& stuck);
  // Makes the VMs in `to_count` count on their own, and observes the pool again (rule R4). Returns
  // those that could not be written; another plan leaves them out (rule L1).
  absl::StatusOr<std::set<std::string>> EndReplacements(const runtime::Context& context,
                                                        const Planned& planned,
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
  ScaleMemory* const memory_;
  const std::string action_id_;
  Reconciler reconciler_;
  ScaleReads reads_;
  PlanInputs inputs_;
  std::optional<CreationPlan> creation_;
  bool allocations_incomplete_ = false;
  bool leaves_work_ = false;
  bool acted_ = false;
  bool told_by_record_ = false;  // the pool's record already says why the action was refused
  std::optional<ScaleRange> range_;
  absl::Status deferred_;  // why creations were left out of a plan that still does something else
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SCALE_CALL_H_
