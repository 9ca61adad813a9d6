// SPDX-License-Identifier: Apache-2.0
// The simulated servers on sockets.
#ifndef NOMAD_HARVESTER_SIMULATOR_SERVER_H_
#define NOMAD_HARVESTER_SIMULATOR_SERVER_H_

#include <memory>
#include <string>

#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/simulator/cluster.h"

#include "absl/status/status.h"

namespace nomad_harvester::simulator {

// Serves both APIs of a cluster over plain HTTP on the loopback, in threads of its own. The cluster
// and its clock, the system's, must outlive it.
class SimulatorServer {
 public:
  struct Options {
    int harvester_port = 0;  // 0: any that is free
    int nomad_port = 0;
  };
  SimulatorServer(Cluster& cluster, runtime::Clock& clock, Options options);
  SimulatorServer(Cluster& cluster, runtime::Clock& clock);
  // Stops.
  ~SimulatorServer();
  SimulatorServer(const SimulatorServer&) = delete;
  SimulatorServer& operator=(const SimulatorServer&) = delete;

  // UNAVAILABLE if a port cannot be had.
  absl::Status Start();
  // Ends blocking queries at once. Idempotent.
  void Stop();

  // "http://127.0.0.1:PORT"; empty before Start.
  std::string harvester_url() const;
  std::string nomad_url() const;
  // A kubeconfig that leads to it.
  std::string kubeconfig() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SERVER_H_
