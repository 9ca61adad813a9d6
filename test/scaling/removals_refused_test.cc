// SPDX-License-Identifier: Apache-2.0
//
// Rules C12 and C14: the next plan after removals that were all refused, and with roll-backs that
// do not succeed.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/plan.h"

#include "rules/back_off.h"
#include "support/status_matchers.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

harvester::BackOff AfterRefusedRemovals(int actions) {
  harvester::BackOff back_off;
  for (int i = 0; i < actions; ++i) RecordFailure(&back_off, cause::kRefused, kNow);
  return back_off;
}

TEST(RefusedRemovals, C12_they_delay_the_next_removal_like_failed_ones_and_no_creation) {
  EXPECT_THAT(CheckRemoval(AfterRefusedRemovals(1), kNow + seconds(29)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("removing VMs failed")));
  EXPECT_THAT(CheckRemoval(AfterRefusedRemovals(1), kNow + seconds(30)), IsOk());
  EXPECT_FALSE(CheckRemoval(AfterRefusedRemovals(2), kNow + seconds(59)).ok());
  EXPECT_FALSE(CheckRemoval(AfterRefusedRemovals(99), kNow + minutes(30) - seconds(1)).ok());
  EXPECT_THAT(CheckRemoval(AfterRefusedRemovals(99), kNow + minutes(30)), IsOk());
  EXPECT_THAT(CheckCreation(AfterRefusedRemovals(9), kNow), IsOk());
  EXPECT_FALSE(CreationCircuitIsOpen(AfterRefusedRemovals(9)));
}

TEST(RefusedRemovals, C12_they_are_remembered_until_a_removal_succeeds) {
  EXPECT_FALSE(RemovalsWereRefused({}));
  harvester::BackOff back_off = AfterRefusedRemovals(1);
  EXPECT_TRUE(RemovalsWereRefused(back_off));
  RecordCreationSuccess(&back_off);
  EXPECT_TRUE(RemovalsWereRefused(back_off)) << "a creation proves nothing";
  RecordFailure(&back_off, cause::kRemove, kNow);
  EXPECT_TRUE(RemovalsWereRefused(back_off)) << "nor does a removal that failed otherwise";
  RecordRemovalSuccess(&back_off);
  EXPECT_FALSE(RemovalsWereRefused(back_off));
  EXPECT_THAT(CheckRemoval(back_off, kNow), IsOk());
}

TEST(RefusedRemovals, C12_removals_that_failed_otherwise_were_not_refused) {
  harvester::BackOff back_off;
  RecordFailure(&back_off, cause::kRemove, kNow);
  EXPECT_FALSE(RemovalsWereRefused(back_off));
}

absl::StatusOr<ScalePlan> PlanWithOneRemoval(World world, std::int64_t desired) {
  PlanInputs inputs = world.Inputs();
  inputs.one_removal = true;
  return PlanScale(world.Snapshot(), desired, inputs);
}

TEST(OneRemoval, C12_one_vm_alone_is_removed_and_the_plan_is_capped) {
  const auto plan = PlanWithOneRemoval(IdlePoolOf({"a", "b", "c"}), 0);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("c"));
  EXPECT_THAT(NamesIn(plan->reserve), ElementsAre("b", "a"))
      << "L5: candidates if it is unsuitable";
  EXPECT_EQ(plan->to, 2);
  EXPECT_EQ(plan->missing_victims, 0);
  EXPECT_TRUE(plan->capped);
}

TEST(OneRemoval, C12_a_scale_in_by_one_is_as_it_was) {
  const auto plan = PlanWithOneRemoval(IdlePoolOf({"a", "b"}), 1);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("b"));
  EXPECT_FALSE(plan->capped);
}

TEST(OneRemoval, C12_it_is_stricter_than_max_scale_in) {
  World world = IdlePoolOf({"a", "b", "c"});
  world.Policy().max_scale_in = 2;
  const auto plan = PlanWithOneRemoval(world, 0);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->remove.size(), 1U);
}

TEST(OneRemoval, C12_it_does_not_limit_growth) {
  const auto plan = PlanWithOneRemoval(IdlePoolOf({"a"}), 4);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->create.size(), 3U);
  EXPECT_FALSE(plan->capped);
}

