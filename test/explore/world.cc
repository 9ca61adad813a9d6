// SPDX-License-Identifier: Apache-2.0
// Events of the world: time, machines, operators.
#include "world.h"

#include <array>
#include <cstddef>

#include "touch.h"

namespace nomad_harvester::explore {
namespace {

void Excuse(Observation* observation) {
  const Act& act = observation->act;
  if (act.Busy() && act.phase != ActPhase::kReadNode) observation->act.excused = 1;
  observation->intent.missed = observation->intent.looked;
}

// Whether the time for which the node initializes matters: its VM was ready, and is replaced.
bool CountsAsUnhealthy(const Configuration& configuration, const Vm& vm, const Node& node) {
  return configuration.replace_unhealthy && vm.was_ready != 0 && node.power == Power::kInitializing;
}

// By then the keys at the start are forgotten.
constexpr std::uint8_t kMonths = 2;

// In which state a guest registers.
enum class Start { kReady, kInitializing, kSick, kIneligible };
constexpr std::array<Start, 4> kStarts = {Start::kReady, Start::kInitializing, Start::kSick,
                                          Start::kIneligible};

// Collects the successors of one state.
class WorldSteps {
 public:
  WorldSteps(const Configuration& configuration, const State& state,
             std::vector<Successor>* successors)
      : configuration_(configuration), state_(state), successors_(successors) {}

  void Run() {
    if (state_.budgets.elsewhere > 0) {
      State& next = Add(EventKind::kPolicyMoves, 0);
      --next.budgets.elsewhere;
      next.elsewhere ^= 1U;
    }
    for (int p = 0; p < configuration_.processes && May(&Budgets::address); ++p) ExpandAddress(p);
    if (May(&Budgets::cut_off)) ExpandCutOff();
    for (int slot = 0; slot < configuration_.vms; ++slot) {
      ExpandVm(slot);
      for (int node = 0; node < kNodesPerVm; ++node) ExpandNode(slot, node);
    }
  }

 private:
  const Slot& At(int slot) const { return state_.slots[static_cast<std::size_t>(slot)]; }

  State& Add(EventKind kind, int slot, int node = 0, int detail = 0) {
    Successor& successor = successors_->emplace_back();
    successor.state = state_;
    successor.event = {.kind = kind,
                       .slot = static_cast<std::uint8_t>(slot),
                       .node = static_cast<std::uint8_t>(node),
                       .detail = static_cast<std::uint8_t>(detail)};
    return successor.state;
  }
  Slot& AddSlot(EventKind kind, int slot, std::uint8_t Budgets::*budget, int node = 0,
                int detail = 0) {
    State& next = Add(kind, slot, node, detail);
    if (budget != nullptr) --(next.budgets.*budget);
    return next.slots[static_cast<std::size_t>(slot)];
  }
  // Of the successor that was added last.
  Slot& LastSlot(int slot) {
    return successors_->back().state.slots[static_cast<std::size_t>(slot)];
  }
  bool May(std::uint8_t Budgets::*budget) const { return state_.budgets.*budget > 0; }

  void ExpandAddress(int p) {
    State& next = Add(EventKind::kAddressMoves, 0);
    successors_->back().event.process = static_cast<std::uint8_t>(p);
    --next.budgets.address;
    next.asks_other = static_cast<std::uint8_t>(next.asks_other ^ (1U << static_cast<unsigned>(p)));
    // There and back within a pass: no key tells that what was read in between is the other's.
    const auto process = static_cast<std::size_t>(p);
    const KeysHeld asked = next.AsksOther(process) ? KeysHeld::kOther : KeysHeld::kOwn;
    if (next.processes[process].keys != asked) return;
    for (Slot& slot : next.slots) Excuse(&slot.observations[process]);
  }

  void ExpandCutOff() {
    State& next = Add(EventKind::kCutOff, 0);
    --next.budgets.cut_off;
    for (Slot& slot : next.slots) {
      for (Node& node : slot.nodes) {
        if (node.present != 0 && IsUp(node.power)) node.power = Power::kDown;
      }
    }
  }

