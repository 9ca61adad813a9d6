// SPDX-License-Identifier: Apache-2.0
//
// replace_unhealthy_after and max_unhealthy: which VMs are marked, and which are kept.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using ::testing::HasSubstr;

// A policy that replaces after ten minutes, and VMs that have looked unhealthy for `time`.
World Replacing(config::Share at_most = {.value = 20, .is_percentage = true}) {
  World world;
  world.Policy().replace_unhealthy_after = minutes(10);
  world.Policy().max_unhealthy = at_most;
  return world;
}

// The last VM has been so for `time`, and nothing has taken its place for long enough.
void MakeSick(World& world, base::Duration time) {
  world.Raw().vms.back().unhealthy_for = time;
  world.Raw().vms.back().awaited_for = kReplacementWait;
}

World& AddSick(World& world, const std::string& name, base::Duration time = minutes(11)) {
  world.With(Vm(name).Joined().Stopped().InstanceRuns(false)).With(Node(name).Down());
  MakeSick(world, time);
  return world;
}

World& AddMarkedUnhealthy(World& world, Vm vm) {
  world.With(vm);
  world.Raw().vms.back().vm.Change().mark->reason = harvester::MarkReason::kUnhealthy;
  return world;
}

TEST(Unhealthy, a_vm_that_does_not_run_on_a_down_node_is_marked_after_its_time) {
  World world = Replacing();
  const Step step = AddSick(world, "a").StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedUnhealthy) << step.reason;
  EXPECT_EQ(step.kind, StepKind::kMarkUnhealthy);
  EXPECT_EQ(step.node_id, "node-a");
}

TEST(Unhealthy, a_vm_that_does_not_run_and_has_no_node_is_marked_after_its_time) {
  World world = Replacing();
  world.With(Vm("a").Joined().Stopped());
  MakeSick(world, minutes(11));
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C17_its_mark_waits_a_minute_for_the_vm_that_takes_its_place) {
  World world = Replacing();
  EXPECT_EQ(AddSick(world, "a").StepOf("a").row, Row::kUnmarkedUnhealthy);
  world.Raw().vms[0].awaited_for = kReplacementWait - std::chrono::seconds(1);
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthyWaits) << "however long it is so";
  // Nothing is created for such a VM.
  world.Raw().vms[0].vm.Change().removal_undone =
      harvester::CancelledRemoval{.at = kNow, .why = "x"};
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy);
}

TEST(Unhealthy, C17_it_is_marked_once_the_vm_that_takes_its_place_exists) {
  World world = Replacing();
  AddSick(world, "a").With(Vm("b").Age(minutes(0)).Replaces("a", {ReplaceKind::kUnhealthy}));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy);
}

TEST(Unhealthy, C17_where_nothing_can_take_its_place_it_is_marked_at_once) {
  World collected = Replacing();
  AddSick(collected, "a").Raw().vms[0].awaited_for = {};
  collected.Pool().collected = true;
  EXPECT_EQ(collected.StepOf("a").row, Row::kUnmarkedUnhealthy);
}

TEST(Unhealthy, R6_one_that_something_keeps_once_its_successor_is_ready_stays_beside_it) {
  World world = Replacing();
  AddSick(world, "a", minutes(30)).With(Vm("b").Joined().Replaces("a", {ReplaceKind::kUnhealthy}));
  world.With(Node("b"));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy);
  world.Raw().vms[0].vm.Change().protect.always = true;
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedStays);
  world.Raw().vms[0].vm.Change().protect.always = false;
  world.Nodes().erase(world.Nodes().begin());
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy) << "that it has no node keeps it not";
  world.Raw().vms[0].unhealthy_for = {};
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedOther) << "also after a restart";
}

