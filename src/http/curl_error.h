// SPDX-License-Identifier: Apache-2.0
// Maps errors of libcurl to statuses.
#ifndef NOMAD_HARVESTER_SRC_HTTP_CURL_ERROR_H_
#define NOMAD_HARVESTER_SRC_HTTP_CURL_ERROR_H_

#include <string>

#include <curl/curl.h>

#include "nomad_harvester/base/time.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

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

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_ERROR_H_
