// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/step_spec.h"

#include <algorithm>
#include <array>

namespace nomad_harvester::scaling {
namespace {

// In the order of StepKind.
constexpr auto kSpecs = std::to_array<StepSpec>({
    {StepKind::kNothing, "nothing", "do nothing", "did nothing", StepCategory::kNone,
     Recheck::kNone},
    {StepKind::kWait, "wait", "wait", "waited", StepCategory::kNone, Recheck::kNone},
    {StepKind::kCancelDrain, "cancel-drain", "cancel the drain of its node",
     "cancelled the drain of its node", StepCategory::kRepair, Recheck::kSameRow},
    {StepKind::kEnable, "enable", "make its node eligible again", "made its node eligible again",
     StepCategory::kRepair, Recheck::kSameRow},
    {StepKind::kRecordRolledBack, "record-rolled-back", "record the roll-back",
     "recorded the roll-back", StepCategory::kRepair, Recheck::kNone},
    {StepKind::kReport, "report", "report the VM", "reported the VM", StepCategory::kNone,
     Recheck::kNone},
    {StepKind::kMarkBroken, "mark-broken", "mark the VM as broken, and remove it",
     "marked the VM as broken", StepCategory::kRemoval, Recheck::kSameRow},
    {StepKind::kMarkUnhealthy, "mark-unhealthy", "mark the VM as unhealthy, and remove it",
     "marked the VM as unhealthy", StepCategory::kRemoval, Recheck::kSameRow},
    {StepKind::kMarkReplaced, "mark-replaced", "mark the VM as replaced, and remove it",
     "marked the VM as replaced", StepCategory::kRemoval, Recheck::kSameRow},
    {StepKind::kKeepReplaced, "keep-replaced", "record that it stays", "recorded that it stays",
     StepCategory::kUpkeep, Recheck::kNone},
    {StepKind::kRecordJoin, "record-join", "record the join", "recorded the join",
     StepCategory::kRecord, Recheck::kNone},
    {StepKind::kRecordReady, "record-ready", "record that it is ready", "recorded that it is ready",
     StepCategory::kRecord, Recheck::kNone},
    {StepKind::kRecordCluster, "record-cluster", "record its Nomad cluster and node",
     "recorded its Nomad cluster and node", StepCategory::kRecord, Recheck::kNone},
    {StepKind::kStart, "start", "start the VM", "started the VM", StepCategory::kUpkeep,
     Recheck::kNone},
    {StepKind::kRenewToken, "renew-token", "replace its introduction token",
     "replaced its introduction token", StepCategory::kUpkeep, Recheck::kNone},
    {StepKind::kPublishHost, "publish-host", "publish its host", "published its host",
     StepCategory::kUpkeep, Recheck::kNone, true},
    {StepKind::kUnpublishHost, "unpublish-host", "unset its published host",
     "unset its published host", StepCategory::kUpkeep, Recheck::kNone, true},
    {StepKind::kRollBack, "roll-back", "remove the mark", "removed the mark", StepCategory::kRepair,
     Recheck::kNone},
    {StepKind::kStartDrain, "start-drain", "start the drain of its node",
     "started the drain of its node", StepCategory::kRemoval, Recheck::kSameKind},
    {StepKind::kDelete, "delete", "delete the VM", "deleted the VM", StepCategory::kRemoval,
     Recheck::kSameRow},
    {StepKind::kHalt, "halt", "set its run strategy to Halted", "set its run strategy to Halted",
     StepCategory::kRemoval, Recheck::kNone},
    {StepKind::kPurge, "purge", "purge its node", "purged its node", StepCategory::kCleanUp,
     Recheck::kSameKind},
});

// The condition under which a step of a kind needs a read.
enum class Only { kAlways, kWithNode, kWithoutNode, kIdleRow, kDownRow, kCutOffRow };

struct ReadRow {
  StepKind kind;
  Read read;
  Only only;
};
constexpr auto kReads = std::to_array<ReadRow>({
    {StepKind::kCancelDrain, Read::kNode, Only::kAlways},
    {StepKind::kEnable, Read::kNode, Only::kAlways},
    {StepKind::kStartDrain, Read::kNode, Only::kAlways},
    {StepKind::kMarkBroken, Read::kCluster, Only::kWithoutNode},
    {StepKind::kMarkBroken, Read::kNode, Only::kCutOffRow},
    {StepKind::kMarkBroken, Read::kAllocations, Only::kCutOffRow},
    {StepKind::kMarkReplaced, Read::kNode, Only::kWithNode},
    {StepKind::kMarkReplaced, Read::kVm, Only::kAlways},
    {StepKind::kMarkUnhealthy, Read::kNode, Only::kWithNode},
    {StepKind::kMarkUnhealthy, Read::kNodes, Only::kWithoutNode},
    {StepKind::kMarkUnhealthy, Read::kMarksNode, Only::kWithoutNode},
    {StepKind::kMarkUnhealthy, Read::kCluster, Only::kWithoutNode},
    {StepKind::kMarkUnhealthy, Read::kAllocations, Only::kCutOffRow},
    {StepKind::kMarkUnhealthy, Read::kVm, Only::kAlways},
    {StepKind::kDelete, Read::kNodes, Only::kAlways},
    {StepKind::kDelete, Read::kNode, Only::kWithNode},
    {StepKind::kDelete, Read::kMarksNode, Only::kWithoutNode},
    {StepKind::kDelete, Read::kCluster, Only::kWithoutNode},
    {StepKind::kDelete, Read::kAllocations, Only::kIdleRow},
    {StepKind::kDelete, Read::kAllocations, Only::kCutOffRow},
    {StepKind::kDelete, Read::kVm, Only::kAlways},
    {StepKind::kDelete, Read::kInstance, Only::kDownRow},
    {StepKind::kPurge, Read::kVmGone, Only::kAlways},
    {StepKind::kPurge, Read::kNode, Only::kAlways},
    {StepKind::kPurge, Read::kCluster, Only::kAlways},
});

bool Applies(Only only, const Step& step) {
  switch (only) {
    case Only::kAlways:
      return true;
    case Only::kWithNode:
      return !step.node_id.empty();
    case Only::kWithoutNode:
      return step.node_id.empty();
    case Only::kIdleRow:
      return step.row == Row::kMarkedIdle || step.row == Row::kMarkedNeverReady;
    case Only::kDownRow:
      return step.row == Row::kMarkedDown || step.row == Row::kMarkedCutOff;
    case Only::kCutOffRow:
      return step.row == Row::kUnmarkedCutOff || step.row == Row::kMarkedCutOff;
  }
  return false;
}

}  // namespace

const StepSpec& SpecOf(StepKind kind) { return kSpecs.at(static_cast<std::size_t>(kind)); }

std::vector<Read> ReadsOf(const Step& step) {
  std::vector<Read> reads;
  for (const ReadRow& row : kReads) {
    if (row.kind == step.kind && Applies(row.only, step)) reads.push_back(row.read);
  }
  return reads;
}

std::string_view StepName(StepKind kind) { return SpecOf(kind).name; }

bool IsAct(StepKind kind) {
  const StepCategory category = SpecOf(kind).category;
  return category != StepCategory::kNone && category != StepCategory::kCleanUp;
}
bool IsDeferred(StepKind kind) { return SpecOf(kind).aside; }
bool IsJoin(StepKind kind) {
  return kind == StepKind::kRecordJoin || kind == StepKind::kRecordReady;
}
bool IsRepair(StepKind kind) { return SpecOf(kind).category == StepCategory::kRepair; }
bool IsRemoval(StepKind kind) { return SpecOf(kind).category == StepCategory::kRemoval; }
bool IsUpkeep(StepKind kind) { return SpecOf(kind).category == StepCategory::kUpkeep; }

}  // namespace nomad_harvester::scaling