TEST(Unhealthy,
     R5_a_new_vm_that_was_ready_and_is_lost_goes_after_join_timeout_whatever_the_policy_says) {
  World world;
  world.Policy().join_timeout = minutes(5);
  world.With(Vm("a").Joined()).With(Node("a"));
  world.With(Vm("b").Joined().Stopped().InstanceRuns(false).Replaces("a", {ReplaceKind::kDrifted}));
  world.With(Node("b").Down());
  MakeSick(world, minutes(5) - std::chrono::seconds(1));
  EXPECT_EQ(world.StepOf("b").row, Row::kUnmarkedOther);
  MakeSick(world, minutes(5));
  const Step step = world.StepOf("b");
  EXPECT_EQ(step.kind, StepKind::kMarkUnhealthy) << step.reason;
  EXPECT_THAT(step.reason, testing::HasSubstr("was not ready for 5m0s"));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedOther) << "the old one stays";
  world.Nodes().pop_back();
  EXPECT_EQ(world.StepOf("b").kind, StepKind::kMarkUnhealthy) << "its node is gone";
}

TEST(Unhealthy,
     R6_a_dead_vm_whose_successor_is_ready_leaves_if_the_policy_no_longer_replaces_such_vms) {
  World world;
  AddSick(world, "a")
      .With(Vm("b").Joined().Replaces("a", {ReplaceKind::kUnhealthy}))
      .With(Node("b"));
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kMarkReplaced) << world.StepOf("a").reason;
  world.Nodes().erase(world.Nodes().begin());
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedStays) << world.StepOf("a").reason;
}

TEST(Unhealthy, no_vm_is_replaced_unless_the_policy_asks_for_it) {
  World world;
  EXPECT_EQ(AddSick(world, "a").StepOf("a").kind, StepKind::kNothing);
}

TEST(Unhealthy, no_vm_is_replaced_before_the_time) {
  World world = Replacing();
  EXPECT_EQ(AddSick(world, "a", minutes(9)).StepOf("a").kind, StepKind::kNothing);
}

TEST(Unhealthy, C17_a_running_vm_is_replaced_too_whatever_its_node_is_instead_of_ready) {
  for (const nomad::NodeStatus status : {nomad::NodeStatus::kDown, nomad::NodeStatus::kInitializing,
                                         nomad::NodeStatus::kDisconnected}) {
    World world = Replacing();
    world.With(Vm("a").Joined()).With(Node("a").Status(status));
    MakeSick(world, minutes(11));
    EXPECT_EQ(world.StepOf("a").kind, StepKind::kMarkUnhealthy)
        << nomad::kNodeStatusNames[static_cast<std::size_t>(status)];
  }
}

nomad::Allocation On(const std::string& node, nomad::ClientStatus status) {
  nomad::Allocation allocation;
  allocation.id = "alloc-1";
  allocation.node_id = node;
  allocation.desired_status = "run";
  allocation.client_status = status;
  allocation.all_tasks_dead = false;
  return allocation;
}

TEST(Unhealthy, C17_a_disconnected_node_is_healthy_while_an_allocation_is_within_its_time) {
  using enum nomad::ClientStatus;
  for (const auto& [status, unhealthy] :
       {std::pair(kUnknown, false), std::pair(kRunning, false), std::pair(kPending, false),
        std::pair(kComplete, true), std::pair(kFailed, true), std::pair(kLost, true)}) {
    World world = Replacing();
    world.With(Vm("a").Joined()).With(Node("a").Status(nomad::NodeStatus::kDisconnected));
    MakeSick(world, minutes(90));
    world.Raw().allocations["node-a"] = {On("node-a", status)};
    EXPECT_EQ(world.StepOf("a").kind == StepKind::kMarkUnhealthy, unhealthy)
        << static_cast<int>(status);
  }
}

TEST(Unhealthy, C17_a_marked_vm_is_deleted_when_its_node_was_disconnected_for_two_minutes) {
  const auto step = [](base::Duration away, std::optional<nomad::ClientStatus> status) {
    World world;
    AddMarkedUnhealthy(world, Vm("a").Joined().Marked().NodeDownFor(away));
    world.With(Node("a").Status(nomad::NodeStatus::kDisconnected));
    if (status.has_value()) world.Raw().allocations["node-a"] = {On("node-a", *status)};
    return world.StepOf("a");
  };
  EXPECT_EQ(step(minutes(2), nomad::ClientStatus::kFailed).row, Row::kMarkedCutOff);
  EXPECT_EQ(step(minutes(1), nomad::ClientStatus::kFailed).kind, StepKind::kWait);
  EXPECT_EQ(step(minutes(2), nomad::ClientStatus::kUnknown).kind, StepKind::kWait);
  EXPECT_EQ(step(minutes(2), std::nullopt).kind, StepKind::kWait) << "they were not read";
}

