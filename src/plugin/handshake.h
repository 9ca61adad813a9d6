// SPDX-License-Identifier: Apache-2.0
// The line that tells the host where the plugin listens.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_HANDSHAKE_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_HANDSHAKE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace nomad_harvester::plugin {

// The version of the handshake itself (hashicorp/go-plugin:client.go, CoreProtocolVersion) and of
// the autoscaler's plugins (hashicorp/nomad-autoscaler:plugins/plugin.go, Handshake).
inline constexpr int kCoreProtocol = 1;
inline constexpr int kPluginProtocol = 1;

struct Handshake {
  std::string socket_path;
  // Base64 of the server's certificate in DER, without padding; empty without TLS.
  std::string certificate;
  // The host set PLUGIN_MULTIPLEX_GRPC, so that it knows a seventh field. Older hosts would take
  // that field for a part of the sixth.
  bool answer_multiplexing = false;
};

// "1|1|unix|/tmp/x/plugin.sock|grpc|\n" (hashicorp/go-plugin:server.go, Serve).
std::string HandshakeLine(const Handshake& handshake);

// Whether the host's list of plugin protocol versions (PLUGIN_PROTOCOL_VERSIONS, "1,2") names
// ours. An empty list says nothing against us. As go-plugin's own server, we answer with our
// version even if the list does not name it: the host's message then names both.
bool HostKnowsOurProtocol(std::string_view versions);

// Writes all of it, or says why not.
absl::Status WriteLine(int fd, std::string_view line);

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_HANDSHAKE_H_
