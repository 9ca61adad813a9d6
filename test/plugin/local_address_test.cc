// SPDX-License-Identifier: Apache-2.0
#include "local_address.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"

#include "plugin/server_fixture.h"
#include "support/listener.h"
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

class CheckNotServedTest : public ServerFixture {};

TEST_F(CheckNotServedTest, a_socket_that_another_server_listens_on_is_not_taken_from_it) {
  const std::string path = directory_.Path("socket");
  EXPECT_THAT(CheckNotServed("unix:" + path),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::AllOf(HasSubstr(path), HasSubstr("another process listens there"),
                                      HasSubstr("--listen"))));
  EXPECT_THAT(CheckNotServed("unix:" + directory_.Path("other")), IsOk());
}

TEST(CheckNotServed, what_nobody_listens_on_is_left_to_the_server) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "text");
  for (const std::string& text : {"unix:" + file, "unix:" + directory.Path("none/socket"),
                                  "unix:/" + std::string(200, 'x'), std::string("127.0.0.1:0")}) {
    EXPECT_THAT(CheckNotServed(text), IsOk()) << text;
  }
}

}  // namespace
}  // namespace nomad_harvester::plugin