TEST(Unhealthy, C17_a_broken_vm_whose_node_was_disconnected_for_two_minutes_is_deleted) {
  World world;
  world.With(Vm("a").Registered().Marked().ForBeingBroken().NodeDownFor(minutes(2)));
  world.With(Node("a").Status(nomad::NodeStatus::kDisconnected));
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait) << "its allocations were not read";
  world.Raw().allocations["node-a"] = {On("node-a", nomad::ClientStatus::kFailed)};
  EXPECT_EQ(world.StepOf("a").row, Row::kMarkedCutOff);
  world.Raw().allocations["node-a"] = {On("node-a", nomad::ClientStatus::kUnknown)};
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
}

TEST(Unhealthy, C17_while_an_operator_drains_its_node_a_vm_is_kept_and_takes_nobodys_place) {
  World world = Replacing({.value = 1, .is_percentage = false});
  world.With(Vm("a").Joined()).With(Node("a").Initializing().DrainedByOperator());
  MakeSick(world, minutes(11));
  AddSick(world, "b");
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedUnhealthyKept);
  EXPECT_THAT(step.reason, HasSubstr("while another client drains its node"));
  EXPECT_EQ(world.StepOf("b").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C17_a_vm_that_was_never_ready_is_not_unhealthy_before_its_deadline) {
  World world = Replacing();
  world.With(Vm("a").Registered()).With(Node("a").Down());
  MakeSick(world, minutes(90));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedBroken) << "it is past its deadline";
  world.Raw().vms.back().vm.Change().created_at = kNow - minutes(1);
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedWaiting);
  world.Raw().vms.back().vm.Change().join_timeout = harvester::JoinTimeout{.none = true};
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy) << "it has no deadline";
}

TEST(Unhealthy, C5_a_guest_that_is_paused_or_migrates_is_healthy) {
  World world = Replacing();
  world.With(Vm("a").Joined().Paused()).With(Node("a").Down());
  MakeSick(world, minutes(90));
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kNothing);
}

TEST(Unhealthy, a_ready_node_is_not_a_reason_to_replace_its_vm) {
  World world = Replacing();
  world.With(Vm("a").Joined().Stopped()).With(Node("a"));
  MakeSick(world, minutes(90));
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kNothing);
}

TEST(Unhealthy, C15_no_vm_is_unhealthy_while_nomad_cannot_be_read) {
  World world = Replacing();
  AddSick(world, "a").NomadUnreadable();
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
}

TEST(Unhealthy, C7_a_protected_vm_is_reported_and_kept) {
  World world = Replacing();
  world.With(Vm("a").Joined().Stopped().Protected()).With(Node("a").Down());
  MakeSick(world, minutes(11));
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.kind, StepKind::kReport);
  EXPECT_EQ(step.row, Row::kUnmarkedUnhealthyKept);
}

TEST(Unhealthy, C13_a_policy_in_dry_run_marks_nothing) {
  World world = Replacing();
  world.Policy().dry_run = true;
  EXPECT_EQ(AddSick(world, "a").StepOf("a").kind, StepKind::kReport);
}

TEST(Unhealthy, a_ready_node_that_could_be_the_vm_saves_it_if_it_has_an_instance) {
  World world = Replacing();
  world.With(Vm("a").Joined().Stopped()).With(Node("unmanaged"));
  MakeSick(world, minutes(11));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthy) << "no guest, no client";
  world.Raw().vms.back().vm.Change().instance_exists = true;
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedCandidate);
  EXPECT_EQ(step.kind, StepKind::kReport);
}

