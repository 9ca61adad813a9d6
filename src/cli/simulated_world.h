// SPDX-License-Identifier: Apache-2.0
// The simulated systems of nomad-harvester dev --simulate. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_
#define NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/cluster.h"
#include "nomad_harvester/simulator/options.h"
#include "nomad_harvester/simulator/server.h"

#include "absl/status/status.h"

namespace nomad_harvester::cli {

// A failure that lasts as long as the simulation runs.
struct SimulatedFault {
  std::string failure;  // one of kFailures; empty: nothing fails
  // Kills (SIGKILL), once, the process that holds a pool's Lease when it sends the write with this
  // number; 0: never. That write is not applied.
  int kill_after = 0;
  std::function<void(const std::string&)> report = nullptr;  // whom it killed, or why nobody
};
inline constexpr const char* kFailures[] = {"join", "quota", "unschedulable", "drain", "image"};

// A Harvester and a Nomad in real time on the loopback interface, with service jobs that wait for
// nodes, so that a drain has work to move.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(const SimulatedFault& fault = {});

  absl::Status Start() { return server_.Start(); }

  std::string harvester_url() const { return server_.harvester_url(); }
  std::string nomad_address() const { return server_.nomad_url(); }
  // Returns matching pool settings as arguments of a command; with a failure, settings that show it
  // soon.
  std::string PoolSettings() const;
  // Returns the jobs that run there; together they fit one node.
  static std::vector<simulator::JobSpec> Jobs();
  // Returns the settings that SetConfig needs to connect to both.
  config::StringMap Config() const;
  // Returns the environment without variables that would override the configuration and connect the
  // plugin to real systems.
  static config::StringMap Shield(const config::StringMap& environment);

 private:
  void Fail();
  bool KillHolder();  // false: nobody is killed

  const SimulatedFault fault_;
  std::atomic<bool> killed_ = false;
  const std::unique_ptr<runtime::Clock> clock_;
  const std::unique_ptr<runtime::Random> random_;
  simulator::Cluster cluster_;
  simulator::SimulatorServer server_;
};

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SIMULATED_WORLD_H_
