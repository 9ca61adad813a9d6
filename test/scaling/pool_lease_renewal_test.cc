// How the Lease is kept, written, lost and given up.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using http::Method;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::HasSubstr;

class LeaseRenewalTest : public LeaseFixture {
 protected:
  LeaseRenewalTest() {
    EXPECT_THAT(Acquire(*lease_), IsOk());
    api_->ForgetRequests();
  }
  bool Permitted() const { return lease_->permit()->Check().ok(); }
  absl::Status Store(std::int64_t nanoseconds) {
    return lease_->Store(context_, RecordOf(nanoseconds));
  }
  static PoolRecord RecordOf(std::int64_t nanoseconds) {
    return {.last_event = base::WallTime(std::chrono::nanoseconds(nanoseconds))};
  }
  bool Stored(std::int64_t nanoseconds) const {
    return ParsePoolRecord(api_->Lease(), log::Logger()).last_event ==
           RecordOf(nanoseconds).last_event;
  }
  void ExpectLostForGood() {
    EXPECT_EQ(lost_, 1);
    EXPECT_FALSE(lease_->held());
    EXPECT_FALSE(Permitted());
    api_->ForgetRequests();
    EXPECT_THAT(Store(5), StatusIs(absl::StatusCode::kUnavailable));
    clock_.Advance(minutes(2));
    EXPECT_EQ(api_->requests().size(), 0U) << "a lost Lease is left alone";
    EXPECT_EQ(lost_, 1) << "told once";
    EXPECT_FALSE(Permitted());
    lease_->Release(context_);
    EXPECT_EQ(api_->requests().size(), 0U);
  }

  const std::unique_ptr<PoolLease> lease_ = Process();
};

TEST_F(LeaseRenewalTest, every_three_seconds_under_the_version_that_the_last_reply_had) {
  clock_.Advance(seconds(30));
  EXPECT_EQ(api_->Count(Method::kPatch), 10U);
  EXPECT_EQ(api_->requests().size(), 10U) << "a renewal is one request";
  for (const LeaseApi::Request& request : api_->requests()) {
    EXPECT_FALSE(kube::ResourceVersionOf(request.body).empty());
    EXPECT_FALSE(request.body.at("spec").contains("holderIdentity"));
  }
  EXPECT_TRUE(lease_->held());
  EXPECT_EQ(api_->Lease().transitions, 0);
}

TEST_F(LeaseRenewalTest, renew_time_follows_the_api_servers_clock_not_ours) {
  for (const base::Duration skew : {base::Duration(hours(5)), base::Duration(-hours(5))}) {
    clock_.set_wall_skew(skew);
    clock_.Advance(seconds(60));
    ASSERT_TRUE(api_->Lease().renew_time.has_value());
    const base::Duration age = api_->Now() - *api_->Lease().renew_time;
    EXPECT_GE(age, base::Duration::zero());
    EXPECT_LE(age, kLeaseAlive);
  }
}

TEST_F(LeaseRenewalTest, a_taker_writes_the_api_servers_time_as_well) {
  lease_->Release(context_);
  clock_.set_wall_skew(hours(5));
  ASSERT_THAT(Acquire(*lease_), IsOk());
  EXPECT_EQ(api_->Lease().renew_time, api_->Now());
  EXPECT_EQ(api_->Lease().acquire_time, api_->Now());
}

TEST_F(LeaseRenewalTest, the_servers_time_of_the_last_reply_is_told) {
  clock_.set_wall_skew(hours(5));
  clock_.Advance(seconds(4));
  EXPECT_EQ(lease_->server_time(), api_->Now() - seconds(1));
  ASSERT_THAT(Store(1), IsOk());
  EXPECT_EQ(lease_->server_time(), api_->Now());
}

TEST_F(LeaseRenewalTest,
       C11_a_write_is_permitted_while_its_attempt_must_end_before_the_lease_does) {
  api_->Answer(Method::kPatch, 503);
  EXPECT_EQ(lease_->permit()->AttemptLimit(), kWriteLimit);
  clock_.Advance(kLeaseDuration - kWriteLimit - milliseconds(1));
  EXPECT_TRUE(Permitted());
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(lease_->permit()->Check(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("could not be renewed for 10s")));
}

TEST_F(LeaseRenewalTest, C11_a_renewal_counts_from_when_it_was_sent) {
  api_->Delay(Method::kPatch, seconds(4));
  clock_.Advance(seconds(3));  // sent at 3, answered at 7
  api_->Delay(Method::kPatch, {});
  api_->Answer(Method::kPatch, 503);
  clock_.Advance(seconds(6) - milliseconds(1));
  EXPECT_TRUE(Permitted());
  clock_.Advance(milliseconds(1));
  EXPECT_FALSE(Permitted());
  EXPECT_TRUE(lease_->held());
}

