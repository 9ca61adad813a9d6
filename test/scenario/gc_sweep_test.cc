// SPDX-License-Identifier: Apache-2.0
//
// Like the crash sweep, but no Status follows: an operator runs nomad-harvester gc once, and
// everything must be clean.

#include <algorithm>

#include <gmock/gmock.h>

#include "operator.h"
#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::IsEmpty;

void Kill(const Scenario& scenario, int effect, bool applied, Harness& h) {
  KillAtEffect(scenario, effect, applied, h);
  if (scenario.resolve) scenario.resolve(h);
  // Created VMs have joined, or are past their join timeout.
  h.clock.Advance(minutes(20));
}

// Copies that a user made of a VM are not leftovers.
std::int64_t Members(Operator& person) {
  const auto seen = person.Inspect();
  EXPECT_TRUE(seen.ok()) << seen.status();
  const auto& vms = seen->snapshot.vms();
  return std::count_if(vms.begin(), vms.end(), [&](const scaling::VmView* view) {
    return IsPoolMember(*view, seen->snapshot);
  });
}

// The preview reports without changing anything; the collection then does that, and what follows
// from it.
void PreviewThenCollect(Harness& h) {
  Operator person(h);
  const int effects = h.cluster.EffectCount();
  const scaling::Collection preview = person.Preview();
  EXPECT_TRUE(preview.outcome.ok()) << preview.outcome;
  EXPECT_EQ(h.cluster.EffectCount(), effects) << "a dry run wrote";
  const std::vector<std::string> previewed = person.events;

  const scaling::Collection done = person.Collect();
  EXPECT_TRUE(done.outcome.ok()) << done.outcome << "\n" << h.Transcript();
  EXPECT_THAT(done.unfinished, IsEmpty());
  EXPECT_EQ(previewed.empty(), person.events.empty())
      << testing::PrintToString(previewed) << testing::PrintToString(person.events);
  h.CheckAtRest(Members(person));

  EXPECT_TRUE(person.Preview().outcome.ok());
  EXPECT_THAT(person.events, IsEmpty()) << "something was left";
}

class GcSweep : public Sweep {};

TEST_P(GcSweep, C10_one_gc_cleans_up_after_a_kill_at_any_effect) {
  const Scenario& scenario = GetParam();
  const int effects = Measure(scenario, Points::Of::kEffects);
  std::size_t visited = 0;
  for (const int effect : Choose(effects, 1)) {
    for (const bool applied : {false, true}) {
      SCOPED_TRACE("killed at effect " + std::to_string(effect) +
                   (applied ? ", applied" : ", not applied"));
      Harness h;
      Kill(scenario, effect, applied, h);
      PreviewThenCollect(h);
      ++visited;
      if (HasFailure()) return;
    }
  }
  ReportVisits("gc", scenario, visited, 2 * effects);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(GcSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
