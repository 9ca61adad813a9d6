// SPDX-License-Identifier: Apache-2.0
// The address of a server.
#ifndef NOMAD_HARVESTER_HTTP_BASE_URL_H_
#define NOMAD_HARVESTER_HTTP_BASE_URL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

struct BaseUrl {
  bool https = false;
  std::string host;        // without the brackets of an IPv6 address; empty for a socket
  std::uint16_t port = 0;  // the default of the scheme if the URL names none
  std::string authority;   // as in a Host header: without a default port, IPv6 in brackets
  std::string path;        // the prefix of every target: empty, or "/k8s/clusters/c-1"
  std::string socket;      // the path of a unix socket; then everything above is unset

  bool is_socket() const { return !socket.empty(); }
  // True if scheme, host and port are the same, in any spelling. Credentials are only sent to the
  // same server. The scheme matters, because credentials for https must not be sent in the clear.
  bool SameServer(const BaseUrl& other) const;
  // For errors: "https://host:port", or "unix:///path". Always has the port.
  std::string Text() const;
  // The address itself: "https://host[:port][/prefix]", without a final slash, or "unix:///path".
  std::string Url() const;
};

// INVALID_ARGUMENT; the message omits the text, which may contain credentials.
absl::StatusOr<BaseUrl> ParseBaseUrl(const std::string& text);

// "host", "[2001:db8::1]".
std::string BracketedHost(const std::string& host);
// True for "localhost" and addresses of the loopback networks.
bool IsLoopback(const std::string& host);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_BASE_URL_H_
