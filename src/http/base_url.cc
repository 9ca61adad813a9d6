// SPDX-License-Identifier: Apache-2.0
#include "base_url.h"

#include <arpa/inet.h>
#include <memory>
#include <netinet/in.h>
#include <string_view>
#include <sys/un.h>

#include <curl/curl.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

constexpr std::string_view kUnixScheme = "unix://";

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Returns "" if the URL has no such part.
std::string Part(const UrlHandle& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

// Omits a text with '@' from the message, because it may hold a password.
absl::Status Wrong(const std::string& text, std::string_view what) {
  const bool quotable = text.find('@') == std::string::npos;
  return base::InvalidArgument("the address " + (quotable ? "\"" + text + "\" " : "") +
                               std::string(what));
}

absl::StatusOr<BaseUrl> ParseSocket(const std::string& text) {
  BaseUrl url;
  url.socket = text.substr(kUnixScheme.size());
  if (url.socket.empty() || url.socket.front() != '/') {
    return Wrong(text, "must name the absolute path of a socket: unix:///path/to.sock");
  }
  if (url.socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return Wrong(text,
                 "names a socket whose path is longer than the 107 characters a socket "
                 "address can hold");
  }
  return url;
}

// Needed because libcurl also accepts one or three slashes instead of two.
absl::Status CheckScheme(const std::string& text) {
  const std::size_t colon = text.find("://");
  const std::string scheme = text.substr(0, colon);
  if (colon == std::string::npos ||
      (!base::EqualsIgnoreCase(scheme, "http") && !base::EqualsIgnoreCase(scheme, "https"))) {
    return Wrong(text, "must begin with http://, https:// or unix://");
  }
  const std::size_t host = colon + 3;
  if (host == text.size() || text[host] == '/') return Wrong(text, "names no host");
  return absl::OkStatus();
}

absl::Status CheckParts(const std::string& text, const UrlHandle& url) {
  if (!Part(url, CURLUPART_USER).empty() || !Part(url, CURLUPART_PASSWORD).empty()) {
    return base::InvalidArgument(
        "the address must not hold a user name or password: there are settings for them");
  }
  if (text.find('?') != std::string::npos || text.find('#') != std::string::npos) {
    return Wrong(text, "must not have a query or a fragment");
  }
  return absl::OkStatus();
}

}  // namespace

std::string BracketedHost(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

bool IsLoopback(const std::string& host) {
  if (base::EqualsIgnoreCase(host, "localhost")) return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

std::string BaseUrl::Text() const {
  if (is_socket()) return std::string(kUnixScheme) + socket;
  return (https ? "https://" : "http://") + BracketedHost(host) + ":" + std::to_string(port);
}

absl::StatusOr<BaseUrl> ParseBaseUrl(const std::string& text) {
  if (text.empty()) return base::InvalidArgument("the address is empty");
  for (const char c : text) {
    if (c <= ' ' || c == '\x7f') {
      return base::InvalidArgument(
          "the address holds a space, a control character or a character outside ASCII");
    }
  }
  if (text.compare(0, kUnixScheme.size(), kUnixScheme) == 0) return ParseSocket(text);

  NH_RETURN_IF_ERROR(CheckScheme(text));
  const UrlHandle handle(curl_url(), &curl_url_cleanup);
  if (handle == nullptr) return base::Internal("out of memory");
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK) {
    return Wrong(text, std::string("is not a URL of the form https://host[:port][/path]: ") +
                           curl_url_strerror(code));
  }
  NH_RETURN_IF_ERROR(CheckParts(text, handle));

  BaseUrl url;
  url.https = Part(handle, CURLUPART_SCHEME) == "https";
  url.host = Part(handle, CURLUPART_HOST);
  if (url.host.size() > 2 && url.host.front() == '[') {
    url.host = url.host.substr(1, url.host.size() - 2);
  }
  NH_ASSIGN_OR_RETURN(const std::int64_t port,
                      base::ParseInt(Part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT)));
  if (port <= 0 || port > 65535) return Wrong(text, "has a port outside 1 to 65535");
  url.port = static_cast<std::uint16_t>(port);
  url.authority = BracketedHost(url.host);
  if (url.port != (url.https ? 443 : 80)) url.authority += ":" + std::to_string(url.port);
  url.path = Part(handle, CURLUPART_PATH);
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

}  // namespace nomad_harvester::http
