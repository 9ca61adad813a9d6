// SPDX-License-Identifier: Apache-2.0
//
// The process is killed at every request that has an effect, once before it is applied and once
// after, when the reply is lost. A new process then gets only Status calls, as from the agent, and
// the pool must converge.

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

void KillAt(const Scenario& scenario, int effect, bool applied) {
  SCOPED_TRACE("killed at effect " + std::to_string(effect) +
               (applied ? ", applied" : ", not applied"));
  Harness h;
  KillAtEffect(scenario, effect, applied, h);
  ComeToRest(scenario, h);
}

class CrashSweep : public Sweep {};

TEST_P(CrashSweep, C10_the_pool_converges_after_a_kill_at_any_effect) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const bool applied : {false, true}) {
    for (const int effect : Choose(effects, 1, applied ? 1 : 0)) {
      KillAt(scenario, effect, applied);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("crash", scenario, visited, 2 * effects);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(CrashSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
