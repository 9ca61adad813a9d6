// SPDX-License-Identifier: Apache-2.0
// Clients of Harvester and Nomad, built from one configuration.
#ifndef NOMAD_HARVESTER_SCALING_CLIENTS_H_
#define NOMAD_HARVESTER_SCALING_CLIENTS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/nomad/client.h"
#include "nomad_harvester/runtime/random.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// The limit on concurrent requests of all pools together, as nomad::kMaxRequests. An API server
// does not limit connections; 64 requests are few compared with the 400 that it serves at a time
// (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/config.go, MaxRequestsInFlight).
inline constexpr std::size_t kHarvesterRequests = 64;

// Immutable; belongs to one SetConfig. A call keeps the instance it started with; a reload makes a
// new one.
struct Clients {
  std::shared_ptr<const config::PluginConfig> config;
  // Each has at most max_concurrency requests in flight, within these limits. Blocking queries
  // are not limited (rule L8).
  std::shared_ptr<const kube::KubeClient> kube;
  std::shared_ptr<const nomad::NomadClient> nomad;
  // For Leases and Status' lists: never waits for another request or for a connection (rule L8).
  std::shared_ptr<const kube::KubeClient> kube_urgent;
  std::shared_ptr<const nomad::NomadClient> nomad_urgent;
  // For Kubernetes Events: waits for no slot, and sends each request once.
  std::shared_ptr<const kube::KubeClient> kube_events;
  // Null: metrics are switched off.
  std::shared_ptr<metrics::Sink> metrics_sink;
  // State that the clients of all pools share.
  struct Shared;
  std::shared_ptr<const Shared> shared;
};

// Builds the transports of a configuration. INVALID_ARGUMENT lists every problem. Opens no
// connection.
using TransportFactory =
    std::function<absl::StatusOr<http::RawTransports>(const config::PluginConfig& config)>;

// The production factory: libcurl with TLS and credentials. Reports the problems of both systems
// together.
absl::StatusOr<http::RawTransports> MakeCurlTransports(const config::PluginConfig& config);

// Adds retries, limits, logging and metrics. The clients are for work on one pool, or on none.
Clients MakeClients(std::shared_ptr<const config::PluginConfig> config,
                    http::RawTransports transports, const std::shared_ptr<runtime::Random>& random,
                    const log::Logger& logger, std::shared_ptr<metrics::Sink> metrics = nullptr);
// Clients for one more pool, with their own max_concurrency; everything else is shared with
// `clients`.
Clients ClientsForPool(const Clients& clients);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_CLIENTS_H_
