// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

// True if nothing shows that this Nomad is the pool's: the Lease has no record, and no VM of the
// pool has a node here.
bool IsOfNoKnownCluster(const PoolSnapshot& snapshot) {
  return snapshot.lease_cluster.empty() &&
         std::none_of(snapshot.vms().begin(), snapshot.vms().end(), [&](const VmView* view) {
           return IsPoolMember(*view, snapshot) && LinkedNode(*view, snapshot) != nullptr;
         });
}

// True if the step removes a VM because this Nomad does not know its node.
bool RestsOnAbsence(const Step& step) {
  switch (step.row) {
    case Row::kMarkedGone:
    case Row::kMarkedNeverJoined:
      return true;
    case Row::kUnmarkedBroken:
    case Row::kUnmarkedUnhealthy:
      return step.node_id.empty();
    default:
      return false;
  }
}

void LeaveAlone(Step* step) {
  step->kind = StepKind::kReport;
  step->reason +=
      "; it is kept, because neither it nor the pool's Lease has a record of its Nomad cluster, "
      "and no VM of the pool has a node in this one: run gc against the pool's Nomad, or delete "
      "the VM by hand";
}

// Ends what a drain for a VM without a mark left. `is_own`: the node is the VM's.
void UndoDrain(base::WallTime now, bool is_own, nomad::Node* node, harvester::VirtualMachine* vm) {
  const bool was_ineligible = nodepool::ParseDrainMark(*node)->was_ineligible;
  const std::string marker = nodepool::RollbackMarker(*node);
  nomad::LastDrain& drain = *node->last_drain;
  if (node->draining) {
    node->draining = false;
    node->eligible = !was_ineligible;
    drain.status = nomad::DrainStatus::kCanceled;
    drain.updated_at = now;
  } else if (drain.status == nomad::DrainStatus::kComplete && marker != vm->rolled_back) {
    node->eligible = node->eligible || !was_ineligible;
    if (is_own) vm->rolled_back = marker;
  }
}

}  // namespace

Decisions::Decisions(PoolSnapshot snapshot, std::span<const Rule> rules)
    : snapshot_(std::move(snapshot)), pool_(snapshot_) {
  entries_.reserve(snapshot_.vms().size());
  for (const VmView* view : snapshot_.vms()) {
    const Overlay seen(snapshot_, *view);
    entries_.push_back({view, Decide(FactsOf(seen, &pool_), rules)});
  }
  if (snapshot_.collected && IsOfNoKnownCluster(snapshot_)) {
    for (auto& [view, step] : entries_) {
      if (view->vm->nomad_cluster.empty() && RestsOnAbsence(step)) LeaveAlone(&step);
    }
  }
  if (!CheckNomad(snapshot_).ok()) return;
  const std::string pool = snapshot_.key.ToString();
  for (const OrphanedNode& gone : snapshot_.orphaned_nodes()) {
    if (gone.mark.pool != pool) continue;  // another pool's to purge
    const Step step = Decide(FactsOfGoneVm(gone, snapshot_), rules);
    if (step.kind == StepKind::kPurge) to_purge_.push_back(gone);
  }
}

const Decisions::Entry* Decisions::Find(std::string_view vm) const {
  const VmView* view = snapshot_.seen->FindVm(vm);
  // The entries are in the order of the Observation's VMs.
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), view,
      [](const Entry& entry, const VmView* wanted) { return entry.view < wanted; });
  return view == nullptr || found == entries_.end() || found->view != view ? nullptr : &*found;
}

PoolSnapshot AfterRepairs(PoolSnapshot snapshot) {
  const Decisions decisions(snapshot);
  const bool is_due =
      std::any_of(decisions.all().begin(), decisions.all().end(),
                  [](const Decisions::Entry& entry) { return IsRepair(entry.step.kind); });
  if (!is_due) return snapshot;
  Observation observation = snapshot.observation();
  std::vector<nomad::Node> nodes = snapshot.nodes();
  for (const auto& [view, step] : decisions.all()) {
    if (!IsRepair(step.kind)) continue;
    harvester::VirtualMachine& vm = observation.vms[snapshot.seen->IndexOf(*view)].vm.Change();
    if (vm.has_mark) vm.removal_undone = {snapshot.now(), step.reason};
    vm.has_mark = false;
    vm.mark.reset();
    const nomad::Node* const own = LinkedNode(*view, snapshot);
    for (const nomad::Node* node : Overlay(snapshot, *view).NodesDrainedForIt()) {
      UndoDrain(snapshot.now(), node == own, &nodes[snapshot.seen->nodes().IndexOf(*node)], &vm);
    }
  }
  observation.SetNodes(std::move(nodes));
  Link(&observation);
  snapshot.seen = std::make_shared<const Snapshot>(std::move(observation));
  return snapshot;
}

}  // namespace nomad_harvester::scaling
