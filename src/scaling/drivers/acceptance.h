// SPDX-License-Identifier: Apache-2.0
// Carries out what a Scale does before it returns (rule C16): it cancels removals, creates VMs,
// or marks victims and starts their drains. It also creates the VM of a replacement. Private to
// module scaling.
#ifndef NOMAD_HARVESTER_SCALING_ACCEPTANCE_H_
#define NOMAD_HARVESTER_SCALING_ACCEPTANCE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/rules.h"

#include "absl/status/status.h"
#include "execution/creation.h"
#include "execution/pool_dependencies.h"
#include "execution/reconciler.h"

namespace nomad_harvester::scaling {

// The action `deps.call`. Used by one thread; its writes run in parallel on the executor.
class Acceptance {
 public:
  // `creation`: null if the plan creates nothing. The references must outlive this object.
  Acceptance(const PoolDependencies& deps, Reconciler& reconciler, const ScalePlan& plan,
             const CreationPlan* creation);

  // Writes until each VM of the plan was answered, and one more observation has shown it. `first`
  // is the observation on which the plan was based; the Lease already names the plan's VMs. Blocks
  // for its requests, and between repetitions.
  //
  // OK, or one line per VM; INTERNAL after a partial success. If the context ends first, its error,
  // with the same lines.
  absl::Status Run(const runtime::Context& context, PoolSnapshot first);

 private:
  enum class Goal { kMake, kRemove, kCancelRemoval };
  enum class State { kPending, kDone, kFailed };
  // One VM of the action.
  struct Outcome {
    Goal goal = Goal::kRemove;
    State state = State::kPending;
    absl::Status error{};        // the last one
    PlannedCreation creation{};  // kMake
    bool begun = false;          // kMake: its creation was logged
    std::string node_id{};       // kRemove: the node in the plan
    bool accepted = false;       // kMake: its POST; kRemove: its mark
    bool drained = false;        // kRemove: its drain was accepted after the mark
    bool unknown = false;        // kRemove: its mark may have been written without a reply
    bool refused = false;        // kRemove: it failed because it was refused
    bool cleared = false;        // kMake: what an earlier action left under its name is gone
    std::optional<CreatedVm> created{};  // kMake: its Secret has no owner yet
  };

  // Replaces `snapshot` by one without roll-backs that are due.
  absl::Status CancelRemovals(const runtime::Context& context, PoolSnapshot* snapshot);
  void Observe(const Decisions& decisions);
  static void ObserveMake(const Decisions::Entry* entry, const PoolSnapshot& snapshot,
                          Outcome* outcome);
  void ObserveRemove(const std::string& vm, const Decisions& decisions, Outcome* outcome);
  void ReplaceUnsuitable(const Decisions& decisions);
  bool Replace(const std::string& vm, const std::string& why);
  absl::Status NameOnLease(const runtime::Context& context);
  // Returns true if a write was not answered, and should be repeated after a wait.
  bool Write(const runtime::Context& context, const Decisions& decisions);
  Effect Make(const runtime::Context& context, const PoolSnapshot& snapshot, Outcome* outcome);
  static void ConcludeMake(const Effect& effect, Outcome* outcome);
  void ConcludeRemove(const VmView& view, const Effect& effect);
  void OwnSecrets(const runtime::Context& context);
  // Leaves to the background what it must know, and what goes on the Lease.
  void Record(const PoolSnapshot& snapshot, const absl::Status& ended);
  bool IsPending() const;
  absl::Status FinalStatus(const absl::Status& ended) const;

  const PoolDependencies& deps_;
  Reconciler& reconciler_;
  const CreationPlan* const creation_;
  std::map<std::string, Outcome> outcomes_;
  std::vector<PlannedRemoval> reserve_;  // in order; taken from the front
  std::vector<SkippedVm> passed_over_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_ACCEPTANCE_H_
