// SPDX-License-Identifier: Apache-2.0
#include "local_address.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "absl/cleanup/cleanup.h"

namespace nomad_harvester::plugin {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

constexpr std::string_view kFallback = "/tmp";
constexpr std::string_view kTemplate = "/harvester-XXXXXX";  // mkdtemp's
constexpr std::string_view kSocketName = "/plugin.sock";
constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;

std::string ErrnoText(int error) { return std::generic_category().message(error); }

struct Base {
  std::string variable;  // the environment variable with the path; empty: none
  std::string path;
};

Base ChooseBase(const config::StringMap& environment) {
  for (const char* variable : {"PLUGIN_UNIX_SOCKET_DIR", "TMPDIR"}) {
    const std::string value = base::ValueOf(environment, variable);
    if (value.empty()) continue;
    // The host may run in another working directory.
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(value, error);
    return {variable, error ? value : absolute.string()};
  }
  return {"", std::string(kFallback)};
}

// Says why a socket below `path` cannot be announced; empty if it can.
std::string_view WhyNotAnnounceable(const std::string& path) {
  if (path.size() + kTemplate.size() + kSocketName.size() > kMaxPath) {
    return "too long for a socket address";
  }
  // '|' separates the fields of the handshake line; a control character may end the line.
  const auto breaks_line = [](char c) { return c == '|' || static_cast<unsigned char>(c) < ' '; };
  if (std::any_of(path.begin(), path.end(), breaks_line)) {
    return "it has a character that the handshake line cannot carry";
  }
  return "";
}

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

SocketDir::SocketDir(const std::string& directory)
    : paths_{directory, directory + std::string(kSocketName)} {}

SocketDir::SocketDir(SocketDir&& other) noexcept : paths_(std::exchange(other.paths_, {})) {}

SocketDir::~SocketDir() {
  if (!paths_.directory.empty()) RemoveSocket(paths_);
}

absl::StatusOr<SocketDir> SocketDir::Create(const config::StringMap& environment,
                                            const log::Logger& logger) {
  Base base = ChooseBase(environment);
  if (const std::string_view why = WhyNotAnnounceable(base.path); !why.empty()) {
    logger.Warn("Using another directory for the socket",
                {{"variable", base.variable}, {"reason", why}, {"directory", kFallback}});
    base = {"", std::string(kFallback)};
  }
  std::string path = base.path + std::string(kTemplate);
  if (mkdtemp(path.data()) == nullptr) {  // creates it with mode 0700
    return base::FailedPrecondition(
        "no directory for the socket: cannot create one in " + base.path +
        (base.variable.empty() ? "" : " (from " + base.variable + ")") + ": " + ErrnoText(errno));
  }
  return SocketDir(path);
}

absl::Status SocketDir::ProtectSocket() const {
  if (chmod(paths_.socket.c_str(), 0600) != 0) {
    return base::FailedPrecondition("cannot protect " + paths_.socket + ": " + ErrnoText(errno));
  }
  return absl::OkStatus();
}

void RemoveSocket(const SocketPaths& paths) noexcept {
  unlink(paths.socket.c_str());
  rmdir(paths.directory.c_str());
}

}  // namespace nomad_harvester::plugin
