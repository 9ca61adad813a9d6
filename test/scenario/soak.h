// SPDX-License-Identifier: Apache-2.0
// Hours of all disturbances together, determined by a seed: several pools, failing requests, killed
// processes, and operators who follow no rules. The invariants hold throughout, and nothing is left
// over.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/simulator/cluster.h"

#include "chaos.h"
#include "invariants.h"
#include "process.h"
#include "support/fake_clock.h"

namespace nomad_harvester::scenario {

struct SoakOptions {
  int actions = 300;
  std::uint64_t seed = 1;
  double faulty_percent = 20;
};

struct SoakResult {
  // Violations; empty if there are none.
  std::vector<std::string> problems;
  // What happened: "Scale, OK" → how often, and the operators' acts.
  std::map<std::string, int> counts;
  int requests = 0;
  int checks = 0;
  base::Duration lasted{};  // by the simulated clock
  // With problems: the last events of the cluster and log lines of the plugin.
  std::string transcript;
};

SoakResult RunSoak(const SoakOptions& options);

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_
