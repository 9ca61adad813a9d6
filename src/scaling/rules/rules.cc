// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/readiness.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"

#include "absl/strings/str_join.h"
#include "rules/progress.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::MarkReason;
using nodepool::LinkState;
using nomad::Node;
using nomad::NodeStatus;

// A drain that has not begun this long after its deadline is given up. A killed process alone costs
// up to 20 s of Lease.
constexpr base::Duration kBeginningMargin = std::chrono::seconds(10);

// Nomad may still place work on a node while its drain begins. An allocation that wants to run
// there when the drain has been complete for this long was placed after it; only another drain
// stops it.
constexpr base::Duration kPlacedDuringDrain = std::chrono::seconds(10);

// If a client still runs an allocation that Nomad gave up as lost, it reports the allocation, which
// then is no longer lost (hashicorp/nomad:nomad/state/state_store.go, nestedUpdateAllocFromClient).
// If the allocation is still lost when the drain has been complete for this long, the client has
// lost it as well, and its task states are stale.
constexpr base::Duration kStaleLost = std::chrono::minutes(5);

// KubeVirt and Harvester remove a VM's finalizers within seconds after its guest has ended. If they
// have not done so after this time, the run strategy may be the cause (rule C4). Setting it to
// Halted does no harm to a VM that is being deleted.
constexpr base::Duration kHaltAfter = std::chrono::seconds(60);

// After this time a process that does not know a VM's introduction token checks that token, which
// costs one read.
constexpr base::Duration kUnknownToken = std::chrono::minutes(2);

// Decide() sets the row.
Step MakeStep(StepKind kind, std::string reason, const Node* node = nullptr) {
  Step step{.kind = kind, .reason = std::move(reason)};
  if (node != nullptr) step.node_id = node->id;
  return step;
}

Step Wait(std::string reason, const Node* node = nullptr) {
  return MakeStep(StepKind::kWait, std::move(reason), node);
}
Step Report(std::string reason, const Node* node = nullptr) {
  return MakeStep(StepKind::kReport, std::move(reason), node);
}
Step RollBack(std::string reason, const Node* node = nullptr) {
  return MakeStep(StepKind::kRollBack, std::move(reason), node);
}

std::string Named(const Node& node) { return "node " + node.name + " (" + node.id + ")"; }

const Observation& ObservationOf(const Facts& facts) { return facts.snapshot->observation(); }

bool Has(const Node* node, NodeStatus status) { return node != nullptr && node->status == status; }

// The allocations of the VM's node; null: they were not read.
const Allocations* WorkOf(const Facts& facts) {
  return facts.node == nullptr ? nullptr : facts.seen->AllocationsOf(facts.node->id);
}

// True if the VM's node is ready, in every respect that the policy asks for (rule C17).
bool IsUsable(const Facts& facts) {
  return facts.node != nullptr &&
         !WhyNotReady(*facts.view, *facts.node, *facts.snapshot).has_value();
}

// The same when it is to be recorded: only a policy says which drivers a node needs to be ready for
// the first time.
bool IsReadyToRecord(const Facts& facts) {
  return IsUsable(facts) && (facts.was_ready || facts.snapshot->policy.has_value());
}

// True if the node's last drain, which is ours, is complete and not in the annotation rolled-back.
bool IsUnrecorded(const Facts& facts, const Node& node) {
  return IsDrained(node) && nodepool::RollbackMarker(node) != facts.view->vm->rolled_back;
}

// True if the node is ineligible because of its last drain, which is ours.
bool IsIneligibleByDrain(const Node& node) {
  return !node.eligible && !nodepool::ParseDrainMark(node)->was_ineligible;
}

const Node* DrainToCancel(const Facts& facts) {
  for (const Node* node : facts.drained_for_it) {
    if (node->draining) return node;
  }
  return nullptr;
}

const Node* DrainToUndo(const Facts& facts) {
  for (const Node* node : facts.drained_for_it) {
    if (IsUnrecorded(facts, *node) && IsIneligibleByDrain(*node)) return node;
  }
  return nullptr;
}

bool IsUndoneDrainOf(const Facts& facts, const Node* node) {
  const auto& drained = facts.drained_for_it;
  return std::find(drained.begin(), drained.end(), node) != drained.end() &&
         IsUnrecorded(facts, *node) && !IsIneligibleByDrain(*node);
}

// True if the VM that replaces this one is ready to take its place, or waits for its end (rules R3
// and R6).
bool SuccessorIsDue(const Facts& facts) {
  const VmView* const successor = facts.successor;
  // A successor that is itself being removed replaces nothing.
  if (successor == nullptr || successor->vm->has_mark) return false;
  // The VM leaves because of its node, so a missing or unready node does not keep it (rule R6).
  const bool for_its_node = successor->vm->replaces->reason.kind == ReplaceKind::kUnhealthy &&
                            facts.snapshot->policy->replace_unhealthy_after.has_value();
  const bool is_kept = facts.is_protected || facts.removal_blocked.has_value();
  if (for_its_node && !is_kept && !Has(facts.node, NodeStatus::kReady)) return false;
  if (harvester::WaitsToStart(successor->vm)) return !StaysBeside(*facts.view, *successor);
  if (!harvester::WasReady(successor->vm)) return false;
  const Node* const node = LinkedNode(*successor, *facts.snapshot);
  // A new VM that joined another pool is useless there; it waits for an operator (rule R5).
  return Has(node, NodeStatus::kReady) && node->eligible &&
         BelongsToPool(*node, *successor, facts.snapshot->policy);
}

