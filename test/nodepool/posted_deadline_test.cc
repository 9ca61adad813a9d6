// SPDX-License-Identifier: Apache-2.0
// The remaining deadline of rule C9.
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/nodepool/drain.h"

#include "gtest/gtest.h"

namespace nomad_harvester::nodepool {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

base::WallTime At(const char* text) { return *base::ParseRfc3339(text); }

TEST(DeadlineToPost, C9_what_is_left_of_the_deadline_is_posted) {
  const PostedDeadline posted =
      DeadlineToPost(false, false, At("2026-11-21T02:15:00Z"), At("2026-11-21T02:03:00Z"));
  EXPECT_TRUE(posted.post);
  EXPECT_EQ(posted.deadline, minutes(12));
}

TEST(DeadlineToPost, C9_at_least_a_second_is_posted) {
  const PostedDeadline posted =
      DeadlineToPost(false, false, At("2026-11-21T02:03:00.25Z"), At("2026-11-21T02:03:00Z"));
  EXPECT_TRUE(posted.post);
  EXPECT_EQ(posted.deadline, seconds(1));
}

TEST(DeadlineToPost, C9_nothing_left_means_no_post) {
  const base::WallTime now = At("2026-11-21T02:03:00Z");
  EXPECT_FALSE(DeadlineToPost(false, false, now, now).post);
  EXPECT_FALSE(DeadlineToPost(false, false, now - std::chrono::nanoseconds(1), now).post);
  EXPECT_FALSE(DeadlineToPost(false, false, At("1700-01-01T00:00:00Z"), now).post);
}

TEST(DeadlineToPost, C9_no_deadline_is_posted_as_zero_whenever) {
  const base::WallTime now = At("2026-11-21T02:03:00Z");
  const PostedDeadline posted = DeadlineToPost(true, false, base::WallTime{}, now);
  EXPECT_TRUE(posted.post);
  EXPECT_EQ(posted.deadline, base::Duration::zero());
}

TEST(DeadlineToPost, C9_at_once_is_always_posted_as_a_negative_one) {
  const base::WallTime now = At("2026-11-21T02:03:00Z");
  const PostedDeadline posted = DeadlineToPost(false, true, base::WallTime{}, now);
  EXPECT_TRUE(posted.post);
  EXPECT_LT(posted.deadline, base::Duration::zero());
}

}  // namespace
}  // namespace nomad_harvester::nodepool
