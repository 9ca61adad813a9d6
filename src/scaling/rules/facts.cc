// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/facts.h"

#include <algorithm>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::MarkReason;
using nodepool::DrainMark;
using nodepool::LinkState;
using nomad::DrainStatus;
using nomad::Node;
using nomad::NodeStatus;

// A drain that has not begun this long after its deadline is given up. A killed process alone costs
// up to 20 s of Lease.
constexpr base::Duration kBeginningMargin = std::chrono::seconds(10);

// After this time a process that does not know a VM's introduction token checks that token, which
// costs one read.
constexpr base::Duration kUnknownToken = std::chrono::minutes(2);

// True if Nomad reports the drain as complete; the absence of a drain is not enough.
bool IsComplete(const Node& node) {
  return !node.draining && node.last_drain.has_value() &&
         node.last_drain->status == DrainStatus::kComplete;
}

// True if the annotation rolled-back names the node's last drain.
bool IsRecorded(const VmView& view, const Node& node, const DrainMark& drain) {
  return !view.vm->rolled_back.empty() &&
         nodepool::RollbackMarker(node, drain) == view.vm->rolled_back;
}

// Sets the facts about nodes with a drain of ours for a VM that has no mark.
void SetDrainsToUndo(const Overlay& seen, Facts* facts) {
  const VmView& view = seen.view();
  for (const Node* node : seen.NodesDrainedForIt()) {
    const DrainMark drain = *nodepool::ParseDrainMark(*node);
    if (node->draining) {
      if (facts->draining != nullptr) continue;
      facts->draining = node;
      facts->draining_was_ineligible = drain.was_ineligible;
    } else if (IsComplete(*node) && !IsRecorded(view, *node, drain)) {
      const bool stands = !node->eligible && !drain.was_ineligible;
      if (stands && facts->drained == nullptr) facts->drained = node;
      if (!stands && node == facts->node) facts->undone = node;
    }
  }
}

bool TokenEnds(const Overlay& seen, const Facts& facts) {
  const VmView& view = seen.view();
  if (facts.joined || facts.node != nullptr || harvester::IsRunning(view.vm)) return false;
  if (view.instance_runs.value_or(false)) return false;
  // If another VM is stopped, nobody knows when it will boot.
  if (facts.waits_to_start ? !facts.may_start : harvester::IsStopped(view.vm)) return false;
  // It starts without a token: servers that only warn accept it nevertheless.
  if (facts.waits_to_start && view.token_refused_for >= kRefusedForGood) return false;
  // A VM that is about to start may have waited for longer than its token lasts.
  const base::Duration unknown =
      facts.waits_to_start ? base::Duration::zero() : kUnknownToken - view.known_for;
  return view.token_check_in.value_or(unknown) <= base::Duration::zero();
}

// Compares the VM's host with its annotation, which repeats the node's metadata, so that no node is
// read at rest.
void SetPublishing(const VmView& view, const config::PoolPolicy& policy, Facts* facts) {
  if (policy.dry_run || facts->node == nullptr || facts->node->status != NodeStatus::kReady) return;
  if (!policy.publish_host) {
    facts->unpublish = view.vm->has_published_host;
    return;
  }
  if (view.host.empty()) return;
  const std::optional<harvester::PublishedHost>& published = view.vm->published_host;
  facts->publish = !published.has_value() || published->node_id != facts->node->id ||
                   published->host != view.host ||
                   (view.host_zone.has_value() && *view.host_zone != published->zone.value_or(""));
}

// True if an allocation of a disconnected node may come back with the node. Nomad keeps a node
// disconnected for such allocations, but also for one that has ended, until it is collected
// (hashicorp/nomad:nomad/heartbeat.go, disconnectState).
bool IsWithinItsTime(const Allocations& allocations) {
  return std::any_of(allocations.begin(), allocations.end(), [](const nomad::Allocation& each) {
    return each.client_status == nomad::ClientStatus::kUnknown || nodepool::IsLive(each);
  });
}

// True if no scale-in removes a VM on this node (rule C7), apart from protection by annotation and
// meta.
bool IsOnKeptNode(const Node* node, const PoolSnapshot& snapshot) {
  if (node == nullptr) return false;
  if (!snapshot.look().own_node_id.empty() && node->id == snapshot.look().own_node_id) return true;
  return HoldsKeptVolume(*node, snapshot);
}

