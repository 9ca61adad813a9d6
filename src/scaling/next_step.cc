// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/next_step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::scaling {
namespace {

using nodepool::LinkState;
using nomad::DrainStatus;
using nomad::Node;
using nomad::NodeStatus;

Step MakeStep(StepKind kind, Row row, std::string reason, const Node* node = nullptr) {
  Step step{.kind = kind, .row = row, .reason = std::move(reason)};
  if (node != nullptr) step.node_id = node->id;
  return step;
}

// A drain that Nomad reports as complete; the absence of a drain is not enough.
bool IsComplete(const Node& node) {
  return !node.draining && node.last_drain.has_value() &&
         node.last_drain->status == DrainStatus::kComplete;
}

bool WasIneligible(const Node& node) {
  const auto mark = nodepool::ParseDrainMark(node);
  return mark.has_value() && mark->was_ineligible;
}

bool IsRecorded(const VmView& view, const Node& node) {
  return nodepool::RollbackMarker(node) == view.vm.rolled_back;
}

std::string Named(const Node& node) { return "node " + node.name + " (" + node.id + ")"; }

// The rows of a VM without a mark whose nodes have a drain that we started for it.
std::optional<Step> UndoDrain(const VmView& view, const PoolSnapshot& snapshot) {
  const std::vector<const Node*> drained = NodesDrainedFor(view, snapshot);
  for (const Node* node : drained) {
    if (!node->draining) continue;
    Step step =
        MakeStep(StepKind::kCancelDrain, Row::kUnmarkedDraining,
                 "the VM carries no mark, but " + Named(*node) + " is drained for it", node);
    step.mark_eligible = !WasIneligible(*node);
    return step;
  }
  for (const Node* node : drained) {
    if (IsComplete(*node) && !node->eligible && !WasIneligible(*node) && !IsRecorded(view, *node)) {
      return MakeStep(StepKind::kEnable, Row::kUnmarkedDrained,
                      "the VM carries no mark, but " + Named(*node) + " was drained for it", node);
    }
  }
  const Node* linked = LinkedNode(view, snapshot);
  if (linked != nullptr && nodepool::IsDrainOfVm(*linked, view.vm.uid) && IsComplete(*linked) &&
      !IsRecorded(view, *linked) && (linked->eligible || WasIneligible(*linked))) {
    Step step = MakeStep(StepKind::kRecordRolledBack, Row::kUnmarkedRecord,
                         "the drain of " + Named(*linked) + " is undone", linked);
    step.value = nodepool::RollbackMarker(*linked);
    return step;
  }
  return std::nullopt;
}

Step StepOfBroken(const VmView& view, const PoolSnapshot& snapshot) {
  const std::string cause = view.start_failure.has_value()
                                ? "its start fails: " + view.start_failure->reason
                                : "it has not joined Nomad by its deadline";
  if (const Node* candidate = UnlinkedCandidate(view, snapshot); candidate != nullptr) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedCandidate,
                    cause + ", but " + Named(*candidate) +
                        " has no VM's name and could be it; give that node the VM's name in the "
                        "attribute that node_attribute names, or meta.harvester_vm_uuid = \"none\" "
                        "if it is not a VM of this pool",
                    candidate);
  }
  // A mark stores the policy's drain settings, so without a policy no removal is started. With a
  // policy in dry-run none is started either (rule C13).
  const bool may_mark = snapshot.policy.has_value() && !snapshot.policy->dry_run;
  const bool remove =
      may_mark && (view.start_failure.has_value() ||
                   snapshot.policy->on_join_timeout == config::OnJoinTimeout::kDelete);
  if (remove && !view.vm.is_protected) {
    return MakeStep(StepKind::kMarkBroken, Row::kUnmarkedBroken, cause);
  }
  return MakeStep(StepKind::kReport, Row::kUnmarkedBrokenKept, cause + "; it is kept");
}

// Whether max_unhealthy allows one more replacement, and this VM is the next one by name.
bool MayReplace(const VmView& view, const PoolSnapshot& snapshot) {
  std::int64_t members = 0;
  std::int64_t leaving = 0;
  std::int64_t before = 0;
  for (const VmView& other : snapshot.vms) {
    if (!IsPoolMember(other, snapshot)) continue;
    ++members;
    if (other.vm.has_mark) {
      const bool unhealthy =
          other.vm.mark.has_value() && other.vm.mark->reason == harvester::MarkReason::kUnhealthy;
      if (unhealthy) ++leaving;
    } else if (other.vm.name < view.vm.name && !other.vm.is_protected &&
               IsUnhealthy(other, snapshot)) {
      ++before;
    }
  }
  return leaving + before < snapshot.policy->max_unhealthy.Of(members);
}

