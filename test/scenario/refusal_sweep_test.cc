// SPDX-License-Identifier: Apache-2.0
//
// Each act that an undisturbed action sends is refused for ever, for the object that it concerned
// (I6): everything else of the pool is done, the call ends, at rest next to nothing is sent, and
// once the refusal ends the pool converges.

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "costs.h"
#include "sweep.h"
#include "trouble.h"
#include "trouble_points.h"

namespace nomad_harvester::scenario {
namespace {

// What the agent does meanwhile: it calls Scale whenever the pool is ready and has another count.
// Returns the longest call.
base::Duration ContinueAsAgent(Harness& h, std::int64_t count, base::Duration duration) {
  base::Duration longest{};
  const base::MonoTime until = h.clock.Now() + duration;
  while (h.clock.Now() < until) {
    const auto status = h.Status();
    EXPECT_TRUE(status.ok()) << status.status();
    h.process().RunBackground();
    if (status.ok() && status->ready && status->count != count) {
      const Scaled scaled = AcceptMeasured(h, count);
      longest = std::max(longest, scaled.lasted);
      h.log->Write({.time = h.clock.WallNow(), .message = scaled.outcome.ToString()});
    }
    h.clock.Advance(seconds(10));
  }
  return longest;
}

// I4 and I5 for everything but the refused object: its VM and what belongs to it may be left over,
// and it may stand besides the count, or be missing from it.
void ExpectEverythingElseDone(const Scenario& scenario, const Act& act, Harness& h) {
  std::vector<std::string> problems;
  for (const std::int64_t more : {0, 1, -1}) {
    Invariants::Rest rest;
    rest.pool = h.policy.at("node_group_name");
    rest.count = scenario.count + more;
    problems = h.invariants.AtRest(rest);
    std::erase_if(problems, [&](const std::string& problem) {
      return !act.vm.empty() && problem.find(act.vm) != std::string::npos;
    });
    if (problems.empty()) return;
  }
  for (const std::string& problem : problems) ADD_FAILURE() << "I6: " << problem;
  ADD_FAILURE() << h.Transcript();
}

void Refuse(const Scenario& scenario, const Act& act, const Answer& answer) {
  std::ostringstream what;
  what << act << " is answered " << answer;
  SCOPED_TRACE(what.str());
  Harness h;
  scenario.prepare(h);
  Trouble refused(h, act, answer);
  const Scaled scaled = AcceptMeasured(h, scenario.count);
  EXPECT_LE(scaled.lasted, minutes(1)) << "I6: " << scaled.outcome;
  EXPECT_LE(ContinueAsAgent(h, scenario.count, UndisturbedDuration(scenario) + minutes(20)),
            minutes(1));
  ASSERT_GT(refused.answers(), 0) << "the point was not reached";
  const int requests = RequestsAtRest(h, minutes(20));
  EXPECT_LE(requests, RestBudget(minutes(20), 1)) << "L7";
  // Without the Lease nothing can be done; what an operator must do is not done yet.
  const bool of_pool = act.vm.empty() && act.resource != "events";
  if (!of_pool && !scenario.resolve) ExpectEverythingElseDone(scenario, act, h);
  if (::testing::Test::HasFailure()) return;
  refused.End();
  ComeToRestAfterTrouble(scenario, h);
}

class RefusalSweep : public Sweep {};

struct Refusal {
  Act act;
  Answer answer;
};

void VisitSome(const Scenario& scenario, const std::string& sweep,
               const std::vector<Refusal>& refusals) {
  const auto points = static_cast<int>(refusals.size());
  const std::vector<int> chosen = Choose(points, 1);
  for (const int point : chosen) {
    const Refusal& refusal = refusals.at(static_cast<std::size_t>(point - 1));
    Refuse(scenario, refusal.act, refusal.answer);
    if (testing::Test::HasFatalFailure()) return;
  }
  ReportVisits(sweep, scenario, chosen.size(), points);
}

TEST_P(RefusalSweep, I6_one_act_that_is_refused_for_ever_costs_nothing_else) {
  const Scenario& scenario = GetParam();
  std::vector<Refusal> refusals;
  std::set<std::string> kinds;
  for (const Act& act : ActsOf(scenario)) {
    for (const Answer& answer : RefusalsOf(act)) refusals.push_back({act, answer});
    kinds.insert(act.Kind());
  }
  VisitSome(scenario, "refusal", refusals);
  std::printf("[ acts     ] %s: %s\n", scenario.name.c_str(),
              testing::PrintToString(kinds).c_str());
}

TEST_P(RefusalSweep, I6_one_act_that_is_accepted_and_ignored_for_ever_costs_nothing_else) {
  std::vector<Refusal> refusals;
  for (const Act& act : ActsOf(GetParam())) {
    if (MayBeIgnored(act)) refusals.push_back({act, Ignored()});
  }
  if (!refusals.empty()) VisitSome(GetParam(), "ignored", refusals);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(RefusalSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
