// SPDX-License-Identifier: Apache-2.0
// The checked options of a transport, common to all its requests.
#ifndef NOMAD_HARVESTER_SRC_HTTP_ENDPOINT_H_
#define NOMAD_HARVESTER_SRC_HTTP_ENDPOINT_H_

#include "nomad_harvester/http/curl_transport.h"

#include "base_url.h"
#include "proxy.h"

namespace nomad_harvester::http {

struct Endpoint {
  BaseUrl url;
  std::string request_url;  // scheme, host, port and prefix, to which a target is appended
  std::string connect_to;   // libcurl's form of the real host and port; empty: those of the URL
  std::string ca_pem;       // empty: nothing is verified, or no TLS
  ProxyChoice proxy;
  CurlOptions options;
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_ENDPOINT_H_
