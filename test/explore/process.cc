// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <cstddef>
#include <optional>

#include "nomad_harvester/scaling/step_spec.h"

#include "scale.h"
#include "touch.h"
#include "worker.h"

namespace nomad_harvester::explore {
namespace {

// A process's calls of Worker, as events.
class ProcessSteps {
 public:
  ProcessSteps(const Configuration& configuration, DecisionCache& cache, const State& state, int p,
               std::vector<Successor>* successors)
      : configuration_(configuration),
        cache_(cache),
        state_(state),
        process_(state.processes[static_cast<std::size_t>(p)]),
        p_(p),
        successors_(successors) {}

  void Run() {
    if (process_.mode == Mode::kIdle) {
      ExpandIdle();
      return;
    }
    if (process_.mode == Mode::kSuperseded) {
      ExpandActs();
      return;
    }
    switch (process_.stage) {
      case Stage::kNodes:
        ExpandReadNodes();
        break;
      case Stage::kVms:
        ExpandReadVms();
        break;
      case Stage::kActs:
        ExpandActs();
        break;
    }
    ExpandEnds();
  }

 private:
  Successor& Add(EventKind kind, std::size_t slot = 0, int detail = 0) {
    Successor& successor = successors_->emplace_back();
    successor.state = state_;
    successor.event = {.kind = kind,
                       .process = static_cast<std::uint8_t>(p_),
                       .slot = static_cast<std::uint8_t>(slot),
                       .detail = static_cast<std::uint8_t>(detail)};
    return successor;
  }
  Worker On(State* state) { return {configuration_, cache_, state, p_}; }
  const Observation& ObservationOf(std::size_t slot) const {
    return state_.slots[slot].observations[static_cast<std::size_t>(p_)];
  }

  // No process holds the Lease, or its holder has terminated and no longer renews it: acquires it.
  void ExpandIdle() {
    const bool other_lives = state_.holder != Holder::kNobody && state_.holder != Holder::kDead;
    if (other_lives && state_.budgets.takeovers == 0) return;
    const bool frozen = other_lives;
    const bool asks_other = state_.AsksOther(static_cast<std::size_t>(p_));
    if (cache_.Decide(WorldView(configuration_, state_, asks_other)).needs_resumption) {
      Successor& next = Add(frozen ? EventKind::kTakeover : EventKind::kResume);
      if (frozen) Supersede(&next.state);
      On(&next.state).Acquire(Mode::kResume);
    }
    if (state_.budgets.scales == 0) return;
    for (int wanted = 0; wanted <= configuration_.vms; ++wanted) {
      Successor& next = Add(frozen ? EventKind::kTakeover : EventKind::kScale, 0, wanted + 1);
      --next.state.budgets.scales;
      if (frozen) Supersede(&next.state);
      On(&next.state).Acquire(Mode::kFinishRollBacks);
      next.state.processes[static_cast<std::size_t>(p_)].wanted = static_cast<std::uint8_t>(wanted);
    }
  }

  // The other process was suspended until its Lease expired. Its guard refuses further requests;
  // those in transit may still arrive.
  void Supersede(State* state) {
    --state->budgets.takeovers;
    const auto other = static_cast<std::size_t>(1 - p_);
    bool busy = false;
    for (Slot& slot : state->slots) {
      Observation& observation = slot.observations[other];
      Act act = observation.act;
      observation = {};
      if (act.Busy() && act.phase == ActPhase::kSent) {
        observation.act = act;
        busy = true;
      }
    }
    state->processes[other] = {};
    if (busy) state->processes[other].mode = Mode::kSuperseded;
  }

  void ExpandReadNodes() {
    State& seen = Add(EventKind::kReadNodes).state;
    const bool holds_others = process_.keys != KeysHeld::kNone && !On(&seen).HoldsKeys();
    On(&seen).ReadNodes(true);
    if (holds_others) On(&Add(EventKind::kReadNodes, 0, 1).state).ReadNodes(true, false);
    if (state_.budgets.unreadable == 0) return;
    State& next = Add(EventKind::kNomadSilent).state;
    --next.budgets.unreadable;
    On(&next).ReadNodes(false);
  }