Step StepOfUnhealthy(const VmView& view, const PoolSnapshot& snapshot) {
  const Node* node = LinkedNode(view, snapshot);
  const std::string cause =
      "it does not run and " +
      (node == nullptr ? std::string("its node is gone") : Named(*node) + " is down");
  if (const Node* candidate = UnlinkedCandidate(view, snapshot);
      node == nullptr && candidate != nullptr) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedCandidate,
                    cause + ", but " + Named(*candidate) + " has no VM's name and could be it",
                    candidate);
  }
  if (view.vm.is_protected || snapshot.policy->dry_run) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedUnhealthyKept, cause + "; it is kept", node);
  }
  if (!MayReplace(view, snapshot)) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedUnhealthyKept,
                    cause + "; it is kept while as many VMs as max_unhealthy allows are replaced",
                    node);
  }
  return MakeStep(StepKind::kMarkUnhealthy, Row::kUnmarkedUnhealthy, cause, node);
}

Step StepOfUnmarked(const VmView& view, const PoolSnapshot& snapshot) {
  if (std::optional<Step> undo = UndoDrain(view, snapshot)) return *std::move(undo);
  if (view.link.state == LinkState::kTwoReady) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedTwoReady,
                    "two ready nodes have its name: " + view.link.explanation);
  }
  if (IsUnhealthy(view, snapshot)) return StepOfUnhealthy(view, snapshot);
  if (harvester::HasJoined(view.vm)) {
    return MakeStep(StepKind::kNothing, Row::kUnmarkedOther, "it has joined");
  }
  if (view.link.state == LinkState::kLinked) {
    return MakeStep(StepKind::kRecordJoin, Row::kUnmarkedJoins, "its node has registered",
                    LinkedNode(view, snapshot));
  }
  if (view.link.state != LinkState::kNone) {
    return MakeStep(StepKind::kReport, Row::kUnmarkedOther, view.link.explanation);
  }
  const bool has_timeout = view.vm.join_timeout.has_value() && !view.vm.join_timeout->none;
  if (has_timeout && snapshot.policy.has_value() &&
      snapshot.policy->wait_for == config::WaitFor::kRunning && harvester::IsRunning(view.vm)) {
    return MakeStep(StepKind::kForgetJoinTimeout, Row::kUnmarkedRan,
                    "its instance has run, which is what the policy waits for");
  }
  if (IsBroken(view, snapshot)) return StepOfBroken(view, snapshot);
  if (JoinDeadline(view, snapshot).has_value()) {
    return MakeStep(StepKind::kWait, Row::kUnmarkedWaiting, "it has not joined yet");
  }
  return MakeStep(StepKind::kNothing, Row::kUnmarkedOther, "it has no join deadline");
}

bool IsNamed(const VmView& view, const PoolSnapshot& snapshot) {
  return snapshot.action.has_value() && snapshot.action->names.contains(view.vm.name);
}

// Ineligible other than by a drain of ours that was neither rolled back nor recorded.
bool IneligibleByOthers(const VmView& view, const Node& node) {
  if (node.eligible) return false;
  const bool by_us = nodepool::IsDrainOfVm(node, view.vm.uid) && IsComplete(node) &&
                     !WasIneligible(node) && !IsRecorded(view, node);
  return !by_us;
}

// The rows of a marked VM without a linked node.
Step StepWithoutNode(const VmView& view, const PoolSnapshot& snapshot,
                     const harvester::Mark& mark) {
  if (const Node* candidate = UnlinkedCandidate(view, snapshot); candidate != nullptr) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedCandidate,
                    "no node has its name, but " + Named(*candidate) + " could be it", candidate);
  }
  if (!harvester::HasJoined(view.vm)) {
    return MakeStep(StepKind::kDelete, Row::kMarkedNeverJoined, "it never joined Nomad");
  }
  if (view.node_gone) {
    return MakeStep(StepKind::kDelete, Row::kMarkedGone, "its node is gone from Nomad");
  }
  if (IsLate(mark, snapshot.now)) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedLate,
                    "its node cannot be found, and the deadline of its removal has passed");
  }
  return MakeStep(StepKind::kWait, Row::kMarkedNoNode,
                  "its node " + mark.node_id + " exists, but no longer has its name");
}

