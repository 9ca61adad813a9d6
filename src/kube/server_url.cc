// SPDX-License-Identifier: Apache-2.0
#include "server_url.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::kube {
namespace {

absl::Status ParsePort(std::string_view text, ServerUrl& url) {
  const absl::StatusOr<std::int64_t> port = base::ParseInt(text);
  if (!port.ok() || *port < 1 || *port > 65535) {
    return base::InvalidArgument("the port of the URL must be a number from 1 to 65535");
  }
  url.port = static_cast<int>(*port);
  return absl::OkStatus();
}

// Excludes everything that a URL library might read as another host, such as escapes and
// backslashes.
bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool IsIpv6Character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

// "host", "host:port", "[2001:db8::1]", "[2001:db8::1]:port".
absl::Status ParseAuthority(std::string_view authority, ServerUrl& url) {
  std::string_view host = authority;
  std::string_view rest;
  const bool bracketed = !authority.empty() && authority.front() == '[';
  if (bracketed) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) {
      return base::InvalidArgument("the URL's \"[\" has no \"]\"");
    }
    host = authority.substr(1, bracket - 1);
    rest = authority.substr(bracket + 1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    rest = authority.substr(colon);
  }
  url.host = base::AsciiLower(host);
  if (!url.host.empty() && url.host.back() == '.') url.host.pop_back();
  if (url.host.empty()) return base::InvalidArgument("the URL names no host");
  const bool readable =
      std::all_of(url.host.begin(), url.host.end(), bracketed ? IsIpv6Character : IsHostCharacter);
  if (!readable || (!rest.empty() && rest.front() != ':')) {
    return base::InvalidArgument("the URL's host cannot be read");
  }
  if (rest.empty()) return absl::OkStatus();
  return ParsePort(rest.substr(1), url);
}

}  // namespace

bool ServerUrl::IsLoopback() const {
  in_addr address{};
  const bool is_v4 = inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (is_v4 && ntohl(address.s_addr) >> 24 == 127);
}

absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text) {
  text = base::TrimAsciiSpace(text);
  const bool clean = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f;
  });
  if (!clean) {
    return base::InvalidArgument("the URL holds white space, control or non-ASCII characters");
  }
  const std::size_t colon = text.find("://");
  const std::string scheme =
      colon == std::string_view::npos ? "" : base::AsciiLower(text.substr(0, colon));
  if (scheme != "https" && scheme != "http") {
    return base::InvalidArgument("the URL must begin with https:// or http://");
  }
  ServerUrl url;
  url.https = scheme == "https";
  url.port = url.https ? 443 : 80;
  const std::string_view rest = text.substr(colon + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return base::InvalidArgument("the URL must have no query and no fragment");
  }
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.find('@') != std::string_view::npos) {
    return base::InvalidArgument("the URL must hold no user name or password");
  }
  NH_RETURN_IF_ERROR(ParseAuthority(authority, url));
  url.text = text;
  while (url.text.back() == '/') url.text.pop_back();
  return url;
}

}  // namespace nomad_harvester::kube