TEST_F(LeaseRenewalTest, writing_goes_on_after_a_gap_that_the_lease_survived) {
  api_->Answer(Method::kPatch, 503);
  clock_.Advance(seconds(14));
  EXPECT_FALSE(Permitted());
  api_->Answer(Method::kPatch, 0);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Permitted());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_another_process_has_taken_it) {
  api_->Hold("other", api_->Now());
  clock_.Advance(seconds(3));
  ExpectLostForGood();
  EXPECT_EQ(api_->Lease().holder, "other");
  EXPECT_THAT(sink_->Text(), HasSubstr("another process holds it"));
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_another_process_had_it_and_gave_it_up) {
  api_->Hold("", api_->Now());
  clock_.Advance(seconds(3));
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_it_was_deleted) {
  api_->Remove();
  clock_.Advance(seconds(3));
  ExpectLostForGood();
  EXPECT_FALSE(api_->Object().has_value());
  EXPECT_THAT(sink_->Text(), HasSubstr("it was deleted"));
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_it_could_not_be_renewed_in_time) {
  api_->Answer(Method::kPatch, 503);
  clock_.Advance(kLeaseDuration - milliseconds(1));
  EXPECT_EQ(lost_, 0);
  EXPECT_TRUE(lease_->held());
  clock_.Advance(kLeaseRenewal);
  EXPECT_EQ(lost_, 1);
  api_->Answer(Method::kPatch, 0);
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest, C11_a_process_that_was_frozen_past_its_end_does_not_renew_it_first) {
  api_->Before(Method::kPatch, [&] { clock_.Advance(seconds(30)); });
  api_->Lose(Method::kPatch, LeaseApi::Fault::kLostBefore);
  clock_.Advance(seconds(3));
  clock_.Advance(seconds(3));
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest, a_lost_lease_is_got_again_by_acquire_alone) {
  api_->Hold("", api_->Now());
  clock_.Advance(seconds(3));
  ASSERT_EQ(lost_, 1);
  api_->Hold("me", api_->Now());
  clock_.Advance(seconds(30));
  EXPECT_FALSE(lease_->held());
  EXPECT_FALSE(Permitted());
  lease_->Release(context_);
  ASSERT_THAT(Acquire(*lease_), IsOk());
  EXPECT_TRUE(Permitted());
  api_->Hold("other", api_->Now());
  clock_.Advance(seconds(3));
  EXPECT_EQ(lost_, 2) << "the new hold can be lost, too";
}

TEST_F(LeaseRenewalTest, a_renewal_whose_reply_was_lost_does_not_lose_the_lease) {
  for (int i = 0; i < 5; ++i) {
    api_->Lose(Method::kPatch, LeaseApi::Fault::kLostAfter);
    clock_.Advance(seconds(6));  // the repetition conflicts with the first, the next one succeeds
    EXPECT_TRUE(Permitted());
    api_->Lose(Method::kPatch, LeaseApi::Fault::kLostAfter, 2);
    clock_.Advance(seconds(9));  // the repetition's reply is lost, too, and the next one conflicts
    EXPECT_TRUE(Permitted());
  }
  EXPECT_TRUE(lease_->held());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, the_record_is_stored_as_annotations_and_what_is_absent_is_removed) {
  PoolRecord record = RecordOf(7);
  record.action = harvester::LeaseAction{.id = "act", .names = {"web-a"}};
  record.back_off = {{"create", {.failures = 1, .retry_at = api_->Now()}}};
  ASSERT_THAT(lease_->Store(context_, record), IsOk());
  const PoolRecord stored = ParsePoolRecord(api_->Lease(), log::Logger());
  EXPECT_EQ(stored.action, record.action);
  EXPECT_EQ(stored.back_off, record.back_off);
  EXPECT_EQ(stored.last_event, record.last_event);
  EXPECT_EQ(lease_->record().action, record.action);
  api_->Annotate("kept", "yes");
  ASSERT_THAT(lease_->Store(context_, {}), IsOk());
  EXPECT_EQ(api_->Lease().annotations, (std::map<std::string, std::string>{{"kept", "yes"}}));
  EXPECT_EQ(api_->Lease().holder, "me");
}

