// SPDX-License-Identifier: Apache-2.0
//
// How the Lease is acquired: free, held by a live process, held by one that has stopped renewing.

#include "nomad_harvester/scaling/pool_lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lease_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Le;

class PoolLeaseTest : public LeaseFixture {};

TEST_F(PoolLeaseTest, is_created_where_there_is_none) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  const nlohmann::json object = Object();
  ASSERT_TRUE(object.is_object());
  EXPECT_EQ(object.at("metadata").at("labels").at(harvester::kPoolLabel), "web");
  EXPECT_EQ(object.at("metadata").at("labels").at(harvester::kManagedByLabel),
            harvester::kManagedByValue);
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_EQ(Lease().lease_duration_seconds, 20);
  EXPECT_TRUE(Lease().renew_time.has_value());
  EXPECT_TRUE(lease->held());
  EXPECT_FALSE(lease->record().action.has_value());
  EXPECT_THAT(lease->permit()->Check(), IsOk());
}

TEST_F(PoolLeaseTest, C11_one_that_was_read_as_missing_is_created_without_reading_it_again) {
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  const std::size_t before = script_.Count("get");
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(script_.Count("get"), before);
  EXPECT_EQ(Lease().holder, "me");
}

TEST_F(PoolLeaseTest, C11_one_without_a_holder_is_acquired_without_reading_it_again) {
  Hold("", ServerNow());
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(script_.Count("get"), 1U);
}

TEST_F(PoolLeaseTest, C11_one_that_another_process_holds_costs_one_request) {
  Hold("other", ServerNow());
  const auto lease = Process();
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(script_.requests().size(), 1U);
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(script_.Count("get"), 2U) << "it is known to be held";
  EXPECT_EQ(script_.requests().size(), 2U);
}

