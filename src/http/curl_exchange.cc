// SPDX-License-Identifier: Apache-2.0
#include "curl_exchange.h"

#include <algorithm>
#include <array>
#include <functional>
#include <poll.h>
#include <stop_token>
#include <string>
#include <utility>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "nomad_harvester/base/json_fields.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "request_text.h"

namespace nomad_harvester::http {
namespace {

constexpr std::size_t kMaxHeaderBytes = 256UL * 1024;
// Kubernetes' API server closes idle connections after 90 s
// (kubernetes/kubernetes:staging/src/k8s.io/apiserver/pkg/server/secure_serving.go): a request on
// an older connection would fail.
constexpr long kMaxIdleSeconds = 75;
constexpr long kKeepAliveIdleSeconds = 30;
constexpr long kKeepAliveIntervalSeconds = 10;

int PollMilliseconds(const runtime::Context& context) {
  constexpr base::Duration kLongest = std::chrono::minutes(1);
  const base::Duration left = std::min(context.Remaining(), kLongest);
  // Rounded up: otherwise waits of 0 ms would spin until the deadline.
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

// True if the certificate names a host or an address in subjectAltName.
bool NamesServer(X509* certificate) {
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool found = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const int type = sk_GENERAL_NAME_value(names, i)->type;
    found = found || type == GEN_DNS || type == GEN_IPADD;
  }
  GENERAL_NAMES_free(names);
  return found;
}

int CheckCertificate(int verified, X509_STORE_CTX* store) {
  const bool is_server = X509_STORE_CTX_get_error_depth(store) == 0;
  if (verified != 1 || !is_server || NamesServer(X509_STORE_CTX_get_current_cert(store))) {
    return verified;
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);  // see kNoServerName
  return 0;
}

// Without a name in subjectAltName, libcurl takes the common name instead (curl/curl:
// lib/vtls/openssl.c, Curl_verifyhost). Go does not (golang/go:src/crypto/x509/verify.go,
// VerifyHostname), nor may we: a CA may have let anyone choose it.
CURLcode RequireServerName(CURL*, void* context, void*) {
  SSL_CTX_set_verify(static_cast<SSL_CTX*>(context), SSL_VERIFY_PEER, &CheckCertificate);
  return CURLE_OK;
}

class Attachment {
 public:
  explicit Attachment(const CurlHandles& handles) : handles_(handles) {
    result_ = curl_multi_add_handle(handles_.multi.get(), handles_.easy.get());
  }
  // This closes the connection of an unfinished transfer.
  ~Attachment() { curl_multi_remove_handle(handles_.multi.get(), handles_.easy.get()); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  CURLMcode result() const { return result_; }

 private:
  const CurlHandles& handles_;
  CURLMcode result_;
};

// One transfer: call Run once, from one thread. All arguments must outlive this object.
class CurlExchange {
 public:
  CurlExchange(const Endpoint& endpoint, CurlHandles& handles, const HttpRequest& request)
      : endpoint_(endpoint), handles_(handles), request_(request) {}
  // The handle must not keep pointers into this object or the request.
  ~CurlExchange() {
    constexpr void* kNothing = nullptr;
    for (const CURLoption option : {CURLOPT_ERRORBUFFER, CURLOPT_HTTPHEADER, CURLOPT_POSTFIELDS,
                                    CURLOPT_HEADERDATA, CURLOPT_WRITEDATA}) {
      Set(option, kNothing);
    }
  }
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  absl::StatusOr<HttpResponse> Run(const runtime::Context& context) {
    if (!handles_.prepared) {
      SetConnection();
      SetTls();
      SetCommon();
      handles_.prepared = set_result_ == CURLE_OK;
    }
    SetRequest();
    SetHeaders();
    SetCallbacks();
    if (set_result_ != CURLE_OK) {
      return base::Internal(std::string("libcurl rejected an option: ") +
                            curl_easy_strerror(set_result_));
    }
    NH_ASSIGN_OR_RETURN(const CURLcode code, Drive(context));
    if (code != CURLE_OK) return Failure(code);
    long status = 0;
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    return std::move(response_);
  }

