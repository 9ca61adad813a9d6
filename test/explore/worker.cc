// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::explore {

using scaling::StepKind;

View Worker::CurrentView() const {
  View view;
  std::memset(static_cast<void*>(&view), 0, sizeof view);
  view.readable = process_.readable;
  view.elsewhere = state_.elsewhere;
  view.lease_keys = state_.lease_keys;
  view.stopped = state_.stopped;
  if (process_.keys != KeysHeld::kNone) {
    const bool other = process_.keys == KeysHeld::kOther;
    view.keys = static_cast<std::uint8_t>(KeysOf(configuration_, state_, other));
  }
  for (std::size_t i = 0; i < view.slots.size(); ++i) {
    const Observation& observation = state_.slots[i].observations[p_];
    view.slots[i].vm = observation.vm;
    view.slots[i].vm.stale = 0;
    view.slots[i].nodes = observation.nodes;
    view.named = static_cast<std::uint8_t>(view.named | (observation.intent.named << i));
    view.create = static_cast<std::uint8_t>(view.create | (observation.intent.create << i));
    view.cancel = static_cast<std::uint8_t>(view.cancel | (observation.intent.cancel << i));
    view.refused = static_cast<std::uint8_t>(view.refused | (observation.intent.refused << i));
  }
  return view;
}

void Worker::Acquire(Mode mode) const {
  state_.holder = kHolderOf[p_];
  process_.mode = mode;
  process_.stage = Stage::kNodes;
  process_.readable = 0;
  for (Slot& slot : state_.slots) {
    Intent& intent = ObservationOf(slot).intent;
    intent.named = slot.naming.named;
    intent.create = slot.naming.create;
    intent.cancel = slot.naming.cancel;
  }
}

void Worker::Release() const {
  if (state_.holder == kHolderOf[p_]) state_.holder = Holder::kNobody;
  for (Slot& slot : state_.slots) {
    const Intent before = ObservationOf(slot).intent;
    ObservationOf(slot) = {};
    ObservationOf(slot).intent.refused = before.refused;
  }
  const KeysHeld keys = process_.keys;
  process_ = {};
  process_.keys = keys;
}

void Worker::Forget() const {
  for (Slot& slot : state_.slots) ObservationOf(slot) = {};
  process_ = {};
}

void Worker::ClearSights() const {
  for (Slot& slot : state_.slots) {
    ObservationOf(slot).vm = {};
    ObservationOf(slot).nodes = {};
    ObservationOf(slot).act = {};
    ObservationOf(slot).intent.looked = ObservationOf(slot).intent.missed = 0;
  }
  process_.stage = Stage::kNodes;
  process_.readable = 0;
}

void Worker::ReadNodes(bool answered, bool reads_keys) const {
  if (answered && reads_keys && configuration_.two_nomads) {
    process_.keys = AsksOther() ? KeysHeld::kOther : KeysHeld::kOwn;
  }
  for (Slot& slot : state_.slots) {
    ObservationOf(slot).intent.looked = 1;
    for (std::size_t i = 0; i < slot.nodes.size(); ++i) {
      ObservationOf(slot).nodes[i] = answered ? Visible(slot.nodes[i], AsksOther()) : Node{};
    }
  }
  process_.readable = answered;
  process_.stage = Stage::kVms;
}

void Worker::ReadVms() const {
  for (Slot& slot : state_.slots) {
    Observation& observation = ObservationOf(slot);
    observation.vm = VisibleVm(slot.vm);
    if (!observation.vm.Exists()) observation.intent.refused = 0;
    if (process_.readable == 0) continue;
    AddDetails(slot, AsksOther(), &observation.vm, &observation.nodes);
  }
}

bool Worker::Launch(bool only_repairs) const {
  const Decision& decision = cache_.Decide(CurrentView());
  bool launched = false;
  for (std::size_t i = 0; i < state_.slots.size(); ++i) {
    Observation& observation = state_.slots[i].observations[p_];
    Act act{};
    if (observation.vm.Exists()) {
      act = ActFor(decision.vms[i], observation.vm, observation.nodes);
      if (only_repairs && !IsRepair(act.kind)) continue;
      if (decision.removals_wait && IsRemoval(act.kind)) continue;
    } else if (!only_repairs && process_.readable != 0) {
      act = PurgeOf(decision.purge[i]);
    }
    if (!act.Busy()) continue;
    const bool marks = act.kind == ActKind::kMarkBroken || act.kind == ActKind::kMarkUnhealthy ||
                       act.kind == ActKind::kMarkReplaced;
    if (marks) act.action = TakeActionId() & 7U;
    act.excused = observation.intent.missed != 0;
    observation.act = act;
    launched = true;
  }
  if (decision.new_keys) StoreKeys();
  WriteAhead();
  process_.stage = Stage::kActs;
  return launched;
}

