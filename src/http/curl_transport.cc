// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/curl_transport.h"

#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "nomad_harvester/base/freed_by.h"
#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/connection_parts.h"

#include "curl_exchange.h"
#include "proxy.h"
#include "request_text.h"

namespace nomad_harvester::http {
namespace {

// Initialises libcurl once, and ignores SIGPIPE unless a handler is installed: OpenSSL uses
// write(2), and with CURLOPT_NOSIGNAL libcurl leaves SIGPIPE alone, so that a broken connection
// would end the process.
void InitCurl() {
  static std::once_flag once;
  std::call_once(once, [] {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    struct sigaction action {};
    if (sigaction(SIGPIPE, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  });
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

using Bio = std::unique_ptr<BIO, base::FreedBy<BIO_free_all>>;

Bio ReadOnly(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Checked here, because libcurl would report a wrong pair only when it sends a request.
absl::Status CheckClientPair(const TlsOptions& tls) {
  const std::unique_ptr<X509, base::FreedBy<X509_free>> certificate(
      PEM_read_bio_X509(ReadOnly(tls.client_cert_pem).get(), nullptr, nullptr, nullptr));
  // The empty passphrase keeps OpenSSL from asking for one on the terminal.
  std::string passphrase;
  const std::unique_ptr<EVP_PKEY, base::FreedBy<EVP_PKEY_free>> key(PEM_read_bio_PrivateKey(
      ReadOnly(tls.client_key_pem.Reveal()).get(), nullptr, nullptr, passphrase.data()));
  const bool are_a_pair = certificate != nullptr && key != nullptr &&
                          X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (certificate == nullptr) return base::InvalidArgument("the client certificate is broken");
  if (key == nullptr) return base::InvalidArgument("the key of the client certificate is broken");
  if (are_a_pair) return absl::OkStatus();
  return base::InvalidArgument("the key is not that of the client certificate");
}

absl::Status CheckTexts(const CurlOptions& options) {
  // RFC 7617: a user name cannot have a colon.
  if (options.basic_auth_user.find(':') != std::string::npos) {
    return base::InvalidArgument("a user name for basic authentication cannot hold a colon");
  }
  if (HoldsControlCharacter(options.basic_auth_user) ||
      HoldsControlCharacter(options.basic_auth_password.Reveal())) {
    return base::InvalidArgument("user name or password hold a control character");
  }
  const std::string& server_name = options.tls.server_name;
  if (!base::IsVisibleAscii(server_name) ||
      server_name.find_first_of("/@?#\\") != std::string::npos) {
    return base::InvalidArgument("the TLS server name is not a host name");
  }
  return absl::OkStatus();
}

// libcurl 7.88 takes the name for SNI and verification only from the URL. Therefore a configured
// server name is put into the URL, the real host into CURLOPT_CONNECT_TO, and the real authority
// into the Host header.
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
    endpoint->request_url = url.Url();
    return;
  }
  endpoint->request_url = "https://" + BracketedHost(server_name) + port + url.path;
  endpoint->connect_to = "::" + BracketedHost(url.host) + port;
}

absl::StatusOr<Endpoint> MakeEndpoint(CurlOptions options) {
  NH_RETURN_IF_ERROR(CheckTexts(options));
  Endpoint endpoint;
  NH_ASSIGN_OR_RETURN(endpoint.url, ParseBaseUrl(options.base_url));
  NH_ASSIGN_OR_RETURN(endpoint.proxy,
                      ChooseProxy(endpoint.url, options.proxy_url, &EnvironmentValue));
  endpoint.basic_login = LoginOf(options.basic_auth_user, options.basic_auth_password.Reveal());
  const bool https_proxy = endpoint.proxy.url.starts_with("https:");
  const bool uses_tls = endpoint.url.https || https_proxy;
  if (uses_tls && !options.tls.skip_verify) {
    NH_ASSIGN_OR_RETURN(endpoint.ca_pem, ChooseCas(options.tls));
  }
  if (uses_tls && !options.tls.client_cert_pem.empty()) {
    NH_RETURN_IF_ERROR(CheckClientPair(options.tls));
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
    absl::StatusOr<HttpResponse> outcome = SendOnce(context, request);
    if (outcome.ok()) return outcome;
    return base::Annotate(outcome.status(), RequestText(request));
  }

 private:
  absl::StatusOr<HttpResponse> SendOnce(const runtime::Context& context,
                                        const HttpRequest& request) {
    NH_RETURN_IF_ERROR(context.Check());
    std::unique_ptr<CurlHandles> handles = Take();
    if (handles == nullptr) return base::Unavailable("out of memory for another connection");
    absl::StatusOr<HttpResponse> outcome = Exchange(context, endpoint_, *handles, request);
    // The handles of a failed transfer are dropped: they may remember that a name was not found.
    if (!outcome.ok()) return outcome;
    std::unique_ptr<CurlHandles> ended;  // closed without the mutex
    const base::MutexLock lock(mutex_);
    idle_.push_back(std::move(handles));
    // The handles at the front have been idle longest.
    if (idle_.size() > 1 && HasInput(*idle_.front())) {
      ended = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
    return outcome;
  }

  // Takes the most recently used handles, so that few concurrent requests need few connections.
  // Null if there is no memory for new ones.
  std::unique_ptr<CurlHandles> Take() {
    {
      const base::MutexLock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<CurlHandles> handles = std::move(idle_.back());
        idle_.pop_back();
        return handles;
      }
    }
    auto handles = std::make_unique<CurlHandles>();
    if (handles->multi == nullptr || handles->easy == nullptr) return nullptr;
    curl_multi_setopt(handles->multi.get(), CURLMOPT_MAXCONNECTS, 1L);
    return handles;
  }

  const Endpoint endpoint_;
  base::Mutex mutex_;
  std::vector<std::unique_ptr<CurlHandles>> idle_ NH_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<HttpTransport>> MakeCurlTransport(CurlOptions options) {
  InitCurl();
  NH_ASSIGN_OR_RETURN(Endpoint endpoint, MakeEndpoint(std::move(options)));
  return std::make_shared<CurlTransport>(std::move(endpoint));
}

}  // namespace nomad_harvester::http
