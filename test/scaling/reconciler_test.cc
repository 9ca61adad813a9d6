// SPDX-License-Identifier: Apache-2.0
#include "execution/reconciler.h"

#include <algorithm>

#include "pool_fixture.h"
#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

using simulator::Fault;
using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kRefusedStep[] = "WARN A step is refused; trying again later";

class ReconcilerTest : public PoolFixture {
 protected:
  // Pauses a pool in which web-a is to be removed and web-b to be rolled back.
  void PauseWithOneOfEach() {
    AddVm("web-a");
    AddVm("web-b");
    AnnotateLease(harvester::kLeasePausedAnnotation, "true");
    HoldLease({"web-a"});
    Idle("web-a");
    Drain("web-b");
  }
  // A resumption of its own, as each Status starts one.
  absl::Status Resume(const Reconciler::MayLeave& may_leave = {}) {
    Forget();
    Reconciler loop(Deps(), policy_);
    absl::Status outcome = loop.RunResumption(context(), may_leave);
    EXPECT_THAT(loop.StoreRecord(context()), IsOk());
    return outcome;
  }
  bool IsEligible(const std::string& vm) {
    return cluster_.Node(NodeOf(vm))["SchedulingEligibility"] == "eligible";
  }
  Retries::Key KeyFor(StepKind kind, const std::string& vm) { return {StepName(kind), UidOf(vm)}; }
  // A VM that has not joined in time, and whose node is gone.
  void AddBroken(const std::string& vm) {
    cluster_.NeverJoin(1);
    AddUnjoined(vm);
    clock_.Advance(minutes(16));
  }
  void PutClaimOf(const std::string& vm,
                  const nlohmann::json& finalizers = nlohmann::json::array()) {
    cluster_.PutObject({{"apiVersion", "v1"},
                        {"kind", "PersistentVolumeClaim"},
                        {"metadata",
                         {{"namespace", "nomad"},
                          {"name", vm + "-disk-0-abcde"},
                          {"labels", {{harvester::kPoolLabel, "web"}}},
                          {"finalizers", finalizers}}}});
  }
};

TEST_F(ReconcilerTest, C14_roll_backs_are_done_before_the_pool_is_settled) {
  AddVm("web-a");
  AddVm("web-b");
  HoldLease();
  Drain("web-a");
  Mark("web-b");  // by an action that the Lease does not name
  auto settled = Reconciler(Deps(), policy_).FinishRollBacks(context());
  ASSERT_THAT(settled, IsOk());
  EXPECT_THAT(settled->left_out, IsEmpty());
  EXPECT_EQ(CountOf(settled->snapshot), 2);
  EXPECT_THAT(Effects(), testing::IsSupersetOf({"update drain", "patch virtualmachines"}));
  EXPECT_FALSE(IsMarked("web-b"));
  EXPECT_TRUE(IsEligible("web-a"));
}

TEST_F(ReconcilerTest, C14_a_roll_back_that_is_refused_is_left_out_with_the_reason) {
  AddVm("web-a");
  HoldLease();
  Mark("web-a");
  Always("patch virtualmachines", Refused());
  const base::MonoTime begun = clock_.Now();
  auto settled = Reconciler(Deps(), policy_).FinishRollBacks(context());
  ASSERT_THAT(settled, IsOk());
  EXPECT_GE(clock_.Now() - begun, seconds(15));
  EXPECT_LT(clock_.Now() - begun, seconds(20));
  ASSERT_TRUE(settled->left_out.contains("web-a"));
  EXPECT_THAT(settled->left_out.at("web-a"), HasSubstr("does not succeed: "));
  EXPECT_EQ(Count("patch virtualmachines"), Logged(kRefusedStep)) << "at each doubling";
  EXPECT_LT(Count("patch virtualmachines"), 9U);
}

TEST_F(ReconcilerTest, C14_a_roll_back_that_is_not_answered_costs_a_scale_15_seconds) {
  AddVm("web-a");
  HoldLease();
  Mark("web-a");
  Always("patch virtualmachines", Fault::Delay(minutes(1)));
  const base::MonoTime begun = clock_.Now();
  auto settled = Reconciler(Deps(), policy_).FinishRollBacks(context());
  ASSERT_THAT(settled, IsOk());
  EXPECT_LT(clock_.Now() - begun, seconds(20));
  EXPECT_TRUE(settled->left_out.contains("web-a"));
}

