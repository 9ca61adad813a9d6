// SPDX-License-Identifier: Apache-2.0
#include "simulated_world.h"

namespace nomad_harvester::cli {

SimulatedWorld::SimulatedWorld()
    : clock_(runtime::MakeSystemClock()),
      random_(runtime::MakeSystemRandom()),
      cluster_(*clock_, *random_),
      server_(cluster_, *clock_) {
  // Two of them fill a node.
  cluster_.RunJob({.id = "api", .count = 4, .cpu = 1900});
  cluster_.RunJob({.id = "shop", .count = 2, .cpu = 1900});
}

config::StringMap SimulatedWorld::Config() const {
  return {{"harvester_url", harvester_url()},
          {"nomad_address", nomad_address()},
          {"auth_token", "token-of-the-simulation"}};
}

config::StringMap SimulatedWorld::Shield(const config::StringMap& environment) {
  config::StringMap shielded;
  for (const auto& [name, value] : environment) {
    const bool is_template_variable = name.rfind("HARVESTER_TEMPLATE_", 0) == 0;
    const bool leads_elsewhere = name.rfind("HARVESTER_", 0) == 0 || name.rfind("NOMAD_", 0) == 0;
    if (is_template_variable || !leads_elsewhere) shielded.emplace(name, value);
  }
  return shielded;
}

}  // namespace nomad_harvester::cli
