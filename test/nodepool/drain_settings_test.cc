// The checklist of hashicorp/nomad-autoscaler:sdk/helper/scaleutils/node_drain_test.go (drainSpec),
// and rule C9's arithmetic.
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/drain.h"

#include "gtest/gtest.h"

namespace nomad_harvester::nodepool {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string Problem(const std::optional<std::string>& deadline,
                    const std::optional<std::string>& ignore_system) {
  const auto settings = ParseDrainSettings(deadline, ignore_system);
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
  return base::Message(settings.status());
}

TEST(DrainSettings, no_user_parameters_set) {
  const auto settings = ParseDrainSettings(std::nullopt, std::nullopt);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->deadline, minutes(15));
  EXPECT_FALSE(settings->ignore_system_jobs);
}

TEST(DrainSettings, all_parameters_set_in_config) {
  const auto settings = ParseDrainSettings("10m", "true");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->deadline, minutes(10));
  EXPECT_TRUE(settings->ignore_system_jobs);
}

TEST(DrainSettings, zero_and_negative_deadlines_are_taken_as_they_are) {
  EXPECT_EQ(ParseDrainSettings("0", std::nullopt)->deadline, seconds(0));
  EXPECT_EQ(ParseDrainSettings("-1s", std::nullopt)->deadline, seconds(-1));
}

TEST(DrainSettings, config_deadline_parse_error) {
  EXPECT_EQ(Problem("10mm", std::nullopt),
            "failed to generate node drainspec: time: unknown unit \"mm\" in duration \"10mm\"");
}

TEST(DrainSettings, config_ignore_system_jobs_parse_error) {
  EXPECT_EQ(Problem(std::nullopt, "maybe"),
            "failed to generate node drainspec: strconv.ParseBool: parsing \"maybe\": invalid "
            "syntax");
}

TEST(DrainSettings, multi_config_params_parse_error) {
  EXPECT_EQ(Problem("10mm", "maybe"),
            "failed to generate node drainspec: time: unknown unit \"mm\" in duration \"10mm\", "
            "strconv.ParseBool: parsing \"maybe\": invalid syntax");
}

TEST(DrainSettings, presence_matters_not_emptiness) {
  EXPECT_EQ(Problem("", std::nullopt),
            "failed to generate node drainspec: time: invalid duration \"\"");
  EXPECT_EQ(Problem(std::nullopt, ""),
            "failed to generate node drainspec: strconv.ParseBool: parsing \"\": invalid syntax");
}

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
