// SPDX-License-Identifier: Apache-2.0
#include "socket_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::plugin {
namespace {

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
    const std::string value = config::ValueOf(environment, variable);
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
