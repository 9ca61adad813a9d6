// SPDX-License-Identifier: Apache-2.0
//
// The rows that end a removal: cancelled, protected, refused, never begun; and their order.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/step_spec.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::NodeStatus;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string RowOf(World& world) { return std::string(RowName(world.StepOf("a").row)); }

Vm MarkedVm() { return Vm("a").Joined().Marked(); }

// A removal whose node is as given, with the VM's name in `back` of the Lease's action.
World InBack(const Node& node) {
  World world;
  world.With(MarkedVm()).With(node);
  world.Pool().action->cancel.insert("a");
  return world;
}

TEST(MarkedRemovalCancelled,
     L6_a_removal_that_is_cancelled_is_rolled_back_while_its_node_is_ready) {
  for (const Node& node : {Node("a"), Node("a").Draining("a"), Node("a").Drained("a")}) {
    World world = InBack(node);
    world.Idle("a");
    const Step step = world.StepOf("a");
    EXPECT_EQ(RowName(step.row), "marked-removal-cancelled");
    EXPECT_EQ(step.kind, StepKind::kRollBack);
    EXPECT_EQ(step.node_id, "node-a");
  }
}

TEST(MarkedRemovalCancelled, L6_the_removal_goes_on_when_its_node_is_not_ready_or_gone) {
  World down = InBack(Node("a").Down());
  down.Raw().vms[0].instance_runs = false;
  EXPECT_EQ(RowOf(down), "marked-down");
  World away = InBack(Node("a").Status(NodeStatus::kDisconnected));
  EXPECT_EQ(RowOf(away), "marked-waiting");
  World starts = InBack(Node("a").Initializing());
  EXPECT_EQ(RowOf(starts), "marked-start-drain");
  World gone;
  gone.With(MarkedVm().NodeGone());
  gone.Pool().action->cancel.insert("a");
  EXPECT_EQ(RowOf(gone), "marked-gone");
}

TEST(MarkedRemovalCancelled, L6_it_wins_over_a_removal_that_is_past_its_deadline) {
  World world;
  world.With(Vm("a").Joined().Marked().Late()).With(Node("a").Draining("a"));
  EXPECT_EQ(RowOf(world), "marked-late-forced");
  world.Pool().action->cancel.insert("a");
  EXPECT_EQ(RowOf(world), "marked-removal-cancelled");
}

TEST(MarkedRemovalCancelled, L6_the_name_of_another_vm_cancels_nothing) {
  World world;
  world.With(MarkedVm()).With(Node("a"));
  world.Pool().action->cancel.insert("b");
  EXPECT_EQ(RowOf(world), "marked-start-drain");
}

TEST(MarkedRemovalCancelled, C9_an_operators_cancel_comes_first) {
  World world = InBack(Node("a").DrainCancelled("a"));
  EXPECT_EQ(RowOf(world), "marked-canceled");
}

TEST(MarkedProtected, C7_protection_that_comes_late_rolls_the_removal_back) {
  World by_annotation;
  by_annotation.With(MarkedVm().Protected()).With(Node("a"));
  EXPECT_EQ(RowOf(by_annotation), "marked-protected");
  World by_meta;
  by_meta.With(MarkedVm()).With(Node("a").Meta("harvester_protect", "true"));
  EXPECT_EQ(RowOf(by_meta), "marked-protected");
  EXPECT_EQ(by_meta.StepOf("a").kind, StepKind::kRollBack);
  EXPECT_THAT(by_meta.StepOf("a").reason, HasSubstr("protected after its removal had begun"));
}

TEST(MarkedProtected, C7_it_holds_until_the_last_moment_before_the_deletion) {
  World idle;
  idle.With(MarkedVm().Protected()).With(Node("a").Drained("a")).Idle("a");
  EXPECT_EQ(RowOf(idle), "marked-protected");
  World gone;
  gone.With(MarkedVm().Protected().NodeGone());
  EXPECT_EQ(RowOf(gone), "marked-protected");
  World late;
  late.With(MarkedVm().Late()).With(Node("a").Draining("a").Meta("harvester_protect", "1"));
  EXPECT_EQ(RowOf(late), "marked-protected");
}

TEST(MarkedProtected, C7_protection_until_a_time_ends_then) {
  World holds;
  holds.With(MarkedVm().ProtectedUntil(kNow + seconds(1))).With(Node("a"));
  EXPECT_EQ(RowOf(holds), "marked-protected");
  World ended;
  ended.With(MarkedVm().ProtectedUntil(kNow)).With(Node("a"));
  EXPECT_EQ(RowOf(ended), "marked-start-drain");
}

TEST(MarkedProtected, C7_a_value_of_the_meta_that_is_no_boolean_protects_and_false_does_not) {
  World unreadable;
  unreadable.With(MarkedVm()).With(Node("a").Meta("harvester_protect", "please"));
  EXPECT_EQ(RowOf(unreadable), "marked-protected");
  World off;
  off.With(MarkedVm()).With(Node("a").Meta("harvester_protect", "false"));
  EXPECT_EQ(RowOf(off), "marked-start-drain");
}

