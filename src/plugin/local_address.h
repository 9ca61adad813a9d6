// SPDX-License-Identifier: Apache-2.0
// Where a server listens on this machine: checked addresses, and a private directory for the
// socket.
#ifndef NOMAD_HARVESTER_PLUGIN_LOCAL_ADDRESS_H_
#define NOMAD_HARVESTER_PLUGIN_LOCAL_ADDRESS_H_

#include <string>
#include <string_view>

#include "nomad_harvester/config/plugin_config.h"
#include "nomad_harvester/log/logger.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::plugin {

// Returns gRPC's address of a Unix socket. Its URI parser decodes percent escapes and ends a path
// at '?' and '#' (grpc/grpc:src/core/lib/uri/uri_parser.cc), so all characters outside RFC 3986's
// set are escaped.
std::string UnixAddress(const std::string& path);

// Returns gRPC's address for an operator's text: "unix:/path", or "host:port" with a host of this
// machine, because the server does not authenticate its clients. INVALID_ARGUMENT for any other
// text.
absl::StatusOr<std::string> ParseLocalAddress(const std::string& text);
// True if the text names a Unix socket, which file permissions protect.
bool IsUnixAddress(std::string_view text);

// UNAVAILABLE if another process listens on the Unix socket: gRPC would delete it. OK for any other
// address; what else prevents a server from listening, gRPC finds.
absl::Status CheckNotServed(const std::string& text);

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

#endif  // NOMAD_HARVESTER_PLUGIN_LOCAL_ADDRESS_H_
