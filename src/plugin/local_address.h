// SPDX-License-Identifier: Apache-2.0
// Where a server listens on this machine.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

// gRPC's address of a Unix socket. Its URI parser decodes percent escapes and ends a path at '?'
// and '#' (grpc/grpc:src/core/lib/uri/uri_parser.cc), so that all characters outside RFC 3986's set
// are escaped.
std::string UnixAddress(const std::string& path);

// gRPC's address for an operator's text: "unix:/path", or "host:port" with a host of this machine,
// because the server does not authenticate its clients. INVALID_ARGUMENT for any other text.
absl::StatusOr<std::string> ParseLocalAddress(const std::string& text);
// Whether such a text names a Unix socket, which file permissions protect.
bool IsUnixAddress(std::string_view text);

// Whether a server can be started at such a text: gRPC deletes a socket that another process
// listens on, and does not say why it cannot listen. UNAVAILABLE: it cannot, with the cause and the
// cure. Tries it, without a trace; another process may still be faster.
absl::Status CheckCanListen(const std::string& text);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_
