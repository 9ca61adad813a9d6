// SPDX-License-Identifier: Apache-2.0
// Sends one request and receives its reply, using handles that the caller lends.
#ifndef NOMAD_HARVESTER_HTTP_CURL_EXCHANGE_H_
#define NOMAD_HARVESTER_HTTP_CURL_EXCHANGE_H_

#include <memory>
#include <string>

#include <curl/curl.h>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/message.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proxy.h"

namespace nomad_harvester::http {

// The checked options of a transport, shared by all its requests.
struct Endpoint {
  BaseUrl url;
  std::string request_url;  // scheme, host, port and prefix, to which a target is appended
  std::string connect_to;   // libcurl's form of the real host and port; empty: those of the URL
  std::string ca_pem;       // empty: nothing is verified, or no TLS
  Proxy proxy;
  // LoginOf(user, password), kept so that it is recognised in texts (rule P3). Empty: no
  // credentials are sent.
  base::Secret basic_login;
  CurlOptions options;
};

using CurlList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// The handles of one request in flight, all for one endpoint. The multi handle owns the connection;
// it is needed because only a multi handle can be woken from another thread. The easy handle keeps
// the options shared by all requests.
struct CurlHandles {
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi{curl_multi_init(),
                                                              &curl_multi_cleanup};
  CurlList connect_to{nullptr, &curl_slist_free_all};
  bool prepared = false;                 // the easy handle has those options
  curl_socket_t idle = CURL_SOCKET_BAD;  // the connection's socket between two requests
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{curl_easy_init(), &curl_easy_cleanup};
};

// True if the server has sent something or closed the connection since the last reply.
bool HasInput(const CurlHandles& handles);

// Blocks until the reply is complete. Returns the errors of HttpTransport.
absl::StatusOr<HttpResponse> Exchange(const runtime::Context& context, const Endpoint& endpoint,
                                      CurlHandles& handles, const HttpRequest& request);

struct CurlFailure {
  CURLcode code = CURLE_OK;
  std::string text;         // libcurl's error buffer; may be empty
  std::string peer;         // "https://host:port" or "unix:///path"
  std::string server_name;  // the name that the certificate must have
  bool connected = false;   // the connection, including TLS, was established
  base::Duration connect_timeout{};
  std::string proxy;        // as of Proxy::url; empty: none
  long connect_status = 0;  // the proxy's reply to CONNECT; 0: none
  long os_error = 0;        // errno of the last connect(); 0: none
};

// UNAVAILABLE, FAILED_PRECONDITION (TLS), RESOURCE_EXHAUSTED or INVALID_ARGUMENT, as defined by
// HttpTransport. The text contains no credentials.
absl::Status CurlErrorStatus(const CurlFailure& failure);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_CURL_EXCHANGE_H_
