// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/connection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::nomad {
namespace {

constexpr std::string_view kDefaultAddress = "http://127.0.0.1:4646";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Control characters are not allowed in an HTTP header.
bool HasControlCharacter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Resolves one set of options and collects every problem.
class Resolver {
 public:
  explicit Resolver(const ConnectionOptions& options) : options_(options) {}

  absl::StatusOr<Connection> Resolve() && {
    Address();
    Credentials();
    BasicAuth();
    ClientCertificate();
    CertificateAuthorities();
    connection_.curl.tls.server_name = options_.tls_server_name;
    connection_.curl.tls.skip_verify = options_.skip_verify;
    Warnings();
    if (problems_.empty()) return std::move(connection_);
    std::string text;
    for (const std::string& problem : problems_) text += (text.empty() ? "" : "\n") + problem;
    return base::InvalidArgument(text);
  }

 private:
  void Problem(std::string_view key, std::string_view text) {
    problems_.push_back(std::string(key) + ": " + std::string(text));
  }

  // Error texts never quote the address: it may contain a password.
  void Address() {
    std::string address(base::TrimAsciiSpace(options_.address));
    if (address.empty()) address = kDefaultAddress;
    https_ = StartsWith(address, "https://");
    const bool unix_socket = StartsWith(address, "unix://");
    if (!https_ && !unix_socket && !StartsWith(address, "http://")) {
      return Problem("nomad_address", "must begin with http://, https:// or unix:///");
    }
    const std::string_view rest = std::string_view(address).substr(address.find("://") + 3);
    if (unix_socket && (rest.size() < 2 || rest[0] != '/')) {
      return Problem("nomad_address", "unix:// needs the absolute path of a socket");
    }
    const std::string_view authority = rest.substr(0, rest.find('/'));
    if (!unix_socket && authority.empty()) return Problem("nomad_address", "names no host");
    if (authority.find('@') != std::string_view::npos) {
      return Problem("nomad_address", "holds credentials; use nomad_http-auth");
    }
    if (rest.find_first_of("?# ") != std::string_view::npos || HasControlCharacter(rest)) {
      return Problem("nomad_address", "contains a character that is not allowed in a base URL");
    }
    connection_.curl.base_url = std::move(address);
  }

  void Credentials() {
    if (!options_.token_file.empty()) {
      // The file may be written later, so its absence is not an error.
      if (!base::StampFile(options_.token_file).has_value()) {
        connection_.warnings.push_back("nomad_token_file: " + options_.token_file +
                                       " does not exist yet");
      }
      connection_.token = http::MakeFileToken(options_.token_file);
      return;
    }
    const std::string_view token = base::TrimAsciiSpace(options_.token.Reveal());
    if (token.empty()) return;
    if (HasControlCharacter(token)) {
      return Problem("nomad_token", "contains a character that is not allowed in a header");
    }
    connection_.token = http::MakeStaticToken(base::Secret(std::string(token)));
  }

  // Split at the first colon; without a colon the whole text is the user
  // (hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go).
  void BasicAuth() {
    const std::string& auth = options_.http_auth.Reveal();
    if (HasControlCharacter(auth)) {
      return Problem("nomad_http-auth", "contains a character that is not allowed in a header");
    }
    const std::size_t colon = auth.find(':');
    connection_.curl.basic_auth_user = auth.substr(0, colon);
    if (colon == std::string::npos) return;
    connection_.curl.basic_auth_password = base::Secret(auth.substr(colon + 1));
  }

  // The PEM text of a file; a problem is noted under `key`. The file must contain `marker`.
  std::string ReadPem(std::string_view key, const std::string& path, std::string_view marker) {
    auto text = base::ReadFile(path);
    if (!text.ok()) {
      Problem(key, base::Message(text.status()));
      return "";
    }
    if (text->find(marker) == std::string::npos) {
      Problem(key, path + " holds no PEM block \"" + std::string(marker) + "\"");
      return "";
    }
    return *std::move(text);
  }

  void ClientCertificate() {
    if (options_.client_cert.empty() != options_.client_key.empty()) {
      return Problem(options_.client_cert.empty() ? "nomad_client-cert" : "nomad_client-key",
                     "nomad_client-cert and nomad_client-key must both be set");
    }
    if (options_.client_cert.empty()) return;
    http::TlsOptions& tls = connection_.curl.tls;
    tls.client_cert_pem = ReadPem("nomad_client-cert", options_.client_cert, "BEGIN CERTIFICATE");
    tls.client_key_pem =
        base::Secret(ReadPem("nomad_client-key", options_.client_key, "PRIVATE KEY-----"));
  }

  // The file takes precedence over the directory, as in Nomad's own client
  // (hashicorp/go-rootcerts:rootcerts.go, LoadCACerts).
  void CertificateAuthorities() {
    std::string& pem = connection_.curl.tls.ca_pem;
    if (!options_.ca_cert.empty()) {
      pem = ReadPem("nomad_ca-cert", options_.ca_cert, "BEGIN CERTIFICATE");
      if (!options_.ca_path.empty()) {
        connection_.warnings.push_back("nomad_ca-path: not used, since nomad_ca-cert is set");
      }
      return;
    }
    const bool from_directory = !options_.ca_path.empty();
    if (!from_directory && (!https_ || options_.skip_verify)) return;
    auto loaded = from_directory ? http::LoadCaDirectory(options_.ca_path) : http::LoadSystemCas();
    if (!loaded.ok()) {
      return Problem(from_directory ? "nomad_ca-path" : "nomad_ca-cert",
                     base::Message(loaded.status()));
    }
    pem = *std::move(loaded);
  }

  void Warnings() {
    if (options_.skip_verify && https_) {
      connection_.warnings.push_back("nomad_skip-verify: Nomad's certificate is not checked");
    }
    const bool tls_given = options_.skip_verify || !options_.ca_cert.empty() ||
                           !options_.ca_path.empty() || !options_.client_cert.empty() ||
                           !options_.tls_server_name.empty();
    if (tls_given && !https_ && problems_.empty()) {
      connection_.warnings.push_back(
          "nomad_address: is not https://, so the TLS settings have no effect");
    }
  }

  const ConnectionOptions& options_;
  Connection connection_;
  bool https_ = false;
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<Connection> ResolveConnection(const ConnectionOptions& options) {
  return Resolver(options).Resolve();
}

http::TokenHeader NomadTokenHeader() {
  // Nomad returns 403 for a token that is unknown or expired
  // (hashicorp/nomad:command/agent/http.go, errCodeFromHandler).
  return http::TokenHeader{"X-Nomad-Token", "", /*refresh_on_403=*/true};
}

}  // namespace nomad_harvester::nomad