void Worker::WriteAhead() const {
  for (Slot& slot : state_.slots) {
    Observation& observation = ObservationOf(slot);
    const ActKind kind = observation.act.kind;
    const bool removes = IsRemoval(kind) && kind != ActKind::kStartDrain;
    const bool seen = process_.mode == Mode::kResume && observation.vm.Exists();
    if (removes || seen) observation.intent.create = 0;
    if (kind == ActKind::kMarkUnhealthy || kind == ActKind::kMarkReplaced) {
      observation.intent.named = 1;
    }
    // Rule R5.
    const bool rolls = observation.vm.replaces != 0 && observation.vm.for_dead == 0;
    if (kind == ActKind::kMarkBroken && rolls) state_.stopped = 1;
  }
  StoreNames();
}

void Worker::CloseRecord() const {
  for (std::size_t i = 0; i < state_.slots.size(); ++i) {
    Observation& observation = state_.slots[i].observations[p_];
    if (observation.vm.Exists()) observation.intent.create = 0;
    const bool stays_named =
        observation.intent.named != 0 && observation.vm.mark != MarkKind::kNone;
    observation.intent.named = observation.intent.create != 0 || stays_named;
    const bool marked = observation.vm.Exists() && observation.vm.mark != MarkKind::kNone;
    if (!marked || (!IsReady(i) && !AdviceOn(i).other_nomad)) observation.intent.cancel = 0;
  }
  StoreNames();
}

bool Worker::IsReady(std::size_t index) const {
  const std::uint8_t linked = AdviceOn(index).linked;
  return linked != kNoNode &&
         state_.slots[index].observations[p_].nodes[linked].power == Power::kReady;
}

bool Worker::Cancels() const {
  bool waits = false;
  for (std::size_t i = 0; i < state_.slots.size(); ++i) {
    const Vm& vm = state_.slots[i].observations[p_].vm;
    Intent& intent = state_.slots[i].observations[p_].intent;
    if (intent.cancels == 0) continue;
    const bool marked = vm.mark != MarkKind::kNone;
    const bool repairs = scaling::IsRepair(AdviceOn(i).kind);
    const bool comes_back = vm.Stands() && (repairs || (marked && IsReady(i)));
    const bool known = process_.readable != 0 && !AdviceOn(i).other_nomad;
    const bool ended = known && !comes_back;
    if (ended) intent.cancels = 0;
    waits = waits || !ended;
  }
  return waits;
}

void Worker::StoreNames() const {
  if (state_.holder != kHolderOf[p_]) return;
  for (Slot& slot : state_.slots) {
    slot.naming.named = ObservationOf(slot).intent.named;
    slot.naming.create = ObservationOf(slot).intent.create;
    slot.naming.cancel = ObservationOf(slot).intent.cancel;
  }
}

void Worker::StoreKeys() const {
  const std::uint8_t keys = CurrentView().keys;
  if (state_.holder == kHolderOf[p_] && keys != 0) state_.lease_keys = keys;
}

Bits Worker::TakeActionId() const {
  const Bits id = state_.next_action & 7U;
  if (state_.next_action < 7) ++state_.next_action;
  return id;
}

Act Worker::PurgeOf(const std::array<bool, kNodesPerVm>& purge) {
  Act act{};
  for (std::size_t n = 0; n < purge.size(); ++n) {
    if (!purge[n]) continue;
    act.kind = ActKind::kPurge;
    act.row = static_cast<Bits>(scaling::Row::kGonePurge);
    act.node = static_cast<Bits>(n) & 3U;
    act.phase = FirstPhase(act);
  }
  return act;
}

void Worker::RecordReply(std::size_t index, const Act& act, bool refused) const {
  Intent& intent = state_.slots[index].observations[p_].intent;
  const bool tried = act.kind == ActKind::kStartDrain || act.kind == ActKind::kDelete;
  const bool conflict = act.kind != ActKind::kStartDrain && act.stale != 0;
  if (refused) {
    intent.refused = 1;
  } else if ((tried || act.kind == ActKind::kRemoveMark) && !conflict) {
    intent.refused = 0;
  }
}

void Worker::DrainAfterMark(std::size_t index) const {
  Slot& slot = state_.slots[index];
  Observation& observation = slot.observations[p_];
  const Vm before = observation.vm;
  observation.vm = VisibleVm(slot.vm);
  observation.vm.runs = before.runs;
  const Advice& advice = AdviceOn(index);
  if (advice.kind == StepKind::kStartDrain)
    observation.act = ActFor(advice, observation.vm, observation.nodes);
}

void Worker::EndPassIfDone() const {
  for (Slot& slot : state_.slots) {
    if (ObservationOf(slot).act.Busy()) return;
  }
  ClearSights();
}

void Worker::Read(std::size_t index) const {
  Observation& observation = state_.slots[index].observations[p_];
  const Act act = observation.act;
  const bool goes_on = Proceed(index);
  if (!goes_on) {
    RecordReply(index, act, false);
    observation.act = {};
  }
  EndPassIfDone();
}

