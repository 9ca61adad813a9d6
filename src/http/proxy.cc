// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <curl/curl.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

// Go's default (golang/net:http/httpproxy and internal/socks). It applies only to SOCKS; libcurl
// would use it for HTTP proxies, too.
constexpr char kSocksPort[] = "1080";

absl::Status WrongProxy(const std::string& source, std::string_view what) {
  return base::InvalidArgument(source + ": the proxy's address " + std::string(what));
}

// The decoded part; nullopt if it holds a control character, which no header can carry.
std::optional<std::string> Decoded(const UrlHandle& url, CURLUPart part) {
  std::string text = UrlPart(url, part, CURLU_URLDECODE);
  if (text.empty() && !UrlPart(url, part).empty()) return std::nullopt;
  return text;
}

absl::StatusOr<Proxy> ParseProxy(const std::string& text, const std::string& source) {
  const std::size_t begin = text.find("://");
  // Taken from the text, because libcurl also accepts one or three slashes.
  std::string scheme = base::AsciiLower(text.substr(0, begin));
  const UrlHandle handle(curl_url(), &curl_url_cleanup);
  // libcurl would read the text up to a NUL.
  const bool is_url =
      begin != std::string::npos && text.find('\0') == std::string::npos && handle != nullptr &&
      curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) ==
          CURLUE_OK;
  if (!is_url ||
      (scheme != "http" && scheme != "https" && scheme != "socks5" && scheme != "socks5h")) {
    return WrongProxy(source, "is not a URL that begins with http://, https:// or socks5://");
  }
  // An unescaped '/', '?' or '#' in a password ends the authority, and part of the login would
  // become the host.
  const std::string authority = AuthorityOf(text);
  if (text.find('@', begin + 3 + authority.size()) != std::string::npos) {
    return WrongProxy(source,
                      "has an '@' after the host: write '/', '?', '#' and '@' of a user name or "
                      "password as %2F, %3F, %23 and %40");
  }
  const std::optional<std::string> user = Decoded(handle, CURLUPART_USER);
  std::optional<std::string> password = Decoded(handle, CURLUPART_PASSWORD);
  if (!user || !password) {
    return WrongProxy(source, "has a control character in its user name or password");
  }
  const std::string host = UrlPart(handle, CURLUPART_HOST);
  if (authority.empty() || host.empty()) return WrongProxy(source, "names no host");
  if (!UrlPart(handle, CURLUPART_ZONEID).empty()) {
    return WrongProxy(source, "has an IPv6 zone, which is not supported");
  }
  if (authority.find('%', authority.rfind('@') + 1) != std::string::npos) {
    return WrongProxy(source, "has a host with an escape, such as %2E: write the character itself");
  }
  std::string port = UrlPart(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  if (port.empty()) port = kSocksPort;
  // In Go the proxy resolves names in both cases (golang/net:internal/socks/client.go).
  if (scheme == "socks5") scheme = "socks5h";

  Proxy proxy;
  proxy.url = scheme + "://" + host + ":" + port;
  proxy.user = *user;
  proxy.login = LoginOf(*user, *password);
  if (password->empty()) proxy.lone_user = base::Secret(*user);
  proxy.password = base::Secret(*std::move(password));
  return proxy;
}

std::string FirstSet(const ProxyEnvironment& environment, std::initializer_list<const char*> names,
                     std::string* name) {
  for (const char* const candidate : names) {
    if (std::string value = environment(candidate); !value.empty()) {
      *name = candidate;
      return value;
    }
  }
  return "";
}

}  // namespace

base::Secret LoginOf(const std::string& user, const std::string& password) {
  if (user.empty() && password.empty()) return {};
  if (password.empty()) return base::Secret(base::Base64Encode(user + ":"));
  return base::Secret(user + ":" + password);
}

std::string EnvironmentValue(const std::string& name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in the process writes the environment.
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

absl::StatusOr<Proxy> ChooseProxy(const BaseUrl& url, const std::string& configured,
                                  const ProxyEnvironment& environment) {
  if (url.is_socket()) return Proxy();
  if (!configured.empty()) return ParseProxy(configured, "proxy-url");
  std::string name;
  const std::string no_proxy = FirstSet(environment, {"no_proxy", "NO_PROXY"}, &name);
  // Go's clients do not use the environment's proxy for loopback addresses
  // (golang/net:http/httpproxy/proxy.go, useProxy), so that they reach a local Nomad agent.
  if (IsLoopback(url.host) || NoProxyMatches(no_proxy, url.host, url.port)) return Proxy();
  // Not HTTP_PROXY, because a client of a CGI program can set it with a header.
  const std::string text =
      url.https
          ? FirstSet(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}, &name)
          : FirstSet(environment, {"http_proxy", "all_proxy", "ALL_PROXY"}, &name);
  if (text.empty()) return Proxy();
  // Both Go and libcurl accept "proxy:3128".
  return ParseProxy(text.find("://") == std::string::npos ? "http://" + text : text, name);
}

}  // namespace nomad_harvester::http
