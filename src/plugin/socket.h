// SPDX-License-Identifier: Apache-2.0
// A stream socket that is closed at the end of a scope.
#ifndef NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_H_
#define NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_H_

#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace nomad_harvester::plugin {

class Socket {
 public:
  // The socket is non-blocking and closed on exec. If it cannot be created, fd() is negative.
  explicit Socket(int family)
      : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace nomad_harvester::plugin

#endif  // NOMAD_HARVESTER_SRC_PLUGIN_SOCKET_H_
