// SPDX-License-Identifier: Apache-2.0
#include "local_address.h"

#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "plugin/server_fixture.h"
#include "support/scoped_temp_dir.h"
#include "support/status_matchers.h"

namespace nomad_harvester::plugin {
namespace {

using support::IsOk;
using support::StatusIs;
using testing::HasSubstr;

TEST(UnixAddress, EscapesWhatAUriWouldNotCarry) {
  EXPECT_EQ(UnixAddress("/tmp/x/plugin.sock"), "unix:/tmp/x/plugin.sock");
  EXPECT_EQ(UnixAddress("/100% #1/a?b"), "unix:/100%25%20%231/a%3Fb");
  EXPECT_EQ(UnixAddress("relative"), "unix:relative");
}

TEST(ParseLocalAddress, TakesThisMachinesAddresses) {
  for (const char* address : {"127.0.0.1:0", "127.0.0.1:65535", "localhost:80", "[::1]:443"}) {
    const absl::StatusOr<std::string> parsed = ParseLocalAddress(address);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, address);
  }
  EXPECT_EQ(*ParseLocalAddress("unix:/a b"), "unix:/a%20b");
}

TEST(ParseLocalAddress, RefusesEverythingElse) {
  for (const char* address :
       {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:x",
        "0.0.0.0:80", "[::]:80", "example.org:80", "unix:", "unix", "127.0.0.1:80 "}) {
    EXPECT_EQ(ParseLocalAddress(address).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

class CheckCanListenTest : public ServerFixture {};

TEST_F(CheckCanListenTest, a_socket_that_another_server_listens_on_is_not_taken_from_it) {
  const std::string path = directory_.Path("socket");
  EXPECT_THAT(CheckCanListen("unix:" + path),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::AllOf(HasSubstr(path), HasSubstr("another process listens there"),
                                      HasSubstr("--listen"))));
  EXPECT_THAT(CheckCanListen("unix:" + directory_.Path("other")), IsOk());
}

TEST(CheckCanListen, a_port_that_is_in_use_is_named_with_the_cause) {
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(other, generic, size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  ASSERT_EQ(getsockname(other, generic, &size), 0);
  const std::string text = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_THAT(CheckCanListen(text), StatusIs(absl::StatusCode::kUnavailable,
                                             HasSubstr(text + ": Address already in use")));
  close(other);
  EXPECT_THAT(CheckCanListen(text), IsOk());
  EXPECT_THAT(CheckCanListen("localhost:0"), IsOk());
}

TEST(CheckCanListen, what_is_no_socket_stays_and_a_directory_must_exist) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "text");
  EXPECT_THAT(CheckCanListen("unix:" + file),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is not a socket")));
  EXPECT_THAT(CheckCanListen("unix:" + directory.Path("none/socket")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("there is no directory")));
}

// What its ended connections leave for a minute.
TEST(CheckCanListen, a_port_whose_server_has_just_ended_is_free) {
  const auto make = [] { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); };
  const int server = make();
  const int yes = 1;
  ASSERT_EQ(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);  // as gRPC does
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(server, generic, size), 0);
  ASSERT_EQ(listen(server, 1), 0);
  ASSERT_EQ(getsockname(server, generic, &size), 0);
  const int client = make();
  ASSERT_EQ(connect(client, generic, size), 0);
  const int connection = accept4(server, nullptr, nullptr, SOCK_CLOEXEC);
  ASSERT_GE(connection, 0);
  for (const int fd : {connection, client, server}) close(fd);  // who ends first has to remember
  EXPECT_THAT(CheckCanListen("127.0.0.1:" + std::to_string(ntohs(address.sin_port))), IsOk());
}

}  // namespace
}  // namespace nomad_harvester::plugin