// True if an operator, or our own roll-back, cancelled the VM's drain within the last hour.
bool IsCanceledLately(const VmView& view, const Node* node, const Look& look) {
  if (node == nullptr || !nodepool::IsDrainOfVm(*node, view.vm->uid)) return false;
  const nomad::LastDrain& drain = *node->last_drain;
  if (drain.status != DrainStatus::kCanceled) return false;
  // Nomad's clock may be wrong. The time written by the roll-back is Harvester's.
  const auto is_recent = [&](base::WallTime since) {
    return !HasPassed(since + kVictimCooldown, kVictimCooldown, view, look);
  };
  return (drain.updated_at.has_value() && is_recent(*drain.updated_at)) ||
         (view.vm->removal_undone.has_value() && is_recent(view.vm->removal_undone->at));
}

// True if somebody else drains the node: a mark would be rolled back at once, and set again.
bool IsMaintained(const Node* node) { return node != nullptr && node->draining; }

// Sets the facts about a new VM that waits to start (rule R8).
void SetWaiting(const Overlay& seen, Facts* facts) {
  const VmView& view = seen.view();
  const PoolSnapshot& snapshot = seen.snapshot();
  facts->waits_to_start = harvester::WaitsToStart(view.vm);
  facts->started_by_hand = !facts->waits_to_start && !facts->joined &&
                           view.vm->replaces.has_value() && !view.vm->replaces->start.empty();
  if (!facts->waits_to_start) return;
  const VmView* const old = snapshot.seen->FindVmByUid(view.vm->replaces->uid);
  const bool has_left = old == nullptr || !IsPoolMember(*old, snapshot) ||
                        (harvester::IsTerminating(old->vm) && !MayHaveInstance(*old));
  facts->may_start = has_left;
  facts->not_needed = !has_left && StaysBeside(*old, view);
}

// Sets the facts about a VM that is being replaced (rules R3 and R6).
void SetSuccessor(const Overlay& seen, Facts* facts) {
  const VmView& view = seen.view();
  const PoolSnapshot& snapshot = seen.snapshot();
  facts->successor = snapshot.seen->ReplacementOf(view.vm->uid);
  if (facts->successor == nullptr) return;
  // A successor that is itself being removed replaces nothing.
  if (facts->successor->vm->has_mark) return;
  // The VM leaves because of its node, so a missing or unready node does not keep it (rule R6).
  const bool is_dead = facts->node == nullptr || facts->node->status != NodeStatus::kReady;
  const bool is_kept = facts->is_protected || facts->kept;
  const bool for_its_node = facts->successor->vm->replaces->reason == kUnhealthy &&
                            snapshot.policy->replace_unhealthy_after.has_value();
  if (is_dead && !is_kept && for_its_node) return;
  const bool goes_first = harvester::WaitsToStart(facts->successor->vm);
  if (goes_first ? StaysBeside(view, *facts->successor)
                 : !harvester::WasReady(facts->successor->vm)) {
    return;
  }
  const std::string objection =
      facts->node == nullptr ? "it has no Nomad node" : ObjectionTo(view, facts->node, snapshot);
  const Node* node = LinkedNode(*facts->successor, snapshot);
  // A new VM that joined another pool is useless there; it waits for an operator (rule R5).
  const bool takes_over = node != nullptr && node->status == NodeStatus::kReady && node->eligible &&
                          BelongsToPool(*node, *facts->successor, snapshot);
  if (!goes_first && !takes_over) return;
  if (!objection.empty()) {
    facts->stays_because = objection;
  } else if (facts->kept) {
    facts->stays_because = "another client drains its node, or has cancelled its drain";
  } else if (view.giving_way_refused_for >= kRefusedForGood) {
    facts->stays_because = "its mark has been refused for a minute";
  }
  facts->gives_way =
      facts->stays_because.empty() && !facts->dry_run && snapshot.look().own_node_problem.ok();
}