bool Worker::Proceed(std::size_t index) const {
  Act& act = state_.slots[index].observations[p_].act;
  if (!ReadPhase(index)) return false;
  if (configuration_.two_nomads && ComparesKeys(act) && !HoldsKeys()) return false;
  act.phase = PhaseAfter(act);
  if (act.phase != ActPhase::kSent) return true;
  act.other = AsksOther();
  return IsStillWanted(index);
}

bool Worker::ReadPhase(std::size_t index) const {
  switch (state_.slots[index].observations[p_].act.phase) {
    case ActPhase::kReadNode:
      ReadNode(index);
      return true;
    case ActPhase::kReadWork:
      ReadWork(index);
      return true;
    case ActPhase::kReadVm:
      return ReadVm(index);
    case ActPhase::kReadKeys:
      return true;
    default:
      ReadInstance(index);
      return true;
  }
}

void Worker::Refresh(const Slot& slot, Observation* observation, std::size_t node) const {
  const Work work = observation->nodes[node].work;
  observation->nodes[node] = Visible(slot.nodes[node], AsksOther());
  if (observation->nodes[node].present != 0) observation->nodes[node].work = work;
}

void Worker::ReadNode(std::size_t index) const {
  Slot& slot = state_.slots[index];
  Observation& observation = slot.observations[p_];
  Act& act = observation.act;
  if (ReadsAllNodes(act)) {
    for (Slot& other : state_.slots) {
      // What another act has read is its own, and this Nomad may not know it.
      const Act& others = ObservationOf(other).act;
      const bool has_read = others.Busy() && others.phase != ActPhase::kReadNode;
      if (configuration_.two_nomads && has_read) continue;
      for (std::size_t n = 0; n < other.nodes.size(); ++n) Refresh(other, &ObservationOf(other), n);
    }
    observation.vm.node_gone =
        observation.vm.mark == MarkKind::kOurs && observation.vm.mark_node != kNoNode &&
        Visible(slot.nodes[observation.vm.mark_node & 1U], AsksOther()).present == 0;
  } else {
    Refresh(slot, &observation, act.node & 1U);
  }
  // The first read of the node; a purge reads the VM before it.
  if (act.kind != ActKind::kPurge) act.excused = 0;
}

void Worker::ReadWork(std::size_t index) const {
  Slot& slot = state_.slots[index];
  Observation& observation = slot.observations[p_];
  const std::size_t n = observation.act.node & 1U;
  if (observation.nodes[n].present == 0) return;
  observation.nodes[n].work = WorkOn(slot.nodes[n], AsksOther());
}

// False: the VM is not the one that the act is about.
bool Worker::ReadVm(std::size_t index) const {
  Slot& slot = state_.slots[index];
  Observation& observation = slot.observations[p_];
  Act& act = observation.act;
  if (act.kind == ActKind::kPurge) {
    act.excused = 0;
    return !slot.vm.Exists() || slot.vm.uid != slot.nodes[act.node & 1U].uid;
  }
  if (!slot.vm.Exists() || slot.vm.uid != observation.vm.uid) return false;
  const Vm before = observation.vm;
  observation.vm = VisibleVm(slot.vm);
  observation.vm.node_gone = before.node_gone;
  observation.vm.runs = before.runs;
  act.stale = 0;
  return true;
}

void Worker::ReadInstance(std::size_t index) const {
  Slot& slot = state_.slots[index];
  const bool runs = slot.vm.Exists() && slot.vm.running != 0;
  slot.observations[p_].vm.runs = runs ? Answer::kYes : Answer::kNo;
}

// After the last read: whether the request is sent, and with what.
bool Worker::IsStillWanted(std::size_t index) const {
  Observation& observation = state_.slots[index].observations[p_];
  Act& act = observation.act;
  const Advice& advice = AdviceOn(index);
  const bool same_row = static_cast<Bits>(advice.row) == act.row && advice.node == act.node;
  switch (act.kind) {
    case ActKind::kMark:
      return advice.linked == act.node && !observation.nodes[act.node & 1U].Draining();
    case ActKind::kPurge:
      return cache_.Decide(CurrentView()).purge[index][act.node & 1U];
    case ActKind::kStartDrain:
      act.flag = advice.flag;
      act.action = observation.vm.mark_action;
      act.uid = observation.vm.mark_uid;
      return advice.kind == StepKind::kStartDrain && advice.node == act.node;
    case ActKind::kMarkBroken:
    case ActKind::kMarkUnhealthy:
    case ActKind::kMarkReplaced:
      if (act.node == kNoNode) act.node = observation.vm.JoinedNode() & 3U;
      return same_row;
    default:
      act.flag = advice.flag;
      return same_row;
  }
}

}  // namespace nomad_harvester::explore