 private:
  void Append(const std::string& text, CurlList* list) {
    curl_slist* longer = curl_slist_append(list->get(), text.c_str());
    if (longer == nullptr) {
      set_result_ = CURLE_OUT_OF_MEMORY;
      return;
    }
    (void)list->release();  // the new list begins with the old one
    list->reset(longer);
  }

  template <typename T>
  void Set(CURLoption option, T value) {
    const CURLcode result = curl_easy_setopt(handles_.easy.get(), option, value);
    if (set_result_ == CURLE_OK) set_result_ = result;
  }

  void SetBlob(CURLoption option, const std::string& text) {
    curl_blob blob{};
    // libcurl only reads it; the type has no const form.
    blob.data = const_cast<char*>(text.data());
    blob.len = text.size();
    blob.flags = CURL_BLOB_NOCOPY;
    Set(option, &blob);
  }

  void SetConnection() {
    Set(CURLOPT_NOSIGNAL, 1L);
    // libcurl's resolver threads cannot be interrupted; without this a cancelled request would wait
    // until getaddrinfo returns (curl/curl:lib/asyn-thread.c, Curl_resolver_kill).
    Set(CURLOPT_QUICK_EXIT, 1L);
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_CONNECTTIMEOUT_MS,
        std::max<long>(1, static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(
                                                endpoint_.options.connect_timeout)
                                                .count())));
    Set(CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
    // Detects a peer that disappeared during a long poll.
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    Set(CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
    Set(CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
    if (endpoint_.url.is_socket()) {
      Set(CURLOPT_UNIX_SOCKET_PATH, endpoint_.url.socket.c_str());
    }
    if (!endpoint_.connect_to.empty()) {
      Append(endpoint_.connect_to, &handles_.connect_to);
      Set(CURLOPT_CONNECT_TO, handles_.connect_to.get());
    }
    // Also without a proxy: if unset, libcurl reads the environment. Separate options for the
    // credentials, because libcurl's error texts quote the address.
    Set(CURLOPT_PROXY, endpoint_.proxy.url.c_str());
    Set(CURLOPT_NOPROXY, "");
    if (!endpoint_.proxy.login.empty()) {
      Set(CURLOPT_PROXYUSERNAME, endpoint_.proxy.user.c_str());
      Set(CURLOPT_PROXYPASSWORD, endpoint_.proxy.password.Reveal().c_str());
    }
  }

  void SetTls() {
    const TlsOptions& tls = endpoint_.options.tls;
    const long verify = tls.skip_verify ? 0L : 1L;
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, verify);
    Set(CURLOPT_SSL_VERIFYHOST, verify * 2);
    Set(CURLOPT_PROXY_SSL_VERIFYPEER, verify);
    Set(CURLOPT_PROXY_SSL_VERIFYHOST, verify * 2);
    if (!tls.skip_verify) Set(CURLOPT_SSL_CTX_FUNCTION, &RequireServerName);
    // The blob replaces libcurl's built-in CA file, but not its built-in CA directory, which would
    // add the system's CAs to the configured ones (curl/curl:lib/vtls/openssl.c,
    // populate_x509_store).
    Set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    Set(CURLOPT_PROXY_CAPATH, static_cast<const char*>(nullptr));
    if (!endpoint_.ca_pem.empty()) {
      SetBlob(CURLOPT_CAINFO_BLOB, endpoint_.ca_pem);
      SetBlob(CURLOPT_PROXY_CAINFO_BLOB, endpoint_.ca_pem);
    }
    if (!tls.client_cert_pem.empty()) {
      SetBlob(CURLOPT_SSLCERT_BLOB, tls.client_cert_pem);
      SetBlob(CURLOPT_SSLKEY_BLOB, tls.client_key_pem.Reveal());
    }
  }

  // Sets the other options that all requests share.
  void SetCommon() {
    const CurlOptions& options = endpoint_.options;
    // Sends the target unchanged: libcurl would remove "/../".
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_USERAGENT, "nomad-harvester-autoscaler");
    Set(CURLOPT_ACCEPT_ENCODING, "gzip");
    Set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    // Sends a password without a user name, too, as Go's clients and curl do.
    if (!endpoint_.basic_login.empty()) {
      Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      Set(CURLOPT_USERNAME, options.basic_auth_user.c_str());
      Set(CURLOPT_PASSWORD, options.basic_auth_password.Reveal().c_str());
    }
    Set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(options.max_response_bytes));
    Set(CURLOPT_HEADERFUNCTION, &On<&CurlExchange::TakeHeader>);
    Set(CURLOPT_WRITEFUNCTION, &On<&CurlExchange::TakeBody>);
  }

