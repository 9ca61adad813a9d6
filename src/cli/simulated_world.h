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

// What goes wrong there, for as long as it runs.
struct SimulatedFault {
  std::string failure;  // one of kFailures; empty: nothing fails
  // Kills, once, the process that holds a pool's Lease (SIGKILL), when it sends the write of this
  // number; 0: none. That write is not applied.
  int kill_after = 0;
  std::function<void(const std::string&)> report = nullptr;  // whom it killed, or why nobody
};
inline constexpr const char* kFailures[] = {"join", "quota", "unschedulable", "drain", "image"};

// A Harvester and a Nomad in real time on the loopback, with service jobs that wait for nodes, so
// that a drain has work to move.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(const SimulatedFault& fault = {});

  absl::Status Start() { return server_.Start(); }

  std::string harvester_url() const { return server_.harvester_url(); }
  std::string nomad_address() const { return server_.nomad_url(); }
  // Settings of a pool that fits, as arguments of a command; with a failure those that show it
  // soon.
  std::string PoolSettings() const;
  // What runs there, and fits one node.
  static std::vector<simulator::JobSpec> Jobs();
  // What SetConfig needs to connect to both.
  config::StringMap Config() const;
  // The environment without the variables that would override the configuration and connect the
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