  void ExpandVm(int slot) {
    const Slot& s = At(slot);
    const Vm& vm = s.vm;
    if (vm.phase == Phase::kTerminating) {
      Slot& next = AddSlot(EventKind::kVmGone, slot, nullptr);
      next.vm = {};
      next.vm.phase = Phase::kGone;
      TouchVm(&next);
    }
    if (!vm.Stands()) {
      if (vm.phase == Phase::kAbsent && May(&Budgets::op_clone)) ExpandClones(slot);
      return;
    }
    if (vm.unmanaged != 0) return;
    ExpandJoin(slot);
    if (vm.old != 0 && May(&Budgets::op_wish)) {
      Slot& next = AddSlot(EventKind::kOperatorWishes, slot, &Budgets::op_wish);
      next.vm.wished = vm.wished == 0;
      TouchVm(&next);
    }
    if (vm.was_ready == 0 && vm.overdue == 0 && vm.waits == 0 && May(&Budgets::overdue)) {
      AddSlot(EventKind::kOverdue, slot, &Budgets::overdue).vm.overdue = 1;
    }
    const bool starts = vm.joined == 0 && vm.failing == 0 && vm.waits == 0;
    if (starts && s.nodes[0].present == 0 && May(&Budgets::overdue)) {
      Slot& next = AddSlot(EventKind::kStartFails, slot, &Budgets::overdue);
      next.vm.failing = 1;
      next.vm.running = 0;
    }
    if (AwaitsSuccessor(configuration_, s) && vm.waited == 0) {
      AddSlot(EventKind::kWaitEnds, slot, nullptr).vm.waited = 1;
    }
    if (vm.mark == MarkKind::kOurs && vm.due == 0 && May(&Budgets::due)) {
      AddSlot(EventKind::kDeadline, slot, &Budgets::due).vm.due = 1;
    }
    if (vm.mark == MarkKind::kOurs && vm.late == 0 && May(&Budgets::deadlines)) {
      Vm& late = AddSlot(EventKind::kDeadlineAndGrace, slot, &Budgets::deadlines).vm;
      late.due = late.late = 1;
    }
    if (vm.held != 0 || (vm.running != 0 && May(&Budgets::held))) ExpandHold(slot);
    ExpandOperatorActsOnVm(slot);
    if (vm.uid == 0 && May(&Budgets::restored)) ExpandRestored(slot);
  }

  void ExpandHold(int slot) {
    const bool holds = At(slot).vm.held == 0;
    Slot& next = AddSlot(holds ? EventKind::kGuestHeld : EventKind::kGuestGoesOn, slot,
                         holds ? &Budgets::held : nullptr);
    next.vm.held = holds;
    TouchVm(&next);
  }

  // The annotations are those of now, or of when the removal that was undone had begun.
  void ExpandRestored(int slot) {
    const Vm& vm = At(slot).vm;
    const bool has_undone = vm.mark == MarkKind::kNone && vm.recorded != 0;
    for (int with_undone = 0; with_undone <= (has_undone ? 1 : 0); ++with_undone) {
      Slot& next = AddSlot(EventKind::kOperatorRestores, slot, &Budgets::restored, 0, with_undone);
      next.vm.uid = 1;
      if (with_undone != 0) {
        next.vm.mark = MarkKind::kOurs;
        next.vm.mark_action = vm.recorded_action;
        next.vm.mark_node = vm.recorded_node;
        next.vm.recorded = next.vm.recorded_node = 0;
        next.vm.recorded_action = next.vm.recorded_number = 0;
      }
      // What a process remembers about a VM it remembers by uid.
      for (Observation& observation : next.observations) observation.intent.refused = 0;
      TouchVm(&next);
    }
  }

  static bool GuestRuns(const Vm& vm) { return vm.running != 0 && vm.held == 0; }

