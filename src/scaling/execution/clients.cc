// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/clients.h"

#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/nomad/error.h"

namespace nomad_harvester::scaling {
namespace {

template <typename Connection>
absl::StatusOr<std::shared_ptr<http::HttpTransport>> Connect(const char* system,
                                                             absl::StatusOr<Connection> connection,
                                                             const http::TokenHeader& header,
                                                             std::vector<std::string>* warnings) {
  NH_RETURN_IF_ERROR(connection);
  warnings->insert(warnings->end(), connection->warnings.begin(), connection->warnings.end());
  absl::StatusOr<std::shared_ptr<http::HttpTransport>> made =
      http::MakeCurlTransport(connection->curl);
  // Names the system, because most errors are about certificates, which both systems have.
  if (!made.ok()) return base::Annotate(made.status(), system);
  std::shared_ptr<http::HttpTransport> transport = *std::move(made);
  if (connection->token == nullptr) return transport;
  return http::WithToken(std::move(transport), connection->token, header);
}

}  // namespace

absl::StatusOr<kube::Connection> HarvesterConnection(const config::PluginConfig& config) {
  const config::HarvesterSettings& settings = config.harvester;
  return kube::ResolveConnection({.url = settings.url,
                                  .token = settings.token,
                                  .token_file = settings.token_file,
                                  .kubeconfig_path = settings.kubeconfig_path,
                                  .kubeconfig_context = settings.kubeconfig_context,
                                  .ca_cert_file = settings.ca_cert_file,
                                  .client_cert_file = settings.client_cert_file,
                                  .client_key_file = settings.client_key_file,
                                  .tls_server_name = settings.tls_server_name,
                                  .skip_verify = settings.skip_verify});
}

absl::StatusOr<nomad::Connection> NomadConnection(const config::PluginConfig& config) {
  const config::NomadSettings& settings = config.nomad;
  return nomad::ResolveConnection({.address = settings.address,
                                   .token = settings.token,
                                   .token_file = settings.token_file,
                                   .http_auth = settings.http_auth,
                                   .ca_cert = settings.ca_cert,
                                   .ca_path = settings.ca_path,
                                   .client_cert = settings.client_cert,
                                   .client_key = settings.client_key,
                                   .tls_server_name = settings.tls_server_name,
                                   .skip_verify = settings.skip_verify});
}

absl::StatusOr<RawTransports> MakeCurlTransports(const config::PluginConfig& config) {
  RawTransports transports;
  auto harvester = Connect("Harvester", HarvesterConnection(config),
                           {.name = "Authorization", .prefix = "Bearer "}, &transports.warnings);
  auto nomad =
      Connect("Nomad", NomadConnection(config), nomad::NomadTokenHeader(), &transports.warnings);
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

// The urgent clients have no slots.
struct Clients::Shared {
  struct System {
    std::shared_ptr<http::HttpTransport> transport;
    http::RetryOptions retry;
    std::shared_ptr<http::FifoSlots> slots;  // of all pools together
  };
  System harvester;
  System nomad;
  nomad::NomadClient::Options nomad_options;
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;

  std::shared_ptr<http::HttpTransport> Urgent(const System& system) const {
    return http::WithRetry(system.transport, system.retry, random, logger);
  }
  std::shared_ptr<http::HttpTransport> Limited(const System& system, std::size_t limit) const {
    http::RetryOptions retry = system.retry;
    // Takes the pool's own slot first: a pool waiting for it then holds none of the shared slots.
    retry.slots = {std::make_shared<http::FifoSlots>(limit), system.slots};
    return http::WithRetry(system.transport, std::move(retry), random, logger);
  }
};

Clients MakeClients(std::shared_ptr<const config::PluginConfig> config, RawTransports transports,
                    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger,
                    std::shared_ptr<metrics::Sink> metrics) {
  const auto system = [&](std::shared_ptr<http::HttpTransport> raw, const char* name,
                          std::size_t requests) {
    Clients::Shared::System made;
    made.transport = http::WithLogAndMetrics(std::move(raw), name, logger, metrics);
    if (metrics != nullptr) {
      metrics->Add(metrics::Metric::kApiRetries, {name}, 0);
      made.retry.on_retry = [metrics, name] {
        metrics->Add(metrics::Metric::kApiRetries, {name}, 1);
      };
    }
    made.retry.attempt_timeout = config->request_timeout;
    made.slots = std::make_shared<http::FifoSlots>(requests);
    return made;
  };
  auto shared = std::make_shared<Clients::Shared>();
  shared->harvester = system(std::move(transports.harvester), "harvester", kHarvesterRequests);
  shared->harvester.retry.permanently_refused = kube::IsPermanentRefusal;
  shared->nomad = system(std::move(transports.nomad), "nomad", kNomadRequests);
  shared->nomad.retry.permanently_refused = nomad::IsPermanentRefusal;
  shared->nomad_options = {.region = config->nomad.region, .ns = config->nomad.ns};
  shared->random = random;
  shared->logger = logger;
  Clients clients;
  clients.kube_urgent = std::make_shared<kube::KubeClient>(shared->Urgent(shared->harvester));
  http::RetryOptions once = shared->harvester.retry;
  once.max_attempts = 1;
  clients.kube_events = std::make_shared<kube::KubeClient>(
      http::WithRetry(shared->harvester.transport, std::move(once), random, logger));
  clients.nomad_urgent =
      std::make_shared<nomad::NomadClient>(shared->Urgent(shared->nomad), shared->nomad_options);
  clients.config = std::move(config);
  clients.metrics_sink = std::move(metrics);
  clients.shared = std::move(shared);
  return ClientsForPool(clients);
}

Clients ClientsForPool(const Clients& clients) {
  const Clients::Shared& shared = *clients.shared;
  const auto limit = static_cast<std::size_t>(clients.config->max_concurrency);
  Clients own = clients;
  own.kube = std::make_shared<kube::KubeClient>(shared.Limited(shared.harvester, limit));
  own.nomad = std::make_shared<nomad::NomadClient>(shared.Limited(shared.nomad, limit),
                                                   shared.nomad_options);
  return own;
}

}  // namespace nomad_harvester::scaling
