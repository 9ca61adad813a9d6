// SPDX-License-Identifier: Apache-2.0
// Serves the simulated systems on sockets.
#ifndef NOMAD_HARVESTER_SIMULATOR_SERVER_H_
#define NOMAD_HARVESTER_SIMULATOR_SERVER_H_

#include <memory>
#include <string>

#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/simulator/cluster.h"

#include "absl/status/status.h"

namespace nomad_harvester::simulator {

// Serves both APIs of a cluster over plain HTTP on loopback, in its own threads. The cluster and
// its clock, which must be the system clock, must outlive it.
class SimulatorServer {
 public:
  // `nomad_port`: 0 for any free port, as for Harvester.
  SimulatorServer(Cluster& cluster, runtime::Clock& clock, int nomad_port = 0);
  // Calls Stop.
  ~SimulatorServer();
  SimulatorServer(const SimulatorServer&) = delete;
  SimulatorServer& operator=(const SimulatorServer&) = delete;

  // UNAVAILABLE if it cannot listen on a port.
  absl::Status Start();
  // Ends blocking queries immediately. Idempotent.
  void Stop();

  // "http://127.0.0.1:PORT"; empty before Start.
  std::string harvester_url() const;
  std::string nomad_url() const;
  // The largest number of concurrent requests to that API, and therefore a lower bound on
  // connections.
  int MostRequests(System system) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_SERVER_H_