// As of a proxy that answers itself.
TEST_F(PoolLeaseTest, C11_a_reply_that_is_no_Lease_takes_it_from_nobody) {
  Hold("other", ServerNow());
  const auto lease = Process();
  script_.Next("get", Fault::Answer(200, R"({"message":"try again"})"));
  EXPECT_THAT(Acquire(*lease),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the reply is no Lease")));
  EXPECT_EQ(script_.Count("patch"), 0U);
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(PoolLeaseTest, C11_one_that_another_process_has_taken_since_it_was_read_is_not_free) {
  Hold("", ServerNow());
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  Hold("other", ServerNow());
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
}

// As when a Scale has interrupted the first request of a resumption.
TEST_F(PoolLeaseTest, C11_an_acquisition_of_ours_without_an_answer_is_read_and_acquired_again) {
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  const runtime::CancelSource call(context_);
  script_.Next("create", Fault::DropReply());
  script_.Before("create", [&] { call.Cancel(runtime::CancelReason::kTakenOver); });
  EXPECT_FALSE(lease->Acquire(call.context(), LeaseUser::kResumption, [] {}).ok());
  script_.Forget();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(script_.requests().size(), 2U);
  EXPECT_EQ(script_.Count("get"), 1U);
  EXPECT_EQ(script_.Count("patch"), 1U);
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_EQ(Lease().transitions, 1);
}

TEST_F(PoolLeaseTest, C11_one_that_another_process_has_created_since_is_not_free) {
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  Hold("other", ServerNow());
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(PoolLeaseTest, C11_only_one_that_nobody_has_held_since_is_acquired_without_a_read) {
  const auto lease = Process();
  const auto reads = [&] {
    script_.Forget();
    EXPECT_THAT(Acquire(*lease), IsOk());
    lease->Release(context_);
    return script_.Count("get");
  };
  EXPECT_EQ(reads(), 1U) << "nothing is known";
  EXPECT_EQ(reads(), 0U);
  const auto other = Process("other");
  ASSERT_THAT(Acquire(*other), IsOk());
  other->Release(context_);
  EXPECT_EQ(reads(), 1U) << "another process has held it in between";
}

TEST_F(PoolLeaseTest, a_free_one_is_taken_under_its_resource_version_with_its_record) {
  Hold("", ServerNow());
  harvester::LeaseAction action{.id = "act", .from = 1, .to = 3};
  Annotate(harvester::kLeaseActionAnnotation, harvester::ToAnnotation(action));
  Annotate(harvester::kLeaseLastEventAnnotation, "2026-01-01T00:00:00.000000007Z");
  const std::string version = Lease().resource_version;
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_EQ(Lease().transitions, 1);
  const auto patch = nlohmann::json::parse(script_.requests().back().body);
  EXPECT_EQ(kube::ResourceVersionOf(patch), version);
  EXPECT_EQ(lease->record().action, action);
  ASSERT_TRUE(lease->record().last_event.has_value());
  EXPECT_EQ(lease->record().last_event->time_since_epoch() % seconds(1),
            std::chrono::nanoseconds(7));
}

TEST_F(PoolLeaseTest, C15_the_keys_that_adopt_writes_while_it_is_held_are_not_overwritten) {
  Hold("", ServerNow());
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  PoolRecord record = lease->record();
  record.action = harvester::LeaseAction{.id = "act", .from = 1, .to = 3};
  ASSERT_THAT(lease->Store(context_, record, "first"), IsOk());
  EXPECT_EQ(lease->record().nomad_cluster, "first");
  record = lease->record();
  Annotate(harvester::kNomadClusterAnnotation, "adopted");
  ASSERT_THAT(lease->Store(context_, record), IsOk());
  EXPECT_EQ(lease->record().nomad_cluster, "adopted");
  Annotate(harvester::kNomadClusterAnnotation, "again");
  ASSERT_TRUE(lease->Release(context_, &record));
  EXPECT_EQ(Lease().annotations.at(harvester::kNomadClusterAnnotation), "again");
}

TEST_F(PoolLeaseTest, R5_a_stopped_replacement_that_an_operator_ends_while_it_is_held_stays_ended) {
  Hold("", ServerNow());
  const std::string stopped = harvester::ToAnnotation(
      harvester::StoppedReplacement{.at = ServerNow(), .vm = "web-1", .why = "broken"});
  const auto end_it = [&] {
    Change({{"metadata", {{"annotations", {{harvester::kLeaseReplacementAnnotation, nullptr}}}}}});
  };
  Annotate(harvester::kLeaseReplacementAnnotation, stopped);
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  PoolRecord record = lease->record();
  ASSERT_TRUE(record.replacement.has_value());
  record.action = harvester::LeaseAction{.id = "act", .from = 1, .to = 3};
  end_it();
  ASSERT_THAT(lease->Store(context_, record), IsOk());
  EXPECT_FALSE(Lease().annotations.contains(harvester::kLeaseReplacementAnnotation));
  EXPECT_EQ(lease->record().replacement, std::nullopt);

  ASSERT_THAT(lease->Store(context_, record), IsOk()) << "the loop stops it once more";
  ASSERT_TRUE(Lease().annotations.contains(harvester::kLeaseReplacementAnnotation));
  end_it();
  record.action.reset();
  ASSERT_TRUE(lease->Release(context_, &record));
  EXPECT_FALSE(Lease().annotations.contains(harvester::kLeaseReplacementAnnotation));
  EXPECT_EQ(lease->record().replacement, std::nullopt);
}

TEST_F(PoolLeaseTest, R5_a_replacement_that_stops_last_is_stored_with_the_release) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  PoolRecord record = lease->record();
  record.replacement =
      harvester::StoppedReplacement{.at = ServerNow(), .vm = "web-1", .why = "broken"};
  ASSERT_TRUE(lease->Release(context_, &record));
  EXPECT_TRUE(Lease().annotations.contains(harvester::kLeaseReplacementAnnotation));
}

TEST_F(PoolLeaseTest, C11_a_scale_is_aborted_immediately_while_another_process_renews_it) {
  Hold("other", ServerNow() - seconds(5));
  const auto lease = Process();
  absl::Status status;
  EXPECT_EQ(Taken([&] { status = Acquire(*lease); }), base::Duration::zero());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                               AllOf(HasSubstr("default/web"), HasSubstr("other"))));
  EXPECT_EQ(script_.Count("patch"), 0U);
  EXPECT_EQ(Lease().holder, "other");
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->permit()->Check().ok());
}

