// SPDX-License-Identifier: Apache-2.0
// The initial state of an exploration, and the events that may happen in it.
#ifndef NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_
#define NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/scaling/rules.h"

#include "model.h"

namespace nomad_harvester::explore {

struct Configuration {
  std::string name;
  std::string about;
  int vms = 2;       // number of VM names
  int standing = 2;  // VMs that exist at the start
  int joining = 0;   // of these, the last ones: their guests have yet to register
  int processes = 1;
  bool force = true;  // the marks' force_after_deadline
  bool purge = false;
  bool keep_broken = false;  // on_join_timeout = "keep"
  bool replace_unhealthy = false;
  bool endless = false;    // drains have no deadline
  bool replaces = false;   // one of the VMs may be replaced
  bool old_first = false;  // … and is removed before the new one starts
  bool hanging = false;    // tasks never stop by themselves once nothing else changes
  // There is another Nomad cluster, and VMs have a record of theirs.
  bool two_nomads = false;
  // The second process is an agent of the other cluster, of which the last VM is.
  bool stranger = false;
  Budgets budgets;
};

// The initial state of a configuration: `standing` VMs, idle processes.
State InitialState(const Configuration& configuration);

// All configurations, in the order in which they run. `large` selects the larger budgets.
std::vector<Configuration> Configurations(bool large);

}  // namespace nomad_harvester::explore

#endif  // NOMAD_HARVESTER_TEST_EXPLORE_CONFIGURATION_H_
