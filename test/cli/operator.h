// SPDX-License-Identifier: Apache-2.0
// An operator of the simulated systems, for tests of the commands.
#ifndef NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_
#define NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_

#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/simulator/cluster.h"

#include "settings.h"

namespace nomad_harvester::cli {

inline scaling::RawTransports TransportsOf(simulator::Cluster& cluster, const std::string& client) {
  scaling::RawTransports transports;
  transports.harvester = cluster.HarvesterTransport(client);
  transports.nomad = cluster.NomadTransport(client);
  return transports;
}

// As the client "operator". All arguments but the settings must outlive it.
inline std::unique_ptr<scaling::Maintenance> MakeMaintenance(simulator::Cluster& cluster,
                                                             runtime::Clock& clock,
                                                             runtime::Executor& executor,
                                                             const Settings& settings) {
  scaling::MaintenanceOptions options;
  options.clock = &clock;
  options.random = runtime::MakeSeededRandom(2);
  options.executor = &executor;
  options.holder = "operator";
  return std::make_unique<scaling::Maintenance>(
      options,
      scaling::MakeClients(std::make_shared<config::PluginConfig>(settings.plugin),
                           TransportsOf(cluster, "operator"), options.random, options.logger));
}

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_TEST_CLI_OPERATOR_H_