bool IsDownForGood(const VmView& view, const Node& node) {
  return node.status == NodeStatus::kDown &&
         (view.instance_runs == std::optional<bool>(false) || view.node_down_for >= kDownForGood);
}

bool IsIdleNode(const Node& node, const PoolSnapshot& snapshot, const harvester::Mark& mark) {
  const auto found = snapshot.allocations.find(node.id);
  if (found == snapshot.allocations.end()) return false;
  return nodepool::IsIdle(found->second, mark.ignore_system);
}

Step StepWithNode(const VmView& view, const PoolSnapshot& snapshot, const harvester::Mark& mark,
                  const Node& node) {
  const bool ours = nodepool::IsDrainOf(node, mark.action, view.vm.uid);
  const bool complete = ours && IsComplete(node);
  if (ours && !node.draining && node.last_drain->status == DrainStatus::kCanceled) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedCanceled,
                    "the drain of " + Named(node) + " was cancelled by an operator", &node);
  }
  if (complete && node.eligible) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedEnabled,
                    Named(node) + " was enabled again by an operator", &node);
  }
  if (IsDownForGood(view, node)) {
    return MakeStep(StepKind::kDelete, Row::kMarkedDown, Named(node) + " is down", &node);
  }
  if (complete && IsIdleNode(node, snapshot, mark)) {
    return MakeStep(StepKind::kDelete, Row::kMarkedIdle, Named(node) + " is drained", &node);
  }
  if (mark.reason == harvester::MarkReason::kUnhealthy && !ours && !node.draining &&
      node.status == NodeStatus::kReady) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedRecovered,
                    Named(node) + " is ready again: the VM is healthy", &node);
  }
  if (IsLate(mark, snapshot.now)) {
    if (mark.force && ours && (node.draining || complete)) {
      return MakeStep(StepKind::kDelete, Row::kMarkedLateForced,
                      "the drain of " + Named(node) + " is past its deadline and grace", &node);
    }
    return MakeStep(StepKind::kRollBack, Row::kMarkedLate,
                    "the drain of " + Named(node) + " is past its deadline and grace", &node);
  }
  if (node.draining || complete || node.status != NodeStatus::kReady) {
    return MakeStep(StepKind::kWait, Row::kMarkedWaiting,
                    node.draining ? Named(node) + " drains"
                    : complete    ? "tasks on " + Named(node) + " are still stopping"
                                  : Named(node) + " is not ready",
                    &node);
  }
  Step step = MakeStep(StepKind::kStartDrain, Row::kMarkedStartDrain,
                       Named(node) + " is to be drained", &node);
  step.was_ineligible = IneligibleByOthers(view, node);
  return step;
}

Step StepOfMarked(const VmView& view, const PoolSnapshot& snapshot) {
  if (!view.vm.mark.has_value()) {
    return MakeStep(StepKind::kRollBack, Row::kMarkUnreadable,
                    "its mark (annotation scale-in) cannot be read");
  }
  const harvester::Mark& mark = *view.vm.mark;
  const Node* node = LinkedNode(view, snapshot);
  if (node != nullptr && node->draining && !nodepool::IsDrainOf(*node, mark.action, view.vm.uid)) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedForeignDrain,
                    Named(*node) + " is drained by another client: maintenance", node);
  }
  if (view.link.state == LinkState::kTwoReady || view.link.state == LinkState::kContradicted) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedTwoReady, view.link.explanation);
  }
  if (snapshot.lease_used && mark.reason != harvester::MarkReason::kBroken &&
      !IsNamed(view, snapshot)) {
    return MakeStep(StepKind::kRollBack, Row::kMarkedNotNamed,
                    "the Lease's action does not name it: its mark was written too late");
  }
  if (node == nullptr) return StepWithoutNode(view, snapshot, mark);
  return StepWithNode(view, snapshot, mark, *node);
}

}  // namespace

