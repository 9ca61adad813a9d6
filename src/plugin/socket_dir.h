// SPDX-License-Identifier: Apache-2.0
// Creates a private directory for the socket.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_

#include <string>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/log/logger.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

struct SocketPaths {
  std::string directory;
  std::string socket;
};
// Idempotent; may be called from several threads.
void RemoveSocket(const SocketPaths& paths) noexcept;

// A directory with mode 0700, removed with its socket on destruction. Movable.
class SocketDir {
 public:
  // Created under PLUGIN_UNIX_SOCKET_DIR if the host set it, else TMPDIR, else /tmp: the first one
  // that is set is used, as in go-plugin (hashicorp/go-plugin:server.go, serverListener_unix). A
  // path that does not fit a socket address or the handshake line is replaced by /tmp, with a WARN.
  static absl::StatusOr<SocketDir> Create(const config::StringMap& environment,
                                          const log::Logger& logger);

  SocketDir(SocketDir&& other) noexcept;
  SocketDir& operator=(SocketDir&&) = delete;
  ~SocketDir();

  const SocketPaths& paths() const { return paths_; }

  // Sets the mode of the socket. Until then the directory protects it.
  absl::Status ProtectSocket() const;

 private:
  explicit SocketDir(const std::string& directory);
  SocketPaths paths_;  // empty after a move
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_
