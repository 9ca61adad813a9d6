// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/curl_transport.h"

#include <cstdlib>
#include <utility>

#include "nomad_harvester/base/status.h"

#include "ca_certificates.h"
#include "curl_exchange.h"
#include "curl_handles.h"
#include "endpoint.h"
#include "request_check.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

bool HoldsControlCharacter(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') return true;
  }
  return false;
}

absl::Status CheckClientCertificate(const TlsOptions& tls) {
  const std::string& key = tls.client_key_pem.Reveal();
  if (tls.client_cert_pem.empty() != key.empty()) {
    return base::InvalidArgument(
        "a client certificate and its key must be given together: one of them is missing");
  }
  if (key.empty()) return absl::OkStatus();
  if (CertificateBlocks(tls.client_cert_pem).empty()) {
    return base::InvalidArgument("the client certificate holds no PEM certificate");
  }
  if (key.find("PRIVATE KEY-----") == std::string::npos) {
    return base::InvalidArgument("the client key holds no PEM private key");
  }
  // OpenSSL would prompt for the passphrase on the terminal.
  if (key.find("ENCRYPTED") != std::string::npos) {
    return base::InvalidArgument("the client key is encrypted: give one without a passphrase");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChooseCas(const TlsOptions& tls) {
  if (tls.ca_pem.empty()) {
    absl::StatusOr<std::string> system = LoadSystemCas();
    if (system.ok()) return system;
    return base::InvalidArgument("TLS needs a CA certificate: none is given, and " +
                                 base::Message(system.status()));
  }
  std::string pem;
  for (const std::string& block : CertificateBlocks(tls.ca_pem)) pem += block;
  if (pem.empty()) return base::InvalidArgument("the CA certificate holds no PEM certificate");
  return pem;
}

absl::Status CheckTexts(const CurlOptions& options) {
  if (HoldsControlCharacter(options.user_agent)) {
    return base::InvalidArgument("the user agent holds a control character");
  }
  // RFC 7617: a user name cannot have a colon.
  if (options.basic_auth_user.find(':') != std::string::npos) {
    return base::InvalidArgument("a user name for basic authentication cannot hold a colon");
  }
  if (HoldsControlCharacter(options.basic_auth_user) ||
      HoldsControlCharacter(options.basic_auth_password.Reveal())) {
    return base::InvalidArgument("user name or password hold a control character");
  }
  for (const char c : options.tls.server_name) {
    if (c <= ' ' || c == '\x7f' || c == '/' || c == '@' || c == '?' || c == '#' || c == '\\') {
      return base::InvalidArgument("the TLS server name is not a host name");
    }
  }
  return absl::OkStatus();
}

// libcurl 7.88 takes the name for SNI and verification only from the URL. So a configured server
// name goes into the URL, the real host into CURLOPT_CONNECT_TO, and the real authority into the
// Host header.
void SetRequestUrl(Endpoint* endpoint) {
  const BaseUrl& url = endpoint->url;
  const std::string& server_name = endpoint->options.tls.server_name;
  if (url.is_socket()) {
    // The Host that Nomad's own client sends (hashicorp/nomad:api/api.go).
    endpoint->request_url = "http://127.0.0.1";
    return;
  }
  const std::string port = ":" + std::to_string(url.port);
  if (!url.https || server_name.empty()) {
    endpoint->request_url = (url.https ? "https://" : "http://") + url.authority + url.path;
    return;
  }
  endpoint->request_url = "https://" + BracketedHost(server_name) + port + url.path;
  endpoint->connect_to = "::" + BracketedHost(url.host) + port;
}

absl::StatusOr<Endpoint> MakeEndpoint(CurlOptions options) {
  NH_RETURN_IF_ERROR(CheckTexts(options));
  Endpoint endpoint;
  NH_ASSIGN_OR_RETURN(endpoint.url, ParseBaseUrl(options.base_url));
  // Lower case first, as in libcurl. Nothing in the process writes the environment.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  const char* no_proxy = std::getenv("no_proxy");
  if (no_proxy == nullptr) no_proxy = std::getenv("NO_PROXY");
  // NOLINTEND(concurrency-mt-unsafe)
  NH_ASSIGN_OR_RETURN(endpoint.proxy, ChooseProxy(endpoint.url, options.proxy_url,
                                                  no_proxy == nullptr ? "" : no_proxy));
  const bool https_proxy = endpoint.proxy.url && endpoint.proxy.url->rfind("https:", 0) == 0;
  if (endpoint.url.https) NH_RETURN_IF_ERROR(CheckClientCertificate(options.tls));
  if ((endpoint.url.https || https_proxy) && !options.tls.skip_verify) {
    NH_ASSIGN_OR_RETURN(endpoint.ca_pem, ChooseCas(options.tls));
  }
  endpoint.options = std::move(options);
  SetRequestUrl(&endpoint);
  return endpoint;
}

class CurlTransport final : public HttpTransport {
 public:
  explicit CurlTransport(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  absl::StatusOr<HttpResponse> Send(const runtime::Context& context,
                                    const HttpRequest& request) override {
    NH_RETURN_IF_ERROR(CheckRequest(request));
    absl::StatusOr<HttpResponse> outcome = Exchange(context, request);
    if (outcome.ok()) return outcome;
    return base::Annotate(outcome.status(), RequestText(request));
  }

 private:
  absl::StatusOr<HttpResponse> Exchange(const runtime::Context& context,
                                        const HttpRequest& request) {
    NH_RETURN_IF_ERROR(context.Check());
    NH_ASSIGN_OR_RETURN(const CurlPool::Lease handles, pool_.Take());
    return CurlExchange(endpoint_, *handles, request).Run(context);
  }

  const Endpoint endpoint_;
  CurlPool pool_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<HttpTransport>> MakeCurlTransport(CurlOptions options) {
  InitCurl();
  NH_ASSIGN_OR_RETURN(Endpoint endpoint, MakeEndpoint(std::move(options)));
  return std::make_shared<CurlTransport>(std::move(endpoint));
}

}  // namespace nomad_harvester::http
