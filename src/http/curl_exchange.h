// SPDX-License-Identifier: Apache-2.0
// One request and its reply on leased handles.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_

#include <memory>
#include <string>

#include <curl/curl.h>

#include "nomad_harvester/http/base_url.h"
#include "nomad_harvester/http/curl_transport.h"
#include "nomad_harvester/http/message.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/statusor.h"
#include "proxy.h"

namespace nomad_harvester::http {

// The checked options of a transport, common to all its requests.
struct Endpoint {
  BaseUrl url;
  std::string request_url;  // scheme, host, port and prefix, to which a target is appended
  std::string connect_to;   // libcurl's form of the real host and port; empty: those of the URL
  std::string ca_pem;       // empty: nothing is verified, or no TLS
  Proxy proxy;
  // LoginOf user and password, held to be recognised in texts (rule P3). Empty: none is sent.
  base::Secret basic_login;
  CurlOptions options;
};

using CurlList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

// The handles of one request in flight, all of one endpoint: a multi handle, because only that can
// be woken from another thread, and its easy handle. The connection lives in the multi handle; the
// easy handle keeps the options that all requests have in common.
struct CurlHandles {
  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi{curl_multi_init(),
                                                              &curl_multi_cleanup};
  CurlList connect_to{nullptr, &curl_slist_free_all};
  bool prepared = false;                 // it has those options
  curl_socket_t idle = CURL_SOCKET_BAD;  // that of the connection, between two requests
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy{curl_easy_init(), &curl_easy_cleanup};
};

// Whether the server has said something since the last reply, or closed the connection.
bool HasInput(const CurlHandles& handles);

// Blocks until the reply is complete; errors as of HttpTransport.
absl::StatusOr<HttpResponse> Exchange(const runtime::Context& context, const Endpoint& endpoint,
                                      CurlHandles& handles, const HttpRequest& request);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_EXCHANGE_H_
