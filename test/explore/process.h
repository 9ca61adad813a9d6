// SPDX-License-Identifier: Apache-2.0
// A process of the plugin, like src/scaling's service, loop and actor: what it reads before each
// request, and in which order. The real functions make the decisions.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_

#include <vector>

#include "decision_cache.h"
#include "world.h"

namespace nomad_harvester::explore {

// All possible next events of process `p` in this state, including its termination.
void ExpandProcess(const Configuration& configuration, DecisionCache& cache, const State& state,
                   int p, std::vector<Successor>* successors);

// Requests of processes that died or gave up: each one arrives or is lost.
void ExpandLateRequests(const Configuration& configuration, const State& state,
                        std::vector<Successor>* successors);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_PROCESS_H_
