// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/kube/connection.h"

#include <optional>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/connection_parts.h"

#include "kubeconfig.h"

namespace nomad_harvester::kube {
namespace {

constexpr std::string_view kTokenFileKey = "auth_token_file";

class Resolver {
 public:
  explicit Resolver(const config::HarvesterSettings& settings) : settings_(settings) {}

  absl::StatusOr<Connection> Resolve() {
    if (!settings_.kubeconfig_path.empty()) {
      context_ = LoadKubeconfig(settings_.kubeconfig_path, settings_.kubeconfig_context, problems_);
    }
    // As with kubectl's options, either of the two replaces both the entry's CA and its
    // insecure-skip-tls-verify (kubernetes/client-go:tools/clientcmd/client_config.go, getCluster).
    const bool own_verification = !settings_.ca_cert_file.empty() || settings_.skip_verify;
    if (context_) cluster_ = ReadCluster(*context_, !own_verification, problems_);
    ResolveServer();
    ResolveTls();
    ResolveCredentials();
    NH_RETURN_IF_ERROR(problems_.ToStatus());
    Warn();
    return std::move(connection_);
  }

 private:
  bool ExplicitToken() const { return !settings_.token.empty() || !settings_.token_file.empty(); }
  bool ExplicitCertificate() const { return !settings_.client_cert_file.empty(); }

  void ResolveServer() {
    if (!settings_.url.empty()) {
      ReadServer(settings_.url, "harvester_url");
      if (context_ && server_) CompareServers();
    } else if (context_) {
      if (cluster_.server.empty()) {
        problems_.Add(kKubeconfigKey, "cluster \"" + context_->cluster_name +
                                          "\" has no server; set harvester_url");
      } else {
        ReadServer(cluster_.server, kKubeconfigKey);
      }
    }
  }

  void ReadServer(const std::string& text, std::string_view key) {
    absl::StatusOr<http::BaseUrl> url = http::ParseBaseUrl(std::string(base::TrimAsciiSpace(text)));
    if (url.ok() && url->is_socket()) url = base::InvalidArgument("a socket is not supported");
    if (!url.ok()) return problems_.Add(key, base::Message(url.status()));
    connection_.curl.base_url = url->Url();
    server_ = *std::move(url);
  }

  // Credentials, tls-server-name and insecure-skip-tls-verify apply only to the kubeconfig's
  // server. Its CA is kept, because it may also have signed another address of the same cluster.
  void CompareServers() {
    const absl::StatusOr<http::BaseUrl> own =
        http::ParseBaseUrl(std::string(base::TrimAsciiSpace(cluster_.server)));
    if (own.ok() && own->SameServer(*server_)) return;
    cluster_.tls_server_name.clear();
    cluster_.skip_verify = false;
    kubeconfig_credentials_ = false;
    if (HoldsCredentials(*context_) && !ExplicitToken()) {
      connection_.warnings.push_back(
          "harvester_url names another scheme, host or port than the kubeconfig's server: the "
          "kubeconfig's credentials are not sent there");
    }
  }

  void ResolveTls() {
    http::TlsOptions& tls = connection_.curl.tls;
    // If harvester_ca_cert is set, the kubeconfig cannot disable verification.
    if (!settings_.ca_cert_file.empty()) cluster_.skip_verify = false;
    tls.skip_verify = settings_.skip_verify || cluster_.skip_verify;
    tls.server_name =
        settings_.tls_server_name.empty() ? cluster_.tls_server_name : settings_.tls_server_name;
    connection_.curl.proxy_url = cluster_.proxy_url;
    tls.ca_pem = cluster_.ca_pem;
    if (!settings_.ca_cert_file.empty()) {
      tls.ca_pem =
          ReadPem(settings_.ca_cert_file, http::PemKind::kCertificate, "harvester_ca_cert");
    } else if (tls.ca_pem.empty() && server_ && server_->https && !tls.skip_verify) {
      tls.ca_pem = problems_.ValueOr(http::LoadSystemCas(), "harvester_ca_cert");
    }
    if (!ExplicitCertificate()) return;
    AddCertificate("the client certificate " + settings_.client_cert_file);
    tls.client_key_pem = base::Secret(
        ReadPem(settings_.client_key_file, http::PemKind::kPrivateKey, "harvester_client_key"),
        "harvester_client_key");
    tls.client_cert_pem =
        ReadPem(settings_.client_cert_file, http::PemKind::kCertificate, "harvester_client_cert");
  }

  void Note(const std::string& credential) {
    connection_.credential += (connection_.credential.empty() ? "" : " and ") + credential;
  }
  void AddCertificate(const std::string& certificate) {
    if (server_ && server_->https) Note(certificate);  // it is a part of TLS
  }

  std::string ReadPem(const std::string& path, http::PemKind kind, std::string_view key) {
    return problems_.ValueOr(http::ReadPemFile(path, kind), key);
  }

