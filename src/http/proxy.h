// SPDX-License-Identifier: Apache-2.0
// Chooses the proxy of a transport.
#ifndef NOMAD_HARVESTER_SRC_HTTP_PROXY_H_
#define NOMAD_HARVESTER_SRC_HTTP_PROXY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/base_url.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

struct Proxy {
  // "http://proxy:3128", with the port and without user name and password: also for errors. Empty:
  // no proxy.
  std::string url;
  std::string user;
  base::Secret password;
  // LoginOf user and password, held to be recognised in texts (rule P3). Empty: none is sent.
  base::Secret login;
  // A user name without a password is one; held for the same reason.
  base::Secret lone_user;
};

// To hold, so that texts do not show it: "user:password", of which either may be empty. Without a
// password only as it travels, since the name and its colon are found in ordinary texts.
base::Secret LoginOf(const std::string& user, const std::string& password);

// The value of a variable; empty if it is not set.
using ProxyEnvironment = std::function<std::string(const std::string& name)>;

// The proxy for `url`. `configured` is that of the options; it overrides NO_PROXY, as in client-go
// (kubernetes/client-go:tools/clientcmd/client_config.go). Without it: https_proxy, HTTPS_PROXY,
// all_proxy or ALL_PROXY for https, http_proxy, all_proxy or ALL_PROXY for http, the first one that
// is not empty, as in libcurl; NO_PROXY and addresses of this machine bypass it, as in Go.
//
// INVALID_ARGUMENT, with the variable's name, if the address is invalid; the message omits it,
// because it may hold a password.
absl::StatusOr<Proxy> ChooseProxy(const BaseUrl& url, const std::string& configured,
                                  const ProxyEnvironment& environment);

// Whether a NO_PROXY list names the host, as Go's clients read it
// (golang/net:http/httpproxy/proxy.go): "*", a domain (with its subdomains), ".domain" or
// "*.domain" (the subdomains alone), an address, each of them also with ":port"; or a network in
// CIDR notation.
bool NoProxyMatches(std::string_view list, const std::string& host, std::uint16_t port);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_PROXY_H_
