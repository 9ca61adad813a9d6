// SPDX-License-Identifier: Apache-2.0
// What all sweeps share: which points they visit, and how a visit ends.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_SWEEP_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_SWEEP_H_

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness.h"
#include "scenarios.h"

namespace nomad_harvester::scenario {

// Counts the requests of one process, without renewals of the Lease: those follow the clock, from a
// thread of their own, and would be most of the points of an action that waits.
class Points {
 public:
  enum class Of { kRequests, kEffects };
  Points(std::string process, Of of) : process_(std::move(process)), of_(of) {}
  // The number of this request, from 1; 0 if it is not counted.
  int Number(const RequestInfo& request);
  int seen() const { return seen_; }

 private:
  const std::string process_;
  const Of of_;
  int seen_ = 0;
};

// The number of points of the undisturbed action. Measured once for each scenario and order.
int Measure(const Scenario& scenario, Points::Of of, const Interleaving& interleaving = {});

// At most `limit` of the points 1 to `points`, spread evenly: the same ones in every run, and
// others for another `shift`. NOMAD_HARVESTER_SWEEP in the environment asks for more: "full" for
// all of them, "K/N" for every Nth, beginning with the Kth (counted from 0).
std::vector<int> Choose(int points, int limit, int shift = 0);
bool IsFullSweep();

// Cuts a system off, or lets it be reached again.
void SetReachable(Harness& h, System system, bool reachable);

// Runs the scenario's Scale in a process that is killed at an effect, before or after it is
// applied; then starts another process.
void KillAtEffect(const Scenario& scenario, int effect, bool applied, Harness& h);

// The agent continues until the pool has the requested count; then nothing may be left over.
void ComeToRest(const Scenario& scenario, Harness& h, const Budget& budget = kRestBudget);

// The same after a trouble of one object, which is retried in rounds: one a minute in the first
// hour, one in ten minutes later (L7).
void ComeToRestAfterTrouble(const Scenario& scenario, Harness& h);

// Prints one line to the log of the test. Fails if nothing was visited, because such a sweep proves
// nothing.
void ReportVisits(const std::string& sweep, const Scenario& scenario, std::size_t visited,
                  int points);

// A fixture with a scenario, for TEST_P; INSTANTIATE_SWEEP names the cases after their scenarios.
class Sweep : public ::testing::TestWithParam<Scenario> {};

#define NOMAD_HARVESTER_INSTANTIATE_SWEEP(fixture)                         \
  INSTANTIATE_TEST_SUITE_P(All, fixture, ::testing::ValuesIn(Scenarios()), \
                           [](const auto& the_case) { return the_case.param.name; })
#define NOMAD_HARVESTER_INSTANTIATE_RARE_SWEEP(fixture)                         \
  INSTANTIATE_TEST_SUITE_P(Rare, fixture, ::testing::ValuesIn(RareScenarios()), \
                           [](const auto& the_case) { return the_case.param.name; })

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_SWEEP_H_