  void ExpandReadVms() {
    State seen = state_;
    const Worker worker = On(&seen);
    worker.ReadVms();
    const bool finishes_roll_backs = process_.mode == Mode::kFinishRollBacks;
    const bool others = process_.readable != 0 && cache_.Decide(worker.CurrentView()).other_cluster;
    const bool ends = finishes_roll_backs && (process_.readable == 0 || others);
    if (ends || (others && process_.mode == Mode::kResume)) {
      On(&(Add(EventKind::kReadVms).state = seen)).Release();
      return;
    }
    const bool cancels = process_.mode == Mode::kCancelRemoval && worker.Cancels();
    const bool launched = worker.Launch(finishes_roll_backs);
    if (process_.mode == Mode::kCancelRemoval && !cancels) {
      seen.processes[static_cast<std::size_t>(p_)].mode = Mode::kScale;
      StartCreations(worker, &seen);
      worker.EndPassIfDone();
    }
    if (launched) {
      Add(EventKind::kReadVms).state = seen;
      return;
    }
    switch (process_.mode) {
      case Mode::kFinishRollBacks:
        ExpandPlans(seen, worker.CurrentView());
        break;
      case Mode::kCancelRemoval:
        if (cancels) worker.ClearSights();
        Add(EventKind::kReadVms).state = seen;
        break;
      case Mode::kScale:
        EndScale(seen, worker.CurrentView());
        break;
      default:
        EndResumption(seen, worker.CurrentView());
        break;
    }
  }

  // What refuses the plan: PlanScale, and Preflight.
  bool MayAct(const Plan& plan, const View& view, const Worker& worker) const {
    if (!plan.ok || plan.nothing) return false;
    if (plan.remove != 0 && cache_.Decide(view).removals_wait) return false;
    const bool creates = plan.reuse != 0 || plan.new_names > 0;
    return !configuration_.two_nomads || !creates || worker.HoldsKeys();
  }

  // Rule R4: a plan is made for the VMs that replace no other one any more.
  Violation CheckPlan(const Plan& plan, const View& view) const {
    const Decision& decision = cache_.Decide(view);
    int from = decision.count;
    for (std::size_t i = 0; i < view.slots.size(); ++i) {
      const bool counts = ((plan.to_count >> i) & 1U) != 0;
      if (counts && Works(view.slots[i].vm, decision.vms[i])) ++from;
    }
    return plan.ok && plan.from != from ? Violation::kCountMoves : Violation::kNone;
  }

  // What a Scale changes first (rule R4), unless something refuses it. The model plans again then.
  bool MayEndReplacements(const Plan& plan, const View& view) const {
    return plan.ok && plan.to_count != 0 &&
           (plan.remove == 0 || !cache_.Decide(view).removals_wait);
  }

  // Whether a node that was never drained is known to be ready, or not to be.
  static bool IsKnown(const ObservedVm& seen, const Advice& advice, bool ready) {
    const Vm& vm = seen.vm;
    if (!vm.Stands() || vm.unmanaged != 0 || vm.mark != MarkKind::kNone) return false;
    if (advice.linked == kNoNode || advice.broken) return false;
    const Node& node = seen.nodes[advice.linked & 1U];
    if (!IsUp(node.power) || node.drain != DrainState::kNone) return false;
    return ready == (vm.was_ready != 0 ? node.power == Power::kReady : node.IsReady());
  }