TEST_F(ReconcilerTest, C14_a_roll_back_that_is_accepted_in_vain_is_left_out) {
  AddVm("web-a");
  HoldLease();
  Drain("web-a");
  for (const std::string request : {"update drain", "update eligibility"}) {
    Always(request, Fault::Answer(200, "{}"));
  }
  auto settled = Reconciler(Deps(), policy_).FinishRollBacks(context().WithTimeout(minutes(10)));
  ASSERT_THAT(settled, IsOk());
  EXPECT_TRUE(settled->left_out.contains("web-a"));
}

TEST_F(ReconcilerTest, L2_a_roll_back_that_the_next_scale_undoes_had_its_effect) {
  AddVm("web-a");
  HoldLease();
  for (int i = 0; i < 3; ++i) {
    Mark("web-a");
    auto settled = Reconciler(Deps(), policy_).FinishRollBacks(context());
    ASSERT_THAT(settled, IsOk());
    EXPECT_THAT(settled->left_out, IsEmpty());
    EXPECT_FALSE(IsMarked("web-a"));
  }
  EXPECT_EQ(Logged(kRefusedStep), 0U);
}

TEST_F(ReconcilerTest, L2_a_scale_does_not_forget_that_a_step_was_accepted_without_effect) {
  AddNamed({"web-a"});
  Mark("web-a");
  Always("update drain", Fault::Answer(200, "{}"));
  for (int i = 0; i < 30 && IsMarked("web-a"); ++i) {
    Resume().IgnoreError();
    clock_.Advance(seconds(3));
    EXPECT_THAT(Reconciler(Deps(), policy_).FinishRollBacks(context()), IsOk());
  }
  EXPECT_FALSE(IsMarked("web-a")) << "refused for good after a minute";
  EXPECT_LT(Count("update drain"), 15U);
}

TEST_F(ReconcilerTest, C2_nothing_is_settled_without_nomad_or_by_a_call_that_ends) {
  AddVm("web-a");
  HoldLease();
  Mark("web-a");
  Next("list nodes", RefusedByNomad());
  EXPECT_THAT(Reconciler(Deps(), policy_).FinishRollBacks(context()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Nomad cannot be read")));
  EXPECT_THAT(Effects(), IsEmpty());
  After("list virtualmachineinstances", [&] { client_.Cancel(runtime::CancelReason::kClient); });
  EXPECT_THAT(Reconciler(Deps(), policy_).FinishRollBacks(context()),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(IsMarked("web-a"));
}

TEST_F(ReconcilerTest, L7_a_resumption_without_work_observes_sweeps_once_and_writes_nothing) {
  AddVm("web-a");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(Sent(),
              ElementsAre("list nodes", "get jwks.json", "list virtualmachines",
                          "list virtualmachineinstances", "get namespaces",
                          "list persistentvolumeclaims", "list secrets", "list virtualmachines"));
}

TEST_F(ReconcilerTest, S5_a_resumption_records_the_join_and_when_it_acted_last) {
  AddUnjoined("web-a");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_EQ(Annotation("web-a", harvester::kNodeIdAnnotation), NodeOf("web-a"));
  EXPECT_EQ(Effects(), (Strings{"patch virtualmachines", "patch leases"}));
  EXPECT_NE(LeaseAnnotation(harvester::kLeaseLastEventAnnotation), "");
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].step.kind, StepKind::kRecordJoin);
}

TEST_F(ReconcilerTest, S4_a_clock_that_is_ahead_leads_last_event_into_no_future) {
  cluster_.SetClockSkews({std::chrono::hours(24)});
  AddUnjoined("web-a");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  ASSERT_TRUE(lease_.record().last_event.has_value());
  EXPECT_LE(*lease_.record().last_event, clock_.WallNow());
}

TEST_F(ReconcilerTest, L9_a_run_that_is_stopped_releases_the_lease_with_one_request) {
  HoldLease();
  Reconciler loop(Deps(), policy_);
  troubles_.unrecorded.last_event = clock_.WallNow();
  client_.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_FALSE(loop.Release(*hold_)) << "the next run stores its record";
  EXPECT_EQ(Count("patch leases"), 0U);
  EXPECT_EQ(cluster_.Leases().at(0)["spec"]["holderIdentity"], "");
  EXPECT_TRUE(troubles_.unrecorded.last_event.has_value());
}

TEST_F(ReconcilerTest, C10_a_vm_is_named_on_the_lease_before_it_is_marked) {
  AddBroken("web-a");
  HoldLease();
  std::set<std::string> named;
  After("patch leases", [&] { named = StoredAction().names; });
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(named, ElementsAre("web-a"));
  const Strings effects = Effects();
  ASSERT_GE(effects.size(), 6U);
  EXPECT_EQ(Strings(effects.begin(), effects.begin() + 6),
            (Strings{"patch leases", "patch virtualmachines", "patch leases", "patch configmaps",
                     "create configmaps", "delete virtualmachines"}))
      << "the failure is stored at once (C12), and what it was made of before it is gone (T3)";
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "") << "it is closed";
  EXPECT_NE(LeaseAnnotation(harvester::kLeaseBackOffAnnotation), "") << "a join has failed";
  EXPECT_THAT(troubles_.leftovers, IsEmpty());
  EXPECT_THAT(cluster_.Secrets(), IsEmpty());
}