TEST(Unhealthy, never_more_than_max_unhealthy_are_being_replaced) {
  // 20 % of five, rounded up, is one; of six, two.
  World five = Replacing();
  World six = Replacing();
  for (const char* name : {"a", "b", "c"}) {
    AddSick(five, name);
    AddSick(six, name);
  }
  for (const char* name : {"d", "e"}) five.With(Vm(name).Joined()).With(Node(name));
  for (const char* name : {"d", "e", "f"}) six.With(Vm(name).Joined()).With(Node(name));
  EXPECT_EQ(five.StepOf("a").kind, StepKind::kMarkUnhealthy);
  EXPECT_EQ(five.StepOf("b").kind, StepKind::kReport);
  EXPECT_THAT(five.StepOf("b").reason, HasSubstr("max_unhealthy"));
  EXPECT_EQ(six.StepOf("b").kind, StepKind::kMarkUnhealthy);
  EXPECT_EQ(six.StepOf("c").kind, StepKind::kReport);
}

TEST(Unhealthy, one_that_is_already_marked_counts_towards_max_unhealthy) {
  World world = Replacing({.value = 1});
  AddMarkedUnhealthy(world, Vm("z").Joined().Stopped().Marked());
  EXPECT_EQ(AddSick(world, "a").StepOf("a").kind, StepKind::kReport);
}

