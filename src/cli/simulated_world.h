// SPDX-License-Identifier: Apache-2.0
// The simulated systems of harvester dev --simulate. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_
#define NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_

#include <memory>
#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"
#include "nomad_harvester/simulator/server.h"

#include "absl/status/status.h"

namespace nomad_harvester::cli {

// A Harvester and a Nomad in real time on the loopback, with service jobs that wait for nodes, so
// that a drain has work to move.
class SimulatedWorld {
 public:
  SimulatedWorld();

  absl::Status Start() { return server_.Start(); }

  std::string harvester_url() const { return server_.harvester_url(); }
  std::string nomad_address() const { return server_.nomad_url(); }
  // What SetConfig needs to connect to both.
  config::StringMap Config() const;
  // The environment without the variables that would override the configuration and connect the
  // plugin to real systems.
  static config::StringMap Shield(const config::StringMap& environment);

 private:
  const std::unique_ptr<runtime::Clock> clock_;
  const std::unique_ptr<runtime::Random> random_;
  simulator::Cluster cluster_;
  simulator::SimulatorServer server_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_
