// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/clients.h"

#include <algorithm>
#include <string>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/kube/connection.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/nomad/error.h"

namespace nomad_harvester::scaling {
namespace {

kube::ConnectionOptions KubeOptions(const config::HarvesterSettings& settings) {
  return {.url = settings.url,
          .token = settings.token,
          .token_file = settings.token_file,
          .kubeconfig_path = settings.kubeconfig_path,
          .kubeconfig_context = settings.kubeconfig_context,
          .ca_cert_file = settings.ca_cert_file,
          .client_cert_file = settings.client_cert_file,
          .client_key_file = settings.client_key_file,
          .tls_server_name = settings.tls_server_name,
          .skip_verify = settings.skip_verify};
}

nomad::ConnectionOptions NomadOptions(const config::NomadSettings& settings) {
  return {.address = settings.address,
          .token = settings.token,
          .token_file = settings.token_file,
          .http_auth = settings.http_auth,
          .ca_cert = settings.ca_cert,
          .ca_path = settings.ca_path,
          .client_cert = settings.client_cert,
          .client_key = settings.client_key,
          .tls_server_name = settings.tls_server_name,
          .skip_verify = settings.skip_verify};
}

template <typename Connection>
absl::StatusOr<std::shared_ptr<http::HttpTransport>> Connect(const char* system,
                                                             absl::StatusOr<Connection> connection,
                                                             const http::TokenHeader& header,
                                                             std::vector<std::string>* warnings) {
  NH_RETURN_IF_ERROR(connection);
  warnings->insert(warnings->end(), connection->warnings.begin(), connection->warnings.end());
  absl::StatusOr<std::shared_ptr<http::HttpTransport>> made =
      http::MakeCurlTransport(connection->curl);
  // Mostly errors of certificates, which both systems have: name the system.
  if (!made.ok()) return base::Annotate(made.status(), system);
  std::shared_ptr<http::HttpTransport> transport = *std::move(made);
  if (connection->token == nullptr) return transport;
  return http::WithToken(std::move(transport), connection->token, header);
}

http::RetryOptions MakeRetryOptions(const config::PluginConfig& config) {
  http::RetryOptions options;
  options.attempt_timeout = config.request_timeout;
  return options;
}

}  // namespace

absl::StatusOr<RawTransports> MakeCurlTransports(const config::PluginConfig& config) {
  RawTransports transports;
  auto harvester = Connect("Harvester", kube::ResolveConnection(KubeOptions(config.harvester)),
                           {.name = "Authorization", .prefix = "Bearer "}, &transports.warnings);
  auto nomad = Connect("Nomad", nomad::ResolveConnection(NomadOptions(config.nomad)),
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

Clients MakeClients(std::shared_ptr<const config::PluginConfig> config, RawTransports transports,
                    const std::shared_ptr<runtime::Random>& random, const log::Logger& logger) {
  const auto limit = static_cast<std::size_t>(std::max(1, config->max_concurrency));
  auto harvester = http::WithLogging(std::move(transports.harvester), "harvester", logger);
  auto nomad = http::WithLogging(std::move(transports.nomad), "nomad", logger);
  http::RetryOptions nomad_retry = MakeRetryOptions(*config);
  http::RetryOptions kube_retry = MakeRetryOptions(*config);
  kube_retry.permanently_refused = kube::IsRefusalSentAs500;
  nomad_retry.permanently_refused = nomad::IsPermanentRefusal;
  const nomad::NomadClient::Options nomad_options{.region = config->nomad.region,
                                                  .ns = config->nomad.ns};
  Clients clients;
  clients.kube = std::make_shared<kube::KubeClient>(
      http::WithRetry(http::WithConcurrencyLimit(harvester, limit), kube_retry, random, logger));
  clients.kube_urgent =
      std::make_shared<kube::KubeClient>(http::WithRetry(harvester, kube_retry, random, logger));
  clients.nomad = std::make_shared<nomad::NomadClient>(
      http::WithRetry(http::WithConcurrencyLimit(nomad, limit), nomad_retry, random, logger),
      nomad_options);
  clients.nomad_urgent = std::make_shared<nomad::NomadClient>(
      http::WithRetry(nomad, nomad_retry, random, logger), nomad_options);
  clients.config = std::move(config);
  return clients;
}

}  // namespace nomad_harvester::scaling
