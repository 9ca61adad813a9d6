// SPDX-License-Identifier: Apache-2.0
// Effects of requests.
#include <algorithm>
#include <cstddef>

#include "touch.h"
#include "world.h"

namespace nomad_harvester::explore {
namespace {

// Nothing is lost with this node, according to the model's own state: the condition behind rule C5.
bool IsSpent(const Configuration& configuration, const Vm& vm, const Node& node) {
  if (node.present == 0) return true;
  const bool idle = node.work == Work::kIdle;
  const bool broken = vm.mark_reason == Reason::kBroken && vm.was_ready == 0;
  // It may have gone down since it was read.
  if (broken && idle && (IsInitializing(node.power) || IsDown(node.power))) return true;
  const bool is_dead = !IsElective(vm.mark_reason);
  if (IsDown(node.power) || (is_dead && IsDisconnected(node.power) && idle)) {
    if (IsSilentForLong(node.power) && vm.held == 0) return true;
    if (vm.running == 0) return true;
  }
  if (node.ours == 0 || node.uid != vm.uid) return false;
  const bool complete = node.drain == DrainState::kComplete;
  if (complete && node.eligible == 0 && idle) return true;
  return vm.late != 0 && configuration.force && (complete || node.Draining());
}

// The guest has registered as a new node, of which the old one, still ready by Nomad's word, hides
// that it is not ready yet. Nothing could run there.
bool IsUnused(const Slot& slot) {
  const Node& node = slot.nodes[1];
  return node.present != 0 && IsInitializing(node.power) && node.work == Work::kIdle;
}

bool IsSuccessor(const Vm& vm) {
  return vm.Stands() && vm.replaces != 0 && vm.mark == MarkKind::kNone;
}
bool HasSuccessor(const State& state) {
  return std::any_of(state.slots.begin(), state.slots.end(),
                     [](const Slot& slot) { return IsSuccessor(slot.vm); });
}

Violation CheckDeletion(const Configuration& configuration, const Slot& slot, const Act& act,
                        State* state) {
  const Vm& vm = slot.vm;
  if (vm.unmanaged != 0) return Violation::kUnmanagedTouched;
  if (vm.mark != MarkKind::kOurs) return Violation::kDeletedUnmarked;
  if (vm.mark_uid != vm.uid) return Violation::kDeletedByOldMark;
  if (act.excused == 0) {
    // Once the guest has registered as a new node, the old one belongs to no VM.
    if (!IsUnused(slot) && !IsSpent(configuration, vm, NodeNow(slot))) {
      const bool never_drained = vm.was_ready == 0 && IsInitializing(NodeNow(slot).power);
      return never_drained ? Violation::kDeletedNeverDrained : Violation::kDeletedWithWork;
    }
    const bool drained = NodeNow(slot).drain == DrainState::kComplete;
    if (!drained && vm.running != 0 && IsMassLoss(*state)) return Violation::kDeletedByMassLoss;
  }
  if (vm.mark_reason != Reason::kScaleIn) return Violation::kNone;
  if (vm.old != 0 && HasSuccessor(*state)) return Violation::kNone;  // another one has its place
  if (state->removals_left == 0) return Violation::kTooManyRemoved;
  --state->removals_left;
  return Violation::kNone;
}

// The guest of a new VM registers with the Nomad that its process asks.
Violation ApplyCreate(const Configuration& configuration, const Act& act, Slot* slot,
                      State* state) {
  if (slot->vm.phase != Phase::kAbsent) return Violation::kNone;  // 409
  const bool is_taken = HasSuccessor(*state);
  slot->vm = {};
  slot->vm.phase = Phase::kStanding;
  slot->vm.keys = act.keys;
  slot->vm.other = act.keys == Keys::kOther;
  slot->vm.replaces = act.flag;
  slot->vm.for_dead = act.row == static_cast<Bits>(scaling::Row::kUnmarkedUnhealthyWaits);
  slot->vm.waits = act.flag != 0 && configuration.old_first;
  slot->vm.running = slot->vm.waits == 0;
  // No action asks for one that takes the place of another.
  if (act.flag != 0) return is_taken ? Violation::kReplacedTwice : Violation::kNone;
  unsigned members = 0;
  for (const Slot& other : state->slots) {
    if (other.vm.Stands() && other.vm.unmanaged == 0) ++members;
  }
  return members > state->ceiling ? Violation::kTooManyCreated : Violation::kNone;
}

// Rule R8: the VM whose place it takes, or its guest, is gone.
Violation ApplyStart(Vm* vm, const State& state) {
  vm->waits = 0;
  vm->running = 1;
  for (const Slot& slot : state.slots) {
    if (slot.vm.old != 0 && slot.vm.Exists() && slot.vm.running != 0) {
      return Violation::kStartsTooEarly;
    }
  }
  return Violation::kNone;
}

// A Scale lets it count by itself, and starts it unless it is a victim.
void EndReplacement(const Act& act, Vm* vm) {
  if (vm->waits != 0) vm->running = act.flag == 0;
  vm->replaces = vm->waits = vm->for_dead = 0;
}

Reason ReasonOf(ActKind kind) {
  switch (kind) {
    case ActKind::kMarkBroken:
      return Reason::kBroken;
    case ActKind::kMarkUnhealthy:
      return Reason::kUnhealthy;
    case ActKind::kMarkReplaced:
      return Reason::kReplace;
    default:
      return Reason::kScaleIn;
  }
}

// Whether the guest of a VM that is marked for being broken has a node, or one that is ready.
Violation CheckBroken(const Slot& slot) {
  const Vm& vm = slot.vm;
  const bool has_node = slot.nodes[0].present != 0;
  const bool is_ready = vm.was_ready != 0 || NodeNow(slot).IsReady();
  return (vm.joined == 0 ? has_node : is_ready) ? Violation::kTakenForBroken : Violation::kNone;
}

// Likewise one that is marked for being unhealthy: while an allocation on a node that is
// disconnected is within its time, it is not.
Violation CheckUnhealthy(const Slot& slot) {
  const Node& node = NodeNow(slot);
  if (node.present == 0) return Violation::kNone;
  const bool comes_back = IsDisconnected(node.power) && node.work != Work::kIdle;
  return node.power == Power::kReady || comes_back ? Violation::kTakenForUnhealthy
                                                   : Violation::kNone;
}

Violation ApplyToVm(const Configuration& configuration, const Act& act, Slot* slot, State* state) {
  Vm& vm = slot->vm;
  if (act.stale != 0 || !vm.Exists()) return Violation::kNone;  // 409, 404
  if (vm.unmanaged != 0) return Violation::kUnmanagedTouched;
  Violation violation = Violation::kNone;
  if (act.keys != Keys::kNone) vm.keys = act.keys;
  switch (act.kind) {
    case ActKind::kDelete:
      violation = CheckDeletion(configuration, *slot, act, state);
      vm.phase = Phase::kTerminating;
      break;
    case ActKind::kMarkBroken:
    case ActKind::kMarkUnhealthy:
      if (act.excused == 0) {
        violation = act.kind == ActKind::kMarkBroken ? CheckBroken(*slot) : CheckUnhealthy(*slot);
      }
      [[fallthrough]];
    case ActKind::kMarkReplaced:
    case ActKind::kMark:
      vm.mark = MarkKind::kOurs;
      vm.mark_action = act.action;
      vm.mark_uid = vm.uid;
      vm.mark_node = act.node;
      vm.mark_reason = ReasonOf(act.kind);
      vm.due = vm.late = 0;
      break;
    case ActKind::kRemoveMark:
      RemoveMark(&vm);
      vm.undone = configuration.replaces;
      break;
    case ActKind::kKeepReplaced:
      vm.undone = 1;
      break;
    case ActKind::kEndReplacement:
      EndReplacement(act, &vm);
      break;
    case ActKind::kStart:
      violation = ApplyStart(&vm, *state);
      break;
    case ActKind::kRecordRolledBack:
      vm.recorded = 1;
      vm.recorded_node = act.node & 1U;
      vm.recorded_action = act.action;
      vm.recorded_number = act.number;
      break;
    case ActKind::kRecordCluster:
      if (vm.joined == 0 || act.node == kNoNode) break;
      if (slot->nodes[act.node & 1U].power == Power::kReady) vm.joined_node = act.node & 1U;
      break;
    case ActKind::kRecordJoin:
      vm.joined = 1;
      vm.joined_node = act.node & 1U;
      vm.failing = 0;
      if (act.flag == 0) break;
      [[fallthrough]];
    case ActKind::kRecordReady:
      if (slot->nodes[act.node & 1U].was_ready == 0 && act.excused == 0) {
        violation = Violation::kReadyTooEarly;
      }
      vm.was_ready = 1;
      vm.overdue = 0;
      break;
    default:
      break;
  }
  TouchVm(slot);
  return violation;
}

Violation ApplyStartDrain(const Act& act, const Vm& vm, Node* node) {
  if (vm.mark == MarkKind::kOurs && act.excused == 0) {
    const bool recovered = vm.was_ready != 0 ? node->power == Power::kReady : node->IsReady();
    if (!IsElective(vm.mark_reason) && recovered) return Violation::kHealthyDrained;
  }
  // An operator's drain that begins after our last read loses its Meta: one of the remaining race
  // conditions in docs/operations.md.
  const bool foreign = node->Draining() && node->ours == 0;
  if (foreign && act.excused == 0) return Violation::kForeignDrainTouched;
  const bool again = node->by_hand != 0 && node->action == act.action && node->uid == act.uid;
  if (again && act.excused == 0) return Violation::kCancelIgnored;
  node->by_hand = 0;
  // hashicorp/nomad:nomad/state/state_store.go, updateNodeDrainImpl: a running drain keeps its
  // StartedAt and gets the new Meta.
  if (!node->Draining()) node->number = (node->number + 1U) & 7U;
  node->drain = DrainState::kDraining;
  node->ours = 1;
  node->action = act.action;
  node->uid = act.uid;
  node->was = act.flag;
  // Likewise for a change of the eligibility after our last read: the Meta has the value before it.
  const bool was_before = node->eligible == 0 && node->cordon != Cordon::kOurs;
  if (act.excused != 0 && was_before != (act.flag != 0)) {
    node->cordon = Cordon::kUnclear;
  } else if (node->eligible != 0) {
    node->cordon = Cordon::kOurs;
  }
  node->eligible = 0;
  node->NoteReady();
  return Violation::kNone;
}

Violation ApplyUndo(const Act& act, Node* node) {
  const bool excused = act.excused != 0;
  if (act.kind == ActKind::kEnable) {
    if (node->Draining() || node->eligible != 0) return Violation::kNone;  // 500; no change
  } else if (node->Draining()) {
    if (node->ours == 0 && !excused) return Violation::kForeignDrainTouched;
    node->drain = DrainState::kCanceled;
    if (act.flag == 0) {
      // The node was ineligible when read. That it may have changed since is an accepted race.
      if (excused && node->cordon == Cordon::kOurs) node->cordon = Cordon::kUnclear;
      return Violation::kNone;
    }
  } else if (act.flag == 0) {
    return Violation::kNone;
  }
  const bool lifted = node->eligible == 0 && node->cordon == Cordon::kOperators;
  node->eligible = 1;
  node->cordon = Cordon::kNone;
  node->NoteReady();
  return lifted && !excused ? Violation::kCordonLifted : Violation::kNone;
}

}  // namespace

bool IsMassLoss(const State& state) {
  unsigned lost = 0;
  unsigned of = 0;
  for (const Slot& slot : state.slots) {
    const Vm& vm = slot.vm;
    const Node& node = NodeNow(slot);
    const bool begun = node.ours != 0 && node.uid == vm.uid;
    const bool counts = vm.Stands() && vm.unmanaged == 0 && (vm.mark == MarkKind::kNone || begun) &&
                        vm.was_ready != 0 && vm.running != 0 && vm.held == 0;
    if (!counts) continue;
    ++of;
    if (node.present == 0 || node.power != Power::kReady) ++lost;
  }
  return lost > 1 && lost * 5 > of;
}

void RemoveMark(Vm* vm) {
  vm->mark = MarkKind::kNone;
  vm->mark_reason = Reason::kScaleIn;
  vm->mark_action = 0;
  vm->mark_node = 0;
  vm->mark_uid = 0;
  vm->due = vm->late = 0;
}

void TouchVm(Slot* slot) {
  if (slot->late.Busy()) slot->late.stale = 1;
  for (Observation& observation : slot->observations) {
    if (observation.vm.Exists()) observation.vm.stale = 1;
    if (observation.act.Busy()) observation.act.stale = 1;
  }
}

Violation CheckKnown(const Act& act, const Known& known) {
  const bool removes = act.kind == ActKind::kStartDrain || act.kind == ActKind::kDelete;
  const Power power = known.node.power;
  if (!removes || act.node == kNoNode || known.node.present == 0 || !IsUp(power))
    return Violation::kNone;
  if (known.removal_cancelled && power == Power::kReady) return Violation::kNotCancelled;
  const bool is_elective = IsElective(known.vm.mark_reason);
  if (known.refused && is_elective) return Violation::kRefusalIgnored;
  if (act.kind != ActKind::kStartDrain) return Violation::kNone;
  // What was placed while its drain began is stopped even after the deadline.
  const bool again = act.row == static_cast<Bits>(scaling::Row::kMarkedDrainAgain);
  if (is_elective && known.vm.due != 0 && !again) return Violation::kDrainTooLate;
  const bool never_used =
      known.vm.was_ready == 0 && IsInitializing(power) && known.node.work == Work::kIdle;
  return never_used && known.vm.mark_reason == Reason::kBroken ? Violation::kDrainedForNothing
                                                               : Violation::kNone;
}

Violation CheckSuccessor(const Configuration& configuration, const View& view, std::size_t slot,
                         const Act& act) {
  const Vm& vm = view.slots[slot].vm;
  const bool gives_way = act.kind == ActKind::kMarkReplaced &&
                         act.row == static_cast<Bits>(scaling::Row::kUnmarkedReplaced);
  // A dead VM goes once the new one exists (rule C17).
  const bool is_dead = act.kind == ActKind::kMarkUnhealthy && configuration.replaces &&
                       vm.old != 0 && vm.waited == 0 && vm.undone == 0;
  if (!gives_way && !is_dead) return Violation::kNone;
  for (const ObservedVm& seen : view.slots) {
    if (is_dead && seen.vm.Exists() && seen.vm.replaces != 0) return Violation::kNone;
    if (is_dead || !IsSuccessor(seen.vm)) continue;
    if (configuration.old_first && seen.vm.waits != 0) return Violation::kNone;
    for (const Node& node : seen.nodes) {
      const bool takes_work =
          node.present != 0 && node.power == Power::kReady && node.eligible != 0;
      if (takes_work && seen.vm.was_ready != 0) return Violation::kNone;
    }
  }
  return Violation::kGivesWayTooEarly;
}

Violation Apply(const Configuration& configuration, int index, const Act& act, State* state) {
  Slot& slot = state->slots[static_cast<std::size_t>(index)];
  switch (act.kind) {
    case ActKind::kNone:
      return Violation::kNone;
    case ActKind::kCreate:
      return ApplyCreate(configuration, act, &slot, state);
    case ActKind::kCancelDrain:
    case ActKind::kEnable:
    case ActKind::kStartDrain:
    case ActKind::kPurge:
      break;
    default:
      return ApplyToVm(configuration, act, &slot, state);
  }
  Node& node = slot.nodes[act.node & 1U];
  if (node.present == 0 || node.other != act.other) return Violation::kNone;  // 500, not found
  if (act.kind == ActKind::kStartDrain) return ApplyStartDrain(act, slot.vm, &node);
  if (act.kind != ActKind::kPurge) return ApplyUndo(act, &node);
  const bool in_use = slot.vm.Stands() && slot.vm.uid == node.uid;
  node = {};
  return in_use && act.excused == 0 ? Violation::kPurgedInUse : Violation::kNone;
}

std::string Describe(Violation violation) {
  switch (violation) {
    case Violation::kNone:
      return "nothing is violated";
    case Violation::kDeletedUnmarked:
      return "I1: a VM was deleted that carries no mark of ours";
    case Violation::kDeletedWithWork:
      return "I1: a VM was deleted whose node is neither drained by us, nor down for good, nor "
             "absent";
    case Violation::kUnmanagedTouched:
      return "I1: a VM was changed that is not the pool's";
    case Violation::kTakenForBroken:
      return "I2: a VM was marked for being broken although its guest had registered, or its node "
             "is ready";
    case Violation::kTakenForUnhealthy:
      return "C17: a VM was marked for being unhealthy although its node is ready, or is "
             "disconnected and an allocation on it is within its time";
    case Violation::kDeletedNeverDrained:
      return "I1: a VM was deleted undrained whose node initializes, was never ready, and has an "
             "allocation";
    case Violation::kDrainedForNothing:
      return "C17: the node of a broken VM is drained although it initializes, was never ready, "
             "and has no allocation";
    case Violation::kReadyTooEarly:
      return "C17: a VM is recorded as ready whose node never was";
    case Violation::kReadyLeft:
      return "C17: at rest, a node is ready and that is not recorded";
    case Violation::kReadyChosen:
      return "C8: a VM that is ready is chosen for removal before one that is not";
    case Violation::kTooManyRemoved:
      return "I2: more VMs were removed than the action wanted";
    case Violation::kTooManyCreated:
      return "I3: more VMs were created than the action wanted";
    case Violation::kForeignDrainTouched:
      return "an operator's own drain was cancelled or taken over";
    case Violation::kCancelIgnored:
      return "a drain of ours begins again that an operator had cancelled";
    case Violation::kCordonLifted:
      return "a node was enabled that an operator had made ineligible";
    case Violation::kPurgedInUse:
      return "a node was purged whose VM stands";
    case Violation::kLeftIneligible:
      return "I4: at rest, a node of a standing VM is ineligible because of us";
    case Violation::kMarkLeft:
      return "I5: at rest, a mark is left over";
    case Violation::kDrainLeft:
      return "I5: at rest, a drain of ours is left over";
    case Violation::kNodeLeft:
      return "I5: at rest, the node of a VM that is gone was not purged";
    case Violation::kRestless:
      return "I5: the pool does not come to rest";
    case Violation::kRecordLeft:
      return "I5: at rest, a drain is undone but not recorded: an operator's cordon would be "
             "lifted";
    case Violation::kJoinLeft:
      return "I5: at rest, a join is not recorded";
    case Violation::kBrokenLeft:
      return "I5: at rest, a VM stands that the policy wants removed";
    case Violation::kDrainGoesOn:
      return "a drain of ours goes on for a VM that carries no mark";
    case Violation::kDrainNotBegun:
      return "a VM is marked, but the drain of its node does not begin";
    case Violation::kHealthyDrained:
      return "a VM that was marked for being broken or unhealthy is drained although its node is "
             "ready";
    case Violation::kMaintenanceIgnored:
      return "a mark stays on a VM whose node an operator drains";
    case Violation::kNotCancelled:
      return "the removal of a VM goes on that the action on the Lease cancels";
    case Violation::kRefusalIgnored:
      return "a removal goes on that has been refused for a minute";
    case Violation::kDrainTooLate:
      return "a drain begins although its deadline has passed";
    case Violation::kDeletedByOldMark:
      return "I1: a VM was deleted whose mark is that of the VM before it";
    case Violation::kDeletedByMassLoss:
      return "C15: a VM that runs was deleted undrained while many have lost their nodes at once";
    case Violation::kTakenForAnothers:
      return "a VM is taken for one of another Nomad cluster";
    case Violation::kGivesWayTooEarly:
      return "R3: a VM gives way although the one that takes its place is not there yet";
    case Violation::kStartsTooEarly:
      return "R8: a VM starts although the one before it still runs";
    case Violation::kCountMoves:
      return "R1: a replacement changes the count: its place counts twice, or not at all";
    case Violation::kReplacedTwice:
      return "R1: two VMs are to take one place";
    case Violation::kPlaceLeft:
      return "R3: at rest, a replacement is not ended: nobody owns it";
  }
  return "";
}

}  // namespace nomad_harvester::explore