  // Rule C8: a VM that is not ready is chosen before one that is.
  Violation CheckVictims(const Plan& plan, const View& view) const {
    const Decision& decision = cache_.Decide(view);
    bool chosen = false;
    bool passed_over = false;
    for (std::size_t i = 0; i < view.slots.size(); ++i) {
      const bool victim = ((plan.remove >> i) & 1U) != 0;
      const bool refused = ((view.refused >> i) & 1U) != 0;
      if (victim && IsKnown(view.slots[i], decision.vms[i], true)) chosen = true;
      if (victim || refused) continue;
      if (IsKnown(view.slots[i], decision.vms[i], false)) passed_over = true;
    }
    return chosen && passed_over ? Violation::kReadyChosen : Violation::kNone;
  }

  void ExpandPlans(const State& seen, const View& view) {
    for (const Plan& plan : cache_.PlanFor(view, process_.wanted)) {
      Successor& next = Add(EventKind::kPlan);
      next.state = seen;
      next.violation = CheckVictims(plan, view);
      if (next.violation == Violation::kNone) next.violation = CheckPlan(plan, view);
      if (MayEndReplacements(plan, view)) {
        EndReplacements(On(&next.state), plan, &next.state);
        continue;
      }
      if (!MayAct(plan, view, On(&next.state)) ||
          !BeginAction(On(&next.state), plan, configuration_.vms, p_, &next.state))
        On(&next.state).Release();
    }
  }

  bool IsUndone(const Decision& decision, std::size_t slot) const {
    const Advice& advice = decision.vms[slot];
    return !scaling::IsRepair(advice.kind);
  }

  // Every VM of the action has an outcome: CloseAction of scale_call.cc.
  void EndScale(State seen, const View& view) {
    const Decision& decision = cache_.Decide(view);
    bool done = view.readable != 0;
    for (std::size_t i = 0; i < view.slots.size(); ++i) {
      const Vm& vm = view.slots[i].vm;
      const Intent& intent = ObservationOf(i).intent;
      if (!vm.Exists()) continue;
      const bool marked = vm.mark != MarkKind::kNone;
      const bool goes_on = marked && !decision.removals_wait;
      if (intent.victim != 0 && (goes_on || !IsUndone(decision, i))) done = false;
      const bool waits = vm.was_ready == 0 && !marked && vm.Stands() && !decision.vms[i].broken;
      if (intent.created != 0 && waits) done = false;
    }
    const Worker worker = On(&seen);
    if (!done) {
      worker.ClearSights();
    } else {
      worker.CloseRecord();
      worker.Release();
    }
    Add(EventKind::kReadVms).state = seen;
  }

  void EndResumption(State seen, const View& view) {
    bool done = true;
    const Decision& decision = cache_.Decide(view);
    for (std::size_t i = 0; i < view.slots.size(); ++i) {
      const Vm& vm = view.slots[i].vm;
      const bool works = vm.Exists() && vm.unmanaged == 0 && !decision.vms[i].other_nomad;
      if (works && vm.mark != MarkKind::kNone) done = false;
    }
    const Worker worker = On(&seen);
    if (done || view.readable == 0) {
      if (view.readable != 0) worker.CloseRecord();
      const bool replaces = view.readable != 0 && decision.replaces &&
                            BeginReplacement(worker, configuration_.vms, &seen);
      if (!replaces) worker.Release();
    } else if (decision.removals_wait) {
      worker.Release();
    } else {
      worker.ClearSights();
    }
    Add(EventKind::kReadVms).state = seen;
  }

