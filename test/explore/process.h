// SPDX-License-Identifier: Apache-2.0
// A process of the plugin, as src/scaling's service, loop and actor make it: what it reads before
// each request, and in which order. What it decides, it asks the real functions.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_

#include <vector>

#include "decision_cache.h"
#include "world.h"

namespace nomad_harvester::explore {

// Everything that process `p` may do next in this state, its end included.
void ExpandProcess(const Configuration& configuration, DecisionCache& cache, const State& state,
                   int p, std::vector<Successor>* successors);

// Requests of processes that died or gave up: they arrive, or never do.
void ExpandLateRequests(const Configuration& configuration, const State& state,
                        std::vector<Successor>* successors);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_
