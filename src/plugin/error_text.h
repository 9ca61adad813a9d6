// SPDX-License-Identifier: Apache-2.0
// Error texts that may leave the process.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::plugin {

// A message travels percent-encoded in one HTTP/2 header, and gRPC's peers refuse a call whose
// headers exceed 8 KiB (grpc/grpc:src/core/ext/transport/chttp2/transport/chttp2_transport.cc).
inline constexpr std::size_t kMaxEncodedMessage = 6 * 1024;

// The text without `EOF` and `connection refused`, whatever they belong to (rule P4): at either of
// them the agent restarts all of its policies (hashicorp/nomad-autoscaler:policy/manager.go,
// isUnrecoverableError). The word EOF becomes "end of file", inside a name a hyphen breaks it
// ("GEOFENCE" is shown as "GEO-FENCE"); "connection refused" becomes "connection was refused".
std::string Scrub(std::string_view text);

// How many bytes the text takes in a header: what HTTP/2 carries of a gRPC message as itself is
// printable ASCII without '%' (grpc/grpc:doc/PROTOCOL-HTTP2.md, Percent-Encoded).
std::size_t EncodedSize(std::string_view text);

struct ErrorText {
  std::string text;
  bool shortened = false;
};
// Valid UTF-8, scrubbed, at most kMaxEncodedMessage when encoded; a shortened text says so.
ErrorText MakeErrorText(std::string_view text);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_
