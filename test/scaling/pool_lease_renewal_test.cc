// SPDX-License-Identifier: Apache-2.0
//
// How the Lease is renewed, written, lost and released.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"
#include "support/seeded_random.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

class LeaseRenewalTest : public LeaseFixture {
 protected:
  LeaseRenewalTest() {
    EXPECT_THAT(Acquire(*lease_), IsOk());
    script_.Forget();
  }
  bool Permitted() const { return lease_->permit()->Check().ok(); }
  absl::Status Store(std::int64_t nanoseconds) {
    return lease_->Store(context_, RecordOf(nanoseconds));
  }
  static PoolRecord RecordOf(std::int64_t nanoseconds) {
    return {.last_event = base::WallTime(std::chrono::nanoseconds(nanoseconds))};
  }
  bool ReleaseWith(const PoolRecord& last) { return lease_->Release(context_, &last); }
  bool Stored(std::int64_t nanoseconds) const {
    return ParsePoolRecord(Lease(), log::Logger()).last_event == RecordOf(nanoseconds).last_event;
  }
  void ExpectLostForGood() {
    EXPECT_EQ(lost_, 1);
    EXPECT_FALSE(lease_->held());
    EXPECT_FALSE(Permitted());
    script_.Forget();
    EXPECT_THAT(Store(5), StatusIs(absl::StatusCode::kUnavailable));
    clock_.Advance(minutes(2));
    EXPECT_EQ(script_.requests().size(), 0U) << "a lost Lease is left alone";
    EXPECT_EQ(lost_, 1) << "told once";
    EXPECT_FALSE(Permitted());
    lease_->Release(context_);
    EXPECT_EQ(script_.requests().size(), 0U);
  }

  const std::unique_ptr<PoolLease> lease_ = Process();
};

TEST_F(LeaseRenewalTest, every_three_seconds_under_the_version_that_the_last_reply_had) {
  clock_.Advance(seconds(30));
  EXPECT_EQ(script_.Count("patch"), 10U);
  EXPECT_EQ(script_.requests().size(), 10U) << "a renewal is one request";
  for (const simulator::RequestInfo& request : script_.requests()) {
    const auto patch = nlohmann::json::parse(request.body);
    EXPECT_FALSE(kube::ResourceVersionOf(patch).empty());
    EXPECT_FALSE(patch.at("spec").contains("holderIdentity"));
  }
  EXPECT_TRUE(lease_->held());
  EXPECT_EQ(Lease().transitions, 0);
}

TEST_F(LeaseRenewalTest, L2_a_lease_whose_renewals_are_undone_is_lost) {
  script_.Next("patch", Fault::Answer(200, Object().dump()), 20);
  clock_.Advance(seconds(21));
  EXPECT_EQ(lost_, 1) << "others take over what nobody seems to renew";
  EXPECT_THAT(lease_->why_lost(), HasSubstr("accepted without effect"));
}

TEST_F(LeaseRenewalTest, C11_a_success_whose_reply_is_no_lease_renews_nothing) {
  script_.Next("patch", Fault::Answer(200, "{}"));
  clock_.Advance(kLeaseRenewal);
  Hold("another", ServerNow());
  clock_.Advance(seconds(12));
  EXPECT_EQ(lost_, 1) << "the next renewal is one of the version that we know, and conflicts";
  EXPECT_FALSE(lease_->held());
}

TEST_F(LeaseRenewalTest, renew_time_follows_the_api_servers_clock_not_ours) {
  for (const base::Duration skew : {base::Duration(hours(5)), base::Duration(-hours(5))}) {
    clock_.set_wall_skew(skew);
    clock_.Advance(seconds(60));
    ASSERT_TRUE(Lease().renew_time.has_value());
    const base::Duration age = ServerNow() - *Lease().renew_time;
    EXPECT_GE(age, base::Duration::zero());
    EXPECT_LE(age, kLeaseAlive);
  }
}

