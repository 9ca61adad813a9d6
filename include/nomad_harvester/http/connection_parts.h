// SPDX-License-Identifier: Apache-2.0
// Helpers that turn an operator's settings into a connection to Harvester or Nomad.
#ifndef NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_
#define NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/transport.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

// Server and credentials, resolved from an operator's settings. All files have been read and
// checked; no connection has been made.
struct Connection {
  CurlOptions curl{};
  std::shared_ptr<TokenSource> token{};  // null: none
  // Describes the credentials that are sent to Harvester, for people: "the token of auth_token_file
  // PATH". Empty: none are sent.
  std::string credential{};
  // To be logged as WARN: no credentials at all, an empty token file, a tokenFile of the kubeconfig
  // that does not exist yet, credentials of a kubeconfig that are not sent because the server is
  // another one, a certificate that is not verified, or settings without effect.
  std::vector<std::string> warnings{};
};

// A transport to each system's base URL, decorated with credentials only.
struct RawTransports {
  std::shared_ptr<HttpTransport> harvester = nullptr;  // null: there is no connection
  std::shared_ptr<HttpTransport> nomad = nullptr;
  std::vector<std::string> warnings = {};
};

// Makes the transport of a connection: libcurl, and the token in its header. Adds the connection's
// warnings to `warnings`. An error names the system, because most are about certificates, which
// every system has. Opens no connection.
absl::StatusOr<std::shared_ptr<HttpTransport>> MakeTransport(std::string_view system,
                                                             absl::StatusOr<Connection> connection,
                                                             const TokenHeader& header,
                                                             std::vector<std::string>* warnings);

// Collects the problems of the settings, so that they are reported together.
class Problems {
 public:
  void Add(std::string_view key, std::string_view what);
  // Returns the value, or adds the problem under `key` and returns a default-constructed value.
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

// A header field may contain anything else.
bool HoldsControlCharacter(std::string_view text);

enum class PemKind { kCertificate, kPrivateKey };
// Returns the content of a PEM file. INVALID_ARGUMENT: the file is missing or unreadable, has no
// PEM block of that kind, or has an encrypted key. The message is for the operator. It never
// contains the file's content, nor a path that is itself PEM.
absl::StatusOr<std::string> ReadPemFile(const std::string& path, PemKind kind);
// Likewise for base64-encoded PEM.
absl::StatusOr<std::string> DecodePem(const std::string& base64, PemKind kind);
// The certificate blocks of a PEM text, without comments, keys and blocks that are not base64.
std::vector<std::string> CertificateBlocks(std::string_view pem);

// Places where a machine may have its CA certificates.
struct CaPlaces {
  std::string file;         // SSL_CERT_FILE
  std::string directories;  // SSL_CERT_DIR, separated by colons
  std::vector<std::string> bundles;
};
// Returns the CA certificates of this machine as PEM: those of SSL_CERT_FILE and SSL_CERT_DIR if
// one of them is set, otherwise those of the first well-known bundle of Debian, Alpine, SUSE and
// RHEL that contains a certificate. NOT_FOUND names the paths tried.
absl::StatusOr<std::string> LoadSystemCas();
absl::StatusOr<std::string> LoadCasFrom(const CaPlaces& places);
// Returns the certificates of all PEM files of a directory, whatever their names (Nomad's ca-path;
// libcurl requires c_rehash names), without duplicates. INVALID_ARGUMENT: no certificate, or not a
// directory.
absl::StatusOr<std::string> LoadCaDirectory(const std::string& path);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_CONNECTION_PARTS_H_
