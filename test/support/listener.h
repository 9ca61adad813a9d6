// SPDX-License-Identifier: Apache-2.0
// A socket on a free port of the loopback. The kernel accepts connections for it; nothing reads
// from them.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_LISTENER_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_LISTENER_H_

#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nomad_harvester::support {

class Listener {
 public:
  Listener() {
    const int yes = 1;
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);  // as gRPC
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(socket_, generic_, size), 0);
    EXPECT_EQ(listen(socket_, 16), 0);
    EXPECT_EQ(getsockname(socket_, generic_, &size), 0);
  }
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }
  std::string url() const { return "http://" + address(); }
  // Our end of a connection; the caller closes it.
  int Accept() const { return accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }
  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

 private:
  static int MakeSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

  int socket_ = MakeSocket();
  sockaddr_in address_{};
  sockaddr* const generic_ = reinterpret_cast<sockaddr*>(&address_);  // NOLINT: of sockets
};

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_LISTENER_H_
