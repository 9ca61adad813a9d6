// SPDX-License-Identifier: Apache-2.0
// The address that a transport talks to.
#ifndef NOMAD_HARVESTER_SRC_HTTP_BASE_URL_H_
#define NOMAD_HARVESTER_SRC_HTTP_BASE_URL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace nomad_harvester::http {

struct BaseUrl {
  bool https = false;
  std::string host;        // without the brackets of an IPv6 address; empty for a socket
  std::uint16_t port = 0;  // the scheme's own if the URL names none
  std::string authority;   // as a Host header says it: a default port left out, IPv6 in brackets
  std::string path;        // the prefix of every target: empty, or "/k8s/clusters/c-1"
  std::string socket;      // the path of a unix socket; then everything above is unset

  bool is_socket() const { return !socket.empty(); }
  // For errors: "https://host:port", or "unix:///path". The port is always there.
  std::string Text() const;
};

// INVALID_ARGUMENT says what is wrong; a text that may hold credentials is not repeated.
absl::StatusOr<BaseUrl> ParseBaseUrl(const std::string& text);

// "host", "[2001:db8::1]".
std::string BracketedHost(const std::string& host);
// Whether this is "localhost" or an address of the loopback networks.
bool IsLoopback(const std::string& host);

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_SRC_HTTP_BASE_URL_H_