TEST_F(ReconcilerTest, C10_nothing_is_marked_that_the_lease_could_not_name) {
  AddBroken("web-a");
  HoldLease();
  Always("patch leases", Refused());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_EQ(Count("patch virtualmachines"), 0U);
  EXPECT_EQ(Count("patch leases"), 3U) << "it gives up after three passes without an effect";
}

TEST_F(ReconcilerTest, L1_what_is_refused_is_noted_for_its_vm_and_the_others_are_finished) {
  AddNamed({"web-a", "web-b"});
  Idle("web-a");
  Idle("web-b");
  cluster_.Refuse({.verb = "delete", .resource = "virtualmachines", .name = "web-a"});
  EXPECT_FALSE(Resume().ok());
  EXPECT_TRUE(cluster_.Vm("web-b").is_null());
  EXPECT_FALSE(troubles_.retries.LastOf(KeyFor(StepKind::kDelete, "web-a")).ok());
  EXPECT_GE(troubles_.removal_refusals.at("web-a").count, 1);
  EXPECT_EQ(troubles_.removal_refusals.count("web-b"), 0U);
  EXPECT_THAT(StoredAction().names, ElementsAre("web-a")) << "only what is unfinished stays";
  EXPECT_GE(Logged(kRefusedStep), 1U);
}

TEST_F(ReconcilerTest, L2_a_step_waits_for_its_next_attempt_from_run_to_run) {
  AddNamed({"web-a"});
  Mark("web-a");
  Always("update drain", RefusedByNomad());
  EXPECT_FALSE(Resume().ok());
  EXPECT_EQ(Count("update drain"), 1U);
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kPermissionDenied)) << "the last answer";
  EXPECT_EQ(Count("update drain"), 0U);
  EXPECT_EQ(Logged(kRefusedStep), 1U);
  clock_.Advance(seconds(2));
  EXPECT_FALSE(Resume().ok());
  EXPECT_EQ(Count("update drain"), 1U);
  EXPECT_EQ(Logged(kRefusedStep), 2U) << "its wait has doubled";
}

TEST_F(ReconcilerTest, L3_the_troubles_of_a_removal_end_with_its_mark) {
  AddNamed({"web-a"});
  Mark("web-a");
  Next("update drain", RefusedByNomad());
  EXPECT_FALSE(Resume().ok());
  const Retries::Key key = KeyFor(StepKind::kStartDrain, "web-a");
  EXPECT_FALSE(troubles_.retries.LastOf(key).ok());
  cluster_.EditAnnotation("web-a", harvester::kScaleInAnnotation, std::nullopt);
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.retries.LastOf(key), IsOk());
}