  void SetRequest() {
    Set(CURLOPT_URL, (endpoint_.request_url + request_.target).c_str());
    if (request_.method == Method::kGet ||
        (request_.method == Method::kDelete && request_.body.empty())) {
      Set(CURLOPT_HTTPGET, 1L);
    } else {
      Set(CURLOPT_POST, 1L);
      Set(CURLOPT_POSTFIELDS, request_.body.data());
      Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    }
    const bool is_get = request_.method == Method::kGet;
    Set(CURLOPT_CUSTOMREQUEST, is_get ? nullptr : MethodName(request_.method).data());
    // If the server closes a reused connection without a reply, libcurl repeats the request,
    // whatever the method (curl/curl:lib/transfer.c, Curl_retry_request). If a server has sent data
    // on an idle connection, such as a load balancer's 408, libcurl takes it for the reply to the
    // next request (Go's client does not: golang/go:src/net/http/transport.go, is408Message).
    const bool fresh = request_.idempotency == Idempotency::kOnce || HasInput(handles_);
    Set(CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
  }

  void SetHeaders() {
    // libcurl's notation: "Name:" removes one of libcurl's headers, "Name;" sends an empty one.
    Append("Expect:", &headers_);
    if (!request_.headers.Find("Content-Type")) Append("Content-Type:", &headers_);
    // In that case the host of the URL is the TLS server name, see SetRequestUrl.
    if (!endpoint_.connect_to.empty()) Append("Host: " + endpoint_.url.authority, &headers_);
    for (const auto& [name, value] : request_.headers.fields()) {
      const bool blank = base::TrimAsciiSpace(value).empty();
      Append(blank ? name + ";" : name + ": " + value, &headers_);
    }
    Set(CURLOPT_HTTPHEADER, headers_.get());
  }

  void SetCallbacks() {
    Set(CURLOPT_ERRORBUFFER, error_.data());
    Set(CURLOPT_HEADERDATA, static_cast<void*>(this));
    Set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  }

  // Returns the outcome of the transfer, or an error if the context ended first.
  absl::StatusOr<CURLcode> Drive(const runtime::Context& context) {
    CURLM* const multi = handles_.multi.get();
    context_ = &context;
    const base::Duration limit = context.Remaining();
    const Attachment attachment(handles_);
    // Runs in the thread that cancels; a wake-up before the poll makes the poll return immediately.
    const std::stop_callback<std::function<void()>> wake(context.stop_token(),
                                                         [multi] { curl_multi_wakeup(multi); });
    CURLMcode result = attachment.result();
    int running = 1;
    while (result == CURLM_OK) {
      result = curl_multi_perform(multi, &running);
      if (result != CURLM_OK || running == 0) break;
      if (const absl::Status ended = context.Check(); !ended.ok()) {
        return TimedOut(ended, limit,
                        (IsConnected() ? "waiting for " : "connecting to ") + endpoint_.url.Text());
      }
      result = curl_multi_poll(multi, nullptr, 0, PollMilliseconds(context), nullptr);
    }
    if (result != CURLM_OK) {
      return base::Unavailable(std::string("libcurl cannot wait for the transfer: ") +
                               curl_multi_strerror(result));
    }
    // Must be queried now: once the easy handle has left the multi handle, libcurl no longer
    // reveals the socket.
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_ACTIVESOCKET, &handles_.idle);
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      if (code == CURLE_WRITE_ERROR && context.Done()) {
        return TimedOut(context.Check(), limit, "waiting for " + endpoint_.url.Text());
      }
      return code;
    }
    return base::Internal("libcurl ended a transfer without a result");
  }

