// SPDX-License-Identifier: Apache-2.0
#include "handshake.h"

#include <array>
#include <csignal>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/plugin/plugin_process.h"

namespace nomad_harvester::plugin {
namespace {

TEST(HandshakeLine, HasSixFieldsWithoutTls) {
  EXPECT_EQ(HandshakeLine({"/tmp/x/plugin.sock", "", false}),
            "1|1|unix|/tmp/x/plugin.sock|grpc|\n");
}

TEST(HandshakeLine, CarriesTheCertificateInTheSixthField) {
  EXPECT_EQ(HandshakeLine({"/s", "MIIB", false}), "1|1|unix|/s|grpc|MIIB\n");
}

TEST(HandshakeLine, AnswersMultiplexingWithFalseOnlyWhenAsked) {
  EXPECT_EQ(HandshakeLine({"/s", "", true}), "1|1|unix|/s|grpc||false\n");
  EXPECT_EQ(HandshakeLine({"/s", "MIIB", true}), "1|1|unix|/s|grpc|MIIB|false\n");
}

class Pipe : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_.data()), 0); }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  std::array<int, 2> ends_{};
};

TEST_F(Pipe, WriteLineWritesAllOfIt) {
  ASSERT_TRUE(WriteLine(ends_[1], "a line\n").ok());
  std::array<char, 32> buffer{};
  ASSERT_EQ(read(ends_[0], buffer.data(), buffer.size()), 7);
  EXPECT_STREQ(buffer.data(), "a line\n");
}

TEST_F(Pipe, WriteLineToNobodyIsAnError) {
  const auto old = std::signal(SIGPIPE, SIG_IGN);
  close(ends_[0]);
  const absl::Status status = WriteLine(ends_[1], "a line\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::Message(status), ::testing::HasSubstr("handshake"));
  std::signal(SIGPIPE, old);
  ends_[0] = dup(ends_[1]);  // TearDown closes it
}

TEST(StartedByHost, NeedsTheExactCookie) {
  EXPECT_TRUE(StartedByHost({{kCookieKey, kCookieValue}}));
  EXPECT_FALSE(StartedByHost({{kCookieKey, ""}}));
  EXPECT_FALSE(StartedByHost({{kCookieKey, std::string(kCookieValue) + " "}}));
  EXPECT_FALSE(StartedByHost({{"OTHER", kCookieValue}}));
}

}  // namespace
}  // namespace nomad_harvester::plugin
