// SPDX-License-Identifier: Apache-2.0
#include "handshake.h"

#include <string>
#include <string_view>
#include <system_error>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {

std::string HandshakeLine(const Handshake& handshake) {
  std::string line = std::to_string(kCoreProtocol) + "|" + std::to_string(kPluginProtocol) +
                     "|unix|" + handshake.socket_path + "|grpc|" + handshake.certificate;
  // The broker's connections are not multiplexed over this socket: no C++ server supports that.
  if (handshake.answer_multiplexing) line += "|false";
  return line + "\n";
}

absl::Status WriteLine(int fd, std::string_view line) {
  const int error = base::WriteAll(fd, &line);
  if (error == 0) return absl::OkStatus();
  return base::Unavailable("cannot write the handshake: " + std::generic_category().message(error));
}

}  // namespace nomad_harvester::plugin