  absl::Status Failure(CURLcode code) {
    if (too_large_) {
      return base::MakeStatus(absl::StatusCode::kResourceExhausted,
                              "the reply of " + endpoint_.url.Text() + " is larger than " +
                                  std::to_string(endpoint_.options.max_response_bytes) + " bytes");
    }
    CurlFailure failure;
    failure.code = code;
    failure.text = error_.data();
    failure.peer = endpoint_.url.Text();
    failure.server_name = endpoint_.options.tls.server_name.empty()
                              ? endpoint_.url.host
                              : endpoint_.options.tls.server_name;
    failure.connected = IsConnected();
    failure.proxy = endpoint_.proxy.url;
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_HTTP_CONNECTCODE, &failure.connect_status);
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_OS_ERRNO, &failure.os_error);
    failure.connect_timeout = endpoint_.options.connect_timeout;
    return CurlErrorStatus(failure);
  }

  bool IsConnected() const {
    // Zero until the connection is ready for the request.
    curl_off_t ready = 0;
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_PRETRANSFER_TIME_T, &ready);
    return ready > 0;
  }

  template <bool (CurlExchange::*Take)(std::string_view)>
  static std::size_t On(char* data, std::size_t size, std::size_t count, void* self) noexcept {
    try {
      return (static_cast<CurlExchange*>(self)->*Take)({data, size * count}) ? size * count : 0;
    } catch (...) {  // out of memory; libcurl is C and cannot propagate exceptions
      return 0;
    }
  }

  bool TakeHeader(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > kMaxHeaderBytes) {
      too_large_ = true;
      return false;
    }
    line = base::TrimAsciiSpace(line);
    if (line.empty()) {
      in_headers_ = false;  // trailers follow the body and are ignored
      return true;
    }
    // Another status line means that the previous block was a 1xx.
    if (!in_headers_ && line.substr(0, 5) == "HTTP/") {
      in_headers_ = true;
      response_.headers = Headers();
      return true;
    }
    const std::size_t colon = line.find(':');
    if (in_headers_ && colon != std::string_view::npos) {
      response_.headers.Add(line.substr(0, colon), base::TrimAsciiSpace(line.substr(colon + 1)));
    }
    return true;
  }

  bool TakeBody(std::string_view piece) {
    // Checked for each piece, because libcurl does not return while there is more to read.
    if (context_->Done()) return false;
    if (piece.size() > endpoint_.options.max_response_bytes - body_bytes_) {
      too_large_ = true;
      return false;
    }
    const bool is_first = body_bytes_ == 0;
    body_bytes_ += piece.size();
    if (is_first) list_ = ListOfReply();
    if (list_ == nullptr) {
      response_.body.append(piece);
      return true;
    }
    if (is_first) list_->Begin();
    list_->Write(piece);
    return true;
  }

  // The list that takes the body of this reply; null: the body goes into the response.
  base::JsonListReader* ListOfReply() const {
    long status = 0;
    curl_easy_getinfo(handles_.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299 ? request_.list : nullptr;
  }

  const Endpoint& endpoint_;
  CurlHandles& handles_;
  const HttpRequest& request_;
  CurlList headers_{nullptr, &curl_slist_free_all};
  CURLcode set_result_ = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> error_{};

  HttpResponse response_;
  bool in_headers_ = false;
  std::size_t header_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  base::JsonListReader* list_ = nullptr;
  bool too_large_ = false;
  const runtime::Context* context_ = nullptr;  // set by Drive
};

}  // namespace

bool HasInput(const CurlHandles& handles) {
  if (handles.idle == CURL_SOCKET_BAD) return false;
  pollfd waiting = {.fd = handles.idle, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) != 0;
}

absl::StatusOr<HttpResponse> Exchange(const runtime::Context& context, const Endpoint& endpoint,
                                      CurlHandles& handles, const HttpRequest& request) {
  return CurlExchange(endpoint, handles, request).Run(context);
}

}  // namespace nomad_harvester::http
