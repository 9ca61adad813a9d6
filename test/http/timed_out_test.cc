// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "request_text.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::StatusIs;

TEST(TimedOutText, rounds_the_limit_to_what_a_reader_can_use) {
  const auto text_of = [](base::Duration limit) { return TimedOutText(limit, "waiting for h"); };
  EXPECT_EQ(text_of(seconds(30)), "timed out after 30s waiting for h");
  EXPECT_EQ(text_of(seconds(30) - std::chrono::nanoseconds(1)),
            "timed out after 30s waiting for h");
  EXPECT_EQ(text_of(milliseconds(1234)), "timed out after 1.2s waiting for h");
  EXPECT_EQ(text_of(std::chrono::microseconds(56789)), "timed out after 57ms waiting for h");
}

TEST(TimedOut, only_a_deadline_is_a_time_out) {
  EXPECT_THAT(TimedOut(absl::DeadlineExceededError("ended"), seconds(1), "waiting for h"),
              StatusIs(StatusCode::kDeadlineExceeded, "timed out after 1s waiting for h"));
  EXPECT_THAT(TimedOut(absl::CancelledError("ended"), seconds(1), "waiting for h"),
              StatusIs(StatusCode::kCancelled, "ended"));
}

}  // namespace
}  // namespace nomad_harvester::http
