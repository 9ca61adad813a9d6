// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/base_url.h"

#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <string_view>
#include <sys/un.h>

#include <curl/curl.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_split.h"
#include "proxy.h"

namespace nomad_harvester::http {
namespace {

constexpr std::string_view kUnixScheme = "unix://";

bool IsUnixUrl(std::string_view text) {
  return base::EqualsIgnoreCase(text.substr(0, kUnixScheme.size()), kUnixScheme);
}

absl::Status Wrong(std::string_view what) {
  return base::InvalidArgument("the address " + std::string(what));
}

absl::StatusOr<BaseUrl> ParseSocket(const std::string& text) {
  BaseUrl url;
  url.socket = text.substr(kUnixScheme.size());
  if (url.socket.size() < 2 || url.socket.front() != '/') {
    return Wrong("must name the absolute path of a socket: unix:///path/to.sock");
  }
  if (url.socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return Wrong(
        "names a socket whose path is longer than the 107 characters a socket address "
        "can hold");
  }
  return url;
}

// Needed because libcurl also accepts one or three slashes instead of two.
absl::Status CheckScheme(const std::string& text) {
  const std::size_t colon = text.find("://");
  const std::string scheme = text.substr(0, colon);
  if (colon == std::string::npos ||
      (!base::EqualsIgnoreCase(scheme, "http") && !base::EqualsIgnoreCase(scheme, "https"))) {
    return Wrong("must begin with http://, https:// or unix://");
  }
  const std::size_t host = colon + 3;
  if (host == text.size() || text[host] == '/') return Wrong("names no host");
  return absl::OkStatus();
}

// Returns the bytes of an IPv4 or IPv6 address; empty if the text is not one.
std::string ParseAddress(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) {
    return {bytes.data(), sizeof(in_addr)};
  }
  const bool is_v6 = inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
  return is_v6 ? std::string(bytes.data(), bytes.size()) : "";
}

// True if `pattern`, an address or a network in CIDR notation, contains `address`, which
// ParseAddress returned.
bool NetworkHolds(std::string_view pattern, const std::string& address) {
  const std::size_t slash = pattern.find('/');
  const std::string network = ParseAddress(std::string(pattern.substr(0, slash)));
  if (address.empty() || network.size() != address.size()) return false;
  const auto longest = static_cast<std::int64_t>(8 * address.size());
  const absl::StatusOr<std::int64_t> bits =
      slash == std::string_view::npos ? longest : base::ParseInt(pattern.substr(slash + 1));
  if (!bits.ok() || *bits < 0 || *bits > longest) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*bits); ++i) {
    if (((network[i / 8] ^ address[i / 8]) & (0x80 >> i % 8)) != 0) return false;
  }
  return true;
}

// ".domain" and "*.domain" match only names below the domain; "domain" also matches itself.
bool DomainHolds(std::string_view pattern, std::string_view host) {
  if (pattern.starts_with("*.")) pattern.remove_prefix(1);
  if (pattern.empty() || host.size() < pattern.size()) return false;
  const std::size_t rest = host.size() - pattern.size();
  if (!base::EqualsIgnoreCase(host.substr(rest), pattern)) return false;
  return pattern.front() == '.' ? rest > 0 : rest == 0 || host[rest - 1] == '.';
}

// Removes a final ":port" and the brackets of an IPv6 address from the pattern. False if the
// pattern has another port than `port`.
bool TakePort(std::string_view* pattern, std::uint16_t port) {
  const std::size_t colon = pattern->rfind(':');
  const bool bracketed = pattern->starts_with('[');
  const bool has_port =
      colon != std::string_view::npos &&
      (bracketed ? colon > 0 && (*pattern)[colon - 1] == ']' : pattern->find(':') == colon);
  if (has_port) {
    const absl::StatusOr<std::int64_t> given = base::ParseInt(pattern->substr(colon + 1));
    if (!given.ok() || *given != port) return false;
    pattern->remove_suffix(pattern->size() - colon);
  }
  if (bracketed && pattern->ends_with(']')) *pattern = pattern->substr(1, pattern->size() - 2);
  return true;
}