TEST(MarkedProtected, L6_a_protected_vm_that_is_removal_cancelled_is_rolled_back_once) {
  World world = InBack(Node("a").Meta("harvester_protect", "true"));
  EXPECT_EQ(RowOf(world), "marked-removal-cancelled");
}

// Its drain or its deletion has been refused for so long.
World Refused(base::Duration time, const Node& node, const Vm& vm = MarkedVm()) {
  World world;
  world.With(vm).With(node);
  world.Raw().vms[0].removal_refused_for = time;
  return world;
}

TEST(MarkedRefused, L3_a_removal_that_was_refused_for_a_minute_is_rolled_back_with_a_note) {
  World before = Refused(seconds(59), Node("a"));
  EXPECT_EQ(RowOf(before), "marked-start-drain");
  World after = Refused(seconds(60), Node("a"));
  const Step step = after.StepOf("a");
  EXPECT_EQ(RowName(step.row), "marked-refused");
  EXPECT_EQ(step.kind, StepKind::kRollBack);
}

TEST(MarkedRefused, L3_also_when_the_node_is_drained_and_the_deletion_is_refused) {
  World world = Refused(minutes(2), Node("a").Drained("a"));
  world.Idle("a");
  EXPECT_EQ(RowOf(world), "marked-refused");
}

TEST(MarkedRefused, L3_a_vm_whose_node_is_down_or_gone_stays_marked_and_its_deletion_is_tried_on) {
  World down = Refused(minutes(2), Node("a").Down(), MarkedVm().InstanceRuns(false));
  EXPECT_EQ(RowOf(down), "marked-down");
  World gone;
  gone.With(MarkedVm().NodeGone());
  gone.Raw().vms[0].removal_refused_for = minutes(2);
  EXPECT_EQ(RowOf(gone), "marked-gone");
}

TEST(MarkedRefused, L3_an_unmarking_that_is_itself_refused_leaves_the_deletion_to_be_tried_on) {
  World world = Refused(minutes(2), Node("a").Drained("a"));
  world.Idle("a");
  world.Raw().vms[0].unmarking_refused = true;
  EXPECT_EQ(RowOf(world), "marked-idle");
}

TEST(MarkedRefused, L3_marks_for_being_broken_and_for_being_unhealthy_stay) {
  World broken = Refused(minutes(2), Node("a").Initializing(), MarkedVm().ForBeingBroken());
  EXPECT_EQ(RowOf(broken), "marked-start-drain");
  World unhealthy = Refused(minutes(2), Node("a").Draining("a"));
  unhealthy.Raw().vms[0].vm.Change().mark->reason = harvester::MarkReason::kUnhealthy;
  EXPECT_EQ(RowOf(unhealthy), "marked-waiting");
}

// The drain's deadline was that long ago; its grace is five minutes.
World DeadlinePassedBy(base::Duration time, const Node& node) {
  World world;
  world.With(MarkedVm()).With(node);
  world.Raw().vms[0].vm.Change().mark->drain_deadline.at = kNow - time;
  return world;
}

TEST(MarkedLate, C9_a_drain_that_never_began_is_rolled_back_ten_seconds_after_its_deadline) {
  World before = DeadlinePassedBy(seconds(9), Node("a"));
  EXPECT_EQ(RowOf(before), "marked-start-drain");
  World after = DeadlinePassedBy(seconds(10), Node("a"));
  const Step step = after.StepOf("a");
  EXPECT_EQ(RowName(step.row), "marked-late");
  EXPECT_EQ(step.kind, StepKind::kRollBack);
  EXPECT_THAT(step.reason, HasSubstr("did not begin before its deadline"));
}

TEST(MarkedLate, C5_a_drain_that_is_rolled_back_names_the_work_that_held_it) {
  World world;
  world.With(MarkedVm().Late().NoForce()).With(Node("a").Draining("a"));
  world.Raw().vms[0].drain_held_by = "job api";
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.kind, StepKind::kRollBack);
  EXPECT_THAT(step.reason, HasSubstr("is past its deadline and grace; still running: job api"));
}

TEST(MarkedLate, L3_the_mark_of_a_vm_that_is_of_no_use_stays_until_its_drain_is_accepted) {
  for (const auto reason : {harvester::MarkReason::kBroken, harvester::MarkReason::kUnhealthy}) {
    for (const base::Duration passed : {base::Duration(seconds(10)), base::Duration(minutes(6))}) {
      World world = DeadlinePassedBy(passed, Node("a").Initializing());
      world.Raw().vms[0].vm.Change().mark->reason = reason;
      EXPECT_EQ(RowOf(world), "marked-start-drain");
      World silent = DeadlinePassedBy(passed, Node("a").Status(NodeStatus::kDisconnected));
      silent.Raw().vms[0].vm.Change().mark->reason = reason;
      EXPECT_EQ(RowOf(silent), "marked-waiting") << "it may be away for longer than the grace";
    }
  }
}