  void ExpandActs() {
    for (std::size_t i = 0; i < state_.slots.size(); ++i) {
      const Act act = ObservationOf(i).act;
      if (!act.Busy()) continue;
      if (act.phase != ActPhase::kSent) {
        Successor& next = Add(EventKind::kActReads, i, static_cast<int>(act.phase));
        next.event.act = act;
        On(&next.state).Read(i);
        next.violation = CheckSent(next.state.slots[i]);
        if (next.violation == Violation::kNone) next.violation = CheckMark(On(&next.state), i);
        continue;
      }
      Successor& applied = Add(EventKind::kActApplied, i);
      applied.event.act = act;
      const bool drains = act.kind == ActKind::kMark && act.flag != 0 && act.stale == 0 &&
                          state_.slots[i].vm.Stands() && process_.mode != Mode::kSuperseded;
      applied.violation = Apply(configuration_, static_cast<int>(i), act, &applied.state);
      if (applied.violation == Violation::kNone) {
        applied.violation = CheckCount(act, i, applied.state);
      }
      On(&applied.state).RecordReply(i, act, false);
      // If another process acts, too, it sees this one's writes as external changes.
      const bool alone = process_.mode != Mode::kSuperseded;
      if (!alone) Excuse(&applied.state.slots[i]);
      Finish(i, drains, &applied.state);
      if (state_.budgets.lost > 0) {
        Successor& lost = Add(EventKind::kActLost, i);
        lost.event.act = act;
        --lost.state.budgets.lost;
        Finish(i, false, &lost.state);
      }
      const bool tries = act.kind == ActKind::kStartDrain || act.kind == ActKind::kDelete;
      if (tries && state_.budgets.refused > 0) {
        Successor& refused = Add(EventKind::kActRefused, i);
        refused.event.act = act;
        --refused.state.budgets.refused;
        On(&refused.state).RecordReply(i, act, true);
        Finish(i, false, &refused.state);
      }
      if (CanBeLate(i)) {
        Successor& late = Add(EventKind::kActGivenUp, i);
        late.event.act = act;
        KeepLate(i, act, &late.state);
        Finish(i, false, &late.state);
      }
    }
  }

  // Of the act whose last read has just been made.
  Violation CheckSent(const Slot& slot) const {
    const Observation& seen = slot.observations[static_cast<std::size_t>(p_)];
    if (seen.act.phase != ActPhase::kSent) return Violation::kNone;
    return CheckKnown(seen.act, {.vm = seen.vm,
                                 .node = seen.nodes[seen.act.node & 1U],
                                 .removal_cancelled = seen.intent.cancel != 0,
                                 .refused = seen.intent.refused != 0});
  }

  Violation CheckMark(const Worker& worker, std::size_t slot) const {
    const Act& act = worker.ActOn(slot);
    if (act.phase != ActPhase::kSent) return Violation::kNone;
    return CheckSuccessor(configuration_, worker.CurrentView(), slot, act);
  }

  // Whether the VM counts, unless it is to take the place of another one.
  static bool Works(const Vm& vm, const Advice& advice) {
    return vm.mark == MarkKind::kNone && !advice.broken;
  }

  // By how much the act changes the count of VMs, if a rule says so (R1, R4, R6, S1).
  std::optional<int> ChangeOfCount(const Act& act, bool works, bool is_replaced) const {
    switch (act.kind) {
      case ActKind::kMark:
        return works ? -1 : 0;
      case ActKind::kMarkUnhealthy:
        return is_replaced ? std::optional(0) : std::nullopt;
      case ActKind::kEndReplacement:
        return works ? 1 : 0;
      case ActKind::kKeepReplaced:
        return configuration_.old_first ? 0 : 1;
      case ActKind::kCreate:
        return act.flag != 0 ? std::optional(0) : std::nullopt;
      case ActKind::kMarkReplaced:
      case ActKind::kStart:
        return 0;
      default:
        return std::nullopt;
    }
  }

