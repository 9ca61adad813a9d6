// SPDX-License-Identifier: Apache-2.0
// The contents of the simulated cluster as rows of a table.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_VIEW_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_VIEW_H_

#include <string>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

namespace nomad_harvester::demo {

// A VM and the Nomad node that its guest runs; either may be missing.
struct Row {
  std::string name{};
  std::string phase = "-";  // of the VM
  bool marked = false;      // for removal
  std::string node = "-";   // status of the Nomad node
  std::string eligibility = "-";
  std::string drain = "-";
  std::string work{};  // its allocations that have not ended
  friend bool operator==(const Row&, const Row&) = default;
};

// Sorted by name.
std::vector<Row> RowsOf(const simulator::Cluster& cluster);

// One sentence for each object that should not exist once the pool is empty.
std::vector<std::string> Leftovers(const simulator::Cluster& cluster);

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_VIEW_H_
