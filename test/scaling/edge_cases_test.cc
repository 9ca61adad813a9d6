// SPDX-License-Identifier: Apache-2.0
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
using ::testing::IsEmpty;
class EdgeCases : public TrackerTest {};

TEST_F(EdgeCases, L2_a_failure_that_follows_conflicts_is_worth_a_line_when_it_begins) {
  const Retries::Key key("delete", "uid-a");
  for (int i = 0; i < 8; ++i) retries_.Record(key, Conflict(), now_);
  EXPECT_TRUE(retries_.Record(key, Failure(), now_));
}

TEST_F(EdgeCases, L2_conflicts_alone_end_without_a_line) {
  const Retries::Key key("delete", "uid-a");
  retries_.Record(key, Conflict(), now_);
  EXPECT_FALSE(retries_.Record(key, Done(), now_));
}

TEST_F(EdgeCases, L5_a_victim_whose_mark_has_an_unknown_outcome_is_never_replaced) {
  Track(ToRemove({"a"}, {"b"}));
  tracker_->RecordMark("a", EffectOf(absl::DeadlineExceededError("no answer")), false);
  ToMark(World()
             .With(Vm("a").Joined())
             .With(Node("a").Class("db"))
             .With(Vm("b").Joined())
             .With(Node("b")));
  EXPECT_FALSE(tracker_->outcomes().contains("b"));
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

TEST_F(EdgeCases, L5_a_victim_whose_node_could_not_be_read_before_its_mark_is_replaced) {
  Track(ToRemove({"a"}, {"b"}));
  Effect unread = EffectOf(absl::DeadlineExceededError("no answer"));
  unread.sent = false;
  tracker_->RecordMark("a", unread, false);
  ToMark(World()
             .With(Vm("a").Joined())
             .With(Node("a").Class("db"))
             .With(Vm("b").Joined())
             .With(Node("b")));
  EXPECT_TRUE(tracker_->outcomes().contains("b"));
}

TEST_F(EdgeCases, C15_a_look_without_nomad_gives_a_rolled_back_removal_no_outcome) {
  Track(ToRemove({"a"}));
  See(World().With(Vm("a").Joined().Marked()).With(Node("a").Draining("a")));
  See(World().With(Vm("a").Joined()).NomadUnreadable());
  EXPECT_EQ(StateOf("a"), OutcomeState::kPending);
}

TEST_F(EdgeCases, failures_with_different_codes_are_internal) {
  Track(ToCreate({"a", "b"}));
  tracker_->RecordMake("a", EffectOf(absl::InvalidArgumentError("no disk")));
  tracker_->RecordMake("b", EffectOf(absl::FailedPreconditionError("no image")));
  EXPECT_THAT(tracker_->FinalStatus(absl::OkStatus()), StatusIs(absl::StatusCode::kInternal));
}

TEST_F(EdgeCases, C12_one_that_was_refused_and_one_that_failed_otherwise_were_not_all_refused) {
  Track(ToRemove({"a", "b"}));
  tracker_->RecordMark("a", Refusal("denied"), true);
  tracker_->RecordMark(
      "b", {.verdict = Verdict::kUnsuitable, .status = absl::FailedPreconditionError("protected")},
      false);
  See(World().With(Vm("a").Joined()).With(Vm("b").Joined()));
  EXPECT_THAT(Failures(), ElementsAre("remove"));
}

TEST_F(EdgeCases, L3_a_removal_that_is_still_under_way_leaves_the_back_off_alone) {
  Track(ToRemove({"a", "b"}));
  tracker_->RecordMark("a", Refusal("denied"), true);
  See(World().With(Vm("a").Joined()).With(Vm("b").Joined().Marked()).With(Node("b").Draining("b")));
  EXPECT_THAT(Failures(), IsEmpty());
}

TEST_F(EdgeCases,
       C6_its_own_node_under_another_name_could_still_be_it_at_another_place_of_the_list) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a"));
  const PoolSnapshot snapshot = world.Snapshot();
  Overlay a(snapshot, *snapshot.seen->FindVm("a"));
  a.SetNodes(ListOf({Node("x").Down().Get(), Node("a").Get()}));
  a.SetNode("node-a", Node("localhost", "node-a").Get());
  ASSERT_NE(a.Candidate(), nullptr);
  EXPECT_EQ(a.Candidate()->id, "node-a");
}

TEST_F(EdgeCases, C6_another_vms_node_is_no_candidate_at_the_index_of_this_vms_old_one) {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Joined()).With(Node("a")).With(Node("b"));
  const PoolSnapshot snapshot = world.Snapshot();
  Overlay a(snapshot, *snapshot.seen->FindVm("a"));
  a.SetNodes(ListOf({Node("b").Get()}));
  a.SetNode("node-b", Node("localhost", "node-b").Get());
  EXPECT_EQ(a.Candidate(), nullptr);
}

TEST_F(EdgeCases, C14_a_vm_whose_node_cannot_be_enabled_is_no_victim) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a")).Idle("a");
  world.With(Vm("m").Joined()).With(Node("m").Drained("m").Index(900)).Idle("m");
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"m", "its roll-back does not succeed"}};
  const auto plan = PlanScale(world.Snapshot(), 1, inputs);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->remove.size(), 1U);
  EXPECT_EQ(plan->remove[0].vm, "a");
}

TEST_F(EdgeCases, an_unfinished_vm_is_never_ok) {
  Track(ToCreate({"a"}));
  EXPECT_FALSE(tracker_->FinalStatus(absl::OkStatus()).ok());
}

TEST_F(EdgeCases, C15_a_broken_vm_keeps_its_outcome_while_nomad_cannot_be_read) {
  Track(ToCreate({"a"}));
  const Vm broken = Vm("a").Age(minutes(1)).FailsToStart("no such image");
  See(World().With(broken));
  ASSERT_EQ(StateOf("a"), OutcomeState::kFailed);
  See(World().With(broken).NomadUnreadable());
  EXPECT_EQ(StateOf("a"), OutcomeState::kFailed);
}

TEST_F(EdgeCases, L3_an_undoing_that_is_refused_is_the_error_of_the_part) {
  Track(ToRemove({"a"}));
  See(World().With(Vm("a").Joined().Marked()).With(Node("a").Draining("a")));
  RefuseForAMinute(StepKind::kCancelDrain, "no cancel");
  See(World().With(Vm("a").Joined()).With(Node("a").Draining("a")));
  EXPECT_THAT(ErrorOf("a"), testing::HasSubstr("no cancel"));
}
}  // namespace
}  // namespace nomad_harvester::scaling
