// SPDX-License-Identifier: Apache-2.0
// The next step for one VM: a pure function of what was observed.
//
// ARCHITECTURE.md, "NextStep", has the rows in the order in which they are checked; the first match
// wins. The table was derived by exhaustive exploration of crashes, frozen processes, delayed
// requests and operators' changes. A change of a row needs a change of test/explore, too.
#ifndef NOMAD_HARVESTER_SCALING_NEXT_STEP_H_
#define NOMAD_HARVESTER_SCALING_NEXT_STEP_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

enum class StepKind {
  kNothing,
  kWait,
  kCancelDrain,        // cancel a drain of ours; `mark_eligible` says whether to enable the node
  kEnable,             // eligibility endpoint
  kRecordRolledBack,   // annotation rolled-back = `value`
  kReport,             // nothing can be done; `reason` has the cause
  kMarkBroken,         // mark with an action of its own
  kMarkUnhealthy,      // the same, once the Lease's action names the VM
  kRecordJoin,         // one PATCH: nomad-node-id, joined-at
  kForgetJoinTimeout,  // wait_for = "running": the instance has run, join-timeout becomes none
  kRollBack,           // one PATCH that removes the mark
  kStartDrain,
  kDelete,
  kPurge,
};
std::string_view StepName(StepKind kind);

// Names of the rows, used in tests, logs and the exploration.
enum class Row {
  kNomadUnreadable,
  kOtherRegion,
  kGonePurge,
  kGoneNothing,
  kTerminating,
  kNotMember,
  kUnmarkedDraining,
  kUnmarkedDrained,
  kUnmarkedRecord,
  kUnmarkedTwoReady,
  kUnmarkedRan,
  kUnmarkedWaiting,
  kUnmarkedCandidate,
  kUnmarkedBroken,
  kUnmarkedBrokenKept,
  kUnmarkedUnhealthy,
  kUnmarkedUnhealthyKept,
  kUnmarkedJoins,
  kUnmarkedOther,
  kMarkUnreadable,
  kMarkedForeignDrain,
  kMarkedTwoReady,
  kMarkedNotNamed,
  kMarkedCanceled,
  kMarkedEnabled,
  kMarkedCandidate,
  kMarkedNeverJoined,
  kMarkedGone,
  kMarkedDown,
  kMarkedIdle,
  kMarkedRecovered,
  kMarkedLateForced,
  kMarkedLate,
  kMarkedWaiting,
  kMarkedNoNode,
  kMarkedStartDrain,
};
std::string_view RowName(Row row);

struct Step {
  StepKind kind = StepKind::kNothing;
  Row row = Row::kUnmarkedOther;
  std::string node_id;         // the node concerned, if any
  bool mark_eligible = false;  // kCancelDrain
  bool was_ineligible =
      false;           // kStartDrain: the node was ineligible other than by a drain of ours
  std::string value;   // kRecordRolledBack
  std::string reason;  // for people
};

// Every VM has a step. `view` must be an element of `snapshot.vms`.
Step NextStep(const VmView& view, const PoolSnapshot& snapshot);

// For a node whose last drain names a VM of this pool that no longer exists. The caller must have
// verified that GET by name returns 404 or another UID.
Step NextStepOfGoneVm(const nomad::Node& node, const PoolSnapshot& snapshot);

// Nodes whose last drain was ours, for a VM that is not in the snapshot, and which the snapshot
// gives no reason to keep.
std::vector<const nomad::Node*> NodesToPurge(const PoolSnapshot& snapshot);

// Steps that change something, except for purges.
bool IsAct(StepKind kind);
// Steps that must be done before a plan is made (rule C14).
bool IsRepair(StepKind kind);
// Past drain_deadline + grace.
bool IsLate(const harvester::Mark& mark, base::WallTime now);
// A node that has been down for this long, or whose instance does not run, is down for good: its
// work is lost (rule C5).
inline constexpr base::Duration kDownForGood = std::chrono::minutes(2);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_NEXT_STEP_H_
