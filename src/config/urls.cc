// SPDX-License-Identifier: Apache-2.0
// Parses the addresses that the configuration accepts.
#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <variant>

#include "nomad_harvester/base/parse.h"

#include "absl/strings/ascii.h"
#include "values.h"

namespace nomad_harvester::config {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kUnix = "unix://";
constexpr std::size_t kMaxHost = 253;

bool HasPrefix(std::string_view text, std::string_view prefix) {
  return base::EqualsIgnoreCase(text.substr(0, prefix.size()), prefix);
}

bool IsVisible(char c) { return c > 0x20 && c < 0x7f; }

bool IsHostCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
}

bool IsHost(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHost && host.front() != '.' &&
         std::all_of(host.begin(), host.end(), IsHostCharacter);
}

// A sufficient check here, because a name with a port has only one colon.
bool IsIpv6(std::string_view address) {
  return std::count(address.begin(), address.end(), ':') >= 2 &&
         std::all_of(address.begin(), address.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) || c == ':' || c == '.';
         });
}

bool IsPort(std::string_view text) {
  const absl::StatusOr<std::int64_t> port = base::ParseInt(text);
  return port.ok() && *port >= 1 && *port <= 65535;
}

// "host", "host:port", "[v6]", "[v6]:port".
bool IsAuthority(std::string_view authority) {
  std::string_view rest;
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos || !IsIpv6(authority.substr(1, end - 1))) return false;
    rest = authority.substr(end + 1);
  } else {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    if (!IsHost(authority.substr(0, colon))) return false;
    rest = authority.substr(colon);
  }
  return rest.empty() || (rest.front() == ':' && IsPort(rest.substr(1)));
}

// Omits parts that may be secret: credentials, a signed query.
Fault UrlFault(const std::string& text, std::string what, std::string hint) {
  const bool may_hold_secret = text.find_first_of("@?#") != std::string::npos;
  return {std::move(what), std::move(hint), !may_hold_secret};
}

std::optional<std::size_t> SchemeLength(std::string_view url) {
  if (HasPrefix(url, kHttps)) return kHttps.size();
  if (HasPrefix(url, kHttp)) return kHttp.size();
  return std::nullopt;
}

}  // namespace

ValueOr<std::string> HttpUrl(const std::string& text) {
  constexpr char kExample[] = "write it such as \"https://10.0.0.1:6443\"";
  if (text.empty()) return Fault{"must not be empty", kExample, false};
  const std::optional<std::size_t> scheme = SchemeLength(text);
  if (!scheme) return UrlFault(text, "must begin with https:// or http://", kExample);
  const std::string_view rest = std::string_view(text).substr(*scheme);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) {
    return UrlFault(text, "must not hold a user or password",
                    "remove them; credentials have keys of their own");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return UrlFault(text, "must not have a query or fragment", "end it before '?' or '#'");
  }
  if (!IsAuthority(authority)) return UrlFault(text, "has no valid host and port", kExample);
  if (!std::all_of(rest.begin(), rest.end(), IsVisible)) {
    return UrlFault(text, "must not contain white space, control or non-ASCII characters",
                    kExample);
  }
  return text.substr(0, text.find_last_not_of('/') + 1);
}

ValueOr<std::string> NomadAddress(const std::string& text) {
  constexpr char kCure[] = "write http://HOST:PORT, https://HOST:PORT or unix:///PATH";
  if (!HasPrefix(text, kUnix)) {
    ValueOr<std::string> url = HttpUrl(text);
    if (Fault* const fault = std::get_if<Fault>(&url); fault != nullptr && !SchemeLength(text)) {
      return UrlFault(text, "must begin with http://, https:// or unix://", kCure);
    }
    return url;
  }
  const std::string_view path = std::string_view(text).substr(kUnix.size());
  if (path.size() < 2 || path.front() != '/' || std::any_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20;
      })) {
    return UrlFault(text, "must name an absolute path of a socket", kCure);
  }
  return text;
}

ValueOr<std::string> HostName(const std::string& text) {
  if (IsHost(text) || IsIpv6(text)) return text;
  return Fault{"must be a host name or an IP address", "write it without scheme and port"};
}

ValueOr<std::string> ListenAddress(const std::string& text) {
  const Fault fault{"must be an IP address of this machine, or localhost, and a port",
                    "write it such as \"127.0.0.1:9464\", \"0.0.0.0:9464\" or \"[::1]:9464\""};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !IsPort(std::string_view(text).substr(colon + 1))) return fault;
  std::string host = text.substr(0, colon);
  int family = AF_INET;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    family = AF_INET6;
  }
  in6_addr address{};
  const bool is_name = family == AF_INET && host == "localhost";
  if (is_name || inet_pton(family, host.c_str(), &address) == 1) return text;
  return fault;
}

}  // namespace nomad_harvester::config