TEST_F(LeaseRenewalTest, a_renewal_that_was_faster_than_a_store_settles) {
  api_->Before(Method::kPatch, [&] { clock_.Advance(seconds(3)); });
  ASSERT_THAT(Store(1), IsOk());
  EXPECT_TRUE(Stored(1));
  EXPECT_EQ(lease_->record().last_event, RecordOf(1).last_event);
  clock_.Advance(seconds(30));
  EXPECT_TRUE(lease_->held());
  EXPECT_TRUE(Permitted());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, a_store_that_was_faster_than_a_renewal_settles) {
  for (std::int64_t i = 1; i <= 5; ++i) {
    api_->Before(Method::kPatch, [this, i] { EXPECT_THAT(Store(i), IsOk()); });
    clock_.Advance(seconds(6));
    EXPECT_TRUE(Stored(i));
    EXPECT_TRUE(Permitted());
  }
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, a_store_whose_reply_was_lost_settles) {
  api_->Lose(Method::kPatch, LeaseApi::Fault::kLostAfter);
  ASSERT_THAT(Store(1), IsOk());
  EXPECT_TRUE(Stored(1));
  clock_.Advance(seconds(30));
  EXPECT_TRUE(lease_->held());
}

TEST_F(LeaseRenewalTest, a_store_that_failed_is_not_remembered) {
  ASSERT_THAT(Store(1), IsOk());
  api_->Answer(Method::kPatch, 422);
  EXPECT_THAT(Store(2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(lease_->record().last_event, RecordOf(1).last_event);
}

TEST_F(LeaseRenewalTest, a_store_gives_up_on_a_lease_that_changes_all_the_time) {
  std::function<void()> change = [&] {
    api_->Annotate("busy", "yes");
    api_->Before(Method::kPatch, change);
  };
  api_->Before(Method::kPatch, change);
  EXPECT_FALSE(Store(1).ok());
  EXPECT_FALSE(Stored(1));
}

TEST_F(LeaseRenewalTest, C11_nothing_is_stored_in_a_lease_that_another_process_has_taken) {
  api_->Hold("other", api_->Now());
  EXPECT_THAT(Store(1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(Stored(1));
  EXPECT_EQ(api_->Lease().holder, "other");
}

TEST_F(LeaseRenewalTest, C11_nothing_is_stored_while_the_permit_refuses) {
  api_->Answer(Method::kPatch, 503);
  clock_.Advance(seconds(11));
  ASSERT_TRUE(lease_->held());
  api_->Answer(Method::kPatch, 0);
  api_->ForgetRequests();
  EXPECT_THAT(Store(1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(api_->Count(Method::kPatch), 0U);
}

TEST_F(LeaseRenewalTest, releasing_empties_the_holder_by_resource_version_and_keeps_the_record) {
  ASSERT_THAT(Store(1), IsOk());
  const std::string version = api_->Lease().resource_version;
  api_->ForgetRequests();
  lease_->Release(context_);
  ASSERT_EQ(api_->requests().size(), 1U);
  EXPECT_EQ(kube::ResourceVersionOf(api_->requests()[0].body), version);
  EXPECT_EQ(api_->Lease().holder, "");
  EXPECT_TRUE(Stored(1));
  EXPECT_FALSE(lease_->held());
  EXPECT_FALSE(Permitted());
  lease_->Release(context_);
  clock_.Advance(minutes(1));
  EXPECT_EQ(api_->requests().size(), 1U) << "renewal has ended, and there is nothing to give up";
}

TEST_F(LeaseRenewalTest, C11_releasing_never_empties_the_holder_of_another_process) {
  api_->Hold("other", api_->Now());
  lease_->Release(context_);
  EXPECT_EQ(api_->Lease().holder, "other");
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

TEST_F(LeaseRenewalTest, a_release_that_fails_lets_the_lease_run_out) {
  api_->Answer(Method::kPatch, 503);
  lease_->Release(context_);
  EXPECT_FALSE(lease_->held());
  api_->Answer(Method::kPatch, 0);
  clock_.Advance(seconds(6));
  const auto other = Process("other");
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*other), IsOk()); }), kLeaseDuration);
}

TEST_F(LeaseRenewalTest, C16_stopping_the_renewal_sends_nothing_and_permits_nothing) {
  lease_->StopRenewal();
  clock_.Advance(minutes(1));
  EXPECT_EQ(api_->requests().size(), 0U);
  EXPECT_FALSE(lease_->held());
  EXPECT_FALSE(Permitted());
  EXPECT_EQ(lost_, 0);
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease_), IsOk()); }), base::Duration::zero())
      << "the next call of this process takes it again at once";
  EXPECT_TRUE(Permitted());
}

TEST_F(LeaseRenewalTest, the_permit_outlives_the_lease_and_then_refuses) {
  auto gone = Process("gone");
  lease_->Release(context_);
  ASSERT_THAT(Acquire(*gone), IsOk());
  const auto permit = gone->permit();
  EXPECT_THAT(permit->Check(), IsOk());
  gone.reset();
  EXPECT_FALSE(permit->Check().ok());
  api_->ForgetRequests();
  clock_.Advance(minutes(1));
  EXPECT_EQ(api_->requests().size(), 0U);
}

}  // namespace
}  // namespace nomad_harvester::scaling