TEST_F(PoolLeaseTest, C11_the_age_of_a_renewal_is_measured_by_the_replys_date_not_by_our_clock) {
  clock_.set_wall_skew(hours(3));
  Hold("other", ServerNow() - seconds(5));
  EXPECT_THAT(Acquire(*Process()), StatusIs(absl::StatusCode::kAborted));
  clock_.set_wall_skew(-hours(3));
  Hold("other", ServerNow() - seconds(6));
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(20));
}

TEST_F(PoolLeaseTest, C11_a_renewal_that_may_be_five_seconds_old_counts_as_one_of_a_live_process) {
  // Dates have whole seconds: a difference of 5.9 s may be one of 5 s.
  Hold("other", ServerNow() - milliseconds(5900));
  EXPECT_THAT(Acquire(*Process()), StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(MayBeAlive(Lease()));
  Hold("other", ServerNow() - seconds(6));
  EXPECT_FALSE(MayBeAlive(Lease()));
  Hold("", ServerNow());
  EXPECT_FALSE(MayBeAlive(Lease())) << "nobody holds it";
}

TEST_F(PoolLeaseTest, C11_one_that_was_read_hours_ago_is_taken_with_the_servers_present_time) {
  Hold("", ServerNow());
  const auto lease = Process();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  clock_.Advance(hours(2));
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_TRUE(MayBeAlive(Lease())) << "others must not take it for one that nobody renews";
}

TEST_F(PoolLeaseTest, C11_a_success_whose_reply_is_no_lease_holds_nothing) {
  script_.Next("create", Fault::Answer(200, "{}"));
  const auto creating = Process();
  EXPECT_THAT(Acquire(*creating),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the reply is no Lease")));
  EXPECT_FALSE(creating->held());
  EXPECT_FALSE(creating->permit()->Check().ok());
  Hold("", ServerNow());
  script_.Next("patch", Fault::Answer(200, "{}"));
  const auto taking = Process();
  EXPECT_THAT(Acquire(*taking),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the reply is no Lease")));
  EXPECT_FALSE(taking->held());
  EXPECT_FALSE(taking->permit()->Check().ok());
}

TEST_F(PoolLeaseTest, L2_an_acquisition_that_a_webhook_undoes_holds_nothing) {
  Hold("", ServerNow());
  const auto lease = Process();
  script_.Next("patch", Fault::Answer(200, Object().dump()));
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("accepted without effect")));
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->permit()->Check().ok());
}

TEST_F(PoolLeaseTest, C11_a_holder_that_has_not_renewed_for_twenty_seconds_is_replaced) {
  Hold("other", ServerNow() - seconds(6));
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(20));
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_TRUE(lease->held());
}

TEST_F(PoolLeaseTest, C11_it_waits_twenty_seconds_by_our_own_clock_however_old_the_renewal_is) {
  Hold("other", ServerNow() - hours(24));
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(20));
}