  void ExpandJoin(int slot) {
    const Slot& s = At(slot);
    const bool nodeless = s.nodes[0].present == 0 && s.nodes[1].present == 0;
    if (!nodeless || !GuestRuns(s.vm)) return;
    // A guest whose node was purged registers again when its agent runs again.
    std::uint8_t Budgets::*budget = s.vm.joined != 0 ? &Budgets::node_return : nullptr;
    if (budget == nullptr || May(budget)) {
      AddRegistrations(EventKind::kJoins, slot, budget, 0);
    }
    if (May(&Budgets::misnamed)) {
      Slot& next = AddSlot(EventKind::kJoinsMisnamed, slot, &Budgets::misnamed);
      Register(&next, 0, Start::kReady);
      next.nodes[0].misnamed = 1;
      Excuse(&next);
    }
  }

  void AddRegistrations(EventKind kind, int slot, std::uint8_t Budgets::*budget, int index) {
    for (const Start start : kStarts) {
      if (start != Start::kReady && !May(&Budgets::unready)) return;
      Slot& next = AddSlot(kind, slot, budget, index, static_cast<int>(start));
      if (start != Start::kReady) --successors_->back().state.budgets.unready;
      Register(&next, static_cast<std::size_t>(index), start);
      Excuse(&next);
    }
  }

  void ExpandOperatorActsOnVm(int slot) {
    const Vm& vm = At(slot).vm;
    if (vm.mark != MarkKind::kNone && May(&Budgets::op_unmark)) {
      Slot& next = AddSlot(EventKind::kOperatorUnmarks, slot, &Budgets::op_unmark);
      RemoveMark(&next.vm);
      TouchVm(&next);
    }
    if (vm.mark == MarkKind::kOurs && May(&Budgets::op_unmark)) {
      Slot& next = AddSlot(EventKind::kOperatorSpoils, slot, &Budgets::op_unmark);
      RemoveMark(&next.vm);
      next.vm.mark = MarkKind::kUnreadable;
      TouchVm(&next);
    }
    if (May(&Budgets::op_vm)) {
      Slot& next = AddSlot(EventKind::kOperatorDeletes, slot, &Budgets::op_vm);
      next.vm.phase = Phase::kTerminating;
      TouchVm(&next);
      const bool stops = vm.running != 0;
      Slot& turned = AddSlot(stops ? EventKind::kOperatorStops : EventKind::kOperatorStarts, slot,
                             &Budgets::op_vm);
      turned.vm.running = stops ? 0 : 1;
      TouchVm(&turned);
    }
  }

  void ExpandClones(int slot) {
    for (int from = 0; from < configuration_.vms; ++from) {
      const Vm& original = At(from).vm;
      if (!original.Stands() || original.unmanaged != 0) continue;
      Slot& next = AddSlot(EventKind::kOperatorClones, slot, &Budgets::op_clone, 0, from);
      next.vm = original;
      next.vm.unmanaged = 1;
    }
  }

  void ExpandNode(int slot, int index) {
    const Slot& s = At(slot);
    const auto i = static_cast<std::size_t>(index);
    const Node& node = s.nodes[i];
    if (node.present == 0) {
      const bool first = s.nodes[0].present != 0;
      if (index == 1 && first && s.vm.Stands() && GuestRuns(s.vm) && May(&Budgets::node_again)) {
        AddRegistrations(EventKind::kNodeAgain, slot, &Budgets::node_again, index);
      }
      return;
    }
    ExpandPower(slot, index);
    ExpandWork(slot, index);
    ExpandOperatorActsOnNode(slot, index);
  }

  Node& AddPower(EventKind kind, int slot, std::uint8_t Budgets::*budget, int index, Power power) {
    Slot& next = AddSlot(kind, slot, budget, index);
    Node& node = next.nodes[static_cast<std::size_t>(index)];
    node.power = power;
    node.NoteReady();
    return node;
  }