TEST_F(ReconcilerTest, L3_the_trouble_of_an_un_marking_ends_when_an_operator_removes_the_mark) {
  AddVm("web-a");
  HoldLease();
  Mark("web-a");
  Next("patch virtualmachines", Refused());
  EXPECT_FALSE(Resume().ok());
  const Retries::Key key = KeyFor(StepKind::kRollBack, "web-a");
  EXPECT_FALSE(troubles_.retries.LastOf(key).ok());
  cluster_.EditAnnotation("web-a", harvester::kScaleInAnnotation, std::nullopt);
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.retries.LastOf(key), IsOk());
}

TEST_F(ReconcilerTest, L3_the_trouble_of_a_mark_ends_when_the_vm_is_not_to_be_marked_any_more) {
  AddBroken("web-a");
  HoldLease();
  Always("patch virtualmachines", Refused());
  EXPECT_FALSE(Resume().ok());
  const Retries::Key key = KeyFor(StepKind::kMarkBroken, "web-a");
  EXPECT_FALSE(troubles_.retries.LastOf(key).ok());
  cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true");
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.retries.LastOf(key), IsOk());
}

TEST_F(ReconcilerTest, C15_a_resumption_ends_after_three_passes_in_which_a_system_is_silent) {
  AddNamed({"web-a"});
  Idle("web-a");
  Always("list nodes", RefusedByNomad());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Permission denied")));
  EXPECT_EQ(Count("list nodes"), 3U);
  EXPECT_THAT(Effects(), IsEmpty());
  Next("list nodes", Fault::None());
  Always("list virtualmachines", Failed());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_EQ(Count("list virtualmachines"), 3U);
}

TEST_F(ReconcilerTest, L10_while_the_pool_is_paused_roll_backs_go_on_and_removals_do_not) {
  PauseWithOneOfEach();
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the pool is paused")));
  EXPECT_EQ(Count("delete virtualmachines"), 0U);
  EXPECT_TRUE(IsEligible("web-b"));
  EXPECT_THAT(sink_->Text(), HasSubstr("it waits, because the pool is paused"));
}

TEST_F(ReconcilerTest, C10_a_sweep_that_cannot_list_leaves_a_note_for_each_vm_that_is_gone) {
  HoldLease({"web-a"});
  Always("list secrets", Refused());
  EXPECT_THAT(Resume(), StatusIs(absl::StatusCode::kPermissionDenied));
  ASSERT_TRUE(troubles_.leftovers.contains("web-a"));
  EXPECT_TRUE(troubles_.leftovers.at("web-a").in_trouble);
  EXPECT_THAT(troubles_.leftovers.at("web-a").what, HasSubstr("cannot be listed"));
  EXPECT_THAT(StoredAction().names, ElementsAre("web-a")) << "the next process finds it";
  EXPECT_EQ(Logged("WARN Could not look for leftovers; trying again later"), 1U);
  Next("list secrets", Fault::None());
  clock_.Advance(seconds(2));
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.leftovers, IsEmpty());
  EXPECT_EQ(LeaseAnnotation(harvester::kLeaseActionAnnotation), "");
}

TEST_F(ReconcilerTest, C12_a_failed_join_is_recorded_although_the_look_for_leftovers_is_refused) {
  AddBroken("web-a");
  HoldLease();
  Always("list secrets", Refused());
  EXPECT_FALSE(Resume().ok());
  EXPECT_NE(LeaseAnnotation(harvester::kLeaseBackOffAnnotation), "");
}

TEST_F(ReconcilerTest, C12_a_kill_after_the_roll_back_of_a_removal_leaves_its_back_off) {
  AddNamed({"web-a"});
  Mark("web-a");
  cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true");
  After("patch virtualmachines", [&] { client_.Cancel(runtime::CancelReason::kClient); });
  EXPECT_FALSE(Reconciler(Deps(), policy_).RunResumption(context()).ok());
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_THAT(LeaseAnnotation(harvester::kLeaseBackOffAnnotation), HasSubstr("remove"));
  EXPECT_THAT(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation),
              HasSubstr("web-a: its removal was rolled back: it was protected"));
}