TEST_F(LeaseRenewalTest, a_taker_writes_the_api_servers_time_as_well) {
  lease_->Release(context_);
  clock_.set_wall_skew(hours(5));
  ASSERT_THAT(Acquire(*lease_), IsOk());
  EXPECT_EQ(Lease().renew_time, ServerNow());
  EXPECT_EQ(Lease().acquire_time, ServerNow());
}

TEST_F(LeaseRenewalTest,
       C11_a_write_is_permitted_while_its_attempt_must_end_before_the_lease_does) {
  script_.Always("patch", Fault::Answer(503));
  EXPECT_EQ(lease_->permit()->AttemptLimit(), kWriteLimit);
  clock_.Advance(kLeaseDuration - kWriteLimit - milliseconds(1));
  EXPECT_TRUE(Permitted());
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(lease_->permit()->Check(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("could not be renewed for 10s")));
}

TEST_F(LeaseRenewalTest, C11_a_renewal_counts_from_when_it_was_sent) {
  script_.Always("patch", Fault::Delay(seconds(4)));
  clock_.Advance(seconds(3));  // sent at 3, answered at 7
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(seconds(6) - milliseconds(1));
  EXPECT_TRUE(Permitted());
  clock_.Advance(milliseconds(1));
  EXPECT_FALSE(Permitted());
  EXPECT_TRUE(lease_->held());
}

TEST_F(LeaseRenewalTest, C11_a_renewal_without_a_reply_is_given_up_however_long_requests_may_take) {
  lease_->Release(context_);
  const auto client = std::make_shared<const kube::KubeClient>(
      http::WithRetry(cluster_.HarvesterTransport("patient"), {.attempt_timeout = minutes(1)},
                      support::MakeSeededRandom(1), log::Logger()));
  PoolLease lease(client, PoolKey{.ns = "default", .pool = "web"}, clock_,
                  PoolLease::Options{.holder = "patient"}, log::Logger());
  ASSERT_THAT(Acquire(lease), IsOk());
  script_.Next("patch", Fault::Delay(hours(1)));
  clock_.Advance(kLeaseRenewal + kWriteLimit);
  clock_.Advance(kLeaseRenewal);
  EXPECT_THAT(lease.permit()->Check(), IsOk());
  clock_.Advance(seconds(30));
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, writing_continues_after_a_gap_that_the_lease_survived) {
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(seconds(14));
  EXPECT_FALSE(Permitted());
  script_.Always("patch", Fault::None());
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Permitted());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_another_process_has_taken_it) {
  Hold("other", ServerNow());
  clock_.Advance(seconds(3));
  ExpectLostForGood();
  EXPECT_EQ(Lease().holder, "other");
  EXPECT_THAT(sink_->Text(), HasSubstr("another process holds it"));
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_another_process_held_and_released_it) {
  Hold("", ServerNow());
  clock_.Advance(seconds(3));
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_it_was_deleted) {
  Remove();
  clock_.Advance(seconds(3));
  ExpectLostForGood();
  EXPECT_TRUE(Object().is_null());
  EXPECT_THAT(sink_->Text(), HasSubstr("it was deleted"));
}

TEST_F(LeaseRenewalTest, C11_it_is_lost_when_it_could_not_be_renewed_in_time) {
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(kLeaseDuration - milliseconds(1));
  EXPECT_EQ(lost_, 0);
  EXPECT_TRUE(lease_->held());
  clock_.Advance(kLeaseRenewal);
  EXPECT_EQ(lost_, 1);
  script_.Always("patch", Fault::None());
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest,
       C11_a_renewal_that_fails_is_a_warning_once_and_the_loss_says_who_answered_what) {
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(kLeaseRenewal * 3);
  std::vector<log::Level> levels;
  for (const log::Record& record : sink_->records()) {
    if (record.message.starts_with("Could not renew")) levels.push_back(record.level);
  }
  EXPECT_THAT(levels, ElementsAre(log::Level::kWarn, log::Level::kDebug, log::Level::kDebug));
  clock_.Advance(kLeaseDuration);
  EXPECT_EQ(lost_, 1);
  EXPECT_THAT(lease_->why_lost(), HasSubstr("could not be renewed for 20s"));
  EXPECT_THAT(lease_->why_lost(), HasSubstr("503"));
}

