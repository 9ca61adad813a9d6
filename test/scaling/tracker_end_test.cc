// SPDX-License-Identifier: Apache-2.0
//
// When an action has ended, the status of its call, and what its pool has to remember.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "tracker_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrackerEndTest : public TrackerTest {
 protected:
  void Remove(const std::string& vm) { tracker_->RecordMark(vm, Done(), false); }
};

Vm BrokenA() { return Vm("a").Age(minutes(1)).FailsToStart("no such image"); }

TEST_F(TrackerEndTest, an_action_has_ended_when_every_part_has_its_outcome) {
  Track(ToRemove({"a", "b"}));
  const World one_left = World().With(Vm("b").Joined().Marked()).With(Node("b").Draining("b"));
  EXPECT_FALSE(EndedWith(one_left));
  See(World());
  EXPECT_TRUE(EndedWith(World()));
}

TEST_F(TrackerEndTest, L1_what_other_vms_of_the_pool_need_does_not_extend_it) {
  Track(ToRemove({"a"}));
  EXPECT_TRUE(EndedWith(
      World().With(Vm("other").Joined().Marked("earlier")).With(Node("other").Draining("other"))));
}

TEST_F(TrackerEndTest, C3_a_broken_creation_has_ended_when_its_vm_is_removed_again) {
  Track(ToCreate({"a"}));
  EXPECT_FALSE(EndedWith(World().With(BrokenA()))) << "it is about to be marked";
  EXPECT_FALSE(EndedWith(World().With(BrokenA().Marked().ForBeingBroken())));
  EXPECT_FALSE(EndedWith(World().With(BrokenA().Marked().ForBeingBroken().Terminating())));
  EXPECT_TRUE(EndedWith(World()));
}

TEST_F(TrackerEndTest, a_broken_vm_that_stays_does_not_hold_the_call) {
  World kept;
  kept.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  kept.With(Vm("a").Age(minutes(16)));
  Track(ToCreate({"a"}));
  EXPECT_TRUE(EndedWith(kept));
}

TEST_F(TrackerEndTest, S2_one_that_is_stuck_in_its_deletion_does_not_hold_the_call) {
  World stuck;
  stuck.With(BrokenA().Marked().ForBeingBroken().Terminating());
  stuck.Raw().vms[0].vm.Change().deleted_at = kNow - minutes(12);
  Track(ToCreate({"a"}));
  EXPECT_TRUE(EndedWith(stuck));
}

TEST_F(TrackerEndTest, L3_one_whose_removal_is_refused_for_a_minute_does_not_hold_the_call) {
  Track(ToCreate({"a"}));
  const World marked = World().With(BrokenA().Marked().ForBeingBroken());
  ASSERT_FALSE(EndedWith(marked));
  RefuseForAMinute(StepKind::kDelete);
  EXPECT_TRUE(EndedWith(marked));
}

TEST_F(TrackerEndTest, L3_one_whose_mark_is_refused_for_a_minute_does_not_hold_the_call) {
  Track(ToCreate({"a"}));
  RefuseForAMinute(StepKind::kMarkBroken);
  EXPECT_TRUE(EndedWith(World().With(BrokenA())));
}

TEST_F(TrackerEndTest, a_call_whose_vms_are_all_done_is_ok) {
  Track(ToCreate({"a", "b"}));
  See(World().With(Vm("a").Joined()).With(Vm("b").Joined()));
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()), IsOk());
}

TEST_F(TrackerEndTest, a_call_without_vms_is_ok) {
  Track({});
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()), IsOk());
}

TEST_F(TrackerEndTest, L4_what_is_left_of_a_vm_is_no_error) {
  Track(ToRemove({"a"}));
  Remove("a");
  leftovers_["a"] = {.what = "volume a-disk-0-x", .refused_for_good = true};
  See(World());
  See(World());
  ASSERT_EQ(PartOf("a").left, "volume a-disk-0-x");
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()), IsOk());
}

