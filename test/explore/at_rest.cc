// SPDX-License-Identifier: Apache-2.0
// Checks for leftovers.
#include <cstddef>

#include "world.h"

namespace nomad_harvester::explore {
namespace {

// For the VM, or for the one before it.
bool IsDrainOfOurs(const Node& node) { return node.ours != 0 && node.drain != DrainState::kNone; }

// The guest's only node, if it has never had another, has the VM's name, and Nomad hears it.
const Node* OnlyNodeUp(const Slot& slot) {
  const Node& node = slot.nodes[0];
  const bool only = node.present != 0 && slot.nodes[1].present == 0;
  return only && node.misnamed == 0 && IsUp(node.power) ? &node : nullptr;
}

bool IsRecorded(const Vm& vm, const Node& node) {
  return vm.recorded != 0 && vm.recorded_node == 0 && vm.recorded_action == node.action &&
         vm.recorded_number == node.number;
}

// True if a ready node does not have the name of a VM: it may belong to a VM without a node.
bool HasCandidates(const State& state) {
  for (const Slot& slot : state.slots) {
    for (const Node& node : slot.nodes) {
      const bool unlinked = node.misnamed != 0 || !slot.vm.Exists();
      if (node.present != 0 && node.power == Power::kReady && unlinked) return true;
    }
  }
  return false;
}

// Rule C17: it was never ready, and its deadline is past; or it was, and its node has not been
// ready for longer than the policy allows.
bool IsToBeRemoved(const Configuration& configuration, const Slot& slot) {
  const Vm& vm = slot.vm;
  const Node& node = NodeNow(slot);
  // Which of two is its node is not known.
  if (slot.nodes[1].present != 0 && slot.nodes[0].present != 0 && IsUp(slot.nodes[0].power)) {
    return false;
  }
  // Its removal was cancelled within the last hour.
  if (node.present != 0 && node.ours != 0 && node.uid == vm.uid &&
      node.drain == DrainState::kCanceled) {
    return false;
  }
  // A guest that is held goes on: that its node is silent says nothing.
  if (vm.held != 0 && node.present != 0 && !IsUp(node.power)) return false;
  if (vm.was_ready == 0) {
    if (vm.joined == 0 && vm.failing != 0 && node.present == 0) return true;
    const bool stays = configuration.keep_broken && vm.replaces == 0;  // rule R5
    return vm.overdue != 0 && !stays && !node.IsReady();
  }
  if (!configuration.replace_unhealthy || vm.held != 0) return false;
  return node.present == 0 || node.power != Power::kReady;
}

// Rules R3 and R8: one VM waits for the end of another, or two of them keep one place although the
// new one's node is ready and eligible.
bool KeepsAPlace(const Slot& slot, const State& state) {
  if (slot.vm.waits != 0) return true;
  const Node* node = OnlyNodeUp(slot);
  if (slot.vm.replaces == 0 || node == nullptr || !node->IsReady() || node->eligible == 0) {
    return false;
  }
  for (const Slot& other : state.slots) {
    const Vm& vm = other.vm;
    if (vm.old != 0 && vm.Stands() && vm.mark == MarkKind::kNone && vm.undone == 0) return true;
  }
  return false;
}

// Whether its record of its cluster says so. A VM of the other Nomad's has had that from the
// beginning, and in a pool that is the other's by its Lease nobody keeps the record.
bool LooksLikeAnothers(const Configuration& configuration, const Vm& vm, const State& state) {
  const bool others = vm.other != 0 || state.lease_keys == static_cast<std::uint8_t>(Keys::kOther);
  if (!configuration.two_nomads || others) return false;
  const auto newest = static_cast<Bits>(KeysOf(configuration, state, false));
  return static_cast<Bits>(vm.keys) + 1 < newest || vm.keys == Keys::kOther;
}

Violation LeftOnVm(const Configuration& configuration, const Slot& slot, const State& state) {
  if (LooksLikeAnothers(configuration, slot.vm, state)) return Violation::kTakenForAnothers;
  if (slot.vm.mark != MarkKind::kNone) return Violation::kMarkLeft;
  const bool waits = state.elsewhere != 0 || HasCandidates(state) || IsMassLoss(state);
  if (!waits && IsToBeRemoved(configuration, slot)) {
    return Violation::kBrokenLeft;
  }
  if (KeepsAPlace(slot, state)) return Violation::kPlaceLeft;
  const Node* node = OnlyNodeUp(slot);
  if (node == nullptr) return Violation::kNone;
  if (slot.vm.joined == 0) return Violation::kJoinLeft;
  if (slot.vm.was_ready == 0 && node->IsReady()) return Violation::kReadyLeft;
  const bool undone = IsDrainOfOurs(*node) && node->drain == DrainState::kComplete;
  if (undone && !IsRecorded(slot.vm, *node)) return Violation::kRecordLeft;
  return Violation::kNone;
}

}  // namespace

Violation LeftForNow(const State& state, bool removals_wait) {
  for (const Slot& slot : state.slots) {
    if (!slot.vm.Stands() || slot.vm.unmanaged != 0) continue;
    if (slot.vm.mark == MarkKind::kNone) {
      for (const Node& node : slot.nodes) {
        if (node.present != 0 && node.Draining() && node.ours != 0) return Violation::kDrainGoesOn;
      }
      continue;
    }
    const Node* node = OnlyNodeUp(slot);
    if (node == nullptr || slot.vm.mark == MarkKind::kUnreadable) continue;
    if (node->Draining() && node->ours == 0) return Violation::kMaintenanceIgnored;
    const bool begun =
        IsDrainOfOurs(*node) && node->uid == slot.vm.uid && node->action == slot.vm.mark_action;
    if (!begun && slot.vm.late == 0 && !removals_wait) return Violation::kDrainNotBegun;
  }
  return Violation::kNone;
}

Violation LeftAtRest(const Configuration& configuration, const State& state) {
  for (const Slot& slot : state.slots) {
    const bool stands = slot.vm.Stands() && slot.vm.unmanaged == 0;
    for (const Node& node : slot.nodes) {
      if (node.present == 0) continue;
      if (stands && node.Draining() && node.ours != 0) return Violation::kDrainLeft;
      if (stands && slot.vm.mark == MarkKind::kNone && node.eligible == 0 &&
          node.cordon == Cordon::kOurs) {
        return Violation::kLeftIneligible;
      }
      if (configuration.purge && slot.vm.phase == Phase::kGone && node.ours != 0 &&
          node.drain == DrainState::kComplete && node.power == Power::kDownForLong) {
        return Violation::kNodeLeft;
      }
    }
    if (!stands) continue;
    const Violation left = LeftOnVm(configuration, slot, state);
    if (left != Violation::kNone) return left;
  }
  return Violation::kNone;
}

}  // namespace nomad_harvester::explore
