// SPDX-License-Identifier: Apache-2.0
#include "scale.h"

#include <cstddef>

namespace nomad_harvester::explore {
namespace {

// Raises the ceiling to the action's count plus the VMs that are being removed.
void Raise(const Worker& worker, const Plan& plan, State* state) {
  unsigned wanted = plan.to;
  for (std::size_t i = 0; i < state->slots.size(); ++i) {
    const Vm& vm = worker.ObservationOf(state->slots[i]).vm;
    const bool comes_back = ((plan.cancels >> i) & 1U) != 0;
    const bool leaves = vm.mark != MarkKind::kNone && !comes_back;
    const bool counts = vm.Stands() && vm.unmanaged == 0;
    if (counts && (leaves || worker.AdviceOn(i).broken)) ++wanted;
  }
  if (wanted > state->ceiling) state->ceiling = static_cast<std::uint8_t>(wanted);
}

Act SentTo(ActKind kind, const Vm& vm) {
  Act act{};
  act.kind = kind;
  act.phase = ActPhase::kSent;
  act.node = kNoNode;
  act.stale = vm.stale;
  return act;
}

Act MarkFor(const Observation& observation, Bits action, const Advice& advice) {
  Act act = SentTo(ActKind::kMark, observation.vm);
  act.action = action & 7U;
  act.keys = advice.records;
  act.node = advice.linked & 3U;
  if (advice.linked != kNoNode) {
    act.phase = ActPhase::kReadNode;
    act.flag = 1;
  } else if (observation.vm.joined != 0) {
    act.node = observation.vm.joined_node;
  }
  return act;
}

}  // namespace

bool BeginAction(const Worker& worker, const Plan& plan, int names, int p, State* state) {
  const Bits action = worker.TakeActionId();
  Process& process = state->processes[static_cast<std::size_t>(p)];
  process.mode = plan.cancels != 0 ? Mode::kCancelRemoval : Mode::kScale;
  unsigned new_names = plan.new_names;
  unsigned marked = 0;
  for (std::size_t i = 0; i < state->slots.size(); ++i) {
    Slot& slot = state->slots[i];
    Observation& observation = worker.ObservationOf(slot);
    const auto in = [i](std::uint8_t set) { return ((set >> i) & 1U) != 0; };
    const bool left_over = observation.intent.create != 0 && !observation.vm.Exists();
    const bool unused = slot.vm.phase == Phase::kAbsent && !left_over;
    const bool fresh = unused && new_names > 0 && static_cast<int>(i) < names;
    if (fresh) --new_names;
    const bool member_marked =
        observation.vm.mark != MarkKind::kNone && observation.vm.unmanaged == 0;
    if (member_marked && observation.vm.mark_reason == Reason::kScaleIn) ++marked;
    observation.intent.create = left_over || fresh;
    const bool stays_named = member_marked && observation.intent.named != 0;
    observation.intent.named = left_over || fresh || in(plan.remove) || stays_named;
    observation.intent.cancel = observation.intent.cancels = in(plan.cancels);
    observation.intent.to_create = in(plan.reuse) || fresh;
    observation.intent.victim = in(plan.remove);
  }
  if (new_names > 0) return false;  // the model has no more names
  const unsigned shrinks = plan.from > plan.to ? plan.from - plan.to : 0U;
  state->removals_left = static_cast<std::uint8_t>(shrinks + marked);
  Raise(worker, plan, state);
  // The first pass decides on what the plan was made of.
  worker.StoreNames();
  worker.StoreKeys();
  worker.Launch(false);
  for (std::size_t i = 0; i < state->slots.size(); ++i) {
    Observation& observation = worker.ObservationOf(state->slots[i]);
    if (observation.intent.victim == 0) continue;
    observation.act = MarkFor(observation, action, worker.AdviceOn(i));
  }
  if (plan.cancels == 0) StartCreations(worker, state);
  worker.EndPassIfDone();
  return true;
}

void EndReplacements(const Worker& worker, const Plan& plan, State* state) {
  for (std::size_t i = 0; i < state->slots.size(); ++i) {
    Observation& observation = worker.ObservationOf(state->slots[i]);
    if (((plan.to_count >> i) & 1U) == 0) continue;
    observation.act = SentTo(ActKind::kEndReplacement, observation.vm);
    observation.act.flag = (plan.remove >> i) & 1U;
  }
}

bool BeginReplacement(const Worker& worker, int names, State* state) {
  const Decision& decision = worker.CurrentDecision();
  const std::uint8_t reuse = decision.reuse;
  Slot* chosen = nullptr;
  for (std::size_t i = 0; i < static_cast<std::size_t>(names); ++i) {
    Slot& slot = state->slots[i];
    const bool left_over = worker.ObservationOf(slot).intent.create != 0;
    const bool unused = slot.vm.phase == Phase::kAbsent && !left_over;
    if (reuse != 0 ? ((reuse >> i) & 1U) != 0 : unused) chosen = &slot;
    // The model's slots have no order, but the names have.
    if (reuse == 0 || !left_over || slot.naming.first == 0) continue;
    chosen = &slot;
    break;
  }
  if (chosen == nullptr) return false;
  Observation& observation = worker.ObservationOf(*chosen);
  observation.intent.named = observation.intent.create = chosen->naming.first = 1;
  worker.StoreNames();
  observation.act = SentTo(ActKind::kCreate, Vm{});
  observation.act.flag = 1;
  if (decision.for_dead) {
    observation.act.row = static_cast<Bits>(scaling::Row::kUnmarkedUnhealthyWaits);
  }
  return true;
}

void StartCreations(const Worker& worker, State* state) {
  for (Slot& slot : state->slots) {
    Observation& observation = worker.ObservationOf(slot);
    if (observation.intent.to_create == 0) continue;
    observation.intent.to_create = 0;
    observation.intent.created = 1;
    observation.act = SentTo(ActKind::kCreate, Vm{});
    observation.act.keys = static_cast<Keys>(worker.CurrentView().keys);
  }
}

}  // namespace nomad_harvester::explore