std::string_view WithoutFinalDot(std::string_view host) {
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  return host;
}

}  // namespace

std::string BracketedHost(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

bool IsLoopback(const std::string& host) {
  const std::string address = ParseAddress(host);
  return base::EqualsIgnoreCase(host, "localhost") || NetworkHolds("127.0.0.0/8", address) ||
         NetworkHolds("::1", address);
}

bool BaseUrl::SameServer(const BaseUrl& other) const {
  return https == other.https && port == other.port &&
         base::EqualsIgnoreCase(WithoutFinalDot(host), WithoutFinalDot(other.host));
}

std::string BaseUrl::Text() const {
  if (is_socket()) return std::string(kUnixScheme) + socket;
  return (https ? "https://" : "http://") + BracketedHost(host) + ":" + std::to_string(port);
}

std::string BaseUrl::Url() const {
  return is_socket() ? Text() : (https ? "https://" : "http://") + authority + path;
}

absl::StatusOr<BaseUrl> ParseBaseUrl(const std::string& text) {
  if (text.empty()) return Wrong("is empty");
  if (!base::IsVisibleAscii(text)) {
    return Wrong("holds a space, a control character or a character outside ASCII");
  }
  if (IsUnixUrl(text)) return ParseSocket(text);

  NH_RETURN_IF_ERROR(CheckScheme(text));
  const UrlHandle handle(curl_url(), &curl_url_cleanup);
  if (handle == nullptr) return base::Internal("out of memory");
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK) {
    return Wrong(std::string("is not a URL of the form https://host[:port][/path]: ") +
                 curl_url_strerror(code));
  }
  if (!UrlPart(handle, CURLUPART_USER).empty() || !UrlPart(handle, CURLUPART_PASSWORD).empty()) {
    return Wrong("must not hold a user name or password: there are settings for them");
  }
  if (!UrlPart(handle, CURLUPART_ZONEID).empty()) {
    return Wrong(
        "has an IPv6 zone, which is not supported: a link-local address means something on one "
        "machine only, give another one");
  }
  if (AuthorityOf(text).find('%') != std::string::npos) {
    return Wrong("has a host with an escape, such as %2E: write the character itself");
  }
  if (text.find_first_of("?#") != std::string::npos) {
    return Wrong("must not have a query or a fragment");
  }

  BaseUrl url;
  url.https = UrlPart(handle, CURLUPART_SCHEME) == "https";
  url.host = UrlPart(handle, CURLUPART_HOST);
  if (url.host.size() > 2 && url.host.front() == '[') {
    url.host = url.host.substr(1, url.host.size() - 2);
  }
  NH_ASSIGN_OR_RETURN(const std::int64_t port,
                      base::ParseInt(UrlPart(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT)));
  if (port <= 0 || port > 65535) return Wrong("has a port outside 1 to 65535");
  url.port = static_cast<std::uint16_t>(port);
  url.authority = BracketedHost(url.host);
  if (url.port != (url.https ? 443 : 80)) url.authority += ":" + std::to_string(url.port);
  url.path = UrlPart(handle, CURLUPART_PATH);
  while (!url.path.empty() && url.path.back() == '/') url.path.pop_back();
  return url;
}

bool NoProxyMatches(std::string_view list, const std::string& host, std::uint16_t port) {
  const std::string address = ParseAddress(host);
  for (const absl::string_view entry : absl::StrSplit(base::ToAbsl(list), ',')) {
    std::string_view pattern = base::TrimAsciiSpace(base::ToStd(entry));
    if (pattern == "*") return true;
    if (!TakePort(&pattern, port)) continue;
    if (address.empty() ? DomainHolds(pattern, host) : NetworkHolds(pattern, address)) return true;
  }
  return false;
}

}  // namespace nomad_harvester::http
