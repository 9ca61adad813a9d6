// SPDX-License-Identifier: Apache-2.0
// Helpers that turn an operator's settings into a connection, for Harvester and for Nomad.
#ifndef NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_
#define NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// Collects all problems of the settings, so that they are reported together.
class Problems {
 public:
  void Add(std::string_view key, std::string_view what);
  // Returns the value; or adds the problem under `key` and returns a default-constructed value.
  template <typename T>
  T ValueOr(absl::StatusOr<T> result, std::string_view key) {
    if (result.ok()) return *std::move(result);
    Add(key, base::Message(result.status()));
    return T{};
  }
  bool empty() const { return text_.empty(); }
  // INVALID_ARGUMENT with one line for each problem, or OK.
  absl::Status ToStatus() const;

 private:
  std::string text_;
};

// A token must consist of visible ASCII. Other header fields may contain anything but control
// characters.
bool IsVisibleAscii(std::string_view text);
bool HoldsControlCharacter(std::string_view text);

enum class PemKind { kCertificate, kPrivateKey };
// Returns the content of a PEM file. INVALID_ARGUMENT: no such file, not readable, no PEM block of
// that kind in it, an encrypted key. The message is for the operator. It never contains the file's
// content, nor a path that is itself PEM.
absl::StatusOr<std::string> ReadPemFile(const std::string& path, PemKind kind);
// The same for PEM in base64.
absl::StatusOr<std::string> DecodePem(const std::string& base64, PemKind kind);
// The certificate blocks of a PEM text, without comments, keys and blocks that are not base64.
std::vector<std::string> CertificateBlocks(std::string_view pem);

// Where a machine may have its CA certificates.
struct CaPlaces {
  std::string file;         // SSL_CERT_FILE
  std::string directories;  // SSL_CERT_DIR, separated by colons
  std::vector<std::string> bundles;
};
// The CA certificates of this machine as PEM: those of SSL_CERT_FILE and SSL_CERT_DIR if one of
// them is set, else those of the first well-known bundle of Debian, Alpine, SUSE and RHEL that
// holds a certificate. NOT_FOUND names the paths tried.
absl::StatusOr<std::string> LoadSystemCas();
absl::StatusOr<std::string> LoadCasFrom(const CaPlaces& places);
// All PEM files of a directory, regardless of their names (Nomad's ca-path; libcurl requires
// c_rehash names), each certificate once. INVALID_ARGUMENT: no certificate, or not a directory.
absl::StatusOr<std::string> LoadCaDirectory(const std::string& path);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_
