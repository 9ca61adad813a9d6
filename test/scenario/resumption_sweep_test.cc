// SPDX-License-Identifier: Apache-2.0
//
// A process is killed in the middle of an action; the process that resumes it is killed, too, at
// every effect of its resumption. A third one must bring the pool to rest.

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

// What an agent does for two minutes that never calls Scale: what the killed one left is resumed.
void Resume(Harness& h) {
  for (int tick = 0; tick < 12 && !h.cluster.dead(h.process().name()); ++tick) {
    // It fails once the process has been killed.
    h.Status().IgnoreError();
    h.process().RunBackground();
    h.clock.Advance(seconds(10));
  }
}

int MeasureResumption(const Scenario& scenario, int first_kill) {
  Harness h;
  KillAtEffect(scenario, first_kill, true, h);
  Points effects(h.process().name(), Points::Of::kEffects);
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    effects.Number(request);
    return Fault::None();
  });
  Resume(h);
  h.cluster.SetFaultHook(nullptr);
  ComeToRest(scenario, h);
  return effects.seen();
}

void KillResumptionAt(const Scenario& scenario, int first_kill, int effect, bool applied) {
  SCOPED_TRACE("killed at effect " + std::to_string(first_kill) + " and at effect " +
               std::to_string(effect) + " of its resumption" +
               (applied ? ", applied" : ", not applied"));
  Harness h;
  KillAtEffect(scenario, first_kill, true, h);
  Points effects(h.process().name(), Points::Of::kEffects);
  bool killed = false;
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (effects.Number(request) != effect) return Fault::None();
    killed = true;
    h.process().Die();
    return applied ? Fault::ApplyThenDie() : Fault::Die();
  });
  Resume(h);
  EXPECT_TRUE(killed);
  h.cluster.SetFaultHook(nullptr);
  h.Restart();
  ComeToRest(scenario, h);
}

class ResumptionSweep : public Sweep {};

TEST_P(ResumptionSweep, C10_the_pool_converges_after_a_kill_at_any_effect_of_a_resumption) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  int points = 0;
  for (const int first_kill : Choose(effects, 1)) {
    // A sweep over both kills would be the square of their number: every third first kill.
    if (IsFullSweep() && first_kill % 3 != 0 && effects > 3) continue;
    const int resumed = MeasureResumption(scenario, first_kill);
    points += 2 * resumed;
    for (const bool applied : {false, true}) {
      for (const int effect : Choose(resumed, 1, applied ? 1 : 0)) {
        KillResumptionAt(scenario, first_kill, effect, applied);
        ++visited;
        if (HasFailure()) return;
      }
    }
  }
  ReportVisits("kill of a resumption", scenario, visited, points);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(ResumptionSweep);
NOMAD_HARVESTER_INSTANTIATE_RARE_SWEEP(ResumptionSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