TEST(MarkedLate, C9_a_drain_of_another_action_is_not_the_beginning_of_this_one) {
  World world = DeadlinePassedBy(seconds(10), Node("a").Drained("a", "old"));
  EXPECT_EQ(RowOf(world), "marked-late");
}

TEST(MarkedLate, C9_a_drain_that_was_posted_has_its_grace) {
  World runs = DeadlinePassedBy(seconds(10), Node("a").Draining("a"));
  EXPECT_EQ(RowOf(runs), "marked-waiting");
  World complete = DeadlinePassedBy(seconds(10), Node("a").Drained("a"));
  complete.Idle("a");
  EXPECT_EQ(RowOf(complete), "marked-idle");
}

TEST(MarkedLate, C9_a_node_that_is_not_ready_is_waited_for_until_the_grace_has_passed) {
  World world = DeadlinePassedBy(seconds(10), Node("a").Status(NodeStatus::kDisconnected));
  EXPECT_EQ(RowOf(world), "marked-waiting");
}

TEST(MarkedLate, C9_a_drain_without_a_timed_deadline_begins_however_late) {
  World none;
  none.With(MarkedVm().NoDrainDeadline().MarkedAt(kNow - std::chrono::hours(2))).With(Node("a"));
  EXPECT_EQ(RowOf(none), "marked-start-drain");
  World now;
  now.With(MarkedVm()).With(Node("a"));
  now.Raw().vms[0].vm.Change().mark->drain_deadline = {.kind =
                                                           harvester::DrainDeadline::Kind::kNow};
  now.Raw().vms[0].vm.Change().mark->marked_at = kNow - minutes(4);
  EXPECT_EQ(RowOf(now), "marked-start-drain");
}

// A VM that is held, and was marked a minute before now.
World WithHolds(const Node& node) {
  World world;
  world.With(MarkedVm()).With(node).Idle("a");
  world.Raw().vms[0].vm.Change().holds = {"licence", "vpn"};
  return world;
}

TEST(MarkedHeld, C18_waits_after_its_drain_and_says_for_what_and_until_when) {
  World world = WithHolds(Node("a").Drained("a"));
  world.Raw().vms[0].held_for = seconds(60);
  const Step step = world.StepOf("a");
  EXPECT_EQ(RowName(step.row), "marked-idle");
  EXPECT_EQ(step.kind, StepKind::kWait);
  EXPECT_THAT(step.reason, HasSubstr("is drained, and it is held by licence, vpn, until "
                                     "2026-03-01T12:14:00Z at the latest"));
}

TEST(MarkedHeld, C18_goes_with_a_warning_once_hold_timeout_has_passed_since_its_drain) {
  World world = WithHolds(Node("a").Drained("a"));
  world.Raw().vms[0].held_for = seconds(30);
  world.Policy().hold_timeout = seconds(31);
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
  world.Policy().hold_timeout = seconds(30);
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.kind, StepKind::kDelete);
  EXPECT_TRUE(step.is_held);
  EXPECT_THAT(step.reason, HasSubstr("still held by licence, vpn"));
}

TEST(MarkedHeld, C18_not_before_this_process_has_observed_the_hold_for_hold_timeout) {
  for (const base::Duration off :
       std::vector<base::Duration>{-hours(1), -seconds(3), seconds(3), hours(1)}) {
    World world = WithHolds(Node("a").Drained("a").DrainEnded(kNow + off));
    world.Raw().vms[0].vm.Change().mark->marked_at = kNow - hours(2);
    world.Policy().hold_timeout = minutes(15);
    world.Raw().vms[0].held_for = minutes(15) - seconds(1);
    EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
    EXPECT_THAT(world.StepOf("a").reason, HasSubstr("until 2026-03-01T12:"));
    world.Raw().now += hours(1);
    EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait) << "the API server's clock";
    world.Raw().vms[0].held_for = minutes(15);
    EXPECT_EQ(world.StepOf("a").kind, StepKind::kDelete);
  }
}

TEST(MarkedHeld, C18_also_without_its_node_and_however_wrong_nomads_clock_is) {
  World down = WithHolds(Node("a").Down());
  down.Raw().vms[0].held_for = hours(1);
  down.Raw().vms[0].instance_runs = false;
  EXPECT_EQ(down.StepOf("a").kind, StepKind::kWait);
  down.Policy().hold_timeout = seconds(60);
  EXPECT_EQ(down.StepOf("a").kind, StepKind::kDelete) << "a minute after its mark";
  World wrong = WithHolds(Node("a").Drained("a").DrainEnded(kNow + minutes(500)));
  wrong.Raw().vms[0].held_for = hours(1);
  wrong.Policy().hold_timeout = seconds(60);
  EXPECT_EQ(wrong.StepOf("a").kind, StepKind::kDelete);
}

TEST(MarkedHeld, C18_not_if_it_never_joined) {
  World world;
  world.With(Vm("a").Marked());
  world.Raw().vms[0].vm.Change().holds = {"vpn"};
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kDelete);
}

}  // namespace
}  // namespace nomad_harvester::scaling
