// SPDX-License-Identifier: Apache-2.0
// Certificates of go-plugin's AutoMTLS: each side creates one for this connection and trusts only
// the other's.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_CERTIFICATE_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

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

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_CERTIFICATE_H_