  // Of an act on the VM in that slot, unless it is late or something else has changed a VM since it
  // was read.
  Violation CheckCount(const Act& act, std::size_t slot, const State& after) const {
    const bool is_late = process_.mode == Mode::kSuperseded;
    if (!configuration_.replaces || is_late) return Violation::kNone;
    const Decision& before = cache_.Decide(WorldView(configuration_, state_, false));
    bool has_successor = false;
    for (std::size_t i = 0; i < state_.slots.size(); ++i) {
      const Vm& seen = ObservationOf(i).vm;
      const Vm& vm = state_.slots[i].vm;
      if (seen.stale != 0 || seen.Exists() != vm.Exists()) return Violation::kNone;
      if (vm.Stands() && vm.replaces != 0 && Works(vm, before.vms[i])) has_successor = true;
    }
    const Vm& changed = state_.slots[slot].vm;
    const std::optional<int> change =
        ChangeOfCount(act, Works(changed, before.vms[slot]),
                      has_successor && changed.old != 0 && changed.undone == 0);
    if (!change.has_value()) return Violation::kNone;
    const Decision& now = cache_.Decide(WorldView(configuration_, after, false));
    return before.count + *change == now.count ? Violation::kNone : Violation::kCountMoves;
  }

  bool CanBeLate(std::size_t slot) const {
    return state_.budgets.late > 0 && !state_.slots[slot].late.Busy() &&
           ObservationOf(slot).act.Busy() && ObservationOf(slot).act.phase == ActPhase::kSent;
  }
  static void KeepLate(std::size_t slot, const Act& act, State* state) {
    --state->budgets.late;
    state->slots[slot].late = act;
  }

  void Finish(std::size_t slot, bool drains, State* state) {
    const Worker worker = On(state);
    worker.ObservationOf(state->slots[slot]).act = {};
    if (drains) worker.DrainAfterMark(slot);
    if (process_.mode != Mode::kSuperseded) {
      worker.EndPassIfDone();
      return;
    }
    for (Slot& other : state->slots) {
      if (worker.ObservationOf(other).act.Busy()) return;
    }
    worker.Forget();
  }

  void ExpandEnds() {
    const bool calls = process_.mode != Mode::kResume;
    if (calls && process_.stage == Stage::kNodes && state_.budgets.timeouts > 0) {
      State& next = Add(EventKind::kTimeout).state;
      --next.budgets.timeouts;
      On(&next).Release();
    }
    if (state_.budgets.crashes == 0) return;
    Crash(-1);
    for (std::size_t i = 0; i < state_.slots.size(); ++i) {
      if (CanBeLate(i)) Crash(static_cast<int>(i));
    }
  }

  // kill -9. One request may be in transit: `late` is its VM.
  void Crash(int late) {
    State& next =
        Add(EventKind::kCrash, static_cast<std::size_t>(late < 0 ? 0 : late), late + 1).state;
    --next.budgets.crashes;
    if (late >= 0) {
      const auto i = static_cast<std::size_t>(late);
      KeepLate(i, ObservationOf(i).act, &next);
    }
    const bool held = next.holder == kHolderOf[static_cast<std::size_t>(p_)];
    On(&next).Forget();
    if (held) next.holder = Holder::kDead;
  }

  const Configuration& configuration_;
  DecisionCache& cache_;
  const State& state_;
  const Process& process_;
  const int p_;
  std::vector<Successor>* const successors_;
};

}  // namespace

void ExpandProcess(const Configuration& configuration, DecisionCache& cache, const State& state,
                   int p, std::vector<Successor>* successors) {
  ProcessSteps(configuration, cache, state, p, successors).Run();
}

void ExpandLateRequests(const Configuration& configuration, const State& state,
                        std::vector<Successor>* successors) {
  for (std::size_t i = 0; i < state.slots.size(); ++i) {
    const Act act = state.slots[i].late;
    if (!act.Busy()) continue;
    for (const EventKind kind : {EventKind::kLateApplied, EventKind::kLateLost}) {
      Successor& next = successors->emplace_back();
      next.state = state;
      next.event = {.kind = kind, .slot = static_cast<std::uint8_t>(i), .act = act};
      next.state.slots[i].late = {};
      if (kind == EventKind::kLateApplied) {
        next.violation = Apply(configuration, static_cast<int>(i), act, &next.state);
        Excuse(&next.state.slots[i]);
      }
    }
  }
}

}  // namespace nomad_harvester::explore