TEST_F(LeaseRenewalTest, C11_a_process_that_was_frozen_until_it_expired_does_not_renew_it) {
  script_.Before("patch", [&] { clock_.Advance(seconds(30)); });
  script_.Next("patch", Fault::Drop());
  clock_.Advance(seconds(3));
  clock_.Advance(seconds(3));
  ExpectLostForGood();
}

TEST_F(LeaseRenewalTest, a_lost_lease_is_acquired_again_only_by_acquire) {
  Hold("", ServerNow());
  clock_.Advance(seconds(3));
  ASSERT_EQ(lost_, 1);
  Hold("me", ServerNow());
  clock_.Advance(seconds(30));
  EXPECT_FALSE(lease_->held());
  EXPECT_FALSE(Permitted());
  lease_->Release(context_);
  ASSERT_THAT(Acquire(*lease_), IsOk());
  EXPECT_TRUE(Permitted());
  Hold("other", ServerNow());
  clock_.Advance(seconds(3));
  EXPECT_EQ(lost_, 2) << "the new hold can be lost, too";
}

TEST_F(LeaseRenewalTest, a_renewal_whose_reply_was_lost_does_not_lose_the_lease) {
  for (int i = 0; i < 5; ++i) {
    script_.Next("patch", Fault::DropReply());
    clock_.Advance(seconds(6));  // the repetition conflicts with the first, the next one succeeds
    EXPECT_TRUE(Permitted());
    script_.Next("patch", Fault::DropReply(), 2);
    clock_.Advance(seconds(9));  // the repetition's reply is lost, too, and the next one conflicts
    EXPECT_TRUE(Permitted());
  }
  EXPECT_TRUE(lease_->held());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, the_record_is_stored_as_annotations_and_what_is_absent_is_removed) {
  PoolRecord record = RecordOf(7);
  record.action = harvester::LeaseAction{.id = "act", .names = {"web-a"}};
  record.back_off = {{"create", {.failures = 1, .retry_at = ServerNow()}}};
  record.policy = harvester::PolicyRecord{.id = "policy", .at = ServerNow()};
  record.replacement = harvester::StoppedReplacement{.at = ServerNow(), .why = "it lacked room"};
  record.last_error = harvester::ErrorRecord{.at = ServerNow(), .text = "refused"};
  ASSERT_THAT(lease_->Store(context_, record), IsOk());
  const PoolRecord stored = ParsePoolRecord(Lease(), log::Logger());
  EXPECT_EQ(stored.action, record.action);
  EXPECT_EQ(stored.back_off, record.back_off);
  EXPECT_EQ(stored.last_event, record.last_event);
  EXPECT_EQ(stored.policy, record.policy);
  EXPECT_EQ(stored.replacement, record.replacement);
  EXPECT_EQ(stored.last_error, record.last_error);
  EXPECT_EQ(lease_->record().action, record.action);
  Annotate("kept", "yes");
  ASSERT_THAT(lease_->Store(context_, {}), IsOk());
  EXPECT_EQ(Lease().annotations, (std::map<std::string, std::string>{{"kept", "yes"}}));
  EXPECT_EQ(Lease().holder, "me");
}

TEST_F(LeaseRenewalTest, L4_names_that_no_VM_can_have_are_dropped_with_one_line) {
  PoolRecord record = RecordOf(1);
  record.action = harvester::LeaseAction{.id = "act",
                                         .names = {"web-a", "web.b", "../x", ""},
                                         .create = {{"web-a", "act"}, {"../x", "act"}},
                                         .cancel = {"web-a", "Web"}};
  ASSERT_THAT(lease_->Store(context_, record), IsOk());
  const auto sink = std::make_shared<support::RecordingSink>();
  const PoolRecord read = ParsePoolRecord(Lease(), log::Logger(sink, log::Level::kDebug));
  EXPECT_THAT(read.action->names, ElementsAre("web-a", "web.b"));
  EXPECT_THAT(read.action->create, ElementsAre(testing::Pair("web-a", "act")));
  EXPECT_THAT(read.action->cancel, ElementsAre("web-a"));
  EXPECT_EQ(sink->Count("", log::Level::kWarn), 1U);
}

