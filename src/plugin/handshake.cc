// SPDX-License-Identifier: Apache-2.0
#include "handshake.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

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
  while (!line.empty()) {
    const ssize_t written = write(fd, line.data(), line.size());
    if (written > 0) {
      line.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno != EINTR) {
      return base::Unavailable("cannot write the handshake: " +
                               std::generic_category().message(errno));
    }
  }
  return absl::OkStatus();
}

}  // namespace nomad_harvester::plugin
