// SPDX-License-Identifier: Apache-2.0
#include "socket_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/base/parse.h"
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

Base ChooseBase(const config::Environment& environment) {
  for (const char* variable : {"PLUGIN_UNIX_SOCKET_DIR", "TMPDIR"}) {
    const std::optional<std::string> value = environment(variable);
    if (!value.has_value() || value->empty()) continue;
    // The host may run in another working directory.
    std::error_code error;
    const std::filesystem::path absolute = std::filesystem::absolute(*value, error);
    return {variable, error ? *value : absolute.string()};
  }
  return {"", std::string(kFallback)};
}

// Why a socket below `path` cannot be announced; empty if it can.
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

// Refuses the largest number, which means "no change" to chown(2).
std::optional<gid_t> GroupNumber(std::string_view text) {
  const absl::StatusOr<std::int64_t> number = base::ParseInt(text);
  const bool is_group = number.ok() && *number >= 0 && *number < std::numeric_limits<gid_t>::max();
  return is_group ? std::optional(static_cast<gid_t>(*number)) : std::nullopt;
}

// The group's number, given as a number or as a name in /etc/group.
absl::StatusOr<std::optional<gid_t>> FindGroup(const config::Environment& environment) {
  const std::optional<std::string> name = environment("PLUGIN_UNIX_SOCKET_GROUP");
  if (!name.has_value() || name->empty()) return std::optional<gid_t>();
  if (const std::optional<gid_t> number = GroupNumber(*name)) return number;
  NH_ASSIGN_OR_RETURN(const std::string list, base::ReadFile("/etc/group"));
  const std::optional<gid_t> found = FindGroupInList(list, *name);
  if (!found.has_value()) {
    return base::FailedPrecondition("PLUGIN_UNIX_SOCKET_GROUP: no group \"" + *name +
                                    "\" in /etc/group");
  }
  return found;
}

absl::Status SetGroup(const std::string& path, gid_t group, mode_t mode) {
  if (chown(path.c_str(), static_cast<uid_t>(-1), group) != 0 || chmod(path.c_str(), mode) != 0) {
    return base::FailedPrecondition("cannot give " + path + " to group " + std::to_string(group) +
                                    ": " + ErrnoText(errno));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<gid_t> FindGroupInList(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(list.size(), line.size() + 1));
    // name:password:number:members
    const std::size_t password = line.find(':');
    if (password == std::string_view::npos || line.substr(0, password) != name) continue;
    const std::size_t number = line.find(':', password + 1);
    if (number == std::string_view::npos) continue;
    const std::string_view rest = line.substr(number + 1);
    const std::optional<gid_t> id = GroupNumber(rest.substr(0, rest.find(':')));
    if (id.has_value()) return id;
  }
  return std::nullopt;
}

SocketDir::SocketDir(const std::string& directory, std::optional<gid_t> group)
    : paths_{directory, directory + std::string(kSocketName)}, group_(group) {}

SocketDir::SocketDir(SocketDir&& other) noexcept
    : paths_(std::exchange(other.paths_, {})), group_(other.group_) {}

SocketDir::~SocketDir() {
  if (!paths_.directory.empty()) RemoveSocket(paths_);
}

absl::StatusOr<SocketDir> SocketDir::Create(const config::Environment& environment,
                                            const log::Logger& logger) {
  NH_ASSIGN_OR_RETURN(const std::optional<gid_t> group, FindGroup(environment));
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
  SocketDir result(path, group);
  // The group must be able to traverse the directory to reach the socket, but not to list it.
  if (group.has_value()) NH_RETURN_IF_ERROR(SetGroup(result.paths_.directory, *group, 0710));
  return result;
}

absl::Status SocketDir::ProtectSocket() const {
  if (group_.has_value()) return SetGroup(paths_.socket, *group_, 0660);
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
