// SPDX-License-Identifier: Apache-2.0
#include "mutation.h"

#include <algorithm>

#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::explore {
namespace {

using scaling::PoolSnapshot;
using scaling::Row;
using scaling::Step;
using scaling::StepKind;
using scaling::VmView;

nomad::Node* FindNode(const std::string& id, PoolSnapshot* snapshot) {
  const auto found = std::find_if(snapshot->nodes.begin(), snapshot->nodes.end(),
                                  [&](const nomad::Node& node) { return node.id == id; });
  return found == snapshot->nodes.end() ? nullptr : &*found;
}

// The condition of the row that begins a drain: not made ineligible by an unrecorded drain of ours.
bool IneligibleByOthers(const VmView& view, const nomad::Node& node) {
  if (node.eligible) return false;
  const auto mark = nodepool::ParseDrainMark(node);
  const bool by_us = nodepool::IsDrainOfVm(node, view.vm.uid) && !node.draining &&
                     node.last_drain->status == nomad::DrainStatus::kComplete &&
                     !mark->was_ineligible && nodepool::RollbackMarker(node) != view.vm.rolled_back;
  return !by_us;
}

// The step of the table without `row` where `row` gave `step`: calls the real function with a
// snapshot from which the condition of the row has been removed.
Step FallThrough(Row row, const Step& step, VmView view, PoolSnapshot snapshot) {
  nomad::Node* node = FindNode(step.node_id, &snapshot);
  switch (row) {
    case Row::kNomadUnreadable:
      snapshot.nomad_readable = true;
      break;
    case Row::kTerminating:
      view.vm.deleted_at.reset();
      break;
    case Row::kNotMember:
      view.member = true;
      break;
    case Row::kUnmarkedCandidate:
    case Row::kMarkedCandidate:
      snapshot.node_is_linked.assign(snapshot.nodes.size(), true);
      break;
    case Row::kMarkedTwoReady:
      view.link.state = nodepool::LinkState::kNone;
      break;
    case Row::kMarkedNotNamed:
      if (!snapshot.action.has_value()) snapshot.action = harvester::LeaseAction{};
      snapshot.action->names.insert(view.vm.name);
      break;
    case Row::kMarkedCanceled:
      node->last_drain.reset();
      break;
    case Row::kMarkedEnabled:
      node->eligible = false;
      break;
    case Row::kMarkedGone:
      view.node_gone = false;
      break;
    case Row::kMarkedLateForced:
      view.vm.mark->force = false;
      break;
    case Row::kMarkedLate:
      view.vm.mark->drain_deadline.kind = harvester::DrainDeadline::Kind::kNone;
      break;
    case Row::kMarkedWaiting: {
      Step next = step;
      next.kind = StepKind::kStartDrain;
      next.row = Row::kMarkedStartDrain;
      next.was_ineligible = IneligibleByOthers(view, *node);
      return next;
    }
    default: {
      Step nothing = step;
      nothing.kind = StepKind::kNothing;
      return nothing;
    }
  }
  return NextStep(view, snapshot);
}

}  // namespace

Step NextStepUnder(const Mutation& mutation, const VmView& view, const PoolSnapshot& snapshot) {
  Step step = NextStep(view, snapshot);
  if (mutation.off == step.row) return FallThrough(step.row, step, view, snapshot);
  if (mutation.swap.has_value() && step.row == mutation.swap->first) {
    Step other = FallThrough(step.row, step, view, snapshot);
    if (other.row == mutation.swap->second) return other;
  }
  return step;
}

}  // namespace nomad_harvester::explore
