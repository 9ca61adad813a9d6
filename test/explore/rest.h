// SPDX-License-Identifier: Apache-2.0
// I5: from every state, once nothing else changes, Status and resumption make the pool converge.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_REST_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_REST_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "decision_cache.h"
#include "world.h"

namespace nomad_harvester::explore {

// Receives a line per step.
struct TraceOutput {
  const Labels& labels;
  std::vector<std::string>& lines;
};

class Rest {
 public:
  Rest(const Configuration& configuration, DecisionCache& cache)
      : configuration_(configuration), cache_(cache) {}

  // Kills all processes and starts one, for each Nomad, with Status alone. Requests in transit
  // never arrive (the states in which they do are visited separately). Returns the leftover or
  // violation, if any. With an `output` the cache of checked states is not used.
  Violation Check(const State& state, TraceOutput* output);

 private:
  bool ActOnce(bool asks_other, State* state, Violation* violation, TraceOutput* output);

  const Configuration& configuration_;
  DecisionCache& cache_;
  std::unordered_set<std::uint64_t> good_;
};

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_REST_H_
