// SPDX-License-Identifier: Apache-2.0
//
// Acts of one step run in parallel, in whatever order and overlap: here reversed, and interleaved
// by seeds. The outcome is that of the listed order, also after a kill.

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

std::vector<Interleaving> Orders() {
  std::vector<Interleaving> orders = {{.order = Order::kReversed}};
  for (std::uint64_t seed = 1; seed <= (IsFullSweep() ? 8U : 2U); ++seed) {
    orders.push_back({.order = Order::kShuffled, .seed = seed});
  }
  return orders;
}

std::string NameOf(const Interleaving& interleaving) {
  return interleaving.order == Order::kReversed
             ? "reversed"
             : "shuffled by " + std::to_string(interleaving.seed);
}

class OrderSweep : public Sweep {};

// Measure runs the action undisturbed and lets the pool come to rest.
TEST_P(OrderSweep, I5_the_pool_converges_in_any_order_of_parallel_acts) {
  const Scenario& scenario = GetParam();
  std::size_t visited = 0;
  for (const Interleaving& interleaving : Orders()) {
    SCOPED_TRACE(NameOf(interleaving));
    Measure(scenario, Points::Of::kEffects, interleaving);
    ++visited;
    if (HasFailure()) return;
  }
  ReportVisits("order", scenario, visited, static_cast<int>(visited));
}

TEST_P(OrderSweep, C10_the_pool_converges_after_a_kill_in_any_order_of_parallel_acts) {
  const Scenario& scenario = GetParam();
  std::size_t visited = 0;
  int points = 0;
  int shift = 0;
  for (const Interleaving& interleaving : Orders()) {
    const int effects = Measure(scenario, Points::Of::kEffects, interleaving);
    points += effects;
    for (const int effect : Choose(effects, 1, shift++)) {
      SCOPED_TRACE(NameOf(interleaving) + ", killed at effect " + std::to_string(effect));
      Harness h({}, interleaving);
      KillAtEffect(scenario, effect, effect % 2 == 0, h);
      ComeToRest(scenario, h);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("kill in another order", scenario, visited, points);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(OrderSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