void SetUnmarked(const Overlay& seen, const PoolFacts* pool, Facts* facts) {
  const VmView& view = seen.view();
  const PoolSnapshot& snapshot = seen.snapshot();
  SetDrainsToUndo(seen, facts);
  facts->start_fails = view.start_failure.has_value();
  facts->broken = IsBroken(view, facts->node, snapshot);
  facts->unhealthy = IsUnhealthy(view, facts->node, snapshot);
  if (facts->node != nullptr && facts->node->status == NodeStatus::kDisconnected) {
    const Allocations* allocations = seen.AllocationsOf(facts->node->id);
    facts->may_come_back = allocations != nullptr && IsWithinItsTime(*allocations);
    facts->unproven = allocations != nullptr && !snapshot.look().allocations_complete;
    facts->cut_off = !facts->may_come_back && !facts->unproven;
    facts->unhealthy = facts->unhealthy && !facts->may_come_back;
  }
  facts->is_protected |= IsOnKeptNode(facts->node, snapshot);
  facts->has_deadline = JoinDeadline(view).has_value();
  if (!snapshot.policy.has_value()) return;
  const config::PoolPolicy& policy = *snapshot.policy;
  facts->dry_run = policy.dry_run;
  // A new VM that is not ready in time is useless, even after the old one has gone (rule R5).
  const bool is_successor = view.vm->replaces.has_value() && !facts->was_ready;
  facts->ran = policy.wait_for == config::WaitFor::kRunning && harvester::IsRunning(view.vm) &&
               !is_successor;
  SetWaiting(seen, facts);
  facts->token_ends = policy.intro_token != config::IntroToken::kOff && TokenEnds(seen, *facts);
  facts->maintained = IsMaintained(facts->node);
  facts->canceled_lately = IsCanceledLately(view, facts->node, snapshot.look());
  facts->kept =
      facts->maintained || facts->canceled_lately || facts->may_come_back || facts->unproven;
  const bool by_policy =
      facts->start_fails || policy.on_join_timeout == config::OnJoinTimeout::kDelete;
  facts->may_remove_broken = !policy.dry_run && !facts->kept && (by_policy || is_successor);
  SetSuccessor(seen, facts);
  facts->awaits_replacement = facts->unhealthy && facts->successor == nullptr &&
                              !snapshot.collected && !WasRecentlyRolledBack(view.vm, seen.now()) &&
                              !IsPendingReplacement(view, snapshot) &&
                              view.awaited_for < kReplacementWait;
  SetPublishing(view, policy, facts);
  if (!facts->unhealthy || facts->kept) return;
  facts->may_replace = pool != nullptr ? pool->may_replace.contains(view.vm->uid)
                                       : PoolFacts(snapshot).may_replace.contains(view.vm->uid);
}

void SetMarksNode(const Overlay& seen, const harvester::Mark& mark, const Node& node,
                  Facts* facts) {
  const VmView& view = seen.view();
  const std::optional<DrainMark> drain = nodepool::ParseDrainMark(node);
  const bool of_vm = drain.has_value() && drain->vm_uid == view.vm->uid;
  facts->ours = of_vm && drain->action == mark.action;
  facts->foreign_drain = node.draining && !facts->ours;
  facts->canceled =
      facts->ours && !node.draining && node.last_drain->status == DrainStatus::kCanceled;
  facts->complete = facts->ours && IsComplete(node);
  // While a guest is paused or migrates, a down node is no evidence.
  const bool for_good =
      !harvester::IsPausedOrMigrating(view.vm) &&
      (view.instance_runs == std::optional<bool>(false) || view.node_down_for >= kDownForGood);
  facts->down_for_good = for_good && node.status == NodeStatus::kDown;
  const bool by_us =
      of_vm && IsComplete(node) && !drain->was_ineligible && !IsRecorded(view, node, *drain);
  facts->ineligible_by_others = !node.eligible && !by_us;
  const bool due = mark.drain_deadline.kind == harvester::DrainDeadline::Kind::kAt &&
                   HasPassed(mark.drain_deadline.at + kBeginningMargin,
                             mark.drain_deadline.at - mark.marked_at, view, seen.snapshot().look());
  facts->never_begun = due && !facts->ours && CanDrain(node) && IsElective(mark.reason);
  const Allocations* allocations = seen.AllocationsOf(node.id);
  if (allocations == nullptr) return;
  // If the token does not read every namespace, an empty list proves nothing.
  const bool is_proof = seen.snapshot().look().allocations_complete;
  facts->cut_off_for_good = is_proof && for_good && node.status == NodeStatus::kDisconnected &&
                            !IsWithinItsTime(*allocations);
  const bool lost_is_stale =
      node.status == NodeStatus::kReady && view.node_drained_for >= kStaleLost;
  facts->idle =
      facts->complete && nodepool::IsIdle(*allocations, mark.ignore_system, lost_is_stale);
  facts->placed_late = facts->complete && !node.eligible && view.node_drained_for >= kPlacedLate &&
                       nodepool::WantsToRun(*allocations, mark.ignore_system);
  facts->never_used = is_proof && !facts->was_ready && node.status == NodeStatus::kInitializing &&
                      !node.draining && nodepool::IsIdle(*allocations, false);
}

