// SPDX-License-Identifier: Apache-2.0
#include "acts.h"

namespace nomad_harvester::explore {

using scaling::StepKind;

bool IsRepair(ActKind kind) {
  return kind == ActKind::kCancelDrain || kind == ActKind::kEnable ||
         kind == ActKind::kRecordRolledBack || kind == ActKind::kRemoveMark;
}

bool IsRemoval(ActKind kind) {
  return kind == ActKind::kMarkBroken || kind == ActKind::kMarkUnhealthy ||
         kind == ActKind::kStartDrain || kind == ActKind::kDelete;
}

Act ActFor(const Advice& advice, const Vm& vm, const std::array<Node, kNodesPerVm>& nodes) {
  Act act{};
  act.row = static_cast<Bits>(advice.row) & 127U;
  act.node = advice.node & 3U;
  act.phase = ActPhase::kSent;
  act.stale = vm.stale;
  switch (advice.kind) {
    case StepKind::kCancelDrain:
      act.kind = ActKind::kCancelDrain;
      act.phase = ActPhase::kReadNode;
      break;
    case StepKind::kEnable:
      act.kind = ActKind::kEnable;
      act.phase = ActPhase::kReadNode;
      break;
    case StepKind::kStartDrain:
      act.kind = ActKind::kStartDrain;
      act.phase = ActPhase::kReadNode;
      break;
    case StepKind::kDelete:
      act.kind = ActKind::kDelete;
      act.phase = ActPhase::kReadNode;
      break;
    case StepKind::kRecordRolledBack:
      act.kind = ActKind::kRecordRolledBack;
      act.action = nodes[advice.node & 1U].action;
      act.number = nodes[advice.node & 1U].number;
      break;
    case StepKind::kMarkBroken:
      act.kind = ActKind::kMarkBroken;
      act.node = kNoNode;
      break;
    case StepKind::kMarkUnhealthy:
      act.kind = ActKind::kMarkUnhealthy;
      act.phase = ActPhase::kReadNode;
      break;
    case StepKind::kRecordJoin:
      act.kind = ActKind::kRecordJoin;
      break;
    case StepKind::kRollBack:
      act.kind = ActKind::kRemoveMark;
      break;
    default:
      return Act{};
  }
  return act;
}

}  // namespace nomad_harvester::explore