TEST_F(ReconcilerTest,
       C12_a_removal_whose_short_deadline_ends_while_its_drain_is_refused_is_refused) {
  AddNamed({"web-a"});
  Mark("web-a",
       [&](harvester::Mark& mark) { mark.drain_deadline.at = clock_.WallNow() + seconds(20); });
  Always("update drain", RefusedByNomad());
  for (int i = 0; i < 4 && IsMarked("web-a"); ++i) {
    Resume().IgnoreError();
    clock_.Advance(seconds(10));
  }
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_THAT(lease_.record().back_off, ElementsAre(testing::Key("refused")));
  EXPECT_THAT(lease_.record().last_error->text,
              testing::AllOf(HasSubstr("did not begin before its deadline: "),
                             HasSubstr("Permission denied")));
}

TEST_F(ReconcilerTest, C12_a_removal_whose_deadline_ends_without_a_refusal_is_not_refused) {
  AddNamed({"web-a"});
  Mark("web-a",
       [&](harvester::Mark& mark) { mark.drain_deadline.at = clock_.WallNow() - seconds(20); });
  Resume().IgnoreError();
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_THAT(lease_.record().back_off, ElementsAre(testing::Key("remove")));
}

TEST_F(ReconcilerTest, C12_a_removal_that_succeeds_ends_the_back_off_of_removals) {
  AddNamed({"web-a"});
  PoolRecord record = lease_.record();
  record.back_off["refused"] = {.failures = 3, .retry_at = clock_.WallNow() + minutes(2)};
  Store(record);
  Idle("web-a");
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_TRUE(cluster_.Vm("web-a").is_null());
  EXPECT_THAT(lease_.record().back_off, IsEmpty());
}

TEST_F(ReconcilerTest, C12_what_an_action_fails_after_a_removal_that_succeeded_is_no_failure) {
  AddNamed({"web-a", "web-b"});
  Idle("web-a");
  Mark("web-b");
  cluster_.HangDrain(NodeOf("web-b"));
  Drain("web-b");
  Resume([](const PoolSnapshot&, base::Duration) { return true; }).IgnoreError();
  clock_.Advance(minutes(1));
  ASSERT_TRUE(cluster_.Vm("web-a").is_null());
  ASSERT_TRUE(IsMarked("web-b"));
  cluster_.EditAnnotation("web-b", harvester::kProtectAnnotation, "true");
  EXPECT_THAT(Resume(), IsOk());
  ASSERT_FALSE(IsMarked("web-b"));
  EXPECT_THAT(lease_.record().back_off, IsEmpty());
}

// The record is on the Lease, and this process does not know.
TEST_F(ReconcilerTest, C12_a_failure_counts_once_although_the_reply_to_its_record_was_lost) {
  AddVm("web-a");
  HoldLease();
  troubles_.CountFailure(cause::kRemove, "act");
  troubles_.unrecorded.AddError("act", "web-a: it was rolled back");
  Next("patch leases", Fault::DropReply(), 99);
  Reconciler loop(Deps(), policy_);
  EXPECT_FALSE(loop.StoreRecord(context()).ok());
  Next("patch leases", Fault::None());
  HoldLease();
  ASSERT_EQ(lease_.record().back_off.at("remove").failures, 1) << "it was written";
  EXPECT_THAT(loop.StoreRecord(context()), IsOk());
  EXPECT_EQ(lease_.record().back_off.at("remove").failures, 1);
  EXPECT_EQ(lease_.record().last_error->text, "web-a: it was rolled back");
  troubles_.CountFailure(cause::kRemove, "next");
  EXPECT_THAT(loop.StoreRecord(context()), IsOk());
  EXPECT_EQ(lease_.record().back_off.at("remove").failures, 2);
}

TEST_F(ReconcilerTest, C12_a_roll_back_that_is_refused_counts_once) {
  AddNamed({"web-a"});
  Mark("web-a");
  cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true");
  Next("patch virtualmachines", Refused(), 2);
  for (int i = 0; i < 3; ++i) {
    Resume().IgnoreError();
    clock_.Advance(minutes(1));
  }
  EXPECT_FALSE(IsMarked("web-a"));
  EXPECT_EQ(lease_.record().back_off.at("remove").failures, 1);
}

