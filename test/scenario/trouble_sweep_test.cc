// SPDX-License-Identifier: Apache-2.0
//
// Each act that an undisturbed action sends fails for a while, or every answer is slow: the call
// ends within its minute, and the pool converges.

#include <algorithm>
#include <sstream>

#include "costs.h"
#include "sweep.h"
#include "trouble.h"
#include "trouble_points.h"

namespace nomad_harvester::scenario {
namespace {

// A transient trouble; without a duration it is one answer.
struct Transient {
  Answer answer;
  base::Duration lasts{};
};

std::vector<Transient> Transients() {
  std::vector<Transient> transients = {{Conflict()}};
  for (const base::Duration lasts : {minutes(1), minutes(5), minutes(30)}) {
    transients.push_back({Unavailable(), lasts});
    transients.push_back({NoAnswer(), lasts});
  }
  return transients;
}

void DisturbFor(const Scenario& scenario, const Act& act, const Transient& transient) {
  std::ostringstream what;
  what << act << " is answered " << transient.answer << " for "
       << base::FormatGoDuration(transient.lasts);
  SCOPED_TRACE(what.str());
  Harness h;
  scenario.prepare(h);
  Trouble trouble(h, act, transient.answer);
  if (transient.lasts > base::Duration::zero()) {
    trouble.LimitTo(transient.lasts);
  } else {
    trouble.LimitTo(1);
  }
  const Scaled scaled = AcceptMeasured(h, scenario.count);
  EXPECT_LE(scaled.lasted, minutes(1)) << scaled.outcome;
  // L2: the next attempt comes at most a minute after a short trouble.
  const base::Duration usual = UndisturbedDuration(scenario) + transient.lasts + minutes(3);
  if (scaled.outcome.ok() && transient.lasts <= minutes(1)) {
    h.Settle({.time = usual, .requests = kSettleBudget.requests});
  } else {
    h.Tick(usual);
  }
  ASSERT_GT(trouble.answers(), 0) << "the point was not reached";
  trouble.End();
  ComeToRestAfterTrouble(scenario, h);
}

class TroubleSweep : public Sweep {};

TEST_P(TroubleSweep, L3_one_act_that_fails_for_a_while_is_repeated_until_it_succeeds) {
  const Scenario& scenario = GetParam();
  const std::vector<Act> acts = ActsOf(scenario);
  const std::vector<Transient> transients = Transients();
  const int points = static_cast<int>(acts.size() * transients.size());
  std::size_t visited = 0;
  for (const int point : Choose(points, 1)) {
    const auto number = static_cast<std::size_t>(point - 1);
    DisturbFor(scenario, acts.at(number / transients.size()),
               transients.at(number % transients.size()));
    ++visited;
    if (HasFailure()) return;
  }
  ReportVisits("transient trouble", scenario, visited, points);
}

// Five seconds are less than the time limit of a request.
TEST_P(TroubleSweep, L1_a_pool_whose_every_answer_takes_five_seconds_converges) {
  const Scenario& scenario = GetParam();
  Harness h;
  scenario.prepare(h);
  h.cluster.SetFaultHook([](const RequestInfo&) { return Fault::Delay(seconds(5)); });
  const Scaled scaled = ScaleMeasured(h, scenario.count);
  EXPECT_LE(scaled.lasted, UndisturbedDuration(scenario) + minutes(15)) << scaled.outcome;
  const base::MonoTime asked = h.clock.Now();
  const auto status = h.Status();
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_LE(h.clock.Now() - asked, seconds(7)) << "S3";
  h.cluster.SetFaultHook(nullptr);
  ComeToRestAfterTrouble(scenario, h);
  ReportVisits("slow answers", scenario, 1, 1);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(TroubleSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
