// SPDX-License-Identifier: Apache-2.0
// Builds the transport to the API server from the configured credentials.
#ifndef NOMAD_HARVESTER_KUBE_CONNECTION_H_
#define NOMAD_HARVESTER_KUBE_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

// The operator's options (docs/configuration.md, "Harvester") as checked by
// config::ParsePluginConfig: there is a server, and every key has the keys that it needs.
struct ConnectionOptions {
  std::string url;
  base::Secret token;
  std::string token_file;
  std::string kubeconfig_path;
  std::string kubeconfig_context;
  std::string ca_cert_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string tls_server_name;
  bool skip_verify = false;
};

// Server and credentials. All files have been read and checked; no connection has been made.
struct Connection {
  http::CurlOptions curl;
  std::shared_ptr<http::TokenSource> token;  // null: none
  // Describes the credentials that are sent, for people: "the token of auth_token_file PATH".
  // Empty: none are sent.
  std::string credential;
  // To be logged as WARN: no credentials at all, an empty token file, a tokenFile of the kubeconfig
  // that does not exist yet, credentials of a kubeconfig that are not sent because the server is
  // another one, or a certificate that is not verified.
  std::vector<std::string> warnings;
};

// Reports all problems together, one line each, naming its key (INVALID_ARGUMENT): a kubeconfig
// that cannot be read or parsed, an exec or auth-provider entry, an unknown context, missing files,
// a certificate without a key. A kubeconfig provides server, CA, token, tokenFile, client
// certificate (data or file; relative paths are relative to the kubeconfig),
// insecure-skip-tls-verify, tls-server-name, proxy-url, username and password. `url` replaces its
// server; if scheme, host or port differ, its credentials are not used. Either of `ca_cert_file`
// and `skip_verify` replaces both its CA and its insecure-skip-tls-verify.
absl::StatusOr<Connection> ResolveConnection(const ConnectionOptions& options);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CONNECTION_H_
