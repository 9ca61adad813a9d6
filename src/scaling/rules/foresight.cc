// SPDX-License-Identifier: Apache-2.0
#include "rules/foresight.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

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