TEST_F(PoolLeaseTest, C11_a_holder_that_renews_while_it_is_watched_aborts_the_call) {
  Hold("other", ServerNow() - seconds(6));
  clock_.After(seconds(17), [&] { Hold("other", ServerNow()); });
  const auto lease = Process();
  absl::Status status;
  EXPECT_EQ(Taken([&] { status = Acquire(*lease); }), seconds(18));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(PoolLeaseTest, C11_another_holder_with_the_same_renewal_time_counts_as_a_renewal) {
  const base::WallTime old = ServerNow() - minutes(1);
  Hold("other", old);
  clock_.After(seconds(9), [&] { Hold("third", old); });
  EXPECT_THAT(Acquire(*Process()), StatusIs(absl::StatusCode::kAborted, HasSubstr("third")));
}

TEST_F(PoolLeaseTest, a_holder_that_releases_it_while_it_is_watched_is_replaced_immediately) {
  Hold("other", ServerNow() - seconds(6));
  clock_.After(seconds(3), [&] { Hold("", ServerNow()); });
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(4));
}

TEST_F(PoolLeaseTest, what_was_observed_of_a_holder_counts_in_the_next_call) {
  Hold("other", ServerNow() - seconds(6));
  const auto lease = Process();
  EXPECT_THAT(lease->Acquire(context_.WithTimeout(seconds(5)), LeaseUser::kScale, nullptr),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(lease->held());
  clock_.Advance(seconds(15));
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), base::Duration::zero());
}

TEST_F(PoolLeaseTest, after_a_renewal_between_two_calls_the_wait_starts_again) {
  Hold("other", ServerNow() - seconds(6));
  const auto lease = Process();
  EXPECT_FALSE(lease->Acquire(context_.WithTimeout(seconds(5)), LeaseUser::kScale, nullptr).ok());
  Hold("other", ServerNow());
  clock_.Advance(seconds(15));
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(20));
}

TEST_F(PoolLeaseTest, C11_a_renewal_in_the_future_is_watched_as_an_old_one) {
  Hold("other", ServerNow() + hours(1));
  EXPECT_FALSE(MayBeAlive(Lease()));
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), seconds(20))
      << "a command is a new process at each call, and would be refused for an hour";
}

TEST_F(PoolLeaseTest, S5_a_resumption_waits_for_a_holder_that_has_just_terminated) {
  Hold("other", ServerNow());
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease, LeaseUser::kResumption), IsOk()); }),
            seconds(20));
}

TEST_F(PoolLeaseTest, S5_a_resumption_leaves_the_pool_to_a_holder_that_renews) {
  const auto other = Process("other");
  ASSERT_THAT(Acquire(*other), IsOk());
  const auto lease = Process();
  absl::Status status;
  EXPECT_THAT(Taken([&] { status = Acquire(*lease, LeaseUser::kResumption); }), Le(seconds(4)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted));
  EXPECT_TRUE(other->held());
}

TEST_F(PoolLeaseTest, C11_of_two_processes_one_acts_until_it_releases_the_lease) {
  const auto first = Process("first");
  const auto second = Process("second");
  ASSERT_THAT(Acquire(*first), IsOk());
  for (int minute = 0; minute < 3; ++minute) {
    clock_.Advance(minutes(1));
    EXPECT_THAT(Acquire(*second), StatusIs(absl::StatusCode::kAborted));
  }
  first->Release(context_);
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*second), IsOk()); }), base::Duration::zero());
  EXPECT_THAT(Acquire(*first), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(lost_, 0);
}

TEST_F(PoolLeaseTest, C11_the_loser_of_the_race_for_a_free_lease_does_not_act) {
  Hold("", ServerNow());
  const auto other = Process("other");
  script_.Before("patch", [&] { EXPECT_THAT(Acquire(*other), IsOk()); });
  const auto lease = Process();
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
  EXPECT_TRUE(other->held());
  EXPECT_FALSE(lease->held());
}

