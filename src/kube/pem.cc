// SPDX-License-Identifier: Apache-2.0
#include "pem.h"

#include <cstddef>
#include <string_view>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

// "-----BEGIN CERTIFICATE-----", "-----BEGIN [RSA |EC |]PRIVATE KEY-----". The TLS library checks
// the block's content and whether certificate and key match.
bool HasBlock(std::string_view text, PemKind kind) {
  if (kind == PemKind::kCertificate) {
    return text.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos;
  }
  const std::size_t end = text.find("PRIVATE KEY-----");
  return end != std::string_view::npos && text.rfind("-----BEGIN ", end) != std::string_view::npos;
}

absl::Status NoBlock(std::string_view where, PemKind kind) {
  return base::InvalidArgument(std::string(where) + (kind == PemKind::kCertificate
                                                         ? " holds no PEM certificate"
                                                         : " holds no PEM private key"));
}

// In PKCS #8 ("BEGIN ENCRYPTED PRIVATE KEY") or in OpenSSL's older form ("Proc-Type: 4,ENCRYPTED").
absl::Status Check(std::string_view text, std::string_view where, PemKind kind) {
  if (!HasBlock(text, kind)) return NoBlock(where, kind);
  if (kind == PemKind::kPrivateKey && text.find("ENCRYPTED") != std::string_view::npos) {
    return base::InvalidArgument(std::string(where) +
                                 " holds an encrypted key: give one without a passphrase");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadPemFile(const std::string& path, PemKind kind) {
  absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok()) return base::InvalidArgument(base::Message(text.status()));
  NH_RETURN_IF_ERROR(Check(*text, path, kind));
  return text;
}

absl::StatusOr<std::string> DecodePem(const std::string& base64, PemKind kind) {
  absl::StatusOr<std::string> text = base::Base64Decode(base64);
  if (!text.ok()) return base::InvalidArgument("it is not base64");
  NH_RETURN_IF_ERROR(Check(*text, "it", kind));
  return text;
}

}  // namespace nomad_harvester::kube