TEST_F(LeaseRenewalTest, a_conflict_of_a_renewal_with_a_store_is_resolved) {
  script_.Before("patch", [&] { clock_.Advance(seconds(3)); });
  ASSERT_THAT(Store(1), IsOk());
  EXPECT_TRUE(Stored(1));
  EXPECT_EQ(lease_->record().last_event, RecordOf(1).last_event);
  clock_.Advance(seconds(30));
  EXPECT_TRUE(lease_->held());
  EXPECT_TRUE(Permitted());
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, a_conflict_of_a_store_with_a_renewal_is_resolved) {
  for (std::int64_t i = 1; i <= 5; ++i) {
    script_.Before("patch", [this, i] { EXPECT_THAT(Store(i), IsOk()); });
    clock_.Advance(seconds(6));
    EXPECT_TRUE(Stored(i));
    EXPECT_TRUE(Permitted());
  }
  EXPECT_EQ(lost_, 0);
}

TEST_F(LeaseRenewalTest, a_renewal_that_conflicts_is_repeated_immediately) {
  script_.Before("patch", [this] { EXPECT_THAT(Store(1), IsOk()); });
  clock_.Advance(seconds(3));
  EXPECT_EQ(Lease().renew_time, ServerNow());
}

TEST_F(LeaseRenewalTest, a_store_whose_reply_was_lost_is_repeated) {
  script_.Next("patch", Fault::DropReply());
  ASSERT_THAT(Store(1), IsOk());
  EXPECT_TRUE(Stored(1));
  clock_.Advance(seconds(30));
  EXPECT_TRUE(lease_->held());
}

