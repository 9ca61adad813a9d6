// SPDX-License-Identifier: Apache-2.0
// The address of an API server, as far as this module must understand it: which host and port
// credentials belong to.
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
  int port = 0;      // the scheme's own if the URL names none

  bool SameServer(const ServerUrl& other) const { return host == other.host && port == other.port; }
  bool IsLoopback() const;
};

// "https://host[:port][/prefix]" or http. INVALID_ARGUMENT says what is wrong and never repeats the
// text: it may hold a password.
absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text);

}  // namespace nomad_harvester::kube

#endif  // NOMAD_HARVESTER_SRC_KUBE_SERVER_URL_H_
