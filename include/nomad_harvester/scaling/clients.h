// SPDX-License-Identifier: Apache-2.0
// Clients of Harvester and Nomad, built from one configuration.
#ifndef NOMAD_HARVESTER_SCALING_CLIENTS_H_
#define NOMAD_HARVESTER_SCALING_CLIENTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/random.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// Immutable; belongs to one SetConfig. A call keeps the instance it started with; a reload makes a
// new one.
struct Clients {
  std::shared_ptr<const config::PluginConfig> config;
  std::shared_ptr<const kube::KubeClient> kube;
  // For the Lease's renewal and Status' lists, which never queue behind max_concurrency.
  std::shared_ptr<const kube::KubeClient> kube_urgent;
  std::shared_ptr<const nomad::NomadClient> nomad;
  std::shared_ptr<const nomad::NomadClient> nomad_urgent;
};

// Two transports to each system's base URL, decorated with credentials only.
struct RawTransports {
  std::shared_ptr<http::HttpTransport> harvester;
  std::shared_ptr<http::HttpTransport> nomad;
  std::vector<std::string> warnings;
};
// Builds the transports of a configuration. INVALID_ARGUMENT lists every problem. Opens no
// connection.
using TransportFactory =
    std::function<absl::StatusOr<RawTransports>(const config::PluginConfig& config)>;

// The production factory: libcurl with TLS and credentials. Reports the problems of both systems
// together.
absl::StatusOr<RawTransports> MakeCurlTransports(const config::PluginConfig& config);

// Adds retries, concurrency limits and logging.
Clients MakeClients(std::shared_ptr<const config::PluginConfig> config, RawTransports transports,
                    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CLIENTS_H_
