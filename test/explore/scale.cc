#include "scale.h"

#include <cstddef>

namespace nomad_harvester::explore {
namespace {

// As many VMs as this action wants, besides those that are on their way out.
void Raise(const State& state, const Plan& plan, int p, std::uint8_t* ceiling) {
  unsigned wanted = plan.to;
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    const Vm& vm = state.slots[i].sights[static_cast<std::size_t>(p)].vm;
    const bool returns = ((plan.take_back >> i) & 1U) != 0;
    const bool leaves = vm.mark != MarkKind::kNone && !returns;
    const bool broken = vm.joined == 0 && (vm.overdue != 0 || vm.failing != 0);
    if (vm.Stands() && vm.stranger == 0 && (leaves || broken)) ++wanted;
  }
  if (wanted > *ceiling) *ceiling = static_cast<std::uint8_t>(wanted);
}

Act SentTo(ActKind kind, const Vm& vm) {
  Act act{};
  act.kind = kind;
  act.phase = ActPhase::kSent;
  act.node = kNoNode;
  act.stale = vm.stale;
  return act;
}

Act MarkFor(const Sight& sight, Bits action, const Advice& advice) {
  Act act = SentTo(ActKind::kMark, sight.vm);
  act.action = action & 7U;
  act.node = advice.linked & 3U;
  if (advice.linked != kNoNode) {
    act.phase = ActPhase::kReadNode;
    act.flag = 1;
  } else if (sight.vm.joined != 0) {
    act.node = sight.vm.joined_node;
  }
  return act;
}

}  // namespace

bool BeginAction(const Worker& worker, const Plan& plan, int names, int p, State* state) {
  const Bits action = worker.TakeActionId();
  Process& process = state->processes[static_cast<std::size_t>(p)];
  process.stage = Stage::kActs;
  process.mode = plan.take_back != 0 ? Mode::kReturn : Mode::kScale;
  unsigned new_names = plan.new_names;
  unsigned marked = 0;
  for (std::size_t i = 0; i < state->slots.size(); ++i) {
    Slot& slot = state->slots[i];
    Sight& sight = worker.SightOf(slot);
    const auto in = [i](std::uint8_t set) { return ((set >> i) & 1U) != 0; };
    const bool left_over = sight.intent.create != 0 && !sight.vm.Exists();
    const bool unused = slot.vm.phase == Phase::kAbsent && !left_over;
    const bool fresh = unused && new_names > 0 && static_cast<int>(i) < names;
    if (fresh) --new_names;
    const bool member_marked = sight.vm.mark != MarkKind::kNone && sight.vm.stranger == 0;
    if (member_marked && sight.vm.mark_reason == Reason::kScaleIn) ++marked;
    sight.intent.create = left_over || fresh;
    sight.intent.named = left_over || fresh || in(plan.remove) || member_marked;
    sight.intent.returns = in(plan.take_back);
    sight.intent.to_create = in(plan.reuse) || fresh;
    sight.intent.victim = in(plan.remove);
    slot.naming.named = sight.intent.named;
    slot.naming.create = sight.intent.create;
    if (in(plan.take_back)) sight.act = SentTo(ActKind::kRemoveMark, sight.vm);
    if (in(plan.remove)) sight.act = MarkFor(sight, action, worker.AdviceOn(i));
  }
  if (new_names > 0) return false;  // the model has no more names
  const unsigned shrinks = plan.from > plan.to ? plan.from - plan.to : 0U;
  state->removals_left = static_cast<std::uint8_t>(shrinks + marked);
  Raise(*state, plan, p, &state->ceiling);
  if (plan.take_back == 0) StartCreations(worker, state);
  return true;
}

void StartCreations(const Worker& worker, State* state) {
  for (Slot& slot : state->slots) {
    Sight& sight = worker.SightOf(slot);
    if (sight.intent.to_create == 0) continue;
    sight.intent.to_create = 0;
    sight.intent.created = 1;
    sight.act = SentTo(ActKind::kCreate, Vm{});
  }
  worker.EndPassIfDone();
}

}  // namespace nomad_harvester::explore
