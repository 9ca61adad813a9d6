// SPDX-License-Identifier: Apache-2.0
//
// Pools without a Lease: it is forbidden, its API is missing, or it is disabled.

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;

// Which request is refused, and how.
using LeaseAnswer = std::pair<const char*, Fault>;

class UnguardedPoolTest : public LeaseFixture {};

class ForbiddenLeaseTest : public LeaseFixture, public testing::WithParamInterface<LeaseAnswer> {};

TEST_P(ForbiddenLeaseTest, the_pool_is_guarded_in_this_process_alone_with_one_warning) {
  const auto& [verb, fault] = GetParam();
  if (verb == std::string("patch")) Hold("", ServerNow());
  script_.Always(verb, fault);
  const auto lease = Process();
  const auto remembered = base::WallTime(seconds(7));
  for (int call = 0; call < 3; ++call) {
    ASSERT_THAT(Acquire(*lease), IsOk());
    EXPECT_FALSE(lease->used());
    EXPECT_TRUE(lease->held());
    script_.Forget();
    clock_.Advance(minutes(5));
    EXPECT_THAT(lease->permit()->Check(), IsOk());
    EXPECT_THAT(lease->Store(context_, {.last_event = remembered}), IsOk());
    lease->Release(context_);
    EXPECT_FALSE(lease->held());
    EXPECT_FALSE(lease->permit()->Check().ok());
    EXPECT_EQ(script_.requests().size(), 0U);
    EXPECT_EQ(lease->record().last_event, remembered);
  }
  EXPECT_EQ(Warnings(), 1U) << sink_->Text();
  EXPECT_EQ(lost_, 0);
}

INSTANTIATE_TEST_SUITE_P(PoolLease, ForbiddenLeaseTest,
                         testing::Values(LeaseAnswer("get", Fault::Answer(403)),
                                         LeaseAnswer("create", Fault::Answer(403)),
                                         LeaseAnswer("patch", Fault::Answer(403)),
                                         LeaseAnswer("create",
                                                     Fault::Answer(404, "404 page not found\n"))));

TEST_F(UnguardedPoolTest, a_lease_that_is_allowed_later_guards_the_pool_from_the_next_call_on) {
  script_.Always("get", Fault::Answer(403));
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  script_.Always("get", Fault::None());
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_TRUE(lease->used());
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(seconds(15));
  EXPECT_FALSE(lease->permit()->Check().ok()) << "the permit still counts as unguarded";
}

TEST_F(UnguardedPoolTest, disabled_it_sends_nothing_and_permits_everything) {
  const auto lease = Process("me", /*enabled=*/false);
  EXPECT_THAT(lease->Refresh(context_), IsOk());
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_FALSE(lease->used());
  EXPECT_TRUE(lease->was_free()) << "nothing that was read meanwhile is to be read again";
  clock_.Advance(hours(1));
  EXPECT_THAT(lease->permit()->Check(), IsOk());
  EXPECT_THAT(lease->Store(context_, {.last_event = base::WallTime(seconds(1))}), IsOk());
  lease->Release(context_);
  EXPECT_EQ(lease->record().last_event, base::WallTime(seconds(1)));
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

}  // namespace
}  // namespace nomad_harvester::scaling
