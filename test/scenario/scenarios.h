// SPDX-License-Identifier: Apache-2.0
// Actions that the sweeps disturb at every point.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_SCENARIOS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_SCENARIOS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "harness.h"

namespace nomad_harvester::scenario {

struct Scenario {
  std::string name;  // a word for ctest and filters
  // Brings the pool to the state in which the action begins.
  std::function<void(Harness&)> prepare;
  // The count that the action requests, and that the agent keeps requesting.
  std::int64_t count = 0;
  // Undisturbed, it is accepted, and nothing of it fails later.
  bool succeeds = true;
  // What an operator must do before the pool can converge.
  std::function<void(Harness&)> resolve{};

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
  }
};

const std::vector<Scenario>& Scenarios();
// Guests that are paused, and VMs that were restored: for the sweeps of kills, of which more than
// one thing has happened before.
const std::vector<Scenario>& RareScenarios();

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_SCENARIOS_H_
