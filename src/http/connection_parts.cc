// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/connection_parts.h"

#include <algorithm>
#include <set>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/secret.h"

#include "absl/strings/str_split.h"
#include "proxy.h"

namespace nomad_harvester::http {
namespace {

constexpr std::size_t kMaxBundleBytes = 8UL * 1024 * 1024;
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEnd = "-----END CERTIFICATE-----";

// Where Go, and therefore the agent, looks for CAs (golang/go:src/crypto/x509/root_linux.go).
const char* const kSystemBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL 6
    "/etc/ssl/ca-bundle.pem",                             // SUSE
    "/etc/pki/tls/cacert.pem",                            // OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // CentOS, RHEL 7 and later
    "/etc/ssl/cert.pem",                                  // Alpine
};

// Collects certificates without duplicates, because a directory with c_rehash links contains every
// certificate twice.
class Collection {
 public:
  void Add(std::string_view pem) {
    for (std::string& block : CertificateBlocks(pem)) {
      if (seen_.insert(block).second) pem_ += block;
    }
  }
  void AddFile(const std::string& path) {
    const absl::StatusOr<std::string> text = base::ReadFile(path, kMaxBundleBytes);
    if (text.ok()) Add(*text);
  }
  absl::Status AddDirectory(const std::string& path) {
    NH_ASSIGN_OR_RETURN(const std::vector<std::string> names, base::ListDirectory(path));
    for (const std::string& name : names) AddFile(path + "/" + name);
    return absl::OkStatus();
  }
  const std::string& pem() const { return pem_; }

 private:
  std::set<std::string> seen_;
  std::string pem_;
};

// MakeCurlTransport checks whether certificate and key match.
absl::StatusOr<std::string> CheckPem(std::string text, const std::string& where, PemKind kind) {
  if (kind == PemKind::kCertificate) {
    if (!CertificateBlocks(text).empty()) return text;
    return base::InvalidArgument(where + " holds no PEM certificate");
  }
  // "-----BEGIN [RSA |EC |]PRIVATE KEY-----".
  const std::size_t end = text.find("PRIVATE KEY-----");
  if (end == std::string::npos || text.rfind("-----BEGIN ", end) == std::string::npos) {
    return base::InvalidArgument(where + " holds no PEM private key");
  }
  // Finds PKCS #8 ("BEGIN ENCRYPTED PRIVATE KEY") and OpenSSL's older form ("Proc-Type:
  // 4,ENCRYPTED"). OpenSSL would prompt for the passphrase on the terminal.
  if (text.find("ENCRYPTED") != std::string::npos) {
    return base::InvalidArgument(where + " holds an encrypted key: give one without a passphrase");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<HttpTransport>> MakeTransport(std::string_view system,
                                                             absl::StatusOr<Connection> connection,
                                                             const TokenHeader& header,
                                                             std::vector<std::string>* warnings) {
  NH_RETURN_IF_ERROR(connection);
  warnings->insert(warnings->end(), connection->warnings.begin(), connection->warnings.end());
  absl::StatusOr<std::shared_ptr<HttpTransport>> made = MakeCurlTransport(connection->curl);
  if (!made.ok()) return base::Annotate(made.status(), system);
  std::shared_ptr<HttpTransport> transport = *std::move(made);
  if (connection->token == nullptr) return transport;
  return WithToken(std::move(transport), connection->token, header);
}

void Problems::Add(std::string_view key, std::string_view what) {
  text_ += (text_.empty() ? "" : "\n") + std::string(key) + ": " + std::string(what);
}

absl::Status Problems::ToStatus() const {
  return text_.empty() ? absl::OkStatus() : base::InvalidArgument(base::WithoutSecrets(text_));
}

bool HoldsControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

absl::StatusOr<std::string> ReadPemFile(const std::string& path, PemKind kind) {
  if (base::HoldsPem(path)) {
    return base::InvalidArgument("it is PEM itself: write that to a file and give the file's path");
  }
  absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok()) return base::InvalidArgument(base::Message(text.status()));
  return CheckPem(*std::move(text), path, kind);
}

absl::StatusOr<std::string> DecodePem(const std::string& base64, PemKind kind) {
  absl::StatusOr<std::string> text = base::Base64Decode(base64);
  if (!text.ok()) return base::InvalidArgument("it is not base64");
  return CheckPem(*std::move(text), "it", kind);
}

std::vector<std::string> CertificateBlocks(std::string_view pem) {
  std::vector<std::string> blocks;
  std::size_t begin = 0;
  while ((begin = pem.find(kBegin, begin)) != std::string_view::npos) {
    const std::size_t body = begin + kBegin.size();
    const std::size_t end = pem.find(kEnd, body);
    if (end == std::string_view::npos) break;
    // One block that is not base64 would make OpenSSL refuse the whole bundle.
    const absl::StatusOr<std::string> der = base::Base64Decode(pem.substr(body, end - body));
    if (der.ok() && !der->empty()) {
      blocks.push_back(std::string(pem.substr(begin, end + kEnd.size() - begin)) + "\n");
    }
    begin = end + kEnd.size();
  }
  return blocks;
}

absl::StatusOr<std::string> LoadCasFrom(const CaPlaces& places) {
  std::string tried;
  const auto note = [&tried](const std::string& what) {
    tried += (tried.empty() ? "" : ", ") + what;
  };
  Collection collection;
  if (!places.file.empty()) {
    note("SSL_CERT_FILE=" + places.file);
    collection.AddFile(places.file);
  }
  const std::vector<std::string> directories =
      absl::StrSplit(places.directories, ':', absl::SkipEmpty());
  for (const std::string& directory : directories) {
    note("SSL_CERT_DIR=" + directory);
    // A directory may be missing as long as another one has a certificate.
    collection.AddDirectory(directory).IgnoreError();
  }
  // The system's bundles must not extend the set named by the environment.
  if (places.file.empty() && places.directories.empty()) {
    for (const std::string& bundle : places.bundles) {
      note(bundle);
      collection.AddFile(bundle);
      if (!collection.pem().empty()) break;
    }
  }
  if (collection.pem().empty()) {
    return base::NotFound("no CA certificates on this machine; tried " + tried);
  }
  return collection.pem();
}

absl::StatusOr<std::string> LoadSystemCas() {
  return LoadCasFrom({EnvironmentValue("SSL_CERT_FILE"),
                      EnvironmentValue("SSL_CERT_DIR"),
                      {std::begin(kSystemBundles), std::end(kSystemBundles)}});
}

absl::StatusOr<std::string> LoadCaDirectory(const std::string& path) {
  Collection collection;
  if (absl::Status status = collection.AddDirectory(path); !status.ok()) {
    return base::Annotate(status, "cannot read CA certificates");
  }
  if (collection.pem().empty()) {
    return base::InvalidArgument("no file in " + path + " holds a PEM certificate");
  }
  return collection.pem();
}

}  // namespace nomad_harvester::http
