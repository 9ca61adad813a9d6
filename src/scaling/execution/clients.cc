// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/clients.h"

#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/connection_parts.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/connection.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/nomad/error.h"

namespace nomad_harvester::scaling {
absl::StatusOr<http::RawTransports> MakeCurlTransports(const config::PluginConfig& config) {
  http::RawTransports transports;
  auto harvester =
      http::MakeTransport("Harvester", kube::ResolveConnection(config.harvester),
                          {.name = "Authorization", .prefix = "Bearer "}, &transports.warnings);
  auto nomad = http::MakeTransport("Nomad", nomad::ResolveConnection(config.nomad),
                                   nomad::NomadTokenHeader(), &transports.warnings);
  std::string problems;
  for (const absl::Status& status : {harvester.status(), nomad.status()}) {
    if (status.ok()) continue;
    problems += (problems.empty() ? "" : "\n") + base::Message(status);
  }
  if (!problems.empty()) return base::InvalidArgument(problems);
  transports.harvester = *std::move(harvester);
  transports.nomad = *std::move(nomad);
  return transports;
}

struct Clients::Shared {
  http::System harvester;
  http::System nomad;
  nomad::NomadClient::Options nomad_options;
};

Clients MakeClients(std::shared_ptr<const config::PluginConfig> config,
                    http::RawTransports transports, const std::shared_ptr<runtime::Random>& random,
                    const log::Logger& logger, std::shared_ptr<metrics::Sink> metrics) {
  const base::Duration timeout = config->request_timeout;
  auto shared = std::make_shared<Clients::Shared>();
  shared->harvester = http::MakeSystem(
      "harvester", std::move(transports.harvester),
      {.attempt_timeout = timeout, .permanently_refused = kube::IsPermanentRefusal},
      kHarvesterRequests, random, logger, metrics);
  shared->nomad = http::MakeSystem(
      "nomad", std::move(transports.nomad),
      {.attempt_timeout = timeout, .permanently_refused = nomad::IsPermanentRefusal},
      nomad::kMaxRequests, random, logger, metrics);
  shared->nomad_options = {.region = config->nomad.region, .ns = config->nomad.ns};
  Clients clients;
  clients.kube_urgent = std::make_shared<kube::KubeClient>(shared->harvester.Urgent());
  http::System once = shared->harvester;
  once.retry.max_attempts = 1;
  clients.kube_events = std::make_shared<kube::KubeClient>(once.Urgent());
  clients.nomad_urgent =
      std::make_shared<nomad::NomadClient>(shared->nomad.Urgent(), shared->nomad_options);
  clients.config = std::move(config);
  clients.metrics_sink = std::move(metrics);
  clients.shared = std::move(shared);
  return ClientsForPool(clients);
}

Clients ClientsForPool(const Clients& clients) {
  const Clients::Shared& shared = *clients.shared;
  const auto limit = static_cast<std::size_t>(clients.config->max_concurrency);
  Clients own = clients;
  own.kube = std::make_shared<kube::KubeClient>(shared.harvester.Limited(limit));
  own.nomad =
      std::make_shared<nomad::NomadClient>(shared.nomad.Limited(limit), shared.nomad_options);
  return own;
}

}  // namespace nomad_harvester::scaling
