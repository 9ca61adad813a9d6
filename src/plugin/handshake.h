// SPDX-License-Identifier: Apache-2.0
// The handshake with the host: the line that tells it the plugin's address, and the certificates of
// go-plugin's AutoMTLS, of which each side creates one for this connection and trusts only the
// other's.
#ifndef NOMAD_HARVESTER_PLUGIN_HANDSHAKE_H_
#define NOMAD_HARVESTER_PLUGIN_HANDSHAKE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

// The version of the handshake (hashicorp/go-plugin:client.go, CoreProtocolVersion) and that of the
// autoscaler's plugins (hashicorp/nomad-autoscaler:plugins/plugin.go, Handshake). Like go-plugin's
// own server, the plugin replies with its version even if the host's PLUGIN_PROTOCOL_VERSIONS lack
// it: the host's error then names both.
inline constexpr int kCoreProtocol = 1;
inline constexpr int kPluginProtocol = 1;

struct Handshake {
  std::string socket_path;
  // Base64 of the server's certificate in DER, without padding; empty without TLS.
  std::string certificate;
  // The host set PLUGIN_MULTIPLEX_GRPC, so it accepts a seventh field. Older hosts would read that
  // field as part of the sixth.
  bool answer_multiplexing = false;
};

// "1|1|unix|/tmp/x/plugin.sock|grpc|\n" (hashicorp/go-plugin:server.go, Serve).
std::string HandshakeLine(const Handshake& handshake);

// Writes the whole line or returns the error.
absl::Status WriteLine(int fd, std::string_view line);

struct OneTimeCertificate {
  std::string certificate_pem;
  std::string key_pem;
  // The certificate in DER as base64 without padding: the handshake's sixth field.
  std::string handshake_field;
};

// Self-signed, ECDSA over P-256, for "localhost", the name that the host verifies
// (hashicorp/go-plugin:client.go, Start, and mtls.go, generateCert). The key exists only in memory.
absl::StatusOr<OneTimeCertificate> MakeOneTimeCertificate();

// OK if `pem` contains exactly one certificate, as PLUGIN_CLIENT_CERT must. With an unreadable one
// gRPC would start and refuse every connection without an error message.
absl::Status CheckClientCertificate(const std::string& pem);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_PLUGIN_HANDSHAKE_H_
