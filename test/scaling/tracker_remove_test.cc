// SPDX-License-Identifier: Apache-2.0
//
// The outcome of a removal: from the answer to its mark, and from what is observed.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "tracker_fixture.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrackerRemoveTest : public TrackerTest {
 protected:
  TrackerRemoveTest() { Track(ToRemove({"a"})); }

  // VM a was marked, and is being drained.
  void Begin() {
    See(World().With(Vm("a").Joined().Marked()).With(Node("a").Draining("a")));
    ASSERT_TRUE(PartOf("a").begun);
  }
};

Vm StandingVm() { return Vm("a").Joined(); }
Vm LeavingVm() { return Vm("a").Joined().Marked(); }
World Draining() { return World().With(LeavingVm()).With(Node("a").Draining("a")); }

TEST_F(TrackerRemoveTest, every_observation_of_a_victim_has_its_outcome) {
  struct Case {
    const char* what;
    World world;
    OutcomeState state;
    bool begun;
    const char* text;
  };
  const std::vector<Case> cases = {
      {"standing", World().With(StandingVm()).With(Node("a")), OutcomeState::kPending, false, ""},
      {"L5: gone before its mark", World(), OutcomeState::kDone, false, ""},
      {"L5: terminating before its mark", World().With(StandingVm().Terminating()),
       OutcomeState::kPending, true, ""},
      {"marked", World().With(LeavingVm()).With(Node("a")), OutcomeState::kPending, true,
       "node a (node-a) is to be drained, until 2026-03-01T12:14:00Z at the latest"},
      {"draining", Draining(), OutcomeState::kPending, true, "node a (node-a) drains"},
      {"tasks stop", World().With(LeavingVm()).With(Node("a").Drained("a")).Running("a"),
       OutcomeState::kPending, true, "tasks on node a (node-a) are still stopping"},
      {"Nomad cannot be read", Draining().NomadUnreadable(), OutcomeState::kPending, true,
       "Nomad cannot be read: no leader"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Track(ToRemove({"a"}));
    See(each.world);
    EXPECT_EQ(StateOf("a"), each.state);
    EXPECT_EQ(PartOf("a").begun, each.begun);
    EXPECT_EQ(PartOf("a").text, each.text);
    EXPECT_THAT(Failures(), IsEmpty());
  }
}

TEST_F(TrackerRemoveTest, every_answer_to_its_mark_has_its_outcome) {
  struct Case {
    const char* what;
    Effect effect;
    bool for_good;
    OutcomeState state;
    bool begun;
    const char* text;
  };
  const std::vector<Case> cases = {
      {"accepted", Done(), false, OutcomeState::kPending, true, ""},
      {"refused", Refusal("denied"), false, OutcomeState::kPending, false, "denied"},
      {"L3: refused for a minute", Refusal("denied"), true, OutcomeState::kFailed, false, "denied"},
      {"failed", Failure(), false, OutcomeState::kPending, false, "busy"},
      {"L5: a conflict", Conflict(), false, OutcomeState::kPending, false, ""},
      {"not wanted", {.verdict = Verdict::kNotWanted}, false, OutcomeState::kPending, false, ""},
      {"cancelled", EffectOf(absl::CancelledError("stop")), false, OutcomeState::kPending, false,
       ""},
      {"L5: unsuitable, and no candidate is left",
       {.verdict = Verdict::kUnsuitable, .status = absl::FailedPreconditionError("protected")},
       false,
       OutcomeState::kFailed,
       false,
       ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Track(ToRemove({"a"}));
    tracker_->RecordMark("a", each.effect, each.for_good);
    EXPECT_EQ(StateOf("a"), each.state);
    EXPECT_EQ(PartOf("a").begun, each.begun);
    EXPECT_THAT(PartOf("a").text, HasSubstr(each.text));
    if (each.state == OutcomeState::kFailed) {
      EXPECT_EQ(PartOf("a").error, each.effect.status);
    }
    const bool is_marked_again = each.state == OutcomeState::kPending && !each.begun;
    EXPECT_EQ(ToMark(World().With(StandingVm()).With(Node("a"))).empty(), !is_marked_again);
  }
}

TEST_F(TrackerRemoveTest, the_mark_tells_under_which_action_it_is_removed) {
  tracker_->RecordMark("a", Done(), false);
  EXPECT_EQ(PartOf("a").action, "act");
  Track(ToRemove({"a"}));
  See(World().With(Vm("a").Joined().Marked("earlier")).With(Node("a")));
  EXPECT_EQ(PartOf("a").action, "earlier");
}

TEST_F(TrackerRemoveTest, L4_what_a_vm_left_is_looked_for_before_its_removal_is_done) {
  Begin();
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_THAT(tracker_->Gone(), ElementsAre("a"));
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
  EXPECT_THAT(tracker_->Gone(), IsEmpty());
  EXPECT_EQ(PartOf("a").left, "");
  EXPECT_TRUE(Summary().removed);
}

TEST_F(TrackerRemoveTest, L4_leftovers_that_make_progress_are_waited_for) {
  Begin();
  leftovers_["a"] = {.what = "volume a-disk-0-x (being deleted)"};
  See(World());
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_EQ(PartOf("a").text, "waiting for its volume a-disk-0-x (being deleted)");
  leftovers_.clear();
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
  EXPECT_EQ(PartOf("a").left, "");
}

TEST_F(TrackerRemoveTest, L4_they_are_waited_for_two_minutes_beyond_the_grace_period) {
  World world = Draining();
  world.Raw().vms[0].vm.Change().termination_grace = minutes(5);
  See(world);
  leftovers_["a"] = {.what = "volume a-disk-0-x"};
  See(World());
  now_ += minutes(7) - seconds(1);
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  now_ += seconds(1);
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone) << "the call ends OK";
  EXPECT_EQ(PartOf("a").left, "volume a-disk-0-x");
  EXPECT_TRUE(Summary().removed);
}

TEST_F(TrackerRemoveTest, L4_leftovers_that_are_refused_for_good_hold_nothing) {
  Begin();
  leftovers_["a"] = {.what = "Secret a-cloudinit", .refused_for_good = true};
  See(World());
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
  EXPECT_EQ(PartOf("a").left, "Secret a-cloudinit");
}

TEST_F(TrackerRemoveTest, L4_leftovers_of_other_vms_hold_nothing) {
  Begin();
  leftovers_["former"] = {.what = "volume former-disk-0-x"};
  See(World());
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
}

TEST_F(TrackerRemoveTest, L4_leftovers_of_a_vm_are_refused_for_good_only_if_all_are) {
  const Retries::Key refused(kDeleteClaim, "claim-1");
  const Retries::Key progressing(kDeleteClaim, "claim-2");
  retries_.Record(refused, Refusal(), now_);
  now_ += kRefusedForGood;
  AddLeftover("a", "volume claim-1", retries_, refused, now_, &leftovers_);
  EXPECT_TRUE(leftovers_["a"].refused_for_good);
  EXPECT_TRUE(leftovers_["a"].in_trouble);
  AddLeftover("a", "volume claim-2", retries_, progressing, now_, &leftovers_);
  EXPECT_FALSE(leftovers_["a"].refused_for_good);
  EXPECT_FALSE(leftovers_["a"].in_trouble) << "one of them only needs time";
  EXPECT_EQ(leftovers_["a"].what, "volume claim-1, volume claim-2");
  AddLeftover("b", "volume claim-1", retries_, refused, now_, &leftovers_);
  EXPECT_TRUE(leftovers_["b"].refused_for_good) << "another VM's";
}

TEST_F(TrackerRemoveTest, S2_a_vm_that_is_stuck_in_its_deletion_fails_its_removal) {
  World terminating;
  terminating.With(LeavingVm().Terminating()).With(Node("a").Drained("a"));
  terminating.Raw().vms[0].vm.Change().deleted_at = kNow - minutes(12) + seconds(1);
  See(terminating);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  terminating.Raw().vms[0].vm.Change().deleted_at = kNow - minutes(12);
  See(terminating);
  EXPECT_THAT(PartOf("a").error, StatusIs(absl::StatusCode::kUnavailable,
                                          HasSubstr("terminating for more than 12m0s")));
}

TEST_F(TrackerRemoveTest, L3_a_drain_that_is_refused_for_a_minute_is_rolled_back_with_the_refusal) {
  const World marked = World().With(LeavingVm()).With(Node("a"));
  See(marked);
  RefuseForAMinute(StepKind::kStartDrain);
  See(marked);
  ASSERT_EQ(decisions_->Find("a")->step.row, Row::kMarkedRefused);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "its mark is removed first";
  See(World().With(StandingVm()).With(Node("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(PartOf("a").error,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("rolled back: "), HasSubstr("denied by policy"))));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerRemoveTest,
       L3_a_drain_that_was_refused_until_its_deadline_is_told_with_the_roll_back) {
  const World late = World().With(LeavingVm().Late()).With(Node("a"));
  retries_.Record({"start-drain", "uid-a"}, Refusal("denied by policy"), now_);
  now_ += seconds(20);
  See(late);
  ASSERT_EQ(decisions_->Find("a")->step.kind, StepKind::kRollBack);
  See(World().With(StandingVm()).With(Node("a")));
  EXPECT_THAT(ErrorOf("a"), testing::AllOf(HasSubstr("rolled back: "),
                                           HasSubstr("did not begin before its deadline"),
                                           HasSubstr("denied by policy")));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerRemoveTest,
       L3_a_mark_that_is_refused_for_a_minute_ends_its_vm_without_another_attempt) {
  const World standing = World().With(StandingVm()).With(Node("a"));
  See(standing);
  const Effect refusal = Refusal("denied by policy");
  retries_.Record({"mark", "uid-a"}, refusal, now_);
  tracker_->RecordMark("a", refusal, false);
  now_ += kRefusedForGood - seconds(1);
  See(standing);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  now_ += seconds(1);
  See(standing);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("denied by policy"));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerRemoveTest, L3_a_mark_that_an_earlier_action_was_refused_is_tried_again) {
  retries_.Record({"mark", "uid-a"}, Refusal(), now_);
  now_ += minutes(5);
  See(World().With(StandingVm()).With(Node("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_THAT(ToMark(World().With(StandingVm()).With(Node("a"))), ElementsAre("a"));
}

TEST_F(TrackerRemoveTest, L3_a_deletion_that_is_refused_on_a_down_node_fails_and_keeps_its_mark) {
  const World down = World().With(LeavingVm().InstanceRuns(false)).With(Node("a").Down());
  See(down);
  RefuseForAMinute(StepKind::kDelete);
  See(down);
  ASSERT_EQ(decisions_->Find("a")->step.row, Row::kMarkedDown);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("denied by policy"));
  EXPECT_THAT(Failures(), ElementsAre("refused"));
}

TEST_F(TrackerRemoveTest, L3_an_unmarking_that_is_refused_too_fails_with_the_first_refusal) {
  const World marked = World().With(LeavingVm()).With(Node("a"));
  See(marked);
  RefuseForAMinute(StepKind::kStartDrain);
  retries_.Record({"roll-back", "uid-a"}, Refusal("no un-marking"), now_);
  See(marked);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("denied by policy"));
}

TEST_F(TrackerRemoveTest, L3_an_unmarking_that_is_refused_for_a_minute_ends_the_removal) {
  const World marked = World().With(LeavingVm().Protected()).With(Node("a"));
  See(marked);
  RefuseForAMinute(StepKind::kRollBack, "no un-marking");
  See(marked);
  ASSERT_EQ(decisions_->Find("a")->step.row, Row::kMarkedProtected);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
  EXPECT_THAT(ErrorOf("a"), HasSubstr("no un-marking"));
}

TEST_F(TrackerRemoveTest, L3_a_refusal_that_does_not_last_fails_nothing) {
  const World marked = World().With(LeavingVm()).With(Node("a"));
  See(marked);
  retries_.Record({"start-drain", "uid-a"}, Refusal(), now_);
  now_ += seconds(59);
  See(marked);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  EXPECT_TRUE(PartOf("a").error.ok());
}

TEST_F(TrackerRemoveTest, C4_a_removal_that_was_rolled_back_fails_with_the_reason) {
  See(World().With(LeavingVm()).With(Node("a").DrainCancelled("a")));
  ASSERT_EQ(decisions_->Find("a")->step.row, Row::kMarkedCanceled);
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
  See(World().With(StandingVm()).With(Node("a").DrainCancelled("a").Eligible()));
  EXPECT_THAT(PartOf("a").error,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "rolled back: the drain of node a (node-a) was cancelled by an operator"));
  EXPECT_THAT(Failures(), ElementsAre("remove"));
}

TEST_F(TrackerRemoveTest, T1_a_vm_that_left_its_pool_is_not_called_removed) {
  const auto without_member = [this](const World& world) {
    Track(ToRemove({"a"}));
    See(World().With(LeavingVm()).With(Node("a").Draining("a")));
    See(world);
    return ErrorOf("a");
  };
  World other_pool;
  other_pool.With(LeavingVm()).With(Node("a").Draining("a"));
  other_pool.Raw().vms[0].vm.Change().pool = "other";
  EXPECT_THAT(without_member(other_pool),
              HasSubstr("it stands, and is no VM of the pool any more"));
  EXPECT_THAT(without_member(World().With(LeavingVm().Unmanaged()).With(Node("a").Draining("a"))),
              HasSubstr("it stands"));
  other_pool.Raw().vms[0].vm.Change().deleted_at = kNow;
  EXPECT_EQ(without_member(other_pool), "") << "it is being deleted";
}

TEST_F(TrackerRemoveTest, C4_it_has_failed_only_when_its_drain_is_undone_too) {
  Begin();
  See(World().With(StandingVm()).With(Node("a").Draining("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "its drain is to be cancelled";
  See(World().With(StandingVm()).With(Node("a").Drained("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "its node is to be enabled";
  See(World().With(StandingVm()).With(Node("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

TEST_F(TrackerRemoveTest, L3_undoing_that_is_refused_for_a_minute_is_not_waited_for) {
  Begin();
  const World undoing = World().With(StandingVm()).With(Node("a").Draining("a"));
  RefuseForAMinute(StepKind::kCancelDrain);
  See(undoing);
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

TEST_F(TrackerRemoveTest, C16_until_accepted_a_removal_is_done_once_its_drain_is_accepted) {
  TrackUntilAccepted(ToRemove({"a"}));
  See(World().With(LeavingVm()).With(Node("a")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "marked, but not drained";
  See(World().With(Vm("a").Joined().Marked("new")).With(Node("a").Drained("a", "old")));
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending) << "the drain of another action";
  See(Draining());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
}

TEST_F(TrackerRemoveTest, C16_until_accepted_leftovers_are_not_waited_for) {
  TrackUntilAccepted(ToRemove({"a"}));
  See(World().With(LeavingVm()).With(Node("a")));
  leftovers_["a"] = {.what = "volume a-disk-0-x"};
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kDone);
}

TEST_F(TrackerRemoveTest, an_outcome_stays) {
  Begin();
  See(World().With(StandingVm()).With(Node("a")));
  ASSERT_EQ(StateOf("a"), OutcomeState::kFailed);
  See(Draining());
  See(World());
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

}  // namespace
}  // namespace nomad_harvester::scaling