TEST_F(LeaseRenewalTest, a_store_that_failed_is_not_remembered) {
  ASSERT_THAT(Store(1), IsOk());
  script_.Always("patch", Fault::Answer(422));
  EXPECT_THAT(Store(2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(lease_->record().last_event, RecordOf(1).last_event);
}

TEST_F(LeaseRenewalTest, a_store_gives_up_on_a_lease_that_changes_all_the_time) {
  int changes = 0;
  const std::function<void()> change = [&] {
    Annotate("busy", std::to_string(++changes));
    script_.Before("patch", change);
  };
  script_.Before("patch", change);
  EXPECT_FALSE(Store(1).ok());
  EXPECT_FALSE(Stored(1));
}

TEST_F(LeaseRenewalTest, C11_nothing_is_stored_in_a_lease_that_another_process_has_taken) {
  Hold("other", ServerNow());
  EXPECT_THAT(Store(1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(Stored(1));
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(LeaseRenewalTest, C11_nothing_is_stored_while_the_permit_refuses) {
  script_.Always("patch", Fault::Answer(503));
  clock_.Advance(seconds(11));
  ASSERT_TRUE(lease_->held());
  script_.Always("patch", Fault::None());
  script_.Forget();
  EXPECT_THAT(Store(1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(script_.Count("patch"), 0U);
}

TEST_F(LeaseRenewalTest, releasing_empties_the_holder_by_resource_version_and_keeps_the_record) {
  ASSERT_THAT(Store(1), IsOk());
  const std::string version = Lease().resource_version;
  script_.Forget();
  lease_->Release(context_);
  ASSERT_EQ(script_.requests().size(), 1U);
  EXPECT_EQ(kube::ResourceVersionOf(nlohmann::json::parse(script_.requests()[0].body)), version);
  EXPECT_EQ(Lease().holder, "");
  EXPECT_TRUE(Stored(1));
  EXPECT_FALSE(lease_->held());
  EXPECT_FALSE(Permitted());
  lease_->Release(context_);
  clock_.Advance(minutes(1));
  EXPECT_EQ(script_.requests().size(), 1U) << "renewal has ended, and there is nothing to give up";
}

TEST_F(LeaseRenewalTest, S4_releasing_writes_the_last_record_with_the_same_request) {
  EXPECT_TRUE(ReleaseWith(RecordOf(2)));
  EXPECT_EQ(script_.requests().size(), 1U);
  EXPECT_EQ(Lease().holder, "");
  EXPECT_TRUE(Stored(2));
  EXPECT_EQ(lease_->record(), RecordOf(2));
  ASSERT_THAT(Acquire(*lease_), IsOk());
  EXPECT_EQ(script_.Count("get"), 0U) << "it is known to be free";
}

TEST_F(LeaseRenewalTest, L9_while_a_write_may_take_effect_the_last_record_is_written_alone) {
  lease_->permit()->WriteBegan();
  lease_->permit()->WriteEnded(/*abandoned=*/true);
  EXPECT_TRUE(ReleaseWith(RecordOf(2)));
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_TRUE(Stored(2));
}

TEST_F(LeaseRenewalTest, S4_a_last_record_that_cannot_be_written_is_a_warning) {
  script_.Always("patch", Fault::Answer(503));
  EXPECT_FALSE(ReleaseWith(RecordOf(2)));
  EXPECT_EQ(Warnings(), 1U);
  EXPECT_FALSE(lease_->held());
}

TEST_F(LeaseRenewalTest, S4_a_last_record_whose_reply_was_lost_is_stored) {
  script_.Next("patch", Fault::DropReply());
  EXPECT_TRUE(ReleaseWith(RecordOf(2)));
  EXPECT_EQ(Lease().holder, "");
  EXPECT_TRUE(Stored(2));
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

TEST_F(LeaseRenewalTest, S4_a_lease_whose_last_record_is_refused_is_released_without_it) {
  script_.Next("patch", Fault::Answer(422));
  EXPECT_FALSE(ReleaseWith(RecordOf(2)));
  EXPECT_EQ(Lease().holder, "");
  EXPECT_FALSE(Stored(2));
  EXPECT_EQ(Warnings(), 1U);
}

TEST_F(LeaseRenewalTest, C11_a_last_record_is_never_written_over_another_process) {
  Hold("other", ServerNow());
  EXPECT_FALSE(ReleaseWith(RecordOf(2)));
  EXPECT_FALSE(Stored(2));
}

TEST_F(LeaseRenewalTest, C11_releasing_never_empties_the_holder_of_another_process) {
  Hold("other", ServerNow());
  lease_->Release(context_);
  EXPECT_EQ(Lease().holder, "other");
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

TEST_F(LeaseRenewalTest, a_release_that_conflicts_with_a_patch_of_our_own_is_repeated) {
  Annotate("kept", "yes");  // as a renewal that was cancelled and took effect all the same
  lease_->Release(context_);
  EXPECT_EQ(Lease().holder, "");
}

TEST_F(LeaseRenewalTest, a_release_that_fails_lets_the_lease_expire) {
  script_.Always("patch", Fault::Answer(503));
  lease_->Release(context_);
  EXPECT_FALSE(lease_->held());
  script_.Always("patch", Fault::None());
  clock_.Advance(seconds(6));
  const auto other = Process("other");
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*other), IsOk()); }), kLeaseDuration);
}

TEST_F(LeaseRenewalTest, C16_stopping_the_renewal_sends_nothing_and_permits_nothing) {
  lease_->StopRenewal();
  clock_.Advance(minutes(1));
  EXPECT_EQ(script_.requests().size(), 0U);
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
  script_.Forget();
  clock_.Advance(minutes(1));
  EXPECT_EQ(script_.requests().size(), 0U);
}

TEST_F(LeaseRenewalTest, C11_renewals_that_fail_again_after_one_succeeded_are_told_again) {
  for (int i = 0; i < 2; ++i) {
    script_.Next("patch", Fault::Answer(403), 2);
    clock_.Advance(seconds(12));
    EXPECT_TRUE(lease_->held());
  }
  EXPECT_EQ(sink_->Count("Could not renew the pool's Lease", log::Level::kWarn), 2U)
      << sink_->Text();
}

}  // namespace
}  // namespace nomad_harvester::scaling
