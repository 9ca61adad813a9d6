// SPDX-License-Identifier: Apache-2.0
// A private directory for the socket.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/log/logger.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

// The number of a group in the text of /etc/group. Parsed here, because getgrnam loads shared
// libraries, which a static executable must not do.
std::optional<gid_t> FindGroupInList(std::string_view list, std::string_view name);

struct SocketPaths {
  std::string directory;
  std::string socket;
};
// Idempotent; may be called from several threads.
void RemoveSocket(const SocketPaths& paths) noexcept;

// A directory of mode 0700, removed with its socket on destruction. Movable.
class SocketDir {
 public:
  // Created under PLUGIN_UNIX_SOCKET_DIR if the host set it, else TMPDIR, else /tmp: the first one
  // that is set is used, as in go-plugin (hashicorp/go-plugin:server.go, serverListener_unix). A
  // path that does not fit a socket address or the handshake line is replaced by /tmp, with a WARN.
  // With PLUGIN_UNIX_SOCKET_GROUP, that group gets access to the directory and the socket, too.
  static absl::StatusOr<SocketDir> Create(const config::Environment& environment,
                                          const log::Logger& logger);

  SocketDir(SocketDir&& other) noexcept;
  SocketDir& operator=(SocketDir&&) = delete;
  ~SocketDir();

  const SocketPaths& paths() const { return paths_; }

  // Sets the mode of the socket and, if configured, its group. Until then the directory protects
  // it.
  absl::Status ProtectSocket() const;

 private:
  SocketDir(const std::string& directory, std::optional<gid_t> group);
  SocketPaths paths_;  // empty after a move
  std::optional<gid_t> group_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_