// How long this process must have known a drain before the drain can be late, because the API
// server's clock may be wrong. Once Nomad says that the drain is complete, this is only the grace.
base::Duration TimeToWatch(const harvester::Mark& mark, bool complete) {
  const bool timed = mark.drain_deadline.kind == harvester::DrainDeadline::Kind::kAt;
  if (!timed || complete || mark.drain_deadline.at <= mark.marked_at) return mark.grace;
  return mark.drain_deadline.at - mark.marked_at + mark.grace;
}

void SetMarked(const Overlay& seen, Facts* facts) {
  const VmView& view = seen.view();
  const PoolSnapshot& snapshot = seen.snapshot();
  facts->mark_readable = view.vm->mark.has_value();
  if (!facts->mark_readable) return;
  const harvester::Mark& mark = *view.vm->mark;
  facts->of_another = mark.vm_uid != view.vm->uid;
  facts->for_unhealthy = mark.reason == MarkReason::kUnhealthy;
  facts->for_broken = mark.reason == MarkReason::kBroken;
  facts->named = mark.reason == MarkReason::kBroken ||
                 (snapshot.action.has_value() && snapshot.action->names.contains(view.vm->name));
  facts->node_gone = view.node_gone;
  facts->taken_back = snapshot.action.has_value() &&
                      snapshot.action->back.contains(view.vm->name) && facts->node != nullptr &&
                      facts->node->status == NodeStatus::kReady;
  facts->removal_refused = IsElective(mark.reason) && view.removal_refused_for >= kRefusedForGood &&
                           !view.unmarking_refused && facts->node != nullptr &&
                           facts->node->status != NodeStatus::kDown;
  facts->force = mark.force;
  if (facts->node != nullptr) SetMarksNode(seen, mark, *facts->node, facts);
  if (!view.vm->holds.empty()) {
    const base::Duration limit =
        snapshot.policy.has_value() ? snapshot.policy->hold_timeout : config::kHoldTimeout;
    facts->held_until = EndByTwoClocks(mark.marked_at + limit, limit, view.held_for, seen.now());
  }
  const std::optional<base::WallTime> late_at = LateAt(mark);
  const bool runs =
      facts->node != nullptr && facts->ours && (facts->node->draining || facts->complete);
  if (late_at.has_value()) {
    const base::Duration limit = TimeToWatch(mark, facts->complete);
    facts->late =
        runs ? seen.now() >= EndByTwoClocks(*late_at, limit, view.drain_known_for, seen.now())
             : HasPassed(*late_at, limit, view, snapshot.look());
  }
  // A broken or unhealthy VM is useless: its removal does not end because its drain is refused or
  // its node is away (rule L3).
  if (facts->node != nullptr && !IsElective(mark.reason) && !facts->ours) facts->late = false;
}

}  // namespace

PoolFacts::PoolFacts(const PoolSnapshot& snapshot) {
  if (!snapshot.policy.has_value()) return;
  std::int64_t members = 0;
  std::int64_t leaving = 0;
  std::vector<const VmView*> unhealthy;
  for (const VmView* view : snapshot.vms()) {
    if (!IsPoolMember(*view, snapshot)) continue;
    ++members;
    if (view->vm->has_mark) {
      const bool replaced =
          view->vm->mark.has_value() && view->vm->mark->reason == MarkReason::kUnhealthy;
      if (replaced) ++leaving;
    } else if (IsUnhealthy(*view, snapshot)) {
      // A VM takes one of the places of max_unhealthy only if it would be replaced.
      const Overlay seen(snapshot, *view);
      const Facts facts = FactsOf(seen, this);
      const bool is_kept = facts.is_protected || facts.kept;
      if (!facts.unhealthy || is_kept || facts.candidate != nullptr) continue;
      // One that does not count takes no place of max_unhealthy.
      if (IsPendingReplacement(*view, snapshot)) {
        may_replace.insert(view->vm->uid);
      } else {
        unhealthy.push_back(view);
      }
    }
  }
  std::sort(unhealthy.begin(), unhealthy.end(),
            [](const VmView* a, const VmView* b) { return a->vm->name < b->vm->name; });
  for (const VmView* view : unhealthy) {
    if (leaving++ >= snapshot.policy->max_unhealthy.Of(members)) break;
    may_replace.insert(view->vm->uid);
  }
}