TEST_F(ReconcilerTest, C12_roll_backs_of_two_actions_that_are_refused_count_once_each) {
  AddNamed({"web-a", "web-b"});
  Mark("web-a");
  Mark("web-b", [](harvester::Mark& mark) { mark.action = "other"; });
  for (const char* const vm : {"web-a", "web-b"}) {
    cluster_.EditAnnotation(vm, harvester::kProtectAnnotation, "true");
  }
  Next("patch virtualmachines", Refused(), 6);
  for (int i = 0; i < 5; ++i) {
    Resume().IgnoreError();
    clock_.Advance(minutes(1));
  }
  EXPECT_FALSE(IsMarked("web-a") || IsMarked("web-b"));
  EXPECT_EQ(lease_.record().back_off.at("remove").failures, 1) << "they failed at the same time";
  EXPECT_THAT(troubles_.failed_actions.at("remove"), IsEmpty()) << "no VM names them any more";
}

TEST_F(ReconcilerTest, T1_a_removal_is_logged_although_the_run_that_began_it_was_interrupted) {
  AddNamed({"web-a"});
  Idle("web-a");
  const runtime::CancelSource run(context());
  After("delete virtualmachines", [&] { run.Cancel(runtime::CancelReason::kClient); });
  EXPECT_FALSE(Reconciler(Deps(), policy_).RunResumption(run.context()).ok());
  clock_.Advance(minutes(1));
  ASSERT_TRUE(cluster_.Vm("web-a").is_null());
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_EQ(Logged("INFO Removed a VM"), 1U);
}

TEST_F(ReconcilerTest, T3_a_vm_whose_entry_was_interrupted_is_in_the_history_all_the_same) {
  cluster_.AllowAll();
  AddNamed({"web-a"});
  Idle("web-a");
  const runtime::CancelSource run(context());
  After("patch configmaps", [&] { run.Cancel(runtime::CancelReason::kShutdown); });
  EXPECT_FALSE(Reconciler(Deps(), policy_).RunResumption(run.context()).ok());
  ASSERT_FALSE(cluster_.Vm("web-a").is_null());
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_TRUE(cluster_.Vm("web-a").is_null());
  ASSERT_EQ(cluster_.ConfigMaps().size(), 1U);
  EXPECT_TRUE(cluster_.ConfigMaps()[0]["data"].contains("web-a"));
}

TEST_F(ReconcilerTest, C12_a_vm_that_is_marked_again_after_a_roll_back_is_not_counted_again) {
  AddBroken("web-a");
  cluster_.EditAnnotation("web-a", harvester::kRemovalUndoneAnnotation,
                          base::FormatRfc3339(clock_.WallNow()) + " it was protected");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_TRUE(cluster_.Vm("web-a").is_null());
  EXPECT_THAT(lease_.record().back_off, IsEmpty());
}

TEST_F(ReconcilerTest, a_vm_that_started_and_did_not_join_does_not_block_its_zone) {
  AddBroken("web-a");
  cluster_.EditAnnotation("web-a", harvester::kZoneAnnotation, "z1");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.zone_failures, IsEmpty());
}

TEST_F(ReconcilerTest, a_zone_in_which_a_vm_joins_is_avoided_no_more) {
  AddUnjoined("web-a");
  cluster_.EditAnnotation("web-a", harvester::kZoneAnnotation, "z1");
  troubles_.zone_failures = {{"z1", clock_.Now()}, {"z2", clock_.Now()}};
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.zone_failures, ElementsAre(testing::Key("z2")));
}

TEST_F(ReconcilerTest, T1_a_vm_that_needs_no_operator_meanwhile_is_told_anew_when_it_does) {
  policy_.replace_unhealthy_after = minutes(5);
  AddVm("web-a");
  HoldLease();
  cluster_.EditAnnotation("web-a", harvester::kProtectAnnotation, "true");
  cluster_.KillNode(NodeOf("web-a"));
  clock_.Advance(seconds(20));
  EXPECT_THAT(Resume(), IsOk());
  clock_.Advance(minutes(5));
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_TRUE(troubles_.reported.contains(UidOf("web-a")));
  ASSERT_TRUE(cluster_.ReviveNode(NodeOf("web-a")));
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(troubles_.reported, IsEmpty());
}

