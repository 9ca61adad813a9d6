// SPDX-License-Identifier: Apache-2.0
// The acts of an undisturbed action, which the sweeps disturb one by one.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_POINTS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_POINTS_H_

#include <vector>

#include "scenarios.h"
#include "trouble.h"

namespace nomad_harvester::scenario {

// Of each kind of act those of the first and of the last VM, in the order of their first requests;
// with NOMAD_HARVESTER_SWEEP=full of every VM. Names are the same in every run until it is
// disturbed.
std::vector<Act> ActsOf(const Scenario& scenario);
// How long the action takes.
base::Duration UndisturbedDuration(const Scenario& scenario);

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_TROUBLE_POINTS_H_
