// SPDX-License-Identifier: Apache-2.0
//
// A Lease that is held for a scope, and how that scope ends.

#include "nomad_harvester/scaling/lease_hold.h"

#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::CancelSource;
using runtime::Context;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;

class LeaseHoldTest : public LeaseFixture {
 protected:
  std::unique_ptr<LeaseHold> Hold(const Context& context) {
    auto hold = LeaseHold::Acquire(*lease_, context, LeaseUser::kScale);
    EXPECT_THAT(hold, IsOk());
    script_.Forget();
    return *std::move(hold);
  }
  // A write of the hold whose caller stops waiting for the reply now.
  static void AbandonWrite(const LeaseHold& hold) {
    runtime::PendingWrite(hold.context()).SetAbandoned(true);
  }

  const std::unique_ptr<PoolLease> lease_ = Process();
};

TEST_F(LeaseHoldTest, its_context_permits_writes_while_the_lease_is_held) {
  const auto hold = Hold(context_);
  EXPECT_THAT(hold->context().CheckWrite(), IsOk());
  hold->Release();
  EXPECT_THAT(hold->context().CheckWrite(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Lease().holder, "");
}

TEST_F(LeaseHoldTest, S4_the_record_that_closes_an_action_goes_with_the_release) {
  const PoolRecord last = {.last_event = base::WallTime(seconds(7))};
  EXPECT_TRUE(Hold(context_)->Release(&last));
  EXPECT_EQ(script_.requests().size(), 1U);
  EXPECT_EQ(ParsePoolRecord(Lease(), log::Logger()).last_event, last.last_event);
}

TEST_F(LeaseHoldTest, C16_a_call_whose_client_is_gone_writes_no_record) {
  const CancelSource client(context_);
  const auto hold = Hold(client.context());
  client.Cancel(CancelReason::kClient);
  const PoolRecord last = {.last_event = base::WallTime(seconds(7))};
  EXPECT_FALSE(hold->Release(&last));
  EXPECT_EQ(script_.requests().size(), 0U);
}

TEST_F(LeaseHoldTest, P1_a_process_that_ends_releases_within_a_second_with_a_record_too) {
  const CancelSource call(context_);
  const auto hold = Hold(call.context());
  call.Cancel(CancelReason::kShutdown);
  script_.Always("patch", Fault::Delay(minutes(5)));
  const PoolRecord last = {.last_event = base::WallTime(seconds(7))};
  EXPECT_LT(Taken([&] { hold->Release(&last); }), seconds(2));
}

TEST_F(LeaseHoldTest, C11_losing_the_lease_cancels_its_context) {
  const auto hold = Hold(context_);
  LeaseFixture::Hold("other", ServerNow());
  clock_.Advance(kLeaseRenewal);
  EXPECT_EQ(hold->context().cancel_reason(), CancelReason::kLeaseLost);
  script_.Forget();
  hold->Release();
  EXPECT_EQ(script_.requests().size(), 0U) << "the Lease is another's";
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(LeaseHoldTest, C11_a_lease_that_another_process_holds_is_no_hold) {
  LeaseFixture::Hold("other", ServerNow());
  EXPECT_THAT(LeaseHold::Acquire(*lease_, context_, LeaseUser::kScale),
              StatusIs(absl::StatusCode::kAborted));
}

TEST_F(LeaseHoldTest, L9_an_exception_leaves_no_renewal_behind) {
  std::optional<Context> of_the_call;
  try {
    const auto hold = Hold(context_);
    of_the_call = hold->context();
    throw std::runtime_error("a bug in the call");
  } catch (const std::runtime_error&) {
  }
  LeaseFixture::Hold("other", ServerNow());
  clock_.Advance(minutes(1));
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_EQ(of_the_call->cancel_reason(), CancelReason::kNone);
  EXPECT_THAT(of_the_call->CheckWrite(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LeaseHoldTest, C16_a_call_whose_client_disconnected_sends_nothing_more) {
  const CancelSource call(context_);
  const auto hold = Hold(call.context());
  call.Cancel(CancelReason::kClient);
  hold->Release();
  clock_.Advance(minutes(1));
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_FALSE(lease_->held());
}

TEST_F(LeaseHoldTest, L9_an_orderly_stop_releases_the_lease) {
  const CancelSource call(context_);
  const auto hold = Hold(call.context());
  call.Cancel(CancelReason::kShutdown);
  hold->Release();
  EXPECT_EQ(Lease().holder, "");
}

TEST_F(LeaseHoldTest, L9_with_a_write_unanswered_the_lease_is_not_released_but_runs_out) {
  const CancelSource call(context_);
  const auto hold = Hold(call.context());
  AbandonWrite(*hold);
  call.Cancel(CancelReason::kShutdown);
  hold->Release();
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_EQ(Lease().holder, "me");
  clock_.Advance(kLeaseAlive + seconds(1));
  const auto other = Process("other");
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*other), IsOk()); }), kLeaseDuration);
}

TEST_F(LeaseHoldTest, L9_with_a_write_under_way_the_lease_is_not_released) {
  const auto hold = Hold(context_);
  const runtime::PendingWrite write(hold->context());
  hold->Release();
  EXPECT_EQ(script_.requests().size(), 0U);
  EXPECT_EQ(Lease().holder, "me");
}

TEST_F(LeaseHoldTest, L9_an_abandoned_write_counts_for_as_long_as_a_lease_that_runs_out) {
  const auto hold = Hold(context_);
  AbandonWrite(*hold);
  clock_.Advance(kLeaseDuration);
  hold->Release();
  EXPECT_EQ(Lease().holder, "");
}

TEST_F(LeaseHoldTest, L9_a_store_that_is_cancelled_counts_as_well) {
  const CancelSource call(context_);
  const auto hold = Hold(call.context());
  script_.Next("patch", Fault::Delay(seconds(5)));
  clock_.After(seconds(1), [&] { call.Cancel(CancelReason::kShutdown); });
  EXPECT_THAT(lease_->Store(hold->context(), {}), StatusIs(absl::StatusCode::kCancelled));
  script_.Forget();
  hold->Release();
  EXPECT_EQ(script_.requests().size(), 0U);
}

TEST_F(LeaseHoldTest, L9_the_same_process_goes_on_at_once_and_releases_the_lease_in_the_end) {
  auto hold = Hold(context_);
  AbandonWrite(*hold);
  hold.reset();
  EXPECT_EQ(Taken([&] { hold = Hold(context_); }), base::Duration::zero());
  hold->Release();
  EXPECT_EQ(Lease().holder, "");
}

}  // namespace
}  // namespace nomad_harvester::scaling
