// SPDX-License-Identifier: Apache-2.0
// Builds the transport to Nomad from the configuration.
#ifndef NOMAD_HARVESTER_NOMAD_CONNECTION_H_
#define NOMAD_HARVESTER_NOMAD_CONNECTION_H_

#include <cstddef>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/http/connection_parts.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::nomad {

using Connection = http::Connection;

// The most requests at a time, without blocking queries and urgent ones: each has its own
// connection. A Nomad agent accepts 100 connections per address
// (hashicorp/nomad:nomad/structs/config/limits.go, http_max_conns_per_client); 20 leave room for
// the shared lists, for reads of single nodes, and for other programs behind the same address.
inline constexpr std::size_t kMaxRequests = 20;

// Reports all problems together, one line each, naming the key (nomad_address, nomad_ca-cert, …):
// INVALID_ARGUMENT. Reads files but makes no connection. CAs: nomad_ca-cert, else nomad_ca-path,
// else the system's (only for https:// without skip_verify). A token file may be written later.
absl::StatusOr<Connection> ResolveConnection(const config::NomadSettings& settings);

// The header that carries the token: for http::WithToken.
http::TokenHeader NomadTokenHeader();

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_CONNECTION_H_