TEST_F(PoolLeaseTest, C11_the_loser_of_the_race_for_the_creation_does_not_act) {
  const auto other = Process("other");
  script_.Before("create", [&] { EXPECT_THAT(Acquire(*other), IsOk()); });
  EXPECT_THAT(Acquire(*Process()), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(PoolLeaseTest, C11_a_conflict_that_lasts_is_no_busy_loop) {
  Hold("", ServerNow());
  script_.Always("patch", Fault::Answer(409, R"({"kind": "Status", "apiVersion": "v1",
      "status": "Failure", "reason": "Conflict", "code": 409, "message": "try again"})"));
  const auto lease = Process();
  EXPECT_THAT(lease->Acquire(context_.WithTimeout(minutes(1)), LeaseUser::kScale, [] {}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("try again")));
  EXPECT_LE(script_.Count("patch"), 32U) << "one in two seconds";
}

TEST_F(PoolLeaseTest, a_lost_reply_to_the_takeover_is_resolved) {
  Hold("", ServerNow());
  script_.Next("patch", Fault::DropReply());
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Lease().holder, "me");
  clock_.Advance(minutes(1));
  EXPECT_TRUE(lease->held());
  EXPECT_EQ(lost_, 0);
}

TEST_F(PoolLeaseTest, a_lost_reply_to_the_creation_is_resolved) {
  script_.Next("create", Fault::DropReply());
  const auto lease = Process();
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), base::Duration::zero());
  EXPECT_TRUE(lease->held());
}

TEST_F(PoolLeaseTest, a_takeover_whose_outcome_stayed_unknown_is_recognized_by_the_next_call) {
  Hold("", ServerNow());
  script_.Next("patch", Fault::DropReply(), 2);
  const auto lease = Process();
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->permit()->Check().ok());
  EXPECT_EQ(Taken([&] { EXPECT_THAT(Acquire(*lease), IsOk()); }), base::Duration::zero());
}

TEST_F(PoolLeaseTest, every_other_failure_to_acquire_it_is_returned) {
  script_.Always("get", Fault::Answer(500));
  const auto lease = Process();
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kInternal));
  script_.Always("get", Fault::Answer(401));
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kUnauthenticated));
  script_.Always("get", Fault::None());
  script_.Always("create", Fault::Answer(422));
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->permit()->Check().ok());
  EXPECT_EQ(Warnings(), 0U) << sink_->Text();
}

