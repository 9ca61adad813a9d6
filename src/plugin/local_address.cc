// SPDX-License-Identifier: Apache-2.0
#include "local_address.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "socket.h"

namespace nomad_harvester::plugin {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

constexpr char kEndIt[] = "end what uses it, or choose another address with --listen";
constexpr char kChoose[] = "choose another path with --listen";

absl::Status CannotListen(const std::string& text, const std::string& why, const char* cure) {
  return base::Unavailable("cannot listen on " + text + ": " + why + "; " + cure);
}

absl::Status CheckUnix(const std::string& text, const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!parent.empty() && !std::filesystem::is_directory(parent, failed)) {
    return CannotListen(text, "there is no directory " + parent.string(),
                        "make it, or choose another path with --listen");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return CannotListen(text,
                        "the path is longer than the " +
                            std::to_string(sizeof(address.sun_path) - 1) +
                            " bytes that the path of a socket may have",
                        kChoose);
  }
  if (!std::filesystem::exists(path, failed)) return absl::OkStatus();
  if (!std::filesystem::is_socket(path, failed)) {
    return CannotListen(text, path + " is not a socket", kChoose);
  }
  path.copy(address.sun_path, path.size());
  const Socket socket(AF_UNIX);
  const bool connected =
      connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  // Nobody listens on it: an earlier server left it behind, and gRPC replaces it.
  if (!connected && (errno == ECONNREFUSED || errno == ENOENT)) return absl::OkStatus();
  return CannotListen(text,
                      connected || errno == EAGAIN ? "another process listens there"
                                                   : std::generic_category().message(errno),
                      kEndIt);
}

absl::Status CheckTcp(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host == "localhost" ? "127.0.0.1" : host.c_str(), text.substr(colon + 1).c_str(),
                  &hints, &found) != 0) {
    return absl::OkStatus();  // gRPC reports it
  }
  const Socket socket(found->ai_family);
  const int yes = 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));  // as gRPC does
  const bool bound = bind(socket.fd(), found->ai_addr, found->ai_addrlen) == 0;
  const int error = errno;
  freeaddrinfo(found);
  return bound ? absl::OkStatus()
               : CannotListen(text, std::generic_category().message(error), kEndIt);
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

absl::Status CheckCanListen(const std::string& text) {
  return IsUnixAddress(text) ? CheckUnix(text, text.substr(kUnixScheme.size())) : CheckTcp(text);
}

}  // namespace nomad_harvester::plugin
