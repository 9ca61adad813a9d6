// SPDX-License-Identifier: Apache-2.0
//
// Pauses (L10), and two policies on one pool (L11).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness.h"
#include "operator.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Pause, L10_a_scale_of_a_paused_pool_is_refused_and_changes_nothing) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  Operator person(h);
  ASSERT_TRUE(person.Pause(kAlways).ok());
  const absl::Status out = h.Scale(2);
  EXPECT_EQ(out.code(), absl::StatusCode::kFailedPrecondition) << out;
  EXPECT_THAT(out.ToString(), HasSubstr("nomad-harvester resume"));
  EXPECT_FALSE(h.Scale(0).ok());
  EXPECT_EQ(h.Vms().size(), 1U);
  ASSERT_TRUE(person.Pause(std::nullopt).ok());
  EXPECT_TRUE(h.Scale(2).ok());
  h.CheckAtRest(2);
}

TEST(Pause, L10_a_success_that_does_not_bring_the_lease_is_no_pause) {
  Harness h;
  Operator person(h);
  for (const bool has_lease : {false, true}) {
    if (has_lease) {
      ASSERT_TRUE(h.Scale(1).ok());
    }
    for (const char* const body : {"{}", R"({"metadata": {"resourceVersion": "7"}})"}) {
      h.Inject(Fault::Answer(200, body), [body](const RequestInfo& request) {
        return request.resource == "leases" &&
               (request.verb == "patch" || request.verb == "create");
      });
      const absl::Status paused = person.Pause(kAlways);
      EXPECT_EQ(paused.code(), absl::StatusCode::kUnavailable) << body;
      EXPECT_THAT(paused.ToString(), HasSubstr("was not written"));
      h.cluster.SetFaultHook(nullptr);
    }
  }
  EXPECT_TRUE(h.Scale(2).ok());
}

TEST(Pause, L10_status_is_not_ready_with_that_reason_and_notices_the_end) {
  Harness h;
  ASSERT_TRUE(h.Scale(1).ok());
  Operator person(h);
  ASSERT_TRUE(person.Pause(kAlways).ok());
  EXPECT_FALSE(h.Scale(2).ok());
  const auto paused = h.Status();
  ASSERT_TRUE(paused.ok());
  EXPECT_FALSE(paused->ready);
  EXPECT_THAT(h.log->Text(), HasSubstr("is paused"));
  ASSERT_TRUE(person.Pause(std::nullopt).ok());
  (void)h.Status();
  EXPECT_TRUE(h.Status()->ready);
  h.CheckAtRest(1);
}

TEST(Pause, L10_ends_by_itself_at_its_time) {
  Harness h;
  Operator person(h);
  ASSERT_TRUE(person.Pause(base::Hold{.until = h.clock.WallNow() + minutes(5)}).ok())
      << "a pool without a Lease gets one";
  EXPECT_FALSE(h.Scale(1).ok());
  h.clock.Advance(minutes(6));
  EXPECT_TRUE(h.Scale(1).ok());
  h.CheckAtRest(1);
}

TEST(Policies, L11_two_policies_that_take_turns_within_ten_minutes_are_reported_with_both_ids) {
  Harness h;
  ASSERT_TRUE(h.Scale(1, R"({"nomad_policy_id":"one"})").ok());
  ASSERT_TRUE(h.Scale(2, R"({"nomad_policy_id":"one"})").ok());
  ASSERT_TRUE(h.Scale(1, R"({"nomad_policy_id":"two"})").ok());
  ASSERT_TRUE(h.Scale(2, R"({"nomad_policy_id":"two"})").ok());
  EXPECT_THAT(h.log->Text(), Not(HasSubstr("Another policy"))) << "the agent was restarted";
  ASSERT_TRUE(h.Scale(1, R"({"nomad_policy_id":"one"})").ok());
  EXPECT_THAT(h.log->Text(), HasSubstr("other_policy_id=two"));
  h.clock.Advance(minutes(11));
  ASSERT_TRUE(h.Scale(2, R"({"nomad_policy_id":"two"})").ok());
  EXPECT_THAT(h.log->Text(), Not(HasSubstr("other_policy_id=one"))) << "long ago";
  h.CheckAtRest(2);
}

}  // namespace
}  // namespace nomad_harvester::scenario
