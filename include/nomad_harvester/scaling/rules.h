// SPDX-License-Identifier: Apache-2.0
// Decides the next step for a VM: a table, tried from top to bottom; the first matching row wins.
//
// The loop, the log, the commands, ARCHITECTURE.md and the exploration all use this one span.
// Changing a row needs a test in test/explore.
#ifndef NOMAD_HARVESTER_SCALING_RULES_H_
#define NOMAD_HARVESTER_SCALING_RULES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/facts.h"

namespace nomad_harvester::scaling {

enum class StepKind {
  kNothing,
  kWait,
  kCancelDrain,       // cancel a drain of ours; `mark_eligible` says whether to enable the node
  kEnable,            // eligibility endpoint
  kRecordRolledBack,  // annotation rolled-back = `value`
  kReport,            // nothing can be done; `reason` says why
  kMarkBroken,        // mark it with an action of its own
  kMarkUnhealthy,     // the same, once the Lease's action names the VM
  kMarkReplaced,      // likewise, once its replacement has taken its place
  kKeepReplaced,      // annotation removal-undone: it stays, and its successor counts too
  kRecordJoin,        // one PATCH: nomad-node-id, joined-at, and ready-at
  kRecordReady,       // ready-at
  // nomad-cluster: the keys of the Nomad cluster; and nomad-node-id, if `value` has the node's ID
  kRecordCluster,
  kStart,          // start a VM that waited for its predecessor's end: set its run strategy
  kRenewToken,     // a new introduction token, while the VM has not booted
  kPublishHost,    // record the VM's host in its node's metadata, then in published-host
  kUnpublishHost,  // unset both
  kRollBack,       // one PATCH that removes the mark
  kStartDrain,
  kDelete,
  kHalt,  // set the run strategy of a VM in deletion to Halted
  kPurge,
};

// The rows, in the order of the table.
enum class Row {
  kNomadUnreadable,
  kGonePurge,
  kGoneNothing,
  kOtherNomad,
  kTerminatingHeld,
  kTerminating,
  kNotMember,
  kUnmarkedDraining,
  kUnmarkedDrained,
  kUnmarkedRecord,
  kUnmarkedAmbiguous,
  kUnmarkedCandidate,
  kUnmarkedStays,
  kUnmarkedUnhealthyKept,
  kUnmarkedUnhealthyWaits,
  kUnmarkedCutOff,
  kUnmarkedUnhealthy,
  kUnmarkedBroken,
  kUnmarkedBrokenKept,
  kUnmarkedJoins,
  kUnmarkedReady,
  kUnmarkedContradicted,
  kUnmarkedCluster,
  kUnmarkedTokenEnds,
  kUnmarkedWaiting,
  kUnmarkedNotNeeded,
  kUnmarkedStart,
  kUnmarkedHalted,
  kUnmarkedReplaced,
  kUnmarkedPublish,
  kUnmarkedUnpublish,
  kUnmarkedOther,
  kMarkUnreadable,
  kMarkOfAnother,
  kMarkedForeignDrain,
  kMarkedAmbiguous,
  kMarkedNotNamed,
  kMarkedCanceled,
  kMarkedRemovalCancelled,
  kMarkedProtected,
  kMarkedRefused,
  kMarkedEnabled,
  kMarkedCandidate,
  kMarkedNeverJoined,
  kMarkedNeverReady,
  kMarkedGone,
  kMarkedDown,
  kMarkedCutOff,
  kMarkedIdle,
  kMarkedRecovered,
  kMarkedLateForced,
  kMarkedLate,
  kMarkedDrainAgain,
  kMarkedWaiting,
  kMarkedNoNode,
  kMarkedStartDrain,
};

struct Step {
  StepKind kind = StepKind::kNothing;
  Row row = Row::kUnmarkedOther;
  std::string node_id{};       // the node concerned; empty: none
  bool mark_eligible = false;  // kCancelDrain
  // kStartDrain: the node was ineligible for a reason other than a drain of ours.
  bool was_ineligible = false;
  bool node_is_ready = false;  // kRecordJoin
  std::string value{};         // kRecordRolledBack, kRecordCluster; kPublishHost: host and zone
  std::string reason{};        // for people
  // kWait: the VM could be deleted if it were not held (rule C18). kDelete: its hold has timed out.
  bool is_held = false;
};

struct Rule {
  Row row;
  // Name in logs, tests and reports: "marked-start-drain".
  std::string_view name;
  // Texts for ARCHITECTURE.md: the VM, its node, and the action.
  std::string_view vm;
  std::string_view node;
  std::string_view step;
  bool (*when)(const Facts& facts);
  Step (*then)(const Facts& facts);  // called only if `when` holds
};
// All rows, in order: the element at index i has row Row(i).
extern const std::span<const Rule> kRules;

std::string_view RowName(Row row);

// Returns the step of the first rule that matches. The full table always has a match; without a
// match the step is kNothing.
Step Decide(const Facts& facts, std::span<const Rule> rules = kRules);
// The same for a VM of a snapshot, and for a node whose last drain names a VM that no longer exists
// (the caller must have verified that GET by name returns 404 or another UID).
Step NextStep(const VmView& view, const PoolSnapshot& snapshot);
Step NextStepOfGoneVm(const nomad::Node& node, const PoolSnapshot& snapshot);

// The decisions about all VMs of the pool, made once per Observation. O(VMs + nodes), plus the
// candidate search for VMs without a node.
class Decisions {
 public:
  struct Entry {
    const VmView* view = nullptr;
    Step step;
  };
  explicit Decisions(PoolSnapshot snapshot, std::span<const Rule> rules = kRules);

  const PoolSnapshot& snapshot() const { return snapshot_; }
  const PoolFacts& pool() const { return pool_; }
  const std::vector<Entry>& all() const { return entries_; }
  // Null if the pool has no such VM.
  const Entry* Find(std::string_view vm) const;
  // The nodes to purge: we last drained them, for a VM that is not in the snapshot.
  const std::vector<OrphanedNode>& to_purge() const { return to_purge_; }

 private:
  PoolSnapshot snapshot_;
  PoolFacts pool_;
  std::vector<Entry> entries_;
  std::vector<OrphanedNode> to_purge_;
};

// The snapshot after all repairs that are due, and those that follow from them: marks removed,
// drains cancelled, nodes enabled, as Harvester and Nomad would then answer (rule C14). Without
// repairs the snapshot is unchanged.
PoolSnapshot AfterRepairs(PoolSnapshot snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_RULES_H_
