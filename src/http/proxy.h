// SPDX-License-Identifier: Apache-2.0
// Chooses the proxy of a transport.
#ifndef NOMAD_HARVESTER_HTTP_PROXY_H_
#define NOMAD_HARVESTER_HTTP_PROXY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <curl/curl.h>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/http/base_url.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

struct Proxy {
  // "http://proxy:3128": with the port, and without user name and password, so that errors can
  // quote it. Empty: no proxy.
  std::string url;
  std::string user;
  base::Secret password;
  // LoginOf(user, password), kept so that it is recognised in texts (rule P3). Empty: no
  // credentials are sent.
  base::Secret login;
  // A user name without a password is also a secret; kept for the same reason.
  base::Secret lone_user;
};

// Returns the secret to keep so that texts do not show the login: "user:password", either of which
// may be empty. Without a password it is only the base64 form that is sent, because ordinary texts
// may contain the name and its colon.
base::Secret LoginOf(const std::string& user, const std::string& password);

// Returns the value of a variable; empty if it is not set.
using ProxyEnvironment = std::function<std::string(const std::string& name)>;
// That of this process.
std::string EnvironmentValue(const std::string& name);

// Chooses the proxy for `url`. `configured`, from the options, overrides NO_PROXY, as in client-go
// (kubernetes/client-go:tools/clientcmd/client_config.go). If it is empty, the environment decides:
// https_proxy, HTTPS_PROXY, all_proxy or ALL_PROXY for https; http_proxy, all_proxy or ALL_PROXY
// for http. The first non-empty variable is used, as in libcurl, except for hosts in NO_PROXY and
// addresses of this machine, as in Go.
//
// INVALID_ARGUMENT, with the variable's name, if the proxy's address is invalid. The message omits
// the address, because it may contain a password.
absl::StatusOr<Proxy> ChooseProxy(const BaseUrl& url, const std::string& configured,
                                  const ProxyEnvironment& environment);

// True if a NO_PROXY list names the host, as Go's clients read it
// (golang/net:http/httpproxy/proxy.go): "*", a domain (with its subdomains), ".domain" or
// "*.domain" (the subdomains alone), an address, each of them also with ":port"; or a network in
// CIDR notation.
bool NoProxyMatches(std::string_view list, const std::string& host, std::uint16_t port);

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Returns an empty string if the URL lacks the part, or if it cannot be expressed in the form of
// `flags`.
inline std::string UrlPart(const UrlHandle& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

// Returns what stands between "://" and the path, query or fragment, as it was written. Requires
// "://".
inline std::string AuthorityOf(const std::string& text) {
  const std::size_t begin = text.find("://") + 3;
  return text.substr(begin, text.find_first_of("/?#", begin) - begin);
}

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_PROXY_H_