  void ExpandPower(int slot, int index) {
    const Slot& s = At(slot);
    const auto i = static_cast<std::size_t>(index);
    const Node& node = s.nodes[i];
    const bool guest_runs = s.vm.Exists() && GuestRuns(s.vm);
    const bool superseded = index == 0 && s.nodes[1].present != 0;
    // Heartbeats stop in the order in which the guest registered its nodes.
    const bool first_to_stop = index == 0 || s.nodes[0].present == 0 || !IsUp(s.nodes[0].power);
    if (IsUp(node.power)) {
      const bool free = !guest_runs || superseded || s.vm.phase == Phase::kTerminating;
      if (first_to_stop && (free || May(&Budgets::node_down))) {
        AddPower(EventKind::kNodeDown, slot, free ? nullptr : &Budgets::node_down, index,
                 Power::kDown);
      }
      if (first_to_stop && node.power == Power::kReady && May(&Budgets::silent)) {
        AddPower(EventKind::kDisconnects, slot, &Budgets::silent, index, Power::kDisconnected);
      }
      if (guest_runs && !superseded) ExpandReadiness(slot, index);
    } else {
      if (!IsSilentForLong(node.power)) {
        const Power power = IsDown(node.power) ? Power::kDownForLong : Power::kDisconnectedForLong;
        AddPower(EventKind::kTwoMinutesDown, slot, nullptr, index, power);
      }
      if (guest_runs && !superseded && May(&Budgets::node_return)) {
        AddPower(EventKind::kNodeReturns, slot, &Budgets::node_return, index, Power::kReady);
        Excuse(&LastSlot(slot));
      }
    }
    if (May(&Budgets::node_purged)) {
      Slot& next = AddSlot(EventKind::kNodePurged, slot, &Budgets::node_purged, index);
      // A live client registers as a new node at its next heartbeat.
      const bool lives = IsUp(node.power) && guest_runs;
      next.nodes[i] = {};
      next.nodes[i].number = node.number;
      if (lives) Register(&next, i, Start::kReady);
      Excuse(&next);
    }
  }

  // Of a node whose guest runs.
  void ExpandReadiness(int slot, int index) {
    const Slot& s = At(slot);
    const Node& node = s.nodes[static_cast<std::size_t>(index)];
    if (IsInitializing(node.power)) {
      AddPower(EventKind::kBecomesReady, slot, nullptr, index, Power::kReady);
      Excuse(&LastSlot(slot));
    } else if (May(&Budgets::falls)) {
      AddPower(EventKind::kFallsBack, slot, &Budgets::falls, index, Power::kInitializing);
    }
    if (CountsAsUnhealthy(configuration_, s.vm, node)) {
      AddPower(EventKind::kTwoMinutesDown, slot, nullptr, index, Power::kInitializingForLong);
    }
    if (node.sick != 0) {
      Node& cured = AddPower(EventKind::kDriverComes, slot, nullptr, index, node.power);
      cured.sick = 0;
      cured.NoteReady();
      Excuse(&LastSlot(slot));
    }
  }

  void ExpandWork(int slot, int index) {
    const auto i = static_cast<std::size_t>(index);
    const Node& node = At(slot).nodes[i];
    const bool held = At(slot).vm.held != 0;
    if (node.power == Power::kReady && node.eligible != 0 && node.work == Work::kIdle && !held &&
        May(&Budgets::tasks)) {
      AddSlot(EventKind::kTaskStarts, slot, &Budgets::tasks, index).nodes[i].work = Work::kRunning;
    }
    if (node.work == Work::kStopping && !held) {
      AddSlot(EventKind::kTasksStopped, slot, nullptr, index).nodes[i].work = Work::kIdle;
    }
    if (IsDisconnected(node.power) && node.work != Work::kIdle) {
      AddSlot(EventKind::kTimeEnds, slot, nullptr, index).nodes[i].work = Work::kIdle;
    }
    if (!node.Draining()) return;
    if (node.work == Work::kRunning) {
      AddSlot(EventKind::kTasksStop, slot, nullptr, index).nodes[i].work = Work::kStopping;
    }
    if (node.work == Work::kIdle) {
      AddSlot(EventKind::kDrainCompletes, slot, nullptr, index).nodes[i].drain =
          DrainState::kComplete;
      // Placed while the drain began, seen after it: nothing stops it but another drain.
      if (May(&Budgets::stopping) && IsUp(node.power) && !held) {
        Slot& next = AddSlot(EventKind::kPlacedLate, slot, &Budgets::stopping, index);
        next.nodes[i].work = Work::kRunning;
        next.nodes[i].drain = DrainState::kComplete;
      }
    } else if (May(&Budgets::stopping)) {
      Slot& next = AddSlot(EventKind::kDrainCutShort, slot, &Budgets::stopping, index);
      next.nodes[i].work = Work::kStopping;
      next.nodes[i].drain = DrainState::kComplete;
    }
  }

