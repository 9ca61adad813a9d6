// SPDX-License-Identifier: Apache-2.0
// Checks and converts addresses at which a server listens on this machine.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

// Returns gRPC's address of a Unix socket. Its URI parser decodes percent escapes and ends a path
// at '?' and '#' (grpc/grpc:src/core/lib/uri/uri_parser.cc), so all characters outside RFC 3986's
// set are escaped.
std::string UnixAddress(const std::string& path);

// Returns gRPC's address for an operator's text: "unix:/path", or "host:port" with a host of this
// machine, because the server does not authenticate its clients. INVALID_ARGUMENT for any other
// text.
absl::StatusOr<std::string> ParseLocalAddress(const std::string& text);
// True if the text names a Unix socket, which file permissions protect.
bool IsUnixAddress(std::string_view text);

// UNAVAILABLE if another process listens on the Unix socket: gRPC would delete it. OK for any other
// address; what else prevents a server from listening, gRPC finds.
absl::Status CheckNotServed(const std::string& text);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_LOCAL_ADDRESS_H_
