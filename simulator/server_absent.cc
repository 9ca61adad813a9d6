// For a build without an HTTP server library: the cluster is there, sockets are not.
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/simulator/server.h"

namespace nomad_harvester::simulator {

struct SimulatorServer::Impl {};

SimulatorServer::SimulatorServer(Cluster&, runtime::Clock&, Options) {}
SimulatorServer::SimulatorServer(Cluster&, runtime::Clock&) {}
SimulatorServer::~SimulatorServer() = default;

absl::Status SimulatorServer::Start() {
  return base::MakeStatus(absl::StatusCode::kUnimplemented,
                          "this executable was built without the simulator's HTTP server");
}

void SimulatorServer::Stop() {}
std::string SimulatorServer::harvester_url() const { return ""; }
std::string SimulatorServer::nomad_url() const { return ""; }
std::string SimulatorServer::kubeconfig() const { return ""; }

}  // namespace nomad_harvester::simulator