TEST(Unhealthy, marks_for_other_reasons_do_not_count_towards_max_unhealthy) {
  World world = Replacing({.value = 1});
  world.With(Vm("y").Joined().Marked()).With(Vm("z").Marked().ForBeingBroken());
  EXPECT_EQ(AddSick(world, "a").StepOf("a").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, a_protected_vm_does_not_count_towards_max_unhealthy) {
  World world = Replacing({.value = 1});
  world.With(Vm("a").Joined().Stopped().Protected()).With(Node("a").Down());
  MakeSick(world, minutes(11));
  EXPECT_EQ(AddSick(world, "b").StepOf("b").kind, StepKind::kMarkUnhealthy);
}

World OneSick(const Node& node) {
  World world = Replacing();
  world.With(Vm("a").Joined()).With(node);
  MakeSick(world, minutes(11));
  return world;
}

TEST(Unhealthy, C7_what_no_scale_in_removes_is_not_replaced_either) {
  World volume = OneSick(Node("a").Down());
  volume.Nodes()[0].dynamic_host_volumes = {"data"};
  EXPECT_EQ(volume.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
  volume.Policy().host_volumes = config::HostVolumes::kIgnore;
  EXPECT_EQ(volume.StepOf("a").kind, StepKind::kMarkUnhealthy);
  World own = OneSick(Node("a").Down());
  own.Raw().own_node_id = "node-a";
  EXPECT_EQ(own.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
  own.Raw().own_node_id = "node-b";
  EXPECT_EQ(own.StepOf("a").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C9_a_removal_that_was_cancelled_begins_again_after_an_hour) {
  World world = OneSick(Node("a").Initializing().DrainCancelled("a"));
  world.Nodes()[0].last_drain->updated_at = kNow - minutes(59);
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedUnhealthyKept);
  EXPECT_THAT(step.reason, HasSubstr("its drain was cancelled"));
  world.Nodes()[0].last_drain->updated_at = kNow - minutes(60);
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C9_a_list_that_may_be_filtered_proves_no_absence) {
  World world;
  AddMarkedUnhealthy(world, Vm("a").Joined().Marked().NodeDownFor(minutes(2)));
  world.With(Node("a").Status(nomad::NodeStatus::kDisconnected));
  world.Raw().allocations["node-a"] = {};
  EXPECT_EQ(world.StepOf("a").row, Row::kMarkedCutOff);
  world.Raw().allocations_complete = false;
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
}

TEST(Unhealthy, C9_without_a_proof_that_nothing_runs_a_vm_that_is_cut_off_is_kept_and_reported) {
  World world = OneSick(Node("a").Status(nomad::NodeStatus::kDisconnected));
  world.Idle("a");
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedCutOff);
  world.Raw().allocations_complete = false;
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedUnhealthyKept);
  EXPECT_THAT(step.reason, HasSubstr("the Nomad token is not proved to read the allocations"));
}

// Nomad's servers are two hours behind Harvester.
TEST(Unhealthy, C9_a_cancelled_drain_is_respected_whatever_nomads_clock_says) {
  World world = OneSick(Node("a").Initializing().DrainCancelled("a"));
  world.Nodes()[0].last_drain->updated_at = kNow - minutes(121);
  world.Raw().vms[0].vm.Change().removal_undone = {kNow - minutes(1), "it was cancelled"};
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
}

TEST(Unhealthy, C9_a_cancelled_drain_of_the_future_holds_no_vm) {
  World world = OneSick(Node("a").Initializing().DrainCancelled("a"));
  world.Nodes()[0].last_drain->updated_at = kNow + minutes(1);
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
  world.Nodes()[0].last_drain->updated_at = kNow + minutes(61);
  EXPECT_NE(world.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
}

TEST(Unhealthy, C9_a_date_that_is_ahead_at_the_first_look_ends_no_hour_of_a_cancelled_drain) {
  World world = OneSick(Node("a").Initializing().DrainCancelled("a"));
  world.Nodes()[0].last_drain->updated_at = kNow - minutes(61);
  const Row ends = world.StepOf("a").row;
  EXPECT_NE(ends, Row::kUnmarkedUnhealthyKept);
  world.Raw().own_now = kNow - minutes(2);
  world.Raw().vms[0].known_for = minutes(0);
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedUnhealthyKept);
  world.Raw().vms[0].known_for = minutes(60);
  EXPECT_EQ(world.StepOf("a").row, ends);
}

TEST(Unhealthy, C17_only_what_would_be_replaced_takes_a_place_of_max_unhealthy) {
  World world = Replacing({.value = 1});
  world.With(Vm("a").Joined()).With(Node("a").Down());
  world.Nodes()[0].dynamic_host_volumes = {"data"};
  MakeSick(world, minutes(11));
  EXPECT_EQ(AddSick(world, "b").StepOf("b").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C17_a_node_within_its_time_does_not_count_towards_max_unhealthy) {
  World world = Replacing({.value = 1});
  world.With(Vm("a").Joined()).With(Node("a").Status(nomad::NodeStatus::kDisconnected));
  MakeSick(world, minutes(11));
  world.Raw().allocations["node-a"] = {On("node-a", nomad::ClientStatus::kUnknown)};
  EXPECT_EQ(AddSick(world, "b").StepOf("b").kind, StepKind::kMarkUnhealthy);
}

TEST(Unhealthy, C17_a_vm_whose_node_may_have_another_name_does_not_count_towards_max_unhealthy) {
  World world = Replacing({.value = 1});
  world.With(Vm("a").Joined()).With(Node("metal", "n9").Index(900));
  MakeSick(world, minutes(11));
  AddSick(world, "b");
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedCandidate);
  EXPECT_EQ(world.StepOf("b").kind, StepKind::kMarkUnhealthy) << world.StepOf("b").reason;
}

TEST(Unhealthy, once_marked_its_down_node_lets_it_be_deleted) {
  World world = Replacing();
  AddMarkedUnhealthy(world, Vm("a").Joined().Stopped().InstanceRuns(false).Marked());
  world.With(Node("a").Down());
  EXPECT_EQ(world.StepOf("a").row, Row::kMarkedDown);
}

TEST(Unhealthy, a_node_that_comes_back_before_the_deletion_saves_its_vm) {
  World world = Replacing();
  AddMarkedUnhealthy(world, Vm("a").Joined().Marked());
  world.With(Node("a"));
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kMarkedRecovered) << step.reason;
  EXPECT_EQ(step.kind, StepKind::kRollBack);
}

TEST(Unhealthy, a_mark_that_the_lease_does_not_name_is_rolled_back) {
  World world = Replacing();
  AddMarkedUnhealthy(world, Vm("a").Joined().Stopped().InstanceRuns(false).Marked());
  world.With(Node("a").Down()).NotNamed("a");
  EXPECT_EQ(world.StepOf("a").row, Row::kMarkedNotNamed);
}

}  // namespace
}  // namespace nomad_harvester::scaling
