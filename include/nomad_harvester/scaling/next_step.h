// SPDX-License-Identifier: Apache-2.0
// What is to be done next for one VM: a pure function of what was observed.
//
// The rows stand in the order of ARCHITECTURE.md, "Next step"; the first match wins. An exhaustive
// exploration of crashes, frozen processes, late requests and operators' hands gave this table: a
// row is changed only with a test that explores, not with an argument.
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
  kReport,             // nothing can be done; `reason` says why
  kMarkBroken,         // mark with an action of its own
  kMarkUnhealthy,      // likewise, once the Lease's action names the VM
  kRecordJoin,         // one PATCH: nomad-node-id, joined-at
  kForgetJoinTimeout,  // wait_for = "running": the instance has run, join-timeout becomes none
  kRollBack,           // one PATCH that removes the mark
  kStartDrain,
  kDelete,
  kPurge,
};
std::string_view StepName(StepKind kind);

// Rows have names, so that tests, logs and the exploration speak of the same thing.
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

// Total: every VM has a step. `view` is of `snapshot.vms`.
Step NextStep(const VmView& view, const PoolSnapshot& snapshot);

// For a node whose last drain names a VM of this pool that does not exist any more. The caller has
// seen GET by name answer 404, or another UID.
Step NextStepOfGoneVm(const nomad::Node& node, const PoolSnapshot& snapshot);

// The nodes whose last drain was of ours, for a VM that is not in the snapshot, and that are to be
// purged for all the snapshot tells.
std::vector<const nomad::Node*> NodesToPurge(const PoolSnapshot& snapshot);

// Steps that change something, other than purges.
bool IsAct(StepKind kind);
// Steps that have to come before a plan is made (rule C14).
bool IsRepair(StepKind kind);
// Past drain_deadline + grace.
bool IsLate(const harvester::Mark& mark, base::WallTime now);
// A node that is down so long, or whose instance is off, that its work is lost for good (rule C5).
inline constexpr base::Duration kDownForGood = std::chrono::minutes(2);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_NEXT_STEP_H_