TEST_F(TrackerEndTest, C3_a_partial_failure_names_each_vm_with_its_own_reason) {
  Track(ToCreate({"a", "b", "c"}));
  tracker_->RecordMake("c", EffectOf(absl::InvalidArgumentError("the template has no disk")));
  See(World().With(BrokenA()).With(Vm("b").Joined()));
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()),
              StatusIs(absl::StatusCode::kInternal,
                       "2 of 3 VMs failed:"
                       "\na: failed: its start fails: no such image"
                       "\nb: done"
                       "\nc: failed: the template has no disk"));
}

TEST_F(TrackerEndTest, T1_one_failure_of_many_vms_is_one_line_with_a_count) {
  Track(ToCreate({"vm-1", "vm-2", "vm-3", "vm-4", "vm-5", "vm-6"}));
  for (int i = 1; i <= 6; ++i) {
    const std::string vm = "vm-" + std::to_string(i);
    tracker_->RecordMake(vm, EffectOf(absl::InvalidArgumentError("VM " + vm + " has no disk")));
  }
  EXPECT_EQ(base::Message(tracker_->FinalStatus(absl::OkStatus())),
            "6 of 6 VMs failed:\n6 VMs (vm-1, vm-2, vm-3, vm-4, vm-5 and 1 more): failed: VM vm-1 "
            "has no disk");
}

TEST_F(TrackerEndTest, if_every_vm_failed_with_one_code_the_call_has_it) {
  Track(ToCreate({"a", "b"}));
  for (const char* vm : {"a", "b"}) {
    tracker_->RecordMake(vm, EffectOf(absl::InvalidArgumentError("no disk")));
  }
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "2 of 2 VMs failed:\n2 VMs (a, b): failed: no disk"));
}

TEST_F(TrackerEndTest, C11_the_code_for_busy_is_never_that_of_a_failed_vm) {
  Track(ToRemove({"a"}));
  tracker_->RecordMark("a", {.verdict = Verdict::kRefused, .status = absl::AbortedError("odd")},
                       true);
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()),
              StatusIs(absl::StatusCode::kInternal, "1 of 1 VMs failed:\na: failed: odd"));
}

TEST_F(TrackerEndTest, C16_a_call_that_ended_early_says_why_and_one_line_per_vm) {
  Track(ToCreate({"a", "b", "c", "d"}));
  tracker_->RecordMake("c", EffectOf(absl::InvalidArgumentError("no disk")));
  See(World().With(Vm("a").Joined()).With(Vm("b").Age(minutes(1))));
  EXPECT_THAT(
      tracker_->FinalStatus(absl::DeadlineExceededError("scale_timeout (10m) is over")),
      StatusIs(
          absl::StatusCode::kDeadlineExceeded,
          "scale_timeout (10m) is over"
          "\na: done"
          "\nb: unfinished, it has not joined yet: its guest runs and no Nomad node has its name"
          "\nc: failed: no disk"
          "\nd: unfinished"));
}

TEST_F(TrackerEndTest, C12_one_removal_that_succeeded_clears_the_back_off_of_removals) {
  Track(ToRemove({"a", "b"}));
  tracker_->RecordMark("b", Refusal("denied"), true);
  See(World().With(Vm("b").Joined()).With(Node("b")));  // a is gone
  const RunSummary run = Summary();
  EXPECT_TRUE(run.removed);
  EXPECT_THAT(run.failures, IsEmpty());
}

TEST_F(TrackerEndTest, R4_the_removal_of_a_vm_that_did_not_count_is_no_success) {
  tracker_ = std::make_unique<Tracker>(
      Tracker::Options{.action_id = "act", .uncounted = {"a"}, .logger = {}}, ToRemove({"a", "b"}));
  tracker_->RecordMark("b", Refusal("denied"), true);
  See(World().With(Vm("b").Joined()).With(Node("b")));  // a is gone
  EXPECT_FALSE(Summary().removed);
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerEndTest, C12_an_action_of_which_every_removal_was_refused_has_a_cause_of_its_own) {
  Track(ToRemove({"a", "b"}));
  tracker_->RecordMark("a", Refusal("denied"), true);
  tracker_->RecordMark("b", Refusal("denied"), true);
  See(World().With(Vm("a").Joined()).With(Vm("b").Joined()));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerEndTest, C12_removals_that_failed_otherwise_back_off_as_removals) {
  Track(ToRemove({"a"}));
  tracker_->RecordMark(
      "a", {.verdict = Verdict::kUnsuitable, .status = absl::FailedPreconditionError("protected")},
      false);
  See(World().With(Vm("a").Joined().Protected()));
  EXPECT_THAT(Failures(), ElementsAre("remove"));
}

