// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/facts.h"

#include <algorithm>
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/scaling/plan.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::MarkReason;
using nomad::DrainStatus;
using nomad::Node;
using nomad::NodeStatus;

// True if no scale-in removes a VM on this node (rule C7), apart from protection by annotation and
// meta.
bool IsOnKeptNode(const Node* node, const PoolSnapshot& snapshot) {
  if (node == nullptr) return false;
  const std::string& own = snapshot.observation().own_node_id;
  return (!own.empty() && node->id == own) || HoldsKeptVolume(*node, snapshot);
}

// True if an operator, or our own roll-back, cancelled the VM's drain within the last hour.
bool IsCanceledLately(const VmView& view, const Node& node, const Observation& observation) {
  if (!nodepool::IsDrainOfVm(node, view.vm->uid)) return false;
  const nomad::LastDrain& drain = *node.last_drain;
  if (drain.status != DrainStatus::kCanceled) return false;
  // Nomad's clock may be wrong. The time written by the roll-back is Harvester's.
  const auto is_recent = [&](base::WallTime since) {
    return since - observation.now <= kUsualSkew &&
           !HasPassed(since + kVictimCooldown, kVictimCooldown, view, observation);
  };
  return (drain.updated_at.has_value() && is_recent(*drain.updated_at)) ||
         (view.vm->removal_undone.has_value() && is_recent(view.vm->removal_undone->at));
}

// `work`: the allocations of the VM's disconnected node; null: it is not, or they were not read.
std::optional<RemovalBlock> RemovalBlockOf(const VmView& view, const Node* node,
                                           const Allocations* work,
                                           const Observation& observation) {
  if (node == nullptr) return std::nullopt;
  // A mark would be rolled back at once, and set again.
  if (node->draining) return RemovalBlock::kDrainedByOperator;
  if (IsCanceledLately(view, *node, observation)) return RemovalBlock::kDrainCancelled;
  if (work == nullptr) return std::nullopt;
  if (IsWithinItsTime(*work)) return RemovalBlock::kWorkMayComeBack;
  if (!observation.allocations_complete) return RemovalBlock::kAllocationsUnverified;
  return std::nullopt;
}

void SetUnmarked(const Overlay& seen, Facts* facts) {
  const VmView& view = seen.view();
  const PoolSnapshot& snapshot = seen.snapshot();
  const Node* const node = facts->node;
  const bool is_disconnected = node != nullptr && node->status == NodeStatus::kDisconnected;
  const Allocations* const work = is_disconnected ? seen.AllocationsOf(node->id) : nullptr;
  facts->drained_for_it = seen.NodesDrainedForIt();
  facts->broken = IsBroken(view, node, snapshot);
  facts->unhealthy =
      IsUnhealthy(view, node, snapshot) && (work == nullptr || !IsWithinItsTime(*work));
  facts->removal_blocked = RemovalBlockOf(view, node, work, snapshot.observation());
  facts->is_protected |= IsOnKeptNode(node, snapshot);
  if (!snapshot.policy.has_value()) return;
  facts->dry_run = snapshot.policy->dry_run;
  facts->waits_to_start = harvester::WaitsToStart(view.vm);
  facts->successor = snapshot.seen->ReplacementOf(view.vm->uid);
}

// How long this process must have known a drain before the drain can be late, because the API
// server's clock may be wrong. Once Nomad says that the drain is complete, this is only the grace.
base::Duration TimeToWatch(const harvester::Mark& mark, bool complete) {
  const bool timed = mark.drain_deadline.kind == harvester::DrainDeadline::Kind::kAt;
  if (!timed || complete || mark.drain_deadline.at <= mark.marked_at) return mark.grace;
  return mark.drain_deadline.at - mark.marked_at + mark.grace;
}

bool IsLate(const Facts& facts) {
  const harvester::Mark& mark = *facts.mark;
  const base::WallTime now = facts.snapshot->now();
  const std::optional<base::WallTime> late_at = LateAt(mark);
  if (!late_at.has_value()) return false;
  // A broken or unhealthy VM is useless: its removal does not end because its drain is refused or
  // its node is away (rule L3).
  if (facts.node != nullptr && !IsElective(mark.reason) && !facts.ours) return false;
  const base::Duration limit = TimeToWatch(mark, facts.complete);
  const bool runs = facts.ours && (facts.node->draining || facts.complete);
  return runs ? now >= EndByTwoClocks(*late_at, limit, facts.view->drain_known_for, now)
              : HasPassed(*late_at, limit, *facts.view, facts.snapshot->observation());
}

void SetMarked(Facts* facts) {
  if (!facts->view->vm->mark.has_value()) return;
  facts->mark = &*facts->view->vm->mark;
  facts->ours = facts->node != nullptr &&
                nodepool::IsDrainOf(*facts->node, facts->mark->action, facts->view->vm->uid);
  facts->complete = facts->ours && IsDrained(*facts->node);
  facts->late = IsLate(*facts);
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
      const bool is_kept = facts.is_protected || facts.removal_blocked.has_value();
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
  const PoolSnapshot& snapshot = seen.snapshot();
  const Observation& observation = snapshot.observation();
  Facts facts{.snapshot = &snapshot, .seen = &seen, .view = &view, .pool = pool};
  facts.node = seen.node();
  facts.joined = harvester::HasJoined(view.vm);
  facts.was_ready = harvester::WasReady(view.vm);
  const base::WallTime now = snapshot.earlier_now();
  facts.is_protected = view.vm->protect.HoldsAt(now) ||
                       (facts.node != nullptr && nodepool::IsProtected(*facts.node, now));
  facts.marked = view.vm->has_mark;
  facts.nomad = observation.nomad;
  // A marked VM that never joined is deleted because it has no node, which is uncertain while a
  // node that could be its node is unread. For broken, unhealthy or lost VMs, IsReadable ensures
  // the same.
  if (facts.nomad.ok() && !view.unread_node.empty() && facts.marked && !facts.joined) {
    facts.nomad = base::Unavailable(view.unread_node);
  }
  if (facts.marked) {
    SetMarked(&facts);
  } else {
    SetUnmarked(seen, &facts);
  }
  const bool may_have_other_name = facts.marked || facts.broken || facts.unhealthy;
  if (may_have_other_name && facts.node == nullptr) facts.candidate = seen.Candidate();
  return facts;
}

Facts FactsOfGoneVm(const OrphanedNode& gone, const PoolSnapshot& snapshot) {
  static const auto* const kNoVm = new VmView();
  Facts facts{.snapshot = &snapshot, .gone = &gone, .view = kNoVm, .node = gone.node};
  facts.nomad = snapshot.observation().nomad;
  return facts;
}

bool AwaitsPurge(const OrphanedNode& gone, const PoolSnapshot& snapshot) {
  return IsOfThisHarvester(gone.mark, snapshot.observation()) && gone.mark.purge &&
         gone.mark.pool == snapshot.key.ToString() &&
         gone.node->last_drain->status != DrainStatus::kCanceled;
}

bool IsDrained(const Node& node) {
  return !node.draining && node.last_drain.has_value() &&
         node.last_drain->status == DrainStatus::kComplete;
}

bool IsWithinItsTime(const Allocations& allocations) {
  return std::any_of(allocations.begin(), allocations.end(), [](const nomad::Allocation& each) {
    return each.client_status == nomad::ClientStatus::kUnknown || nodepool::IsLive(each);
  });
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
