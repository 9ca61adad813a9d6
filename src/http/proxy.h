// SPDX-License-Identifier: Apache-2.0
// Chooses the proxy of a transport.
#ifndef NOMAD_HARVESTER_SRC_HTTP_PROXY_H_
#define NOMAD_HARVESTER_SRC_HTTP_PROXY_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base_url.h"

namespace nomad_harvester::http {

struct ProxyChoice {
  // A proxy, or empty for none; unset: libcurl consults the environment.
  std::optional<std::string> url;
};

// `configured` is the proxy of the options; it overrides NO_PROXY, as in client-go
// (kubernetes/client-go:tools/clientcmd/client_config.go). `no_proxy`: the list in the environment.
//
// INVALID_ARGUMENT if the proxy's address is invalid; the message omits it, because it may hold a
// password.
absl::StatusOr<ProxyChoice> ChooseProxy(const BaseUrl& url, const std::string& configured,
                                        std::string_view no_proxy);

// Whether a NO_PROXY list names the host: "*", a domain (with its subdomains), an address or a
// network in CIDR notation.
bool NoProxyMatches(std::string_view list, const std::string& host);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_PROXY_H_