TEST_F(TrackerEndTest, C12_refusals_that_do_not_last_record_nothing) {
  Track(ToRemove({"a"}));
  tracker_->RecordMark("a", Refusal("denied"), false);
  See(World().With(Vm("a").Joined()));
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(TrackerEndTest, C12_each_creation_that_failed_has_its_cause) {
  Track(ToCreate({"a", "b", "c", "d"}));
  tracker_->RecordMake("c", EffectOf(absl::InvalidArgumentError("no disk")));
  See(World().With(BrokenA()).With(Vm("b").Age(minutes(16))).With(Vm("d").Joined()));
  const RunSummary run = Summary();
  EXPECT_THAT(run.failures, ElementsAre("create", "join", "start"));
  EXPECT_TRUE(run.created) << "one was delivered";
  EXPECT_THAT(run.seen, ElementsAre("a", "b", "d"));
}

TEST_F(TrackerEndTest, C12_a_creation_that_failed_and_then_joined_is_no_failure) {
  Track(ToCreate({"a"}));
  See(World().With(Vm("a").Age(minutes(16))));
  ASSERT_THAT(Failures(), ElementsAre("join"));
  See(World().With(Vm("a").Age(minutes(17)).Joined()).With(Node("a")));
  EXPECT_THAT(Failures(), IsEmpty());
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()), IsOk());
}

// Two of three VMs that run have lost their nodes.
World Lossy(World world) {
  world.With(Vm("x").Joined()).With(Vm("y").Joined()).With(Vm("z").Joined()).With(Node("z"));
  return world;
}

TEST_F(TrackerEndTest, C15_a_growth_whose_broken_vm_waits_for_a_mass_loss_ends_after_a_minute) {
  Track(ToCreate({"a"}));
  const World lossy = Lossy(World().With(BrokenA()));
  EXPECT_FALSE(EndedWith(lossy));
  now_ += kRefusedForGood - seconds(1);
  EXPECT_FALSE(EndedWith(lossy));
  now_ += seconds(1);
  EXPECT_TRUE(EndedWith(lossy));
}

TEST_F(TrackerEndTest, C15_a_removal_that_waits_for_a_mass_loss_fails_after_a_minute) {
  Track(ToRemove({"a"}));
  const World lossy = Lossy(World().With(Vm("a").Joined().Marked()).With(Node("a")));
  EXPECT_FALSE(EndedWith(lossy));
  EXPECT_FALSE(EndedWith(World().With(Vm("a").Joined().Marked()).With(Node("a"))));
  now_ += kRefusedForGood;
  EXPECT_FALSE(EndedWith(lossy)) << "it has begun anew";
  now_ += kRefusedForGood;
  EXPECT_TRUE(EndedWith(lossy));
  EXPECT_THAT(ErrorOf("a"), HasSubstr("too many VMs have lost their Nomad nodes at once"));
}

TEST_F(TrackerEndTest, C16_a_scale_that_does_not_wait_ends_when_a_drain_cannot_begin) {
  TrackUntilAccepted(ToRemove({"a"}));
  EXPECT_FALSE(EndedWith(World().With(Vm("a").Joined().Marked()).With(Node("a"))))
      << "its drain is to be posted";
  EXPECT_TRUE(EndedWith(World()
                            .With(Vm("a").Joined().Marked())
                            .With(Node("a").Status(nomad::NodeStatus::kDisconnected))));
}

}  // namespace
}  // namespace nomad_harvester::scaling
