// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/connection.h"

#include <string_view>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/connection_parts.h"

namespace nomad_harvester::nomad {
namespace {

constexpr std::string_view kDefaultAddress = "http://127.0.0.1:4646";

// Resolves one set of options and collects every problem.
class Resolver {
 public:
  explicit Resolver(const config::NomadSettings& settings) : settings_(settings) {}

  absl::StatusOr<Connection> Resolve() && {
    Address();
    Credentials();
    BasicAuth();
    ClientCertificate();
    CertificateAuthorities();
    connection_.curl.tls.server_name = settings_.tls_server_name;
    connection_.curl.tls.skip_verify = settings_.skip_verify;
    Warnings();
    NH_RETURN_IF_ERROR(problems_.ToStatus());
    return std::move(connection_);
  }

 private:
  void Address() {
    std::string address(base::TrimAsciiSpace(settings_.address));
    if (address.empty()) address = kDefaultAddress;
    const absl::StatusOr<http::BaseUrl> url = http::ParseBaseUrl(address);
    if (!url.ok()) return problems_.Add("nomad_address", base::Message(url.status()));
    https_ = url->https;
    connection_.curl.base_url = std::move(address);
  }

  void Credentials() {
    if (!settings_.token_file.empty()) {
      connection_.token = http::MakeFileToken(settings_.token_file);
      return;
    }
    if (!settings_.token.empty()) connection_.token = http::MakeStaticToken(settings_.token);
  }

  // Split at the first colon; without a colon the whole text is the user
  // (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go).
  void BasicAuth() {
    const std::string& auth = settings_.http_auth.Reveal();
    if (http::HoldsControlCharacter(auth)) {
      return problems_.Add("nomad_http-auth",
                           "contains a character that is not allowed in a header");
    }
    const std::size_t colon = auth.find(':');
    connection_.curl.basic_auth_user = auth.substr(0, colon);
    if (colon == std::string::npos) return;
    connection_.curl.basic_auth_password = base::Secret(auth.substr(colon + 1));
  }

  std::string ReadPem(const std::string& path, http::PemKind kind, std::string_view key) {
    return problems_.ValueOr(http::ReadPemFile(path, kind), key);
  }

  void ClientCertificate() {
    if (settings_.client_cert.empty()) return;
    http::TlsOptions& tls = connection_.curl.tls;
    tls.client_cert_pem =
        ReadPem(settings_.client_cert, http::PemKind::kCertificate, "nomad_client-cert");
    // No credential in the sense of CredentialIn(): Nomad's clients may have the same key, and it
    // grants nothing without a token.
    tls.client_key_pem =
        base::Secret(ReadPem(settings_.client_key, http::PemKind::kPrivateKey, "nomad_client-key"));
  }

  // The file takes precedence over the directory, as in Nomad's own client
  // (hashicorp/go-rootcerts:rootcerts.go, LoadCACerts).
  void CertificateAuthorities() {
    std::string& pem = connection_.curl.tls.ca_pem;
    if (!settings_.ca_cert.empty()) {
      pem = ReadPem(settings_.ca_cert, http::PemKind::kCertificate, "nomad_ca-cert");
      if (!settings_.ca_path.empty()) {
        connection_.warnings.push_back("nomad_ca-path: not used, since nomad_ca-cert is set");
      }
      return;
    }
    const bool from_directory = !settings_.ca_path.empty();
    if (!from_directory && (!https_ || settings_.skip_verify)) return;
    pem = problems_.ValueOr(
        from_directory ? http::LoadCaDirectory(settings_.ca_path) : http::LoadSystemCas(),
        from_directory ? "nomad_ca-path" : "nomad_ca-cert");
  }

  void Warnings() {
    if (settings_.skip_verify && https_) {
      const bool has_ca = !settings_.ca_cert.empty() || !settings_.ca_path.empty();
      connection_.warnings.push_back(
          std::string("nomad_skip-verify: Nomad's certificate is not checked") +
          (has_ca ? "; remove it, a CA is given" : ""));
    }
    const bool tls_given = settings_.skip_verify || !settings_.ca_cert.empty() ||
                           !settings_.ca_path.empty() || !settings_.client_cert.empty() ||
                           !settings_.tls_server_name.empty();
    if (tls_given && !https_ && problems_.empty()) {
      connection_.warnings.push_back(
          "nomad_address: is not https://, so the TLS settings have no effect");
    }
  }

  const config::NomadSettings& settings_;
  Connection connection_;
  bool https_ = false;
  http::Problems problems_;
};

}  // namespace

absl::StatusOr<Connection> ResolveConnection(const config::NomadSettings& settings) {
  return Resolver(settings).Resolve();
}

http::TokenHeader NomadTokenHeader() {
  // Nomad returns 403 for a token that is unknown or expired
  // (hashicorp/nomad:command/agent/http.go, errCodeFromHandler).
  return http::TokenHeader{"X-Nomad-Token", "", /*refresh_on_403=*/true};
}

}  // namespace nomad_harvester::nomad