// Why a VM stays although its successor is due; unset: it goes.
std::optional<std::string> WhyItStays(const Facts& facts) {
  if (facts.node == nullptr) return "it has no Nomad node";
  auto objection = ObjectionToRemoval(*facts.view, facts.node, *facts.snapshot);
  if (objection.has_value()) return objection;
  if (facts.removal_blocked.has_value()) {
    return "another client drains its node, or has cancelled its drain";
  }
  const bool refused = facts.view->giving_way_refused_for >= kRefusedForGood;
  if (refused) return "its mark has been refused for a minute";
  return std::nullopt;
}

// True if nothing is missing for the mark of an unhealthy VM but its replacement (rule R1).
bool AwaitsReplacement(const Facts& facts) {
  const VmView& view = *facts.view;
  return facts.successor == nullptr && !facts.snapshot->collected &&
         !WasRecentlyRolledBack(view.vm, facts.snapshot->now()) &&
         !IsPendingReplacement(view, *facts.snapshot) && view.awaited_for < kReplacementWait;
}

bool MaxUnhealthyAllows(const Facts& facts) {
  const std::string& uid = facts.view->vm->uid;
  return facts.pool != nullptr ? facts.pool->may_replace.contains(uid)
                               : PoolFacts(*facts.snapshot).may_replace.contains(uid);
}

// True if the policy removes a broken VM like this one, and nothing keeps it.
bool MayRemoveBroken(const Facts& facts) {
  const SharedPolicy& policy = facts.snapshot->policy;
  if (!policy.has_value() || policy->dry_run) return false;
  if (facts.is_protected || facts.removal_blocked.has_value()) return false;
  // A new VM that is not ready in time is useless, even after the old one has gone (rule R5).
  const bool is_successor = facts.view->vm->replaces.has_value() && !facts.was_ready;
  return facts.view->start_failure.has_value() || is_successor ||
         policy->on_join_timeout == config::OnJoinTimeout::kDelete;
}

// The VM whose place this one takes; null: it is gone, or no longer in the pool (rule R8).
const VmView* Predecessor(const Facts& facts) {
  const VmView* const old = facts.snapshot->seen->FindVmByUid(facts.view->vm->replaces->uid);
  const bool has_left = old == nullptr || !IsPoolMember(*old, *facts.snapshot) ||
                        (harvester::IsTerminating(old->vm) && !MayHaveInstance(*old));
  return has_left ? nullptr : old;
}

// True if the VM whose place a waiting VM was to take stays.
bool IsNotNeeded(const Facts& facts) {
  const VmView* const old = Predecessor(facts);
  return old != nullptr && StaysBeside(*old, *facts.view);
}

// True if an operator has started a VM that was to wait for another one's end.
bool WasStartedByHand(const Facts& facts) {
  const harvester::VirtualMachine& vm = facts.view->vm;
  return facts.snapshot->policy.has_value() && !facts.waits_to_start && !facts.joined &&
         vm.replaces.has_value() && !vm.replaces->start.empty();
}

// True if the VM has not booted, and its introduction token may expire before it does.
bool TokenEnds(const Facts& facts) {
  const VmView& view = *facts.view;
  const SharedPolicy& policy = facts.snapshot->policy;
  if (!policy.has_value() || policy->intro_token == config::IntroToken::kOff) return false;
  if (facts.joined || facts.node != nullptr || harvester::IsRunning(view.vm)) return false;
  if (view.instance_runs.value_or(false)) return false;
  if (!facts.waits_to_start) {
    // If another VM is stopped, nobody knows when it will boot.
    return !harvester::IsStopped(view.vm) &&
           view.token_check_in.value_or(kUnknownToken - view.known_for) <= base::Duration::zero();
  }
  // It starts without a token: servers that only warn accept it nevertheless.
  if (Predecessor(facts) != nullptr || view.token_refused_for >= kRefusedForGood) return false;
  // A VM that is about to start may have waited for longer than its token lasts.
  return view.token_check_in.value_or(base::Duration::zero()) <= base::Duration::zero();
}

// True if the client of a VM that has joined has registered anew, as another node.
bool HasNewNode(const Facts& facts) {
  return facts.joined && Has(facts.node, NodeStatus::kReady) &&
         facts.node->id != facts.view->vm->joined_node_id;
}

// True if the node's metadata may be written: it is ready, and this is no dry run.
bool MayPublish(const Facts& facts) {
  return facts.joined && facts.snapshot->policy.has_value() && !facts.dry_run &&
         Has(facts.node, NodeStatus::kReady);
}

// Compares the VM's host with its annotation, which repeats the node's metadata, so that no node is
// read at rest.
bool IsPublished(const Facts& facts) {
  const VmView& view = *facts.view;
  const std::optional<harvester::PublishedHost>& published = view.vm->published_host;
  return published.has_value() && published->node_id == facts.node->id &&
         published->host == view.host &&
         (!view.host_zone.has_value() || *view.host_zone == published->zone.value_or(""));
}

// True if the node is away, and not because its guest is paused or migrates: its instance does not
// run, or the node has been away for kDownForGood.
bool IsAwayForGood(const Facts& facts) {
  return !harvester::IsPausedOrMigrating(facts.view->vm) &&
         (facts.view->instance_runs == std::optional<bool>(false) ||
          facts.view->node_down_for >= kDownForGood);
}

