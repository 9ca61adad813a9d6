// SPDX-License-Identifier: Apache-2.0
// Visits every state that a configuration can reach, breadth first, so that the first violation
// found has a shortest trace.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_EXPLORER_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "configuration.h"
#include "mutation.h"
#include "world.h"

namespace nomad_harvester::explore {

struct Limits {
  std::size_t states = SIZE_MAX;
  // Called periodically; true ends the exploration.
  std::function<bool()> enough = [] { return false; };
};

struct Result {
  std::size_t states = 0;
  std::size_t transitions = 0;
  std::size_t decisions = 0;  // snapshots for which the real functions were called
  std::size_t depth = 0;
  bool complete = false;  // all reachable states were visited
  Violation violation = Violation::kNone;
  std::vector<std::string> trace;  // the path to it, one sentence per step
};

Result Explore(const Configuration& configuration, const Mutation& mutation, const Limits& limits);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_EXPLORER_H_
