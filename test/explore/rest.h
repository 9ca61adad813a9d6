// SPDX-License-Identifier: Apache-2.0
// I5: from every state, once the world stands still, Status and resumption bring the pool to rest.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_REST_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_REST_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "decision_cache.h"
#include "world.h"

namespace nomad_harvester::explore {

// Gets a line per step.
struct TraceOutput {
  const Labels& labels;
  std::vector<std::string>& lines;
};

class Rest {
 public:
  Rest(const Configuration& configuration, DecisionCache& cache)
      : configuration_(configuration), cache_(cache) {}

  // All processes are killed and one begins anew, with Status alone; requests under way never
  // arrive (if they did: that is another state, which is visited, too). What is left over or
  // violated, if anything. With an `output` nothing is taken from memory.
  Violation Check(const State& state, TraceOutput* output);

 private:
  bool ActOnce(State* state, Violation* violation, TraceOutput* output);

  const Configuration& configuration_;
  DecisionCache& cache_;
  std::unordered_set<std::uint64_t> good_;
};

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_REST_H_