// The roll-back of VM m, which is marked and has a ready node, does not succeed.
World WithRollBack(const std::vector<std::string>& joined,
                   const Vm& m = Vm("m").Joined().Marked()) {
  World world = IdlePoolOf(joined);
  return world.With(m).With(Node("m").Draining("m"));
}
absl::StatusOr<ScalePlan> PlanWithoutM(World world, std::int64_t desired) {
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"m", "its roll-back does not succeed"}};
  return PlanScale(world.Snapshot(), desired, inputs);
}

TEST(LeftOut, C14_a_vm_whose_roll_back_does_not_succeed_counts_as_standing) {
  const auto equal = PlanWithoutM(WithRollBack({"a", "b"}), 3);
  ASSERT_THAT(equal, IsOk());
  EXPECT_EQ(equal->direction, Direction::kNone);
  EXPECT_EQ(equal->from, 3);
}

TEST(LeftOut, C14_it_is_not_removal_cancelled_and_holds_no_creation) {
  const auto plan = PlanWithoutM(WithRollBack({"a"}), 4);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->cancel_removals, IsEmpty());
  EXPECT_EQ(plan->create.size(), 2U);
}

TEST(LeftOut, C14_it_is_no_victim_and_the_plan_tells_why) {
  const auto plan = PlanWithoutM(WithRollBack({"a", "b"}), 0);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("b", "a"));
  EXPECT_THAT(plan->reserve, IsEmpty());
  EXPECT_EQ(plan->missing_victims, 1);
  ASSERT_EQ(plan->passed_over.size(), 1U);
  EXPECT_EQ(plan->passed_over[0].vm, "m");
  EXPECT_EQ(plan->passed_over[0].reason, "its roll-back does not succeed");
}

TEST(LeftOut, C14_a_scale_in_lets_a_removal_go_on_that_growth_has_cancelled_in_vain) {
  World world = WithRollBack({"a", "b"});
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"m", "its roll-back does not succeed"}};
  PoolSnapshot snapshot = world.Snapshot();
  snapshot.action->cancel = {"m"};
  for (const int desired : {2, 1}) {
    const auto plan = PlanScale(snapshot, desired, inputs);
    ASSERT_THAT(plan, IsOk());
    EXPECT_EQ(plan->from, 3);
    EXPECT_EQ(plan->remove.size(), static_cast<std::size_t>(3 - desired));
    EXPECT_EQ(plan->remove[0].vm, "m");
    EXPECT_THAT(plan->passed_over, IsEmpty());
  }
}

TEST(LeftOut, C14_of_several_such_removals_only_as_many_go_on_as_the_scale_in_wants) {
  World world = WithRollBack({"a"});
  world.With(Vm("n").Joined().Marked()).With(Node("n").Draining("n"));
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"m", "refused"}, {"n", "refused"}};
  PoolSnapshot snapshot = world.Snapshot();
  snapshot.action->cancel = {"m", "n"};
  const auto plan = PlanScale(snapshot, 2, inputs);
  ASSERT_THAT(plan, IsOk());
  ASSERT_THAT(NamesIn(plan->remove), ElementsAre("m"));
  EXPECT_EQ(plan->remove[0].node_id, "node-m") << "C19: its work moves";
  EXPECT_EQ(plan->missing_victims, 0);
  ASSERT_EQ(plan->passed_over.size(), 1U);
  EXPECT_EQ(plan->passed_over[0].vm, "n");
}

TEST(LeftOut, R4_a_vm_without_a_mark_is_passed_over_once) {
  World world = IdlePoolOf({"a", "b"});
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"b", "the VM that is to take its place cannot be written"}};
  const auto plan = PlanScale(world.Snapshot(), 1, inputs);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("a"));
  EXPECT_EQ(plan->passed_over.size(), 1U);
}

TEST(LeftOut, C14_others_are_removal_cancelled_without_it) {
  World world = WithRollBack({"a"});
  world.With(Vm("n").Joined().Marked()).With(Node("n").Draining("n"));
  const auto plan = PlanWithoutM(world, 3);
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->cancel_removals, ElementsAre("n"));
  EXPECT_THAT(plan->create, IsEmpty());
}

TEST(LeftOut, C14_a_vm_that_is_terminating_by_now_does_not_count_as_standing) {
  const auto plan =
      PlanWithoutM(WithRollBack({"a", "b"}, Vm("m").Joined().Marked().Terminating()), 2);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->direction, Direction::kNone);
}

TEST(LeftOut, C14_without_a_mark_it_counts_once) {
  const auto plan = PlanWithoutM(WithRollBack({"a", "b"}, Vm("m").Joined()), 3);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->from, 3);
}

}  // namespace
}  // namespace nomad_harvester::scaling
