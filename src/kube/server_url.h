// SPDX-License-Identifier: Apache-2.0
// Parses the address of an API server, to find the host and port to which credentials belong.
#ifndef NOMAD_HARVESTER_SRC_KUBE_SERVER_URL_H_
#define NOMAD_HARVESTER_SRC_KUBE_SERVER_URL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace nomad_harvester::kube {

struct ServerUrl {
  std::string text;  // without trailing slashes
  bool https = false;
  std::string host;  // lower case, without brackets or a final dot
  int port = 0;      // the scheme's default if the URL has none

  bool SameServer(const ServerUrl& other) const { return host == other.host && port == other.port; }
  bool IsLoopback() const;
};

// "https://host[:port][/prefix]" or http. INVALID_ARGUMENT describes the problem and never repeats
// the text, which may contain a password.
absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_SERVER_URL_H_
