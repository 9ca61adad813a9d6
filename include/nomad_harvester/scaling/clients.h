// SPDX-License-Identifier: Apache-2.0
// The two systems, as one configuration reaches them.
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

// An immutable snapshot of one SetConfig. Whoever works under it keeps it; a reload makes a new
// one.
struct Clients {
  std::shared_ptr<const config::PluginConfig> config;
  std::shared_ptr<const kube::KubeClient> kube;
  // The Lease's renewal and Status' lists never queue behind max_concurrency.
  std::shared_ptr<const kube::KubeClient> kube_urgent;
  std::shared_ptr<const nomad::NomadClient> nomad;
  std::shared_ptr<const nomad::NomadClient> nomad_urgent;
};

// Two transports to each system's base URL, without any decorator but credentials.
struct RawTransports {
  std::shared_ptr<http::HttpTransport> harvester;
  std::shared_ptr<http::HttpTransport> nomad;
  std::vector<std::string> warnings;
};
// Builds the transports that a configuration asks for. INVALID_ARGUMENT lists every problem.
// Nothing is connected.
using TransportFactory =
    std::function<absl::StatusOr<RawTransports>(const config::PluginConfig& config)>;

// The real one: libcurl, TLS and credentials of both systems; all problems of both at once.
absl::StatusOr<RawTransports> MakeCurlTransports(const config::PluginConfig& config);

// Adds retries, concurrency limits and logging.
Clients MakeClients(std::shared_ptr<const config::PluginConfig> config, RawTransports transports,
                    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CLIENTS_H_
