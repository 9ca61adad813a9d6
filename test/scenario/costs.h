// SPDX-License-Identifier: Apache-2.0
// What calls cost by the simulated clock, and in requests.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_COSTS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_COSTS_H_

#include <cstdint>

#include "harness.h"

namespace nomad_harvester::scenario {

struct Scaled {
  absl::Status outcome;
  base::Duration lasted{};
  int requests = 0;
};
// The call alone, and with the work that the background then does.
Scaled AcceptMeasured(Harness& h, std::int64_t count);
Scaled ScaleMeasured(Harness& h, std::int64_t count);

// The number of requests while the agent calls Status every ten seconds for `duration` and never
// Scale.
int RequestsAtRest(Harness& h, base::Duration duration);
// Without those for Nomad's keys, one in five minutes.
int RequestsButKeys(const simulator::Cluster& cluster);
// L7: the most requests of that, with `refused` objects of one pool that cannot be finished, within
// the first hour.
int RestBudget(base::Duration duration, int refused);

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_COSTS_H_
