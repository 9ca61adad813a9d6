// SPDX-License-Identifier: Apache-2.0
// What an exploration starts from, and what may happen in it.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/next_step.h"

#include "model.h"

namespace nomad_harvester::explore {

struct Configuration {
  std::string name;
  std::string about;
  int vms = 2;       // names that there can be
  int standing = 2;  // of them, VMs that have joined at the start
  int processes = 1;
  bool lease = true;
  bool force = true;  // the marks' force_after_deadline
  bool purge = false;
  bool keep_broken = false;  // on_join_timeout = "keep"
  bool replace_unhealthy = false;
  bool hanging = false;  // once the world stands still, tasks never stop by themselves
  Budgets budgets;
};

// The state that a configuration starts from: so many VMs that have joined, idle processes.
State InitialState(const Configuration& configuration);

// All of them, in the order in which they run. `ci` gives the larger budgets.
std::vector<Configuration> Configurations(bool large);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_