  void ExpandOperatorActsOnNode(int slot, int index) {
    const auto i = static_cast<std::size_t>(index);
    const Node& node = At(slot).nodes[i];
    if (node.Draining()) {
      for (int enable = 0; enable < 2 && May(&Budgets::op_cancel); ++enable) {
        Slot& next = AddSlot(EventKind::kOperatorCancels, slot, &Budgets::op_cancel, index, enable);
        next.nodes[i].drain = DrainState::kCanceled;
        next.nodes[i].by_hand = node.ours;
        next.nodes[i].eligible = enable != 0;
        next.nodes[i].cordon = enable != 0 ? Cordon::kNone : Cordon::kOperators;
        next.nodes[i].NoteReady();
        Excuse(&next);
      }
      return;
    }
    if (May(&Budgets::op_drain)) {
      Slot& next = AddSlot(EventKind::kOperatorDrains, slot, &Budgets::op_drain, index);
      Node& drained = next.nodes[i];
      drained.drain = DrainState::kDraining;
      drained.ours = 0;
      drained.by_hand = 0;
      drained.action = 0;
      drained.uid = 0;
      drained.was = 0;
      drained.number = (drained.number + 1U) & 7U;
      drained.eligible = 0;
      drained.cordon = Cordon::kOperators;
      drained.NoteReady();
      Excuse(&next);
    }
    if (May(&Budgets::op_toggle)) {
      Slot& next = AddSlot(EventKind::kOperatorToggles, slot, &Budgets::op_toggle, index);
      const Cordon cordon =
          IsUnrecorded(next.vm, node, index) ? Cordon::kUnclear : Cordon::kOperators;
      next.nodes[i].cordon = node.eligible != 0 ? cordon : Cordon::kNone;
      next.nodes[i].eligible = node.eligible == 0;
      next.nodes[i].NoteReady();
      Excuse(&next);
    }
  }

  // We have enabled the node, or are about to, and rolled-back is not yet written: if an operator
  // makes it ineligible in between, it looks like our own drain. An accepted limit.
  static bool IsUnrecorded(const Vm& vm, const Node& node, int index) {
    const bool recorded = vm.recorded != 0 && vm.recorded_node == static_cast<Bits>(index) &&
                          vm.recorded_action == node.action && vm.recorded_number == node.number;
    return node.ours != 0 && node.was == 0 && node.drain == DrainState::kComplete && !recorded;
  }

  // The drains that a node gets after a purge have other times than those before.
  static void Register(Slot* slot, std::size_t index, Start start) {
    Node& node = slot->nodes[index];
    const Node before = node;
    node = {};
    node.number = before.number;
    node.present = 1;
    node.power = start == Start::kInitializing ? Power::kInitializing : Power::kReady;
    node.sick = start == Start::kSick;
    node.eligible = start != Start::kIneligible;
    // By the client's configuration: it is not ours to change.
    if (node.eligible == 0) node.cordon = Cordon::kOperators;
    node.other = slot->vm.other;
    node.NoteReady();
  }

