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

// The number of a group in the text of /etc/group. Read by ourselves: getgrnam loads shared
// libraries, which a static executable must not.
std::optional<gid_t> FindGroupInList(std::string_view list, std::string_view name);

struct SocketPaths {
  std::string directory;
  std::string socket;
};
// Idempotent; may be called from several threads.
void RemoveSocket(const SocketPaths& paths) noexcept;

// Mode 0700, removed with its socket at the end. A value that moves.
class SocketDir {
 public:
  // Under PLUGIN_UNIX_SOCKET_DIR if the host set it, else TMPDIR, else /tmp: the first that is
  // set decides, as in go-plugin (hashicorp/go-plugin:server.go, serverListener_unix). A path
  // that no socket address or handshake line can carry is replaced by /tmp, with a WARN. With
  // PLUGIN_UNIX_SOCKET_GROUP the directory and the socket open to that group, too.
  static absl::StatusOr<SocketDir> Create(const config::Environment& environment,
                                          const log::Logger& logger);

  SocketDir(SocketDir&& other) noexcept;
  SocketDir& operator=(SocketDir&&) = delete;
  ~SocketDir();

  const SocketPaths& paths() const { return paths_; }

  // Gives the socket its mode, and its group if there is one: after it was bound, before anybody
  // hears of it.
  absl::Status ProtectSocket() const;

 private:
  SocketDir(const std::string& directory, std::optional<gid_t> group);

  SocketPaths paths_;  // empty after a move
  std::optional<gid_t> group_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_DIR_H_
