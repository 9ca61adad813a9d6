// SPDX-License-Identifier: Apache-2.0
#include "local_address.h"

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/cleanup/cleanup.h"

namespace nomad_harvester::plugin {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

}  // namespace

std::string UnixAddress(const std::string& path) {
  std::string address = "unix:";
  for (const char c : path) address += c == '/' ? "/" : base::UrlEscape({&c, 1});
  return address;
}

bool IsUnixAddress(std::string_view text) { return text.starts_with(kUnixScheme); }

absl::StatusOr<std::string> ParseLocalAddress(const std::string& text) {
  if (IsUnixAddress(text)) {
    const std::string path = text.substr(kUnixScheme.size());
    // With an empty path the kernel would choose an abstract name.
    if (path.empty()) return base::InvalidArgument("\"" + text + "\" names no path");
    return UnixAddress(path);
  }
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  const absl::StatusOr<std::int64_t> port =
      base::ParseInt(colon == std::string::npos ? "" : text.substr(colon + 1));
  if (!port.ok() || *port < 0 || *port > 65535) {
    return base::InvalidArgument("\"" + text +
                                 "\" is not an address; write unix:/path or 127.0.0.1:PORT");
  }
  if (host != "127.0.0.1" && host != "localhost" && host != "[::1]") {
    return base::InvalidArgument("\"" + text +
                                 "\": only this machine may connect, since the port is not "
                                 "protected; write 127.0.0.1:PORT");
  }
  return text;
}

absl::Status CheckNotServed(const std::string& text) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = IsUnixAddress(text) ? text.substr(kUnixScheme.size()) : "";
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return absl::OkStatus();
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const absl::Cleanup closer = [fd] { close(fd); };
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  // Nobody listens on it: an earlier server left it behind, and gRPC replaces it.
  if (!connected && (errno == ECONNREFUSED || errno == ENOENT)) return absl::OkStatus();
  const std::string why = connected || errno == EAGAIN ? "another process listens there"
                                                       : std::generic_category().message(errno);
  return base::Unavailable("cannot listen on " + text + ": " + why +
                           "; end what uses it, or choose another address with --listen");
}

}  // namespace nomad_harvester::plugin
