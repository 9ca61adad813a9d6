// SPDX-License-Identifier: Apache-2.0
// What an error of libcurl means to the caller.
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
  std::string server_name;  // the name that the certificate has to hold
  bool connected = false;   // the connection, TLS included, had been made
  base::Duration connect_timeout{};
};

// UNAVAILABLE, FAILED_PRECONDITION (TLS), RESOURCE_EXHAUSTED or INVALID_ARGUMENT, as the contract
// of HttpTransport says. The text holds no credentials.
absl::Status CurlErrorStatus(const CurlFailure& failure);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_CURL_ERROR_H_