// True if a drain posted now would take effect: the client receives it, or has nothing to stop.
bool CanDrain(const Node& node) {
  return node.status == NodeStatus::kReady || node.status == NodeStatus::kInitializing;
}

// True for a scale-in that is past its timed deadline although none of our drains was ever posted
// (rule C9).
bool HasNeverBegun(const Facts& facts) {
  if (!harvester::IsElective(facts.mark->reason)) return false;
  if (facts.node == nullptr || facts.ours || !CanDrain(*facts.node)) return false;
  const harvester::DrainDeadline& deadline = facts.mark->drain_deadline;
  return deadline.kind == harvester::DrainDeadline::Kind::kAt &&
         HasPassed(deadline.at + kBeginningMargin, deadline.at - facts.mark->marked_at, *facts.view,
                   ObservationOf(facts));
}

std::string CauseOfBroken(const Facts& facts) {
  const VmView& view = *facts.view;
  if (view.start_failure.has_value()) {
    return "its start fails: " + view.start_failure->reason +
           (view.volume_warning.empty() ? "" : "; " + view.volume_warning);
  }
  if (!view.start_refusal.ok()) {
    return "its start has been refused for a minute: " + base::Message(view.start_refusal);
  }
  if (facts.joined) {
    return "it was not ready by its deadline: " +
           DescribeLateReadiness(view, facts.node, *facts.snapshot);
  }
  return "it has not joined Nomad by its deadline: " + DescribeProgress(view) +
         AdviceToJoin(view, *facts.snapshot);
}

std::string CauseOfUnhealthy(const Facts& facts) {
  const VmView& view = *facts.view;
  const PoolSnapshot& snapshot = *facts.snapshot;
  const auto limit =
      UnhealthyLimit(view.vm, *snapshot.policy, IsPendingReplacement(view, snapshot));
  const std::string disk_fault = harvester::DiskFault(view.vm);
  return (facts.node == nullptr ? std::string("its node is gone")
                                : Named(*facts.node) + " is " + nodepool::StatusText(*facts.node)) +
         ", and was not ready for " + base::FormatGoDuration(*limit) +
         (disk_fault.empty() ? "" : "; its guest is paused: " + disk_fault);
}

Step ReportCandidate(const Facts& facts) {
  const std::string other =
      ", but " + Named(*facts.candidate) + " has no VM's name and could be it";
  if (facts.unhealthy) return Report(CauseOfUnhealthy(facts) + other, facts.candidate);
  return Report(CauseOfBroken(facts) + other +
                    "; give that node the VM's name in the attribute that node_attribute names, or "
                    "meta.harvester_vm_uuid = \"none\" if it is not a VM of this pool",
                facts.candidate);
}

Step CancelDrain(const Facts& facts) {
  const Node* const node = DrainToCancel(facts);
  Step step = MakeStep(StepKind::kCancelDrain,
                       "the VM carries no mark, but " + Named(*node) + " is drained for it", node);
  step.mark_eligible = !nodepool::ParseDrainMark(*node)->was_ineligible;
  return step;
}

Step RecordRolledBack(const Facts& facts) {
  Step step = MakeStep(StepKind::kRecordRolledBack,
                       "the drain of " + Named(*facts.node) + " is undone", facts.node);
  step.value = nodepool::RollbackMarker(*facts.node);
  return step;
}

// Says why a VM that the policy would remove is not marked; the default is that it is protected, or
// kept by the policy.
std::string WhyKept(const Facts& facts) {
  if (!facts.removal_blocked.has_value()) return "; it is kept";
  switch (*facts.removal_blocked) {
    case RemovalBlock::kDrainedByOperator:
      return "; it is kept while another client drains its node";
    case RemovalBlock::kDrainCancelled:
      return "; it is kept for an hour, because its drain was cancelled";
    case RemovalBlock::kWorkMayComeBack:
      return "; it is kept while an allocation on its node is within the time that its group gives "
             "it";
    case RemovalBlock::kAllocationsUnverified:
      return "; it is kept: its node is disconnected, and the Nomad token is not proved to read "
             "the allocations of every namespace, so that work may be there";
  }
  return "";
}

Step KeepUnhealthy(const Facts& facts) {
  const bool by_limit = !facts.is_protected && !facts.dry_run && !facts.removal_blocked.has_value();
  return Report(
      CauseOfUnhealthy(facts) +
          (by_limit ? "; it is kept while as many VMs as max_unhealthy allows are replaced"
                    : WhyKept(facts)),
      facts.node);
}

Step MarkUnhealthy(const Facts& facts) {
  return MakeStep(StepKind::kMarkUnhealthy, CauseOfUnhealthy(facts), facts.node);
}

Step MarkBroken(const Facts& facts) {
  return MakeStep(StepKind::kMarkBroken, CauseOfBroken(facts), facts.node);
}

Step WaitForNode(const Facts& facts) {
  const Node& node = *facts.node;
  const std::string& held_by = facts.view->drain_held_by;
  Step step = Wait(node.draining    ? Named(node) + " drains"
                   : facts.complete ? "tasks on " + Named(node) + " are still stopping"
                                    : Named(node) + " is not ready",
                   &node);
  if (!held_by.empty()) step.reason += "; still running: " + held_by;
  return step;
}

std::string UntilWhen(const harvester::DrainDeadline& deadline, base::WallTime now) {
  using Kind = harvester::DrainDeadline::Kind;
  if (deadline.kind == Kind::kNone) return ", for as long as it takes";
  if (deadline.kind == Kind::kNow || deadline.at <= now) return " at once";
  return ", until " + base::FormatRfc3339(deadline.at) + " at the latest";
}

