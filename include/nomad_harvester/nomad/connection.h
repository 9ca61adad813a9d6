// SPDX-License-Identifier: Apache-2.0
// Builds the transport to Nomad from the configuration.
#ifndef NOMAD_HARVESTER_NOMAD_CONNECTION_H_
#define NOMAD_HARVESTER_NOMAD_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

struct ConnectionOptions {
  std::string address{};  // "http(s)://host:port" or "unix:///path"; empty: http://127.0.0.1:4646
  base::Secret token{};
  std::string token_file{};  // takes precedence over token
  base::Secret http_auth{};  // "user:password", "user", ":password"
  std::string ca_cert{};
  std::string ca_path{};
  std::string client_cert{};
  std::string client_key{};
  std::string tls_server_name{};
  bool skip_verify = false;
};

struct Connection {
  http::CurlOptions curl{};
  std::shared_ptr<http::TokenSource> token{};  // null: none
  std::vector<std::string> warnings{};
};

// Reports all problems together, one line each, naming the key (nomad_address, nomad_ca-cert, …):
// INVALID_ARGUMENT. Reads files but makes no connection. CAs: nomad_ca-cert, else nomad_ca-path,
// else the system's (only for https:// without skip_verify). A token file may be written later.
absl::StatusOr<Connection> ResolveConnection(const ConnectionOptions& options);

// The header that carries the token: for http::WithToken.
http::TokenHeader NomadTokenHeader();

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CONNECTION_H_
