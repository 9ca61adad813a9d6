// SPDX-License-Identifier: Apache-2.0
// Traces as text.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_DESCRIBE_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_DESCRIBE_H_

#include <string>

#include "world.h"

namespace nomad_harvester::explore {

// "process 1: the drain of node-a0 is started" …
std::string Describe(const Event& event, const Labels& labels);
std::string Describe(const Act& act, int slot, const Labels& labels);
// The state of the world, one line per VM and node.
std::string DescribeWorld(const State& state, const Labels& labels);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_DESCRIBE_H_