TEST_F(ReconcilerTest, L4_the_background_waits_four_minutes_for_a_volume_that_only_needs_time) {
  PutClaimOf("web-a", {"kubernetes.io/pvc-protection"});
  cluster_.HangClaim("web-a-disk-0-abcde");
  HoldLease({"web-a"});
  const base::MonoTime begun = clock_.Now();
  EXPECT_THAT(Reconciler(Deps(), policy_).RunResumption(context().WithTimeout(minutes(30))),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("something is left of it")));
  EXPECT_GE(clock_.Now() - begun, minutes(4));
  EXPECT_LT(clock_.Now() - begun, minutes(5));
}

TEST_F(ReconcilerTest, L5_a_conflict_alone_does_not_end_a_resumption) {
  AddUnjoined("web-a");
  HoldLease();
  Next("patch virtualmachines", Fault::Answer(409));
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_EQ(Annotation("web-a", harvester::kNodeIdAnnotation), NodeOf("web-a"));
}

TEST_F(ReconcilerTest, L2_a_step_that_conflicts_beside_another_is_tried_again_after_a_second) {
  AddUnjoined("web-a");
  AddUnjoined("web-b");
  HoldLease();
  Next("patch virtualmachines", Fault::Answer(409));
  const base::MonoTime begun = clock_.Now();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_EQ(Annotation("web-a", harvester::kNodeIdAnnotation), NodeOf("web-a"));
  EXPECT_EQ(Annotation("web-b", harvester::kNodeIdAnnotation), NodeOf("web-b"));
  EXPECT_LT(clock_.Now() - begun, seconds(5));
}

TEST_F(ReconcilerTest, C13_a_preview_reports_the_first_steps_and_sends_only_reads) {
  AddVm("web-a");
  AddUnjoined("web-b");
  HoldLease({"web-a"});
  Idle("web-a");
  PutClaimOf("web-old");
  EXPECT_THAT(Reconciler(Deps(), policy_).Preview(context()), IsOk());
  EXPECT_THAT(Effects(), IsEmpty());
  Strings events;
  for (const ReconcileEvent& event : events_) {
    events.push_back(event.object.empty() ? std::string(StepName(event.step.kind)) : event.object);
  }
  EXPECT_THAT(events,
              testing::UnorderedElementsAre("delete", "record-join", "web-old-disk-0-abcde"));
  Next("list nodes", RefusedByNomad());
  EXPECT_THAT(Reconciler(Deps(), policy_).Preview(context()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ReconcilerTest, L10_a_preview_of_a_paused_pool_reports_roll_backs_and_no_removal) {
  PauseWithOneOfEach();
  EXPECT_THAT(Reconciler(Deps(), policy_).Preview(context()), IsOk());
  Strings vms;
  for (const ReconcileEvent& event : events_) vms.push_back(event.vm);
  EXPECT_THAT(vms, ElementsAre("web-b"));
}

TEST_F(ReconcilerTest, C3_the_lease_says_why_the_background_took_a_vm_away) {
  AddBroken("web-a");
  HoldLease();
  EXPECT_THAT(Resume(), IsOk());
  EXPECT_THAT(LeaseAnnotation(harvester::kLeaseLastErrorAnnotation),
              HasSubstr("web-a: it has not joined Nomad by its deadline"));
}

TEST_F(ReconcilerTest, an_error_on_the_lease_has_its_own_time_and_no_secret) {
  HoldLease();
  const base::Secret secret("a-token-of-nomad");
  Reconciler loop(Deps(), policy_);
  for (const char* const action : {"first", "second"}) {
    clock_.Advance(minutes(1));
    troubles_.unrecorded.AddOutcome(action, base::Internal("the server says a-token-of-nomad"));
    EXPECT_THAT(loop.StoreRecord(context()), IsOk());
    const std::optional<harvester::ErrorRecord> error = lease_.record().last_error;
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->action, action);
    EXPECT_EQ(error->at, clock_.WallNow());
    EXPECT_EQ(error->text, "the server says REDACTED");
  }
}

}  // namespace
}  // namespace nomad_harvester::scaling
