// SPDX-License-Identifier: Apache-2.0
// Builds the transport to the API server from the configured credentials.
#ifndef NOMAD_HARVESTER_KUBE_CONNECTION_H_
#define NOMAD_HARVESTER_KUBE_CONNECTION_H_

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/http/connection_parts.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

using Connection = http::Connection;

// Reports all problems together, one line each, naming its key (INVALID_ARGUMENT): a kubeconfig
// that cannot be read or parsed, an exec or auth-provider entry, an unknown context, missing files,
// a certificate without a key. A kubeconfig provides server, CA, token, tokenFile, client
// certificate (data or file; relative paths are relative to the kubeconfig),
// insecure-skip-tls-verify, tls-server-name, proxy-url, username and password. `url` replaces its
// server; if scheme, host or port differ, its credentials are not used. Either of `ca_cert_file`
// and `skip_verify` replaces both its CA and its insecure-skip-tls-verify.
absl::StatusOr<Connection> ResolveConnection(const config::HarvesterSettings& settings);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_KUBE_CONNECTION_H_