Step StartDrain(const Facts& facts) {
  Step step = MakeStep(StepKind::kStartDrain,
                       Named(*facts.node) + " is to be drained" +
                           UntilWhen(facts.mark->drain_deadline, facts.snapshot->now()),
                       facts.node);
  const Node& node = *facts.node;
  const bool by_us = nodepool::IsDrainOfVm(node, facts.view->vm->uid) &&
                     IsUnrecorded(facts, node) && IsIneligibleByDrain(node);
  step.was_ineligible = !node.eligible && !by_us;
  return step;
}

Step RollBackLate(const Facts& facts) {
  if (facts.node == nullptr) {
    return RollBack("its node cannot be found, and the deadline of its removal has passed");
  }
  if (!facts.late || !facts.ours) {
    return RollBack(
        "the drain of " + Named(*facts.node) + " did not begin before its deadline" +
            (Has(facts.node, NodeStatus::kReady) ? ""
                                                 : ": it is " + nodepool::StatusText(*facts.node)),
        facts.node);
  }
  const std::string& held_by = facts.view->drain_held_by;
  return RollBack("the drain of " + Named(*facts.node) + " is past its deadline and grace" +
                      (held_by.empty() ? "" : "; still running: " + held_by),
                  facts.node);
}

// For a VM that has joined: waits while something holds it (rule C18).
Step DeleteUnlessHeld(const Facts& facts, std::string reason) {
  Step step = MakeStep(StepKind::kDelete, std::move(reason), facts.node);
  step.is_held = !facts.view->vm->holds.empty();
  if (!step.is_held) return step;
  const base::WallTime now = facts.snapshot->now();
  const base::Duration limit = facts.snapshot->policy.has_value()
                                   ? facts.snapshot->policy->hold_timeout
                                   : config::kHoldTimeout;
  const base::WallTime until =
      EndByTwoClocks(facts.mark->marked_at + limit, limit, facts.view->held_for, now);
  const std::string holds = "held by " + absl::StrJoin(facts.view->vm->holds, ", ");
  if (now < until) {
    step.kind = StepKind::kWait;
    step.reason +=
        ", and it is " + holds + ", until " + base::FormatRfc3339(until) + " at the latest";
  } else {
    step.reason += "; it is still " + holds + ", but hold_timeout has passed";
  }
  return step;
}