  const Configuration& configuration_;
  const State& state_;
  std::vector<Successor>* const successors_;
};

}  // namespace

void Excuse(Slot* slot) {
  if (slot->late.Busy()) slot->late.excused = 1;
  for (Observation& observation : slot->observations) Excuse(&observation);
}

void ExpandWorld(const Configuration& configuration, const State& state,
                 std::vector<Successor>* successors) {
  WorldSteps(configuration, state, successors).Run();
}

Node Visible(const Node& node, bool asks_other) {
  Node visible{};
  if (node.present == 0 || (node.other != 0) != asks_other) return visible;
  visible = node;
  visible.cordon = Cordon::kNone;
  visible.by_hand = 0;
  visible.was_ready = 0;
  visible.work = Work::kUnread;
  return visible;
}

Work WorkOn(const Node& node, bool asks_other) {
  return Visible(node, asks_other).present != 0 ? node.work : Work::kIdle;
}

Vm VisibleVm(const Vm& vm) {
  Vm visible = vm.Exists() ? vm : Vm{};
  visible.other = 0;
  return visible;
}

Keys KeysOf(const Configuration& configuration, const State& state, bool other) {
  if (!configuration.two_nomads) return Keys::kNone;
  return other ? Keys::kOther : static_cast<Keys>(static_cast<Bits>(Keys::kFirst) + state.month);
}

namespace {

// Whether the allocations on the node of a marked VM decide the next step: AwaitsIdle of
// observer.cc.
bool AwaitsIdle(const Vm& vm, const Node& node) {
  const bool never_ready =
      vm.mark_reason == Reason::kBroken && vm.was_ready == 0 && IsInitializing(node.power);
  const bool cut_off = !IsElective(vm.mark_reason) && IsDisconnected(node.power);
  const bool drained = node.ours != 0 && node.drain == DrainState::kComplete;
  return drained || (!node.Draining() && (never_ready || cut_off));
}

}  // namespace

void AddDetails(const Slot& slot, bool asks_other, Vm* vm, std::array<Node, kNodesPerVm>* nodes) {
  if (!vm->Exists()) return;
  vm->runs = slot.vm.running != 0 ? Answer::kYes : Answer::kNo;
  if (vm->mark != MarkKind::kOurs) return;
  if (vm->mark_node != kNoNode) {
    vm->node_gone = Visible(slot.nodes[vm->mark_node & 1U], asks_other).present == 0;
  }
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    Node& node = (*nodes)[i];
    if (node.present == 0 || !AwaitsIdle(*vm, node)) continue;
    node.work = WorkOn(slot.nodes[i], asks_other);
  }
}

View WorldView(const Configuration& configuration, const State& state, bool asks_other) {
  View view;
  std::memset(static_cast<void*>(&view), 0, sizeof view);
  view.readable = 1;
  view.elsewhere = state.elsewhere;
  view.keys = static_cast<std::uint8_t>(KeysOf(configuration, state, asks_other));
  view.lease_keys = state.lease_keys;
  view.stopped = state.stopped;
  for (std::size_t i = 0; i < view.slots.size(); ++i) {
    const Slot& slot = state.slots[i];
    ObservedVm& seen = view.slots[i];
    seen.vm = VisibleVm(slot.vm);
    for (std::size_t n = 0; n < seen.nodes.size(); ++n) {
      seen.nodes[n] = Visible(slot.nodes[n], asks_other);
    }
    AddDetails(slot, asks_other, &seen.vm, &seen.nodes);
    view.named = static_cast<std::uint8_t>(view.named | (slot.naming.named << i));
    view.create = static_cast<std::uint8_t>(view.create | (slot.naming.create << i));
    view.cancel = static_cast<std::uint8_t>(view.cancel | (slot.naming.cancel << i));
  }
  return view;
}

namespace {

// The network between Nomad and the guests that run is mended.
bool Reconnect(State* state) {
  bool moved = false;
  for (Slot& slot : state->slots) {
    Node& node = slot.nodes[slot.nodes[1].present];
    const bool is_cut_off = node.present != 0 && IsDown(node.power);
    if (!is_cut_off || !slot.vm.Stands() || slot.vm.running == 0 || slot.vm.held != 0) continue;
    node.power = Power::kReady;
    node.NoteReady();
    moved = true;
  }
  return moved;
}

}  // namespace