Facts FactsOf(const Overlay& seen, const PoolFacts* pool) {
  const VmView& view = seen.view();
  const Look& look = seen.snapshot().look();
  Facts facts;
  facts.seen = &seen;
  facts.nomad_readable = look.nomad_readable;
  facts.nomad_problem = &look.nomad_problem;
  facts.other_nomad = IsOtherNomad(view.vm, look);
  facts.terminating = harvester::IsTerminating(view.vm);
  facts.member = view.member;
  facts.may_be_held_by_quota = facts.member && facts.terminating &&
                               view.vm->run_strategy != harvester::kHalted &&
                               seen.now() - *view.vm->deleted_at >= kHaltAfter;
  facts.joined = harvester::HasJoined(view.vm);
  facts.was_ready = harvester::WasReady(view.vm);
  facts.node = seen.node();
  // Only a policy says which drivers a node needs to be ready for the first time.
  const bool can_tell = facts.was_ready || seen.snapshot().policy.has_value();
  facts.recovered =
      facts.node != nullptr && WhyNotReady(view, *facts.node, seen.snapshot()).empty();
  facts.is_ready = can_tell && facts.recovered;
  facts.record_cluster = ShouldRecordCluster(view.vm, facts.node != nullptr, look);
  facts.record_node = facts.joined && facts.node != nullptr &&
                      facts.node->status == NodeStatus::kReady &&
                      facts.node->id != view.vm->joined_node_id;
  facts.is_protected = view.vm->protect.HoldsAt(seen.snapshot().earlier_now()) ||
                       (facts.node != nullptr && nodepool::IsProtected(*facts.node));
  facts.ambiguous = view.link.state == LinkState::kAmbiguous;
  facts.contradicted = view.link.state == LinkState::kContradicted;
  facts.no_node = view.link.state == LinkState::kNone;
  facts.marked = view.vm->has_mark;
  // A marked VM that never joined is deleted because it has no node, which is uncertain while a
  // node that could be its node is unread. For broken, unhealthy or lost VMs, IsReadable ensures
  // the same.
  if (look.nomad_readable && !view.unread_node.empty() && facts.marked && !facts.joined) {
    facts.nomad_readable = false;
    facts.nomad_problem = &view.unread_node;
  }
  if (facts.marked) {
    SetMarked(seen, &facts);
  } else {
    SetUnmarked(seen, pool, &facts);
  }
  const bool may_have_other_name = facts.marked || facts.broken || facts.unhealthy;
  if (may_have_other_name && facts.node == nullptr) facts.candidate = seen.Candidate();
  return facts;
}

Facts FactsOfGoneVm(const OrphanedNode& gone, const PoolSnapshot& snapshot) {
  Facts facts;
  facts.nomad_readable = snapshot.look().nomad_readable;
  facts.nomad_problem = &snapshot.look().nomad_problem;
  facts.node = gone.node;
  facts.vm_gone = true;
  facts.purge_wanted = AwaitsPurge(gone, snapshot) && IsComplete(*gone.node) &&
                       gone.node->status == NodeStatus::kDown;
  return facts;
}

bool AwaitsPurge(const OrphanedNode& gone, const PoolSnapshot& snapshot) {
  return IsOfThisHarvester(gone.mark, snapshot.look()) && gone.mark.purge &&
         gone.mark.pool == snapshot.key.ToString() &&
         gone.node->last_drain->status != DrainStatus::kCanceled;
}

bool CanDrain(const Node& node) {
  return node.status == NodeStatus::kReady || node.status == NodeStatus::kInitializing;
}

std::optional<base::WallTime> LateAt(const harvester::Mark& mark) {
  switch (mark.drain_deadline.kind) {
    case harvester::DrainDeadline::Kind::kNone:
      break;
    case harvester::DrainDeadline::Kind::kNow:
      return mark.marked_at + mark.grace;
    case harvester::DrainDeadline::Kind::kAt:
      return mark.drain_deadline.at + mark.grace;
  }
  return std::nullopt;
}

}  // namespace nomad_harvester::scaling