constexpr auto kTable = std::to_array<Rule>({
    {Row::kNomadUnreadable, "nomad-unreadable", "any", "Nomad cannot be read", "wait",
     [](const Facts& f) { return !f.nomad.ok(); },
     [](const Facts& f) { return Wait("Nomad cannot be read: " + base::Message(f.nomad)); }},
    {Row::kGonePurge, "gone-purge", "gone (GET by name: 404, or another uid)",
     "its last drain names this pool and VM and is complete; purge wanted, down", "purge the node",
     [](const Facts& f) {
       // A node that is disconnected or initializing may come back.
       return f.gone != nullptr && AwaitsPurge(*f.gone, *f.snapshot) && IsDrained(*f.node) &&
              f.node->status == NodeStatus::kDown;
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kPurge, "the VM of " + Named(*f.node) + " is gone", f.node);
     }},
    {Row::kGoneNothing, "gone-nothing", "gone", "any other", "nothing",
     [](const Facts& f) { return f.gone != nullptr; },
     [](const Facts&) { return MakeStep(StepKind::kNothing, "the VM is gone"); }},
    {Row::kOtherNomad, "other-nomad", "made for another Nomad region, or of another Nomad cluster",
     "any", "wait", [](const Facts& f) { return IsOtherNomad(f.view->vm, ObservationOf(f)); },
     [](const Facts& f) {
       const VmView& view = *f.view;
       return Wait(IsOtherCluster(view.vm, ObservationOf(f))
                       ? "it belongs to another Nomad cluster"
                       : "it was made for Nomad region " + view.vm->nodes->region);
     }},
    {Row::kTerminatingHeld, "terminating-held",
     "a member that has been terminating for 60 s, and is not Halted", "any",
     "set its run strategy to Halted",
     [](const Facts& f) {
       // Its status may still name an instance, because the quota also denies status updates.
       const harvester::VirtualMachine& vm = f.view->vm;
       return f.view->member && harvester::IsTerminating(vm) &&
              vm.run_strategy != harvester::kHalted &&
              f.snapshot->now() - *vm.deleted_at >= kHaltAfter;
     },
     [](const Facts&) {
       return MakeStep(StepKind::kHalt,
                       "it has been in deletion for a minute: unless it is Halted, a full quota of "
                       "Harvester denies the end of it");
     }},
    {Row::kTerminating, "terminating", "terminating", "any", "wait",
     [](const Facts& f) { return harvester::IsTerminating(f.view->vm); },
     [](const Facts&) { return Wait("it is being deleted"); }},
    {Row::kNotMember, "not-member", "not a member, whatever mark it carries", "any", "nothing",
     [](const Facts& f) { return !f.view->member; },
     [](const Facts&) {
       return MakeStep(StepKind::kNothing, "it is a copy, or its labels were edited");
     }},

    {Row::kUnmarkedDraining, "unmarked-draining", "no mark",
     "any node, linked or not, drained for this VM: draining",
     "cancel the drain, and enable the node unless it was ineligible before",
     [](const Facts& f) { return !f.marked && DrainToCancel(f) != nullptr; }, CancelDrain},
    {Row::kUnmarkedDrained, "unmarked-drained", "no mark",
     "such a node: complete, ineligible because of us, not recorded in rolled-back",
     "enable the node", [](const Facts& f) { return !f.marked && DrainToUndo(f) != nullptr; },
     [](const Facts& f) {
       const Node* const node = DrainToUndo(f);
       return MakeStep(StepKind::kEnable,
                       "the VM carries no mark, but " + Named(*node) + " was drained for it", node);
     }},
    {Row::kUnmarkedRecord, "unmarked-record", "no mark",
     "its own node: such a drain complete and undone, not recorded", "write rolled-back",
     [](const Facts& f) { return !f.marked && IsUndoneDrainOf(f, f.node); }, RecordRolledBack},
    {Row::kUnmarkedAmbiguous, "unmarked-ambiguous", "no mark", "several nodes could be its node",
     "report",
     [](const Facts& f) { return !f.marked && f.view->link.state == LinkState::kAmbiguous; },
     [](const Facts& f) {
       return Report("which node it has is not certain: " + f.view->link.explanation);
     }},
    {Row::kUnmarkedCandidate, "unmarked-candidate", "no mark; broken, or unhealthy without a node",
     "none, but a ready pool node that links to no VM and is younger", "report that node",
     [](const Facts& f) {
       return !f.marked && (f.broken || f.unhealthy) && f.candidate != nullptr;
     },
     ReportCandidate},
    {Row::kUnmarkedStays, "unmarked-stays",
     "no mark; the VM that replaces it was ready, or is Halted until this one is gone; and C7 "
     "protects this one, or marking it was refused for a minute",
     "any", "record that it stays",
     [](const Facts& f) {
       const bool goes = f.unhealthy && !f.is_protected && !f.removal_blocked.has_value();
       return !f.marked && f.view->unread_node.empty() && SuccessorIsDue(f) && !goes &&
              WhyItStays(f).has_value();
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kKeepReplaced,
                       "it stays beside VM " + f.successor->vm->name +
                           ", which was to replace it: " + *WhyItStays(f),
                       f.node);
     }},
    {Row::kUnmarkedUnhealthyKept, "unmarked-unhealthy-kept",
     "no mark, unhealthy; protected, dry run, or max_unhealthy reached",
     "not ready, or none; or an operator drains it",
     "report",
     [](const Facts& f) {
       return !f.marked && f.unhealthy &&
              (f.is_protected || f.dry_run || f.removal_blocked.has_value() ||
               !MaxUnhealthyAllows(f));
     },
     KeepUnhealthy},
    {Row::kUnmarkedUnhealthyWaits, "unmarked-unhealthy-waits",
     "no mark, unhealthy; for less than a minute nothing is missing but the VM that replaces it",
     "not ready, or none", "wait until one is created",
     [](const Facts& f) { return !f.marked && f.unhealthy && AwaitsReplacement(f); },
     [](const Facts& f) {
       return Wait(CauseOfUnhealthy(f) + "; the VM that takes its place is created first", f.node);
     }},
    {Row::kUnmarkedCutOff, "unmarked-cut-off",
     "no mark, unhealthy; or broken, not protected, and the policy removes such VMs",
     "disconnected, and no allocation on it is within its time",
     "mark it; an unhealthy one after it is named on the Lease",
     [](const Facts& f) {
       return !f.marked && Has(f.node, NodeStatus::kDisconnected) &&
              !f.removal_blocked.has_value() && (f.unhealthy || (f.broken && MayRemoveBroken(f)));
     },
     [](const Facts& f) { return f.unhealthy ? MarkUnhealthy(f) : MarkBroken(f); }},
    {Row::kUnmarkedUnhealthy, "unmarked-unhealthy", "no mark, unhealthy", "not ready, or none",
     "name it on the Lease, then mark it", [](const Facts& f) { return !f.marked && f.unhealthy; },
     MarkUnhealthy},
    {Row::kUnmarkedBroken, "unmarked-broken",
     "no mark, broken; not protected, and the policy removes such VMs",
     "none, or it has joined, is not ready, and no operator drains it", "mark it",
     [](const Facts& f) { return !f.marked && f.broken && MayRemoveBroken(f); },
     MarkBroken},
    {Row::kUnmarkedBrokenKept, "unmarked-broken-kept", "no mark, broken",
     "none, or it has joined and is not ready", "report",
     [](const Facts& f) { return !f.marked && f.broken; },
     [](const Facts& f) { return Report(CauseOfBroken(f) + WhyKept(f), f.node); }},
    {Row::kUnmarkedJoins, "unmarked-joins", "no mark, never joined", "links",
     "record the join, and whether the node is ready",
     [](const Facts& f) { return !f.marked && !f.joined && f.node != nullptr; },
     [](const Facts& f) {
       Step step = MakeStep(StepKind::kRecordJoin, "its node has registered", f.node);
       step.node_is_ready = IsReadyToRecord(f);
       if (step.node_is_ready) step.reason += " and is ready";
       return step;
     }},
    {Row::kUnmarkedReady, "unmarked-ready", "no mark, joined, never ready", "ready",
     "record that it is ready",
     [](const Facts& f) { return !f.marked && f.joined && !f.was_ready && IsReadyToRecord(f); },
     [](const Facts& f) { return MakeStep(StepKind::kRecordReady, "its node is ready", f.node); }},
    {Row::kUnmarkedContradicted, "unmarked-contradicted", "no mark, never joined",
     "has its name, but is another VM by an identity hint", "report",
     [](const Facts& f) {
       return !f.marked && !f.joined && f.view->link.state == LinkState::kContradicted;
     },
     [](const Facts& f) { return Report(f.view->link.explanation); }},
    {Row::kUnmarkedCluster, "unmarked-cluster",
     "no mark; its record of the Nomad cluster lacks a key that the cluster has, or it joined as "
     "another node",
     "links, or none and the record has a key of the cluster; in the second case ready",
     "record the cluster's keys and the node",
     [](const Facts& f) {
       return !f.marked && (HasNewNode(f) ||
                            ShouldRecordCluster(f.view->vm, f.node != nullptr, ObservationOf(f)));
     },
     [](const Facts& f) {
       Step step = MakeStep(StepKind::kRecordCluster,
                            "its record of the Nomad cluster is not current", f.node);
       if (!HasNewNode(f)) return step;
       step.value = f.node->id;
       step.reason = "its client has registered anew, as " + Named(*f.node) + "; before it was " +
                     f.view->vm->joined_node_id;
       return step;
     }},
    {Row::kUnmarkedTokenEnds, "unmarked-token-ends",
     "no mark, never joined; it has not booted, and half of its introduction token's time is over",
     "none", "put a new token into its Secret",
     [](const Facts& f) { return !f.marked && TokenEnds(f); },
     [](const Facts&) {
       return MakeStep(StepKind::kRenewToken,
                       "it has not booted, and its introduction token ends soon");
     }},
    {Row::kUnmarkedWaiting, "unmarked-waiting", "no mark, never ready, before its deadline",
     "none, or not ready", "wait",
     [](const Facts& f) { return !f.marked && !f.was_ready && JoinDeadline(*f.view).has_value(); },
     [](const Facts& f) {
       const VmView& view = *f.view;
       return Wait(f.joined ? "it is not ready yet: " + DescribeReadiness(view, f.node, *f.snapshot)
                            : "it has not joined yet: " + DescribeProgress(view),
                   f.node);
     }},
    {Row::kUnmarkedNotNeeded, "unmarked-not-needed",
     "no mark; Halted until the VM is gone that it replaces, which stays; not protected, no dry run",
     "none",
     "name it on the Lease, then mark it",
     [](const Facts& f) {
       return !f.marked && f.waits_to_start && !f.is_protected && !f.dry_run && IsNotNeeded(f);
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kMarkReplaced,
                       "VM " + f.view->vm->replaces->vm + " stays, whose place it was to take");
     }},
    {Row::kUnmarkedStart, "unmarked-start",
     "no mark; Halted until the VM is gone that it replaces, which is gone, or started by hand",
     "none", "start it, and begin its join-timeout",
     [](const Facts& f) {
       return !f.marked && (WasStartedByHand(f) || (f.waits_to_start && Predecessor(f) == nullptr));
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kStart,
                       WasStartedByHand(f)
                           ? "it was started by hand"
                           : "VM " + f.view->vm->replaces->vm + " is gone, whose place it takes");
     }},
    {Row::kUnmarkedHalted, "unmarked-halted",
     "no mark; Halted until the VM is gone that it replaces, which is there", "none",
     "wait; report it if that one stays",
     [](const Facts& f) { return !f.marked && f.waits_to_start; },
     [](const Facts& f) {
       const std::string& old = f.view->vm->replaces->vm;
       if (!IsNotNeeded(f)) return Wait("it starts once VM " + old + " is gone");
       return Report("VM " + old + " stays, whose place it was to take, and " +
                     (f.is_protected ? "it is protected: delete one of them"
                                     : "the policy is in dry run"));
     }},
    {Row::kUnmarkedReplaced, "unmarked-replaced",
     "no mark; a VM that replaces it waits for its end, or has a node that is ready and eligible; "
     "and nothing keeps it",
     "links", "name it on the Lease, then mark it",
     [](const Facts& f) {
       return !f.marked && SuccessorIsDue(f) && !WhyItStays(f).has_value() && !f.dry_run &&
              ObservationOf(f).own_node_problem.ok();
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kMarkReplaced,
                       "VM " + f.successor->vm->name + " takes its place (" +
                           Describe(f.successor->vm->replaces->reason) + ")",
                       f.node);
     }},
    {Row::kUnmarkedPublish, "unmarked-publish",
     "no mark, joined; published-host says other than where its instance runs", "ready",
     "write the node's metadata, then published-host",
     [](const Facts& f) {
       return !f.marked && MayPublish(f) && f.snapshot->policy->publish_host &&
              !f.view->host.empty() && !IsPublished(f);
     },
     [](const Facts& f) {
       const VmView& view = *f.view;
       Step step = MakeStep(StepKind::kPublishHost, "it runs on host " + view.host, f.node);
       step.value = view.host + " " + view.host_zone.value_or("");
       return step;
     }},
    {Row::kUnmarkedUnpublish, "unmarked-unpublish",
     "no mark, joined; has published-host, which the policy no longer asks for", "ready",
     "unset the node's metadata, then published-host",
     [](const Facts& f) {
       return !f.marked && MayPublish(f) && !f.snapshot->policy->publish_host &&
              f.view->vm->has_published_host;
     },
     [](const Facts& f) {
       return MakeStep(StepKind::kUnpublishHost, "the policy no longer has publish_host", f.node);
     }},
    {Row::kUnmarkedOther, "unmarked-other", "no mark", "any other", "nothing",
     [](const Facts& f) { return !f.marked; },
     [](const Facts& f) {
       return MakeStep(StepKind::kNothing, f.joined ? "it has joined" : "it has no join deadline");
     }},

    {Row::kMarkUnreadable, "mark-unreadable", "its mark cannot be read", "any", "roll back",
     [](const Facts& f) { return f.mark == nullptr; },
     [](const Facts&) { return RollBack("its mark (annotation scale-in) cannot be read"); }},
    {Row::kMarkOfAnother, "mark-of-another",
     "its mark names another uid: the VM was restored, or made from a copy", "any", "roll back",
     [](const Facts& f) { return f.mark != nullptr && f.mark->vm_uid != f.view->vm->uid; },
     [](const Facts& f) {
       return RollBack("its mark is that of the VM before it (uid " + f.mark->vm_uid +
                       "): it was restored or replaced");
     }},
    {Row::kMarkedForeignDrain, "marked-foreign-drain", "marked", "draining, not ours",
     "roll back: an operator's maintenance",
     [](const Facts& f) { return f.node != nullptr && f.node->draining && !f.ours; },
     [](const Facts& f) {
       return RollBack(Named(*f.node) + " is drained by another client: maintenance", f.node);
     }},
    {Row::kMarkedAmbiguous, "marked-ambiguous", "marked",
     "several nodes could be its node, or its node is another VM by an identity hint",
     "roll back, report",
     [](const Facts& f) {
       const LinkState link = f.view->link.state;
       return link == LinkState::kAmbiguous || link == LinkState::kContradicted;
     },
     [](const Facts& f) { return RollBack(f.view->link.explanation); }},
    {Row::kMarkedNotNamed, "marked-not-named",
     "marked, not for being broken, and not in names of the Lease's action", "any", "roll back",
     [](const Facts& f) {
       const auto& action = f.snapshot->action;
       const bool is_named = action.has_value() && action->names.contains(f.view->vm->name);
       return f.mark == nullptr || (f.mark->reason != MarkReason::kBroken && !is_named);
     },
     [](const Facts&) {
       return RollBack("the Lease's action does not name it: its mark was written too late");
     }},
    {Row::kMarkedCanceled, "marked-canceled", "marked", "its drain, ours, was cancelled",
     "roll back",
     [](const Facts& f) {
       return f.ours && !f.node->draining &&
              f.node->last_drain->status == nomad::DrainStatus::kCanceled;
     },
     [](const Facts& f) {
       return RollBack("the drain of " + Named(*f.node) + " was cancelled by an operator", f.node);
     }},
    {Row::kMarkedRemovalCancelled, "marked-removal-cancelled",
     "marked, in cancel of the Lease's action", "ready", "roll back",
     [](const Facts& f) {
       const auto& action = f.snapshot->action;
       return Has(f.node, NodeStatus::kReady) && action.has_value() &&
              action->cancel.contains(f.view->vm->name);
     },
     [](const Facts& f) { return RollBack(kNeededByGrowth, f.node); }},
    {Row::kMarkedProtected, "marked-protected", "marked; protected by its annotation",
     "or protected by its meta", "roll back, report", [](const Facts& f) { return f.is_protected; },
     [](const Facts& f) {
       return RollBack("it was protected after its removal had begun", f.node);
     }},
    {Row::kMarkedRefused, "marked-refused",
     "marked for scale-in; its drain or its deletion refused for 60 s, its un-marking not refused",
     "not down", "roll back",
     [](const Facts& f) {
       return IsElective(f.mark->reason) && f.view->removal_refused_for >= kRefusedForGood &&
              !f.view->unmarking_refused && f.node != nullptr &&
              f.node->status != NodeStatus::kDown;
     },
     [](const Facts& f) { return RollBack("its removal has been refused for a minute", f.node); }},
    {Row::kMarkedEnabled, "marked-enabled", "marked",
     "its drain, ours, is complete, and it is eligible", "roll back: an operator enabled it",
     [](const Facts& f) { return f.complete && f.node->eligible; },
     [](const Facts& f) {
       return RollBack(Named(*f.node) + " was enabled again by an operator", f.node);
     }},
    {Row::kMarkedCandidate, "marked-candidate", "marked",
     "none or gone, but a ready pool node that links to no VM and is younger", "roll back, report",
     [](const Facts& f) { return f.candidate != nullptr; },
     [](const Facts& f) {
       return RollBack("no node has its name, but " + Named(*f.candidate) + " could be it",
                       f.candidate);
     }},
    {Row::kMarkedNeverJoined, "marked-never-joined", "marked, never joined",
     "none (the whole list read again)", "delete",
     [](const Facts& f) { return f.node == nullptr && !f.joined; },
     [](const Facts&) { return MakeStep(StepKind::kDelete, "it never joined Nomad"); }},
    {Row::kMarkedNeverReady, "marked-never-ready", "marked for being broken, never ready",
     "initializing, without an allocation and without a drain of ours", "delete",
     [](const Facts& f) {
       const Allocations* const work = WorkOf(f);
       // If the token does not read every namespace, an empty list proves nothing.
       return f.mark->reason == MarkReason::kBroken && !f.ours && !f.was_ready &&
              Has(f.node, NodeStatus::kInitializing) && !f.node->draining && work != nullptr &&
              ObservationOf(f).allocations_complete && nodepool::IsIdle(*work, false);
     },
     [](const Facts& f) { return DeleteUnlessHeld(f, Named(*f.node) + " was never ready"); }},
    {Row::kMarkedGone, "marked-gone", "marked", "gone (GET by ID: 404)", "delete",
     [](const Facts& f) { return f.node == nullptr && f.view->node_gone; },
     [](const Facts& f) { return DeleteUnlessHeld(f, "its node is gone from Nomad"); }},
    {Row::kMarkedDown, "marked-down", "marked",
     "down, and the instance does not run or it has been down for 2 minutes", "delete",
     [](const Facts& f) { return Has(f.node, NodeStatus::kDown) && IsAwayForGood(f); },
     [](const Facts& f) { return DeleteUnlessHeld(f, Named(*f.node) + " is down"); }},
    {Row::kMarkedCutOff, "marked-cut-off", "marked for being broken or unhealthy",
     "disconnected likewise, and no allocation on it is within its time", "delete",
     [](const Facts& f) {
       const Allocations* const work = WorkOf(f);
       return !IsElective(f.mark->reason) && Has(f.node, NodeStatus::kDisconnected) &&
              IsAwayForGood(f) && work != nullptr && ObservationOf(f).allocations_complete &&
              !IsWithinItsTime(*work);
     },
     [](const Facts& f) { return DeleteUnlessHeld(f, Named(*f.node) + " is disconnected"); }},
    {Row::kMarkedIdle, "marked-idle", "marked",
     "its drain, ours, is complete, it is ineligible and idle", "delete",
     [](const Facts& f) {
       const Allocations* const work = WorkOf(f);
       const bool lost_is_stale =
           Has(f.node, NodeStatus::kReady) && f.view->node_drained_for >= kStaleLost;
       return f.complete && work != nullptr &&
              nodepool::IsIdle(*work, f.mark->ignore_system, lost_is_stale);
     },
     [](const Facts& f) { return DeleteUnlessHeld(f, Named(*f.node) + " is drained"); }},
    {Row::kMarkedRecovered, "marked-recovered", "marked for being broken or unhealthy",
     "ready, not draining, no drain of ours", "roll back",
     [](const Facts& f) {
       return !IsElective(f.mark->reason) && IsUsable(f) && !f.ours && !f.node->draining;
     },
     [](const Facts& f) { return RollBack(Named(*f.node) + " is ready by now", f.node); }},
    {Row::kMarkedLateForced, "marked-late-forced", "marked with force; past deadline and grace",
     "its drain, ours, runs or is complete", "delete",
     [](const Facts& f) {
       return f.late && f.mark->force && f.ours && (f.node->draining || f.complete);
     },
     [](const Facts& f) {
       return DeleteUnlessHeld(
           f, "the drain of " + Named(*f.node) + " is past its deadline and grace");
     }},
    {Row::kMarkedLate, "marked-late",
     "marked; past deadline and grace, or 10 s past a timed deadline and no drain of ours posted",
     "any other; in the second case ready or initializing", "roll back",
     [](const Facts& f) { return f.late || HasNeverBegun(f); }, RollBackLate},
    {Row::kMarkedDrainAgain, "marked-drain-again", "marked",
     "its drain, ours, has been complete for 10 s, and an allocation is to run there",
     "start the drain once more",
     [](const Facts& f) {
       const Allocations* const work = WorkOf(f);
       return f.complete && !f.node->eligible && f.view->node_drained_for >= kPlacedDuringDrain &&
              work != nullptr && nodepool::WantsToRun(*work, f.mark->ignore_system);
     },
     [](const Facts& f) {
       Step step = StartDrain(f);
       step.reason = Named(*f.node) + " got work while its drain began, and is drained once more";
       return step;
     }},
    {Row::kMarkedWaiting, "marked-waiting", "marked",
     "draining; or complete but not idle; or disconnected, or down but not for good",
     "wait, without a second drain",
     [](const Facts& f) {
       return f.node != nullptr && (f.node->draining || f.complete || !CanDrain(*f.node));
     },
     WaitForNode},
    {Row::kMarkedNoNode, "marked-no-node", "marked", "the mark's node has another name now", "wait",
     [](const Facts& f) { return f.node == nullptr; },
     [](const Facts& f) {
       return Wait("its node " + f.mark->node_id + " exists, but no longer has its name");
     }},
    {Row::kMarkedStartDrain, "marked-start-drain", "marked", "any other",
     "start the drain with the time that is left", [](const Facts& f) { return f.node != nullptr; },
     StartDrain},
});

}  // namespace

const std::span<const Rule> kRules = kTable;

std::string_view RowName(Row row) { return kTable.at(static_cast<std::size_t>(row)).name; }

Step Decide(const Facts& facts, std::span<const Rule> rules) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.when(facts); });
  if (rule == rules.end()) return {};
  Step step = rule->then(facts);
  step.row = rule->row;
  return step;
}

Step NextStep(const VmView& view, const PoolSnapshot& snapshot) {
  const Overlay seen(snapshot, view);
  return Decide(FactsOf(seen, nullptr));
}

Step NextStepOfGoneVm(const Node& node, const PoolSnapshot& snapshot) {
  const auto mark = nodepool::ParseDrainMark(node);
  return Decide(FactsOfGoneVm({&node, mark.value_or(nodepool::DrainMark())}, snapshot));
}

}  // namespace nomad_harvester::scaling
