// SPDX-License-Identifier: Apache-2.0
#include "rest.h"

#include <cstddef>

#include "acts.h"
#include "describe.h"

namespace nomad_harvester::explore {
namespace {

constexpr int kRounds = 60;

// The state without processes and budgets: the part on which the check depends.
State WorldOf(const State& state) {
  State world = EmptyState();
  for (std::size_t i = 0; i < world.slots.size(); ++i) {
    world.slots[i].vm = state.slots[i].vm;
    world.slots[i].nodes = state.slots[i].nodes;
    world.slots[i].naming = state.slots[i].naming;
  }
  world.elsewhere = state.elsewhere;
  world.month = state.month;
  world.lease_keys = state.lease_keys;
  world.stopped = state.stopped;
  world.removals_left = state.removals_left;
  world.ceiling = state.ceiling;
  // Action ID for VMs that turn out to be broken: one that is not in use.
  world.next_action = 7;
  return world;
}

// Writes what precedes the act on the Lease, and fills in the results of the act's reads.
void Prepare(std::size_t index, const ObservedVm& seen, State* state, Act* act) {
  switch (act->kind) {
    case ActKind::kStartDrain:
      act->action = seen.vm.mark_action;
      act->uid = seen.vm.mark_uid;
      break;
    case ActKind::kMarkUnhealthy:
    case ActKind::kMarkReplaced:
      state->slots[index].naming.named = 1;
      [[fallthrough]];
    case ActKind::kMarkBroken:
      if (act->node == kNoNode) act->node = seen.vm.JoinedNode() & 3U;
      act->action = state->next_action & 7U;
      break;
    default:
      break;
  }
}

// What the act reads of the allocations, before a VM is marked whose node is disconnected.
bool IsStillWanted(const State& state, std::size_t index, bool asks_other, const Act& act,
                   DecisionCache& cache, View view) {
  if (act.row != static_cast<Bits>(scaling::Row::kUnmarkedCutOff)) return true;
  const auto n = act.node & 1U;
  view.slots[index].nodes[n].work = WorkOn(state.slots[index].nodes[n], asks_other);
  return static_cast<Bits>(cache.Decide(view).vms[index].row) == act.row;
}

std::uint64_t KeyOf(const State& world) { return HashBytes(&world, sizeof world, 3); }

}  // namespace

bool Rest::ActOnce(bool asks_other, State* state, Violation* violation, TraceOutput* output) {
  const View view = WorldView(configuration_, *state, asks_other);
  const Decision& decision = cache_.Decide(view);
  if (!decision.needs_resumption) return false;
  const State before = *state;
  if (decision.new_keys) state->lease_keys = view.keys;
  for (std::size_t i = 0; i < state->slots.size() && *violation == Violation::kNone; ++i) {
    const ObservedVm& seen = view.slots[i];
    Act act{};
    if (seen.vm.Exists()) {
      act = ActFor(decision.vms[i], seen.vm, seen.nodes);
      act.flag = decision.vms[i].flag;
      if (decision.removals_wait && IsRemoval(act.kind)) continue;
      if (!IsStillWanted(*state, i, asks_other, act, cache_, view)) continue;
      Prepare(i, seen, state, &act);
    } else {
      for (std::size_t n = 0; n < kNodesPerVm; ++n) {
        if (!decision.purge[i][n]) continue;
        act.kind = ActKind::kPurge;
        act.node = static_cast<Bits>(n) & 3U;
      }
    }
    if (!act.Busy()) continue;
    act.other = asks_other;
    if (output != nullptr) {
      output->lines.push_back("  " + Describe(act, static_cast<int>(i), output->labels));
    }
    const bool removal_cancelled = ((view.cancel >> i) & 1U) != 0;
    *violation = CheckKnown(
        act,
        {.vm = seen.vm, .node = seen.nodes[act.node & 1U], .removal_cancelled = removal_cancelled});
    if (*violation == Violation::kNone) *violation = CheckSuccessor(configuration_, view, i, act);
    if (*violation == Violation::kNone) {
      *violation = Apply(configuration_, static_cast<int>(i), act, state);
    }
  }
  return std::memcmp(&before, state, sizeof before) != 0;
}

Violation Rest::Check(const State& state, TraceOutput* output) {
  State world = WorldOf(state);
  std::vector<std::uint64_t> passed;
  Violation violation = Violation::kNone;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t key = KeyOf(world);
    if (output == nullptr && good_.contains(key)) {
      good_.insert(passed.begin(), passed.end());
      return Violation::kNone;
    }
    passed.push_back(key);
    bool acted = ActOnce(false, &world, &violation, output);
    // An agent of each cluster.
    const bool another = configuration_.two_nomads && violation == Violation::kNone;
    if (another) acted = ActOnce(true, &world, &violation, output) || acted;
    if (violation != Violation::kNone) return violation;
    if (acted) continue;
    const bool removals_wait = cache_.Decide(WorldView(configuration_, world, false)).removals_wait;
    violation = LeftForNow(world, removals_wait);
    if (violation != Violation::kNone) return violation;
    if (LetTimePass(configuration_, &world)) {
      if (output != nullptr) output->lines.emplace_back("  time passes");
      continue;
    }
    // What waits for the end of a mass loss is done then.
    if (removals_wait && EndOutage(&world)) {
      if (output != nullptr) output->lines.emplace_back("  the nodes that are down come back");
      continue;
    }
    violation = LeftAtRest(configuration_, world);
    if (violation == Violation::kNone) good_.insert(passed.begin(), passed.end());
    return violation;
  }
  return Violation::kRestless;
}

}  // namespace nomad_harvester::explore