bool AwaitsSuccessor(const Configuration& configuration, const Slot& slot) {
  const Vm& vm = slot.vm;
  const Node& node = NodeNow(slot);
  if (!configuration.replaces || !configuration.replace_unhealthy) return false;
  if (!vm.Stands() || vm.was_ready == 0 || vm.mark != MarkKind::kNone) return false;
  return node.present == 0 || IsSilentForLong(node.power) ||
         node.power == Power::kInitializingForLong;
}

bool EndOutage(State* state) {
  bool moved = false;
  for (Slot& slot : state->slots) {
    Node& node = slot.nodes[slot.nodes[1].present];
    const Vm& vm = slot.vm;
    const bool is_lost = vm.Stands() && vm.running != 0 && vm.held == 0 && vm.was_ready != 0 &&
                         node.present != 0 && node.power != Power::kReady;
    if (!is_lost) continue;
    node.power = Power::kReady;
    node.NoteReady();
    moved = true;
  }
  return moved;
}

bool LetTimePass(const Configuration& configuration, State* state) {
  bool moved = false;
  for (Slot& slot : state->slots) {
    if (slot.vm.phase == Phase::kTerminating) {
      slot.vm = {};
      slot.vm.phase = Phase::kGone;
      moved = true;
    }
    const bool guest_runs = slot.vm.Stands() && slot.vm.running != 0 && slot.vm.held == 0;
    for (std::size_t i = 0; i < slot.nodes.size(); ++i) {
      Node& node = slot.nodes[i];
      if (node.present == 0) continue;
      const bool superseded = i == 0 && slot.nodes[1].present != 0;
      const Power power = node.power;
      if (power == Power::kDown || power == Power::kDisconnected) {
        node.power = IsDown(power) ? Power::kDownForLong : Power::kDisconnectedForLong;
      } else if (IsUp(power) && (!guest_runs || superseded)) {
        node.power = Power::kDown;
      } else if (CountsAsUnhealthy(configuration, slot.vm, node)) {
        node.power = Power::kInitializingForLong;
      }
      moved = moved || node.power != power;
      const bool hangs = configuration.hanging || slot.vm.held != 0;
      if (hangs && node.work != Work::kIdle) continue;
      if (node.work == Work::kStopping || (node.Draining() && node.work == Work::kRunning)) {
        node.work = node.work == Work::kRunning ? Work::kStopping : Work::kIdle;
        moved = true;
      } else if (node.Draining()) {
        node.drain = DrainState::kComplete;
        moved = true;
      }
    }
  }
  if (moved) return true;
  // Deadlines pass before the keys of a month end.
  for (Slot& slot : state->slots) {
    if (slot.vm.mark == MarkKind::kOurs && slot.vm.late == 0 && !configuration.endless) {
      slot.vm.late = slot.vm.due;
      slot.vm.due = 1;
      moved = true;
    }
    const bool has_deadline = slot.vm.Stands() && slot.vm.waits == 0;
    if (has_deadline && slot.vm.was_ready == 0 && slot.vm.overdue == 0) {
      slot.vm.overdue = 1;
      moved = true;
    }
    if (AwaitsSuccessor(configuration, slot) && slot.vm.waited == 0) {
      slot.vm.waited = 1;
      moved = true;
    }
    for (Node& node : slot.nodes) {
      if (node.present == 0 || !IsDisconnected(node.power) || node.work == Work::kIdle) continue;
      node.work = Work::kIdle;
      moved = true;
    }
  }
  if (moved) return true;
  if (configuration.budgets.cut_off > 0 && Reconnect(state)) return true;
  if (!configuration.two_nomads || state->month == kMonths) return false;
  ++state->month;
  return true;
}

}  // namespace nomad_harvester::explore