  void ResolveCredentials() {
    if (ExplicitToken()) {
      // The kubeconfig's credentials are not used: its client certificate would take precedence
      // over the token at the API server.
      UseToken(settings_.token, settings_.token_file, "auth_token", kTokenFileKey);
      Note(settings_.token_file.empty() ? "the token of auth_token or HARVESTER_TOKEN"
                                        : "the token of auth_token_file " + settings_.token_file);
      return;
    }
    if (!context_ || !kubeconfig_credentials_) return;
    UserCredentials user = ReadUser(*context_, !ExplicitCertificate(), problems_);
    const std::string of_kubeconfig = " of kubeconfig " + settings_.kubeconfig_path;
    if (!user.client_cert_pem.empty()) AddCertificate("the client certificate" + of_kubeconfig);
    if (!user.username.empty()) Note("the user name and password" + of_kubeconfig);
    if (!user.token.empty() || !user.token_file.empty()) Note("the token" + of_kubeconfig);
    if (!ExplicitCertificate()) {
      connection_.curl.tls.client_cert_pem = std::move(user.client_cert_pem);
      connection_.curl.tls.client_key_pem = std::move(user.client_key_pem);
    }
    connection_.curl.basic_auth_user = std::move(user.username);
    connection_.curl.basic_auth_password = std::move(user.password);
    UseToken(user.token, user.token_file, kKubeconfigKey, kKubeconfigKey);
  }

  void UseToken(const base::Secret& given, const std::string& file, std::string_view token_key,
                std::string_view file_key) {
    const base::Secret token(std::string(base::TrimAsciiSpace(given.Reveal())),
                             std::string(token_key));
    if (!base::IsVisibleAscii(token.Reveal()) || (token.empty() && !given.empty())) {
      return problems_.Add(
          token_key, "the token is empty or contains a character that is not allowed in a header");
    }
    if (!file.empty()) {
      CheckTokenFile(file, file_key);
      // client-go rereads a token file regularly, and uses the entry's `token` until the file is
      // readable (kubernetes/client-go:tools/clientcmd/client_config.go).
      connection_.token = http::MakeFileToken(file, token);
    } else if (!token.empty()) {
      connection_.token = http::MakeStaticToken(token);
    }
  }

  // The file may be written later, or be empty for a moment; a directory can never become a token.
  void CheckTokenFile(const std::string& path, std::string_view key) {
    const absl::StatusOr<std::string> text = base::ReadFile(path);
    const bool is_missing = absl::IsNotFound(text.status());
    // The configuration has already warned about a missing auth_token_file.
    if (is_missing && key == kTokenFileKey) return;
    if (!text.ok() && !is_missing) {
      problems_.Add(key, base::Message(text.status()));
    } else if (is_missing || base::TrimAsciiSpace(*text).empty()) {
      connection_.warnings.push_back(std::string(key) + ": the token file " + path +
                                     (is_missing ? " does not exist yet" : " is still empty"));
    }
  }

  void Warn() {
    const bool secret = connection_.token != nullptr || !connection_.curl.basic_auth_user.empty();
    if (!secret && connection_.curl.tls.client_cert_pem.empty()) {
      connection_.warnings.push_back(
          "no credentials for Harvester: set auth_token, auth_token_file or harvester_kubeconfig, "
          "unless a proxy adds them");
    }
    const http::TlsOptions& tls = connection_.curl.tls;
    if (tls.skip_verify && server_->https) {
      connection_.warnings.push_back(
          std::string(settings_.skip_verify ? "harvester_skip_verify"
                                            : "insecure-skip-tls-verify in the kubeconfig") +
          ": Harvester's certificate is not verified: an attacker on the network can read the "
          "token; " +
          (tls.ca_pem.empty() ? "set harvester_ca_cert" : "remove it, a CA is given"));
    }
    const bool tls_given = settings_.skip_verify || !settings_.ca_cert_file.empty() ||
                           ExplicitCertificate() || !settings_.tls_server_name.empty();
    if (tls_given && !server_->https) {
      connection_.warnings.push_back(
          "harvester_url: is not https://, so the TLS settings have no effect");
    }
    if (secret && !server_->https && !http::IsLoopback(server_->host)) {
      connection_.warnings.push_back(
          "harvester_url: Harvester's credentials are sent to " + server_->Url() +
          " over plain http, where anybody on the network can read them: use https");
    }
  }

  const config::HarvesterSettings& settings_;
  http::Problems problems_;
  Connection connection_;
  std::optional<KubeconfigContext> context_;
  ClusterSettings cluster_;
  std::optional<http::BaseUrl> server_;
  bool kubeconfig_credentials_ = true;
};

}  // namespace

absl::StatusOr<Connection> ResolveConnection(const config::HarvesterSettings& settings) {
  return Resolver(settings).Resolve();
}

}  // namespace nomad_harvester::kube