TEST_F(PoolLeaseTest, waiting_for_a_holder_ends_with_the_call) {
  Hold("other", ServerNow() - seconds(6));
  const runtime::CancelSource source(context_);
  clock_.After(seconds(7), [&] { source.Cancel(runtime::CancelReason::kClient); });
  const auto lease = Process();
  EXPECT_THAT(lease->Acquire(source.context(), LeaseUser::kScale, nullptr),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(Lease().holder, "other");
}

TEST_F(PoolLeaseTest, annotations_that_cannot_be_read_are_reported_and_count_as_absent) {
  Hold("", ServerNow());
  Annotate(harvester::kLeaseActionAnnotation, "{");
  Annotate(harvester::kLeaseBackOffAnnotation, "[]");
  Annotate(harvester::kLeaseLastEventAnnotation, "yesterday");
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_FALSE(lease->record().action.has_value());
  EXPECT_TRUE(lease->record().back_off.empty());
  EXPECT_FALSE(lease->record().last_event.has_value());
  EXPECT_EQ(Warnings(), 3U) << sink_->Text();
  for (const char* key : {harvester::kLeaseActionAnnotation, harvester::kLeaseBackOffAnnotation,
                          harvester::kLeaseLastEventAnnotation}) {
    EXPECT_THAT(sink_->Text(), HasSubstr(key));
  }
}

TEST_F(PoolLeaseTest, one_unreadable_annotation_does_not_spoil_the_others) {
  Hold("", ServerNow());
  const harvester::BackOff back_off = {{"create", {.failures = 2, .retry_at = ServerNow()}}};
  Annotate(harvester::kLeaseActionAnnotation, "{");
  Annotate(harvester::kLeaseBackOffAnnotation, harvester::ToAnnotation(back_off));
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(lease->record().back_off, back_off);
}

TEST_F(PoolLeaseTest, S4_refresh_reads_the_record_and_does_not_acquire) {
  const auto lease = Process();
  EXPECT_THAT(lease->Refresh(context_), IsOk()) << "there is none yet";
  EXPECT_EQ(lease->record(), PoolRecord{});
  Hold("other", ServerNow());
  Annotate(harvester::kLeaseLastEventAnnotation, "2026-01-01T00:00:03Z");
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  EXPECT_EQ(lease->record().last_event, base::ParseRfc3339("2026-01-01T00:00:03Z").value());
  EXPECT_FALSE(lease->held());
  EXPECT_EQ(script_.Count("get"), script_.requests().size());
  Remove();
  ASSERT_THAT(lease->Refresh(context_), IsOk());
  EXPECT_EQ(lease->record(), PoolRecord{}) << "it was deleted with its record";
  script_.Always("get", Fault::Answer(500));
  EXPECT_THAT(lease->Refresh(context_), StatusIs(absl::StatusCode::kInternal));
}

// As a Status reads it while a Scale begins. An older record would drop the Scale's names from the
// Lease with its next Store (rule C10).
class OvertakenRefresh : public PoolLeaseTest {
 protected:
  // `write` happens between the read of the Lease and its reply, once the Lease was acquired.
  void RefreshWhile(const std::function<void()>& write) {
    Hold("", ServerNow());
    script_.Next("get", Fault::BeforeReply([&] {
                   ASSERT_THAT(Acquire(*lease_), IsOk());
                   write();
                 }));
    ASSERT_THAT(lease_->Refresh(context_), IsOk());
    EXPECT_EQ(lease_->record().action, written_.action);
  }

  const std::unique_ptr<PoolLease> lease_ = Process();
  const PoolRecord written_{.action = harvester::LeaseAction{.id = "act", .names = {"web-a"}}};
};

TEST_F(OvertakenRefresh, C10_by_an_acquisition_does_not_bring_back_its_record) {
  RefreshWhile([&] { ASSERT_THAT(lease_->Store(context_, written_), IsOk()); });
  EXPECT_TRUE(lease_->held());
}

TEST_F(OvertakenRefresh, C10_by_a_whole_hold_does_not_bring_back_its_record) {
  RefreshWhile([&] { EXPECT_TRUE(lease_->Release(context_, &written_)); });
}

TEST(PoolLeaseOptions, C11_a_write_ends_with_the_request_timeout_but_never_after_the_write_limit) {
  config::PluginConfig config;
  config.request_timeout = seconds(2);
  EXPECT_EQ(PoolLease::OptionsOf(config, "me").write_limit, seconds(2));
  config.request_timeout = minutes(1);
  EXPECT_EQ(PoolLease::OptionsOf(config, "me").write_limit, kWriteLimit);
}

TEST_F(PoolLeaseTest, one_that_we_released_is_acquired_again_in_one_request) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  clock_.Advance(minutes(5));
  script_.Forget();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(script_.requests().size(), 1U);
  EXPECT_EQ(Lease().holder, "me");
  EXPECT_EQ(Lease().renew_time, ServerNow()) << "others must see that it is alive";
  EXPECT_THAT(lease->permit()->Check(), IsOk());
}

TEST_F(PoolLeaseTest, C11_one_that_another_process_has_held_since_is_read_first) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  Hold("other", ServerNow());
  EXPECT_THAT(Acquire(*lease), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(Lease().holder, "other");
  EXPECT_FALSE(lease->held());
}

TEST_F(PoolLeaseTest, one_that_was_deleted_since_is_created_again) {
  const auto lease = Process();
  ASSERT_THAT(Acquire(*lease), IsOk());
  lease->Release(context_);
  Remove();
  ASSERT_THAT(Acquire(*lease), IsOk());
  EXPECT_EQ(Lease().holder, "me");
}

}  // namespace
}  // namespace nomad_harvester::scaling
