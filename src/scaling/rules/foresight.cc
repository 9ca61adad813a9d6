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

// A VM needs at most these, one after the other: remove its mark, cancel its drain, enable its
// node, record that.
constexpr int kMostRepairs = 4;

void Apply(const Step& step, base::WallTime now, VmView* view, std::vector<nomad::Node>* nodes) {
  const auto node = std::find_if(nodes->begin(), nodes->end(),
                                 [&](const nomad::Node& each) { return each.id == step.node_id; });
  switch (step.kind) {
    case StepKind::kRollBack: {
      harvester::VirtualMachine& vm = view->vm.Change();
      vm.has_mark = false;
      vm.mark.reset();
      vm.removal_undone = {now, step.reason};
      break;
    }
    case StepKind::kRecordRolledBack:
      view->vm.Change().rolled_back = step.value;
      break;
    case StepKind::kCancelDrain:
      if (node == nodes->end()) break;
      node->draining = false;
      node->eligible = step.mark_eligible;
      if (!node->last_drain.has_value()) break;
      node->last_drain->status = nomad::DrainStatus::kCanceled;
      node->last_drain->updated_at = now;
      break;
    case StepKind::kEnable:
      if (node != nodes->end()) node->eligible = true;
      break;
    default:
      break;  // no repair
  }
}

}  // namespace

PoolSnapshot AfterRepairs(PoolSnapshot snapshot) {
  for (int i = 0; i < kMostRepairs; ++i) {
    const Decisions decisions(snapshot);
    Look look;
    std::vector<nomad::Node> nodes;
    bool due = false;
    for (const Decisions::Entry& entry : decisions.all()) {
      if (!IsRepair(entry.step.kind)) continue;
      if (!std::exchange(due, true)) {
        look = snapshot.look();
        nodes = snapshot.nodes();
      }
      Apply(entry.step, snapshot.now(), &look.vms[snapshot.seen->IndexOf(*entry.view)], &nodes);
    }
    if (!due) break;
    look.SetNodes(std::move(nodes));
    Link(&look);
    snapshot.seen = std::make_shared<const Snapshot>(std::move(look));
  }
  return snapshot;
}

}  // namespace nomad_harvester::scaling
