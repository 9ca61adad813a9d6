// SPDX-License-Identifier: Apache-2.0
// Converts the project's errors to gRPC statuses for the host.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace nomad_harvester::plugin {

// gRPC sends a message percent-encoded in one HTTP/2 header, and peers reject a call whose headers
// exceed 8 KiB (grpc/grpc:src/core/ext/transport/chttp2/transport/chttp2_transport.cc).
inline constexpr std::size_t kMaxEncodedMessage = 6 * 1024;

// Replaces `EOF` and `connection refused` anywhere in the text (rule P4): on either of them the
// agent restarts all of its policies (hashicorp/nomad-autoscaler:policy/manager.go,
// isUnrecoverableError). " EOF" becomes " end of file", any other EOF gets a hyphen ("GEOFENCE"
// becomes "GEO-FENCE"); "connection refused" becomes "connection was refused".
std::string Scrub(std::string_view text);

// Returns the size of the text in a header. Each byte takes three, unless it is printable ASCII
// other than '%' (grpc/grpc:doc/PROTOCOL-HTTP2.md, Percent-Encoded).
std::size_t EncodedSize(std::string_view text);

struct ErrorText {
  std::string text;
  bool shortened = false;
};
// Makes valid UTF-8, without secrets and C1 control characters, scrubbed, at most
// kMaxEncodedMessage when encoded. A shortened text is marked as such.
ErrorText MakeErrorText(std::string_view text);

// The autoscaler takes ABORTED from a Scale as "not now, nothing was changed"
// (hashicorp/nomad-autoscaler:plugins/target/client.go, Scale). It is passed on only from the
// target service's reply to a Scale; from other sources it would hide an error.
enum class Aborted { kPasses, kIsInternal };

grpc::StatusCode ToGrpcCode(absl::StatusCode code, Aborted aborted);

// Uses the message of MakeErrorText.
grpc::Status StatusToGrpc(const absl::Status& status, Aborted aborted = Aborted::kIsInternal);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_GRPC_STATUS_H_
