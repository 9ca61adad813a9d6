// SPDX-License-Identifier: Apache-2.0
// Limits error texts to what may be sent to the host.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace nomad_harvester::plugin {

// gRPC sends a message percent-encoded in one HTTP/2 header, and peers reject a call whose headers
// exceed 8 KiB (grpc/grpc:src/core/ext/transport/chttp2/transport/chttp2_transport.cc).
inline constexpr std::size_t kMaxEncodedMessage = 6 * 1024;

// Replaces `EOF` and `connection refused` anywhere in the text (rule P4): on either of them the
// agent restarts all of its policies (hashicorp/nomad-autoscaler:policy/manager.go,
// isUnrecoverableError). The word EOF becomes "end of file"; inside a name a hyphen is inserted
// ("GEOFENCE" becomes "GEO-FENCE"); "connection refused" becomes "connection was refused".
std::string Scrub(std::string_view text);

// The size of the text in a header: only printable ASCII other than '%' is not escaped
// (grpc/grpc:doc/PROTOCOL-HTTP2.md, Percent-Encoded).
std::size_t EncodedSize(std::string_view text);

struct ErrorText {
  std::string text;
  bool shortened = false;
};
// Valid UTF-8, scrubbed, at most kMaxEncodedMessage when encoded. A shortened text is marked as
// such.
ErrorText MakeErrorText(std::string_view text);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_ERROR_TEXT_H_
