// SPDX-License-Identifier: Apache-2.0
// Nomad clients that are not ready at once, not for ever, or never: for
// simulator::Cluster::SetNextClients.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_BEHAVIOURS_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_BEHAVIOURS_H_

#include <string>
#include <utility>

#include "nomad_harvester/simulator/options.h"

namespace nomad_harvester::support {

inline simulator::ClientBehaviour InitializingFor(base::Duration time) {
  simulator::ClientBehaviour client;
  client.initializing_for = time;
  return client;
}

inline simulator::ClientBehaviour NeverReady() { return InitializingFor(simulator::kForever); }

// To initializing.
inline simulator::ClientBehaviour FallsBackAfter(base::Duration time) {
  simulator::ClientBehaviour client;
  client.ready_for = time;
  return client;
}

inline simulator::ClientBehaviour WithDocker(simulator::DriverSpec docker) {
  simulator::ClientBehaviour client;
  client.drivers["docker"] = std::move(docker);
  return client;
}

inline simulator::ClientBehaviour DockerAfter(base::Duration time) {
  return WithDocker({.at_first = simulator::DriverHealth::kUndetected, .healthy_after = time});
}

inline simulator::ClientBehaviour NeverDocker() {
  return WithDocker({.at_first = simulator::DriverHealth::kUnhealthy, .trouble = "no daemon"});
}

inline simulator::ClientBehaviour StartsIneligible() {
  simulator::ClientBehaviour client;
  client.starts_ineligible = true;
  return client;
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_CLIENT_BEHAVIOURS_H_