Step NextStep(const VmView& view, const PoolSnapshot& snapshot) {
  if (!snapshot.nomad_readable) {
    return MakeStep(StepKind::kWait, Row::kNomadUnreadable,
                    "Nomad cannot be read: " + snapshot.nomad_problem);
  }
  if (IsOtherRegion(view.vm, snapshot.region)) {
    return MakeStep(StepKind::kWait, Row::kOtherRegion,
                    "it was made for Nomad region " + view.vm.nodes->region);
  }
  if (harvester::IsTerminating(view.vm)) {
    return MakeStep(StepKind::kWait, Row::kTerminating, "it is being deleted");
  }
  if (!view.member) {
    return MakeStep(StepKind::kNothing, Row::kNotMember, "it is a copy, or its labels were edited");
  }
  return view.vm.has_mark ? StepOfMarked(view, snapshot) : StepOfUnmarked(view, snapshot);
}

Step NextStepOfGoneVm(const nomad::Node& node, const PoolSnapshot& snapshot) {
  if (!snapshot.nomad_readable) {
    return MakeStep(StepKind::kWait, Row::kNomadUnreadable,
                    "Nomad cannot be read: " + snapshot.nomad_problem);
  }
  const auto mark = nodepool::ParseDrainMark(node);
  if (mark.has_value() && mark->pool == snapshot.key.ToString() && mark->purge &&
      node.status != NodeStatus::kReady) {
    return MakeStep(StepKind::kPurge, Row::kGonePurge, "the VM of " + Named(node) + " is gone",
                    &node);
  }
  return MakeStep(StepKind::kNothing, Row::kGoneNothing, "the VM is gone");
}

std::vector<const Node*> NodesToPurge(const PoolSnapshot& snapshot) {
  std::vector<const Node*> nodes;
  for (const NodeOfGoneVm& gone : NodesOfGoneVms(snapshot)) {
    if (NextStepOfGoneVm(*gone.node, snapshot).kind == StepKind::kPurge) {
      nodes.push_back(gone.node);
    }
  }
  return nodes;
}

bool IsAct(StepKind kind) {
  return kind != StepKind::kNothing && kind != StepKind::kWait && kind != StepKind::kReport &&
         kind != StepKind::kPurge;
}

bool IsRepair(StepKind kind) {
  return kind == StepKind::kCancelDrain || kind == StepKind::kEnable ||
         kind == StepKind::kRecordRolledBack || kind == StepKind::kRollBack;
}

bool IsLate(const harvester::Mark& mark, base::WallTime now) {
  switch (mark.drain_deadline.kind) {
    case harvester::DrainDeadline::Kind::kNone:
      return false;
    case harvester::DrainDeadline::Kind::kNow:
      return now >= mark.marked_at + mark.grace;
    case harvester::DrainDeadline::Kind::kAt:
      return now >= mark.drain_deadline.at + mark.grace;
  }
  return false;
}

std::string_view StepName(StepKind kind) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "nothing",   "wait",        "cancel-drain",   "enable",      "record-rolled-back",
      "report",    "mark-broken", "mark-unhealthy", "record-join", "forget-join-timeout",
      "roll-back", "start-drain", "delete",         "purge"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view RowName(Row row) {
  static constexpr std::array<std::string_view, 36> kNames = {"nomad-unreadable",
                                                              "other-region",
                                                              "gone-purge",
                                                              "gone-nothing",
                                                              "terminating",
                                                              "not-member",
                                                              "unmarked-draining",
                                                              "unmarked-drained",
                                                              "unmarked-record",
                                                              "unmarked-two-ready",
                                                              "unmarked-ran",
                                                              "unmarked-waiting",
                                                              "unmarked-candidate",
                                                              "unmarked-broken",
                                                              "unmarked-broken-kept",
                                                              "unmarked-unhealthy",
                                                              "unmarked-unhealthy-kept",
                                                              "unmarked-joins",
                                                              "unmarked-other",
                                                              "mark-unreadable",
                                                              "marked-foreign-drain",
                                                              "marked-two-ready",
                                                              "marked-not-named",
                                                              "marked-canceled",
                                                              "marked-enabled",
                                                              "marked-candidate",
                                                              "marked-never-joined",
                                                              "marked-gone",
                                                              "marked-down",
                                                              "marked-idle",
                                                              "marked-recovered",
                                                              "marked-late-forced",
                                                              "marked-late",
                                                              "marked-waiting",
                                                              "marked-no-node",
                                                              "marked-start-drain"};
  return kNames.at(static_cast<std::size_t>(row));
}

}  // namespace nomad_harvester::scaling
