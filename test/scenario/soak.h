// SPDX-License-Identifier: Apache-2.0
// Hours of all disturbances together, determined by a seed: several pools, failing requests, killed
// processes, and operators who follow no rules. The invariants hold throughout, and nothing is left
// over.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/simulator/cluster.h"

#include "bystanders.h"
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
  base::Duration longest_scale{};
  // What it took to come to rest once all disturbances had ended.
  base::Duration rest_lasted{};
  int rest_requests = 0;
  // Of `calm_statuses` Status calls of pools at rest.
  int calm_requests = 0;
  int calm_statuses = 0;
  // With problems: the last events of the cluster and log lines of the plugin.
  std::string transcript;
};

// What a soak costs is judged, too: beyond these budgets it has a problem.
inline constexpr int kSoakRequestsPerHour = 12000;
inline constexpr base::Duration kSoakLongestScale = std::chrono::minutes(130);
// Back-off grows to half an hour; everything must converge within the same time again.
inline constexpr base::Duration kSoakRestTime = std::chrono::minutes(100);
inline constexpr int kSoakRestRequests = 8000;
// S3: two lists.
inline constexpr int kSoakCalmRequestsPerStatus = 2;

SoakResult RunSoak(const SoakOptions& options);
// The costs and their budgets, on one line.
std::string DescribeCosts(const SoakResult& result);

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_SOAK_H_
