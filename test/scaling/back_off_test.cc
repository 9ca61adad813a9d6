// SPDX-License-Identifier: Apache-2.0
//
// Rule C12: after each failure a pool waits longer, separately for each cause.

#include "rules/back_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/pool_lease.h"

#include "support/status_matchers.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using harvester::BackOff;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

base::Duration WaitOf(const BackOff& back_off, std::string_view cause) {
  return back_off.at(std::string(cause)).retry_at - kNow;
}

BackOff After(std::string_view cause, int failures) {
  BackOff back_off;
  for (int i = 0; i < failures; ++i) RecordFailure(&back_off, cause, kNow);
  return back_off;
}

TEST(BackOff, C12_the_wait_doubles_from_failure_to_failure_up_to_a_limit) {
  EXPECT_EQ(WaitOf(After(cause::kCreate, 1), cause::kCreate), seconds(30));
  EXPECT_EQ(WaitOf(After(cause::kCreate, 2), cause::kCreate), minutes(1));
  EXPECT_EQ(WaitOf(After(cause::kCreate, 3), cause::kCreate), minutes(2));
  EXPECT_EQ(WaitOf(After(cause::kCreate, 100), cause::kCreate), minutes(30));
  EXPECT_EQ(WaitOf(After(cause::kRoom, 1), cause::kRoom), seconds(30));
  EXPECT_EQ(WaitOf(After(cause::kRoom, 100), cause::kRoom), seconds(90));
  EXPECT_EQ(WaitOf(After(cause::kStart, 100), cause::kStart), hours(1));
  EXPECT_EQ(WaitOf(After(cause::kJoin, 100), cause::kJoin), hours(4));
  EXPECT_EQ(WaitOf(After(cause::kRemove, 100), cause::kRemove), minutes(30));
}

