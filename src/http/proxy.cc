// SPDX-License-Identifier: Apache-2.0
#include "proxy.h"

#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <memory>

#include <curl/curl.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::http {
namespace {

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  unsigned int bits = 0;  // 32 or 128
};

std::optional<Address> ParseAddress(std::string_view text) {
  const std::string copy(text);
  Address address;
  address.bits = 32;
  if (inet_pton(AF_INET, copy.c_str(), address.bytes.data()) == 1) return address;
  address.bits = 128;
  if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

bool SamePrefix(const Address& a, const Address& b, unsigned int bits) {
  for (unsigned int i = 0; i < bits; ++i) {
    const unsigned int shift = 7 - i % 8;
    if ((a.bytes.at(i / 8) >> shift & 1U) != (b.bytes.at(i / 8) >> shift & 1U)) return false;
  }
  return true;
}

bool NetworkHolds(std::string_view pattern, const Address& address) {
  const std::size_t slash = pattern.find('/');
  const std::optional<Address> network = ParseAddress(pattern.substr(0, slash));
  if (!network || network->bits != address.bits) return false;
  if (slash == std::string_view::npos) return SamePrefix(*network, address, address.bits);
  const absl::StatusOr<std::int64_t> length = base::ParseInt(pattern.substr(slash + 1));
  if (!length.ok() || *length < 0 || *length > address.bits) return false;
  return SamePrefix(*network, address, static_cast<unsigned int>(*length));
}

bool DomainHolds(std::string_view pattern, std::string_view host) {
  if (!pattern.empty() && pattern.front() == '.') pattern.remove_prefix(1);
  if (pattern.empty() || host.size() < pattern.size()) return false;
  const std::size_t rest = host.size() - pattern.size();
  if (rest > 0 && host[rest - 1] != '.') return false;
  return base::EqualsIgnoreCase(host.substr(rest), pattern);
}

bool PatternMatches(std::string_view pattern, const std::string& host) {
  if (pattern == "*") return true;
  if (const std::optional<Address> address = ParseAddress(host)) {
    return NetworkHolds(pattern, *address);
  }
  return DomainHolds(pattern, host);
}

bool IsProxyUrl(const std::string& text, std::string* scheme) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  if (url == nullptr ||
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return false;
  }
  char* part = nullptr;
  if (curl_url_get(url.get(), CURLUPART_SCHEME, &part, 0) != CURLUE_OK) return false;
  *scheme = part;
  curl_free(part);
  return true;
}

}  // namespace

bool NoProxyMatches(std::string_view list, const std::string& host) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view pattern = base::TrimAsciiSpace(list.substr(0, comma));
    if (!pattern.empty() && PatternMatches(pattern, host)) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

absl::StatusOr<ProxyChoice> ChooseProxy(const BaseUrl& url, const std::string& configured,
                                        std::string_view no_proxy) {
  if (url.is_socket()) return ProxyChoice{""};
  if (configured.empty()) {
    // Go's clients do not use the environment's proxy for loopback addresses
    // (golang/net:http/httpproxy/proxy.go, useProxy), so that they reach a local Nomad agent;
    // libcurl would use the proxy. NO_PROXY is matched here because libcurl would compare it with
    // the TLS server name if one replaces the host.
    if (IsLoopback(url.host) || NoProxyMatches(no_proxy, url.host)) return ProxyChoice{""};
    return ProxyChoice{};
  }
  std::string scheme;
  if (!IsProxyUrl(configured, &scheme) ||
      (scheme != "http" && scheme != "https" && scheme != "socks5" && scheme != "socks5h")) {
    return base::InvalidArgument(
        "the proxy's address is not a URL that begins with http://, https:// or socks5://");
  }
  // In Go the proxy resolves names in both cases (golang/net:internal/socks/client.go).
  if (scheme == "socks5") return ProxyChoice{"socks5h" + configured.substr(scheme.size())};
  return ProxyChoice{configured};
}

}  // namespace nomad_harvester::http
