// SPDX-License-Identifier: Apache-2.0
// From credentials to a transport.
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

// What the operator wrote, environment already applied (configuration.md of the design, section 1).
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

// Where to connect and with what; everything is read and checked, nothing is connected.
struct Connection {
  http::CurlOptions curl;
  std::shared_ptr<http::TokenSource> token;  // null: none
  // Worth a WARN: no credentials at all, a token file that is not there yet, credentials of a
  // kubeconfig that are not sent to another server.
  std::vector<std::string> warnings;
};

// All problems at once, each naming its key (INVALID_ARGUMENT, one line a problem): a kubeconfig
// that cannot be read or parsed, an exec or auth-provider entry, an unknown context, files that are
// missing, a certificate without a key. A kubeconfig is followed for server, CA, token, tokenFile,
// client certificate (data or file; relative paths are relative to the kubeconfig),
// insecure-skip-tls-verify, tls-server-name, proxy-url, username and password. `url` replaces its
// server; if host or port differ, its credentials are not used.
absl::StatusOr<Connection> ResolveConnection(const ConnectionOptions& options);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CONNECTION_H_