// The agent repeats the Scale at every tick: a text with a countdown would be a new WARN each time.
TEST(BackOff, C12_the_error_names_cause_failures_and_the_next_attempt_and_does_not_count_down) {
  const harvester::BackOff back_off = After(cause::kJoin, 2);
  const absl::Status waits = CheckCreation(back_off, kNow + seconds(15));
  EXPECT_EQ(waits.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(waits.ToString(), HasSubstr("the join of new VMs failed 2 times in a row"));
  EXPECT_THAT(waits.ToString(), HasSubstr("; next try at 2026-03-01T12:02:00Z"));
  EXPECT_EQ(waits, CheckCreation(back_off, kNow + seconds(30)));
}

TEST(BackOff, C12_what_found_no_room_counts_as_two_failures_at_most_and_opens_no_circuit) {
  BackOff back_off;
  RecordNoRoom(&back_off, kNow);
  EXPECT_EQ(WaitOf(back_off, cause::kRoom), seconds(30));
  for (int i = 0; i < 10; ++i) RecordNoRoom(&back_off, kNow);
  EXPECT_EQ(WaitOf(back_off, cause::kRoom), minutes(1));
  EXPECT_FALSE(CreationCircuitIsOpen(back_off));
  BackOff of_vms = After(cause::kRoom, 5);
  RecordNoRoom(&of_vms, kNow + minutes(5));
  EXPECT_EQ(of_vms.at("room").failures, 2) << "what the forecast refuses, it also protects";
  EXPECT_EQ(WaitOf(of_vms, cause::kRoom), minutes(6));
}

TEST(BackOff, C12_an_action_that_is_recorded_twice_is_one_failure_of_its_cause) {
  BackOff back_off;
  RecordFailure(&back_off, cause::kJoin, kNow, "first");
  const BackOff once = back_off;
  RecordFailure(&back_off, cause::kJoin, kNow + minutes(1), "first");
  EXPECT_EQ(back_off, once);
  RecordFailure(&back_off, cause::kStart, kNow, "first");
  RecordFailure(&back_off, cause::kJoin, kNow, "second");
  EXPECT_EQ(back_off.at("join").failures, 2);
  RecordFailure(&back_off, cause::kJoin, kNow, "second");
  EXPECT_EQ(back_off.at("join").failures, 2) << "it failed last";
  EXPECT_EQ(back_off.at("start").failures, 1);
}

TEST(BackOff, C12_the_wait_ends_at_its_time) {
  const BackOff back_off = After(cause::kStart, 1);
  EXPECT_FALSE(CheckCreation(back_off, kNow + seconds(59)).ok());
  EXPECT_TRUE(CheckCreation(back_off, kNow + seconds(60)).ok());
}

TEST(BackOff, C12_creation_never_delays_a_removal_nor_a_removal_creation) {
  for (const std::string_view cause : {cause::kCreate, cause::kRoom, cause::kStart, cause::kJoin}) {
    EXPECT_FALSE(CheckCreation(After(cause, 1), kNow).ok());
    EXPECT_TRUE(CheckRemoval(After(cause, 1), kNow).ok());
  }
  EXPECT_TRUE(CheckCreation(After(cause::kRemove, 1), kNow).ok());
  EXPECT_FALSE(CheckRemoval(After(cause::kRemove, 1), kNow).ok());
}

TEST(BackOff, C12_a_time_further_away_than_the_wait_of_its_failures_counts_as_over) {
  BackOff back_off = {{"room", {.failures = 1, .retry_at = kNow + seconds(90)}}};
  EXPECT_FALSE(CheckCreation(back_off, kNow).ok());
  back_off["room"].retry_at = kNow + minutes(30);
  EXPECT_TRUE(CheckCreation(back_off, kNow).ok());
  back_off = {{"join", {.failures = 1, .retry_at = kNow + hours(3)}}};
  EXPECT_TRUE(CheckCreation(back_off, kNow).ok()) << "the longest is four hours, this one a minute";
}

TEST(BackOff, C12_a_cause_must_wait_as_long_as_it_refuses_work) {
  const harvester::BackOffEntry failed_once{.failures = 1, .retry_at = kNow + minutes(1)};
  EXPECT_TRUE(MustWait("join", failed_once, kNow));
  EXPECT_FALSE(MustWait("join", failed_once, kNow + minutes(1)));
  EXPECT_FALSE(MustWait("join", failed_once, kNow - hours(1))) << "a wrong clock wrote it";
}

TEST(BackOff, C12_removals_wait_after_failed_and_after_refused_ones) {
  for (const std::string_view cause : {cause::kRemove, cause::kRefused}) {
    EXPECT_FALSE(CheckRemoval(After(cause, 1), kNow).ok()) << cause;
  }
}

TEST(BackOff, C12_a_success_clears_its_own_side_only) {
  BackOff back_off;
  for (const std::string_view cause :
       {cause::kCreate, cause::kRoom, cause::kStart, cause::kJoin, cause::kRemove}) {
    RecordFailure(&back_off, cause, kNow);
  }
  RecordCreationSuccess(&back_off);
  EXPECT_EQ(back_off.size(), 1U);
  EXPECT_TRUE(back_off.contains("remove"));
  RecordRemovalSuccess(&back_off);
  EXPECT_TRUE(back_off.empty());
}

TEST(BackOff, the_circuit_opens_after_three_vms_that_never_started_or_joined) {
  EXPECT_FALSE(CreationCircuitIsOpen({}));
  EXPECT_FALSE(CreationCircuitIsOpen(After(cause::kJoin, 2)));
  EXPECT_TRUE(CreationCircuitIsOpen(After(cause::kJoin, 3)));
  BackOff mixed = After(cause::kJoin, 2);
  RecordFailure(&mixed, cause::kRoom, kNow);
  EXPECT_TRUE(CreationCircuitIsOpen(mixed));
  EXPECT_FALSE(CreationCircuitIsOpen(After(cause::kCreate, 9)))
      << "an API that refuses leaves no VM behind";
}

}  // namespace
}  // namespace nomad_harvester::scaling
