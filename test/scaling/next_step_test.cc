// SPDX-License-Identifier: Apache-2.0
//
// Every row of the table, in order, and the rows that it must take precedence over.

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::DrainStatus;
using nomad::NodeStatus;
using std::chrono::seconds;

#define EXPECT_STEP(step, expected_kind, expected_row)                          \
  do {                                                                          \
    const Step actual = (step);                                                 \
    EXPECT_EQ(StepName(actual.kind), StepName(expected_kind)) << actual.reason; \
    EXPECT_EQ(RowName(actual.row), RowName(expected_row)) << actual.reason;     \
  } while (false)

// What is decided about the VM "a".
struct Case {
  const char* name;
  World world;
  StepKind kind;
  Row row;
};

std::vector<Case> Cases() {
  const Vm a("a");
  const Vm joined = Vm("a").Joined();
  const Vm marked = Vm("a").Joined().Marked();
  const Node node("a");
  return {
      {"C15_a_marked_vm_waits_while_nomad_cannot_be_read", World().With(marked).NomadUnreadable(),
       StepKind::kWait, Row::kNomadUnreadable},
      {"C15_an_overdue_vm_waits_while_nomad_cannot_be_read",
       World().With(Vm("a").Age(std::chrono::hours(9))).NomadUnreadable(), StepKind::kWait,
       Row::kNomadUnreadable},
      {"a_terminating_vm_is_waited_for_even_if_marked",
       World().With(Vm("a").Marked().Terminating()), StepKind::kWait, Row::kTerminating},
      {"a_clone_is_never_touched_whatever_mark_it_copied",
       World().With(Vm("a").Marked().Unmanaged()), StepKind::kNothing, Row::kNotMember},
      {"a_completed_drain_of_ours_without_a_mark_is_followed_by_enabling",
       World().With(joined).With(Node("a").Drained("a")), StepKind::kEnable, Row::kUnmarkedDrained},
      {"an_operator_who_makes_the_node_ineligible_after_the_roll_back_is_respected",
       World()
           .With(Vm("a").Joined().RolledBack("act@2026-03-01T11:59:00Z"))
           .With(Node("a").Drained("a")),
       StepKind::kNothing, Row::kUnmarkedOther},
      {"a_node_that_was_ineligible_before_is_recorded_without_enabling",
       World().With(joined).With(Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", true)),
       StepKind::kRecordRolledBack, Row::kUnmarkedRecord},
      {"C6_two_ready_nodes_of_one_name_are_reported",
       World().With(a).With(Node("a", "n1")).With(Node("a", "n2")), StepKind::kReport,
       Row::kUnmarkedAmbiguous},
      {"a_young_vm_is_waited_for", World().With(Vm("a").Age(std::chrono::minutes(14))),
       StepKind::kWait, Row::kUnmarkedWaiting},
      {"an_overdue_vm_is_marked_broken", World().With(a), StepKind::kMarkBroken,
       Row::kUnmarkedBroken},
      {"C7_a_protected_vm_is_kept_even_if_broken", World().With(Vm("a").Protected()),
       StepKind::kReport, Row::kUnmarkedBrokenKept},
      {"C7_a_broken_vm_whose_protection_has_ended_is_marked",
       World().With(Vm("a").ProtectedUntil(kNow)), StepKind::kMarkBroken, Row::kUnmarkedBroken},
      {"nothing_is_marked_without_a_policy", World().WithoutPolicy().With(a), StepKind::kReport,
       Row::kUnmarkedBrokenKept},
      {"a_node_older_than_the_vm_is_not_a_candidate",
       World().With(a).With(Node("x", "n1").Index(100)), StepKind::kMarkBroken,
       Row::kUnmarkedBroken},
      {"a_node_of_another_pool_is_not_a_candidate",
       World().With(a).With(Node("x", "n1").Class("db")), StepKind::kMarkBroken,
       Row::kUnmarkedBroken},
      {"a_node_that_is_declared_foreign_is_not_a_candidate",
       World().With(a).With(Node("x", "n1").Meta("harvester_vm_uuid", "none")),
       StepKind::kMarkBroken, Row::kUnmarkedBroken},
      {"a_node_whose_uuid_is_another_vms_is_not_a_candidate",
       World()
           .With(a)
           .With(Vm("b").Joined())
           .With(Node("x", "n1").Meta("harvester_vm_uuid", "fw-b")),
       StepKind::kMarkBroken, Row::kUnmarkedBroken},
      {"C15_a_vm_made_for_other_identifiers_is_never_called_broken",
       World().With(Vm("a").NodeClass("old")), StepKind::kWait, Row::kUnmarkedWaiting},
      {"a_vm_without_a_deadline_is_never_overdue", World().With(Vm("a").NoTimeout()),
       StepKind::kNothing, Row::kUnmarkedOther},
      {"a_mark_that_cannot_be_read_is_rolled_back",
       World().With(Vm("a").Joined().UnreadableMark()).With(node), StepKind::kRollBack,
       Row::kMarkUnreadable},
      {"an_operators_drain_of_a_marked_vms_node_wins",
       World().With(marked).With(Node("a").DrainedByOperator()), StepKind::kRollBack,
       Row::kMarkedForeignDrain},
      {"a_drain_of_another_action_is_not_ours",
       World().With(Vm("a").Joined().Marked("new")).With(Node("a").Draining("a", "old")),
       StepKind::kRollBack, Row::kMarkedForeignDrain},
      {"C6_a_marked_vm_with_two_ready_nodes_is_rolled_back",
       World().With(marked).With(Node("a", "n1")).With(Node("a", "n2")), StepKind::kRollBack,
       Row::kMarkedAmbiguous},
      {"C11_a_mark_that_the_lease_does_not_name_is_rolled_back",
       World().With(marked).With(node).NotNamed("a"), StepKind::kRollBack, Row::kMarkedNotNamed},
      {"a_mark_for_being_broken_need_not_be_named",
       World().With(Vm("a").Marked().ForBeingBroken()).NotNamed("a"), StepKind::kDelete,
       Row::kMarkedNeverJoined},
      {"C9_a_drain_that_an_operator_cancelled_rolls_back",
       World().With(marked).With(Node("a").DrainCancelled("a")), StepKind::kRollBack,
       Row::kMarkedCanceled},
      {"a_drained_node_that_an_operator_enabled_rolls_back",
       World().With(marked).With(Node("a").Drained("a").Eligible()).Idle("a"), StepKind::kRollBack,
       Row::kMarkedEnabled},
      {"a_marked_vm_without_a_node_is_rolled_back_if_an_unlinked_node_could_be_it",
       World().With(Vm("a").Marked()).With(Node("x", "n1")), StepKind::kRollBack,
       Row::kMarkedCandidate},
      {"so_is_one_whose_node_is_gone",
       World().With(Vm("a").Joined().Marked().NodeGone()).With(Node("x", "n1")),
       StepKind::kRollBack, Row::kMarkedCandidate},
      {"C5_a_marked_vm_that_never_joined_is_deleted", World().With(Vm("a").Marked()),
       StepKind::kDelete, Row::kMarkedNeverJoined},
      {"C5_a_joined_vm_is_deleted_if_its_node_is_gone_for_sure",
       World().With(Vm("a").Joined().Marked().NodeGone()), StepKind::kDelete, Row::kMarkedGone},
      {"C5_a_joined_vm_waits_if_its_node_is_only_missing", World().With(marked), StepKind::kWait,
       Row::kMarkedNoNode},
      {"C5_a_down_node_does_not_count_before_two_minutes",
       World().With(Vm("a").Joined().Marked().NodeDownFor(seconds(119))).With(Node("a").Down()),
       StepKind::kWait, Row::kMarkedWaiting},
      {"C5_a_down_node_counts_after_two_minutes",
       World().With(Vm("a").Joined().Marked().NodeDownFor(seconds(120))).With(Node("a").Down()),
       StepKind::kDelete, Row::kMarkedDown},
      {"C5_a_down_node_counts_without_an_instance",
       World().With(Vm("a").Joined().Marked().InstanceRuns(false)).With(Node("a").Down()),
       StepKind::kDelete, Row::kMarkedDown},
      {"C5_the_vm_of_a_drained_and_idle_node_is_deleted",
       World().With(marked).With(Node("a").Drained("a")).Idle("a"), StepKind::kDelete,
       Row::kMarkedIdle},
      {"C9_allocations_that_still_run_keep_the_vm",
       World().With(marked).With(Node("a").Drained("a")).Running("a"), StepKind::kWait,
       Row::kMarkedWaiting},
      {"C9_allocations_that_were_not_read_keep_the_vm",
       World().With(marked).With(Node("a").Drained("a")), StepKind::kWait, Row::kMarkedWaiting},
      {"a_late_vm_is_deleted_under_a_drain_of_ours",
       World().With(Vm("a").Joined().Marked().Late()).With(Node("a").Draining("a")),
       StepKind::kDelete, Row::kMarkedLateForced},
      {"a_late_vm_is_rolled_back_without_a_drain_of_ours",
       World().With(Vm("a").Joined().Marked().Late()).With(node), StepKind::kRollBack,
       Row::kMarkedLate},
      {"without_force_a_late_vm_is_rolled_back",
       World().With(Vm("a").Joined().Marked().Late().NoForce()).With(Node("a").Draining("a")),
       StepKind::kRollBack, Row::kMarkedLate},
      {"C9_a_drain_without_a_deadline_is_never_late",
       World()
           .With(
               Vm("a").Joined().Marked().NoDrainDeadline().MarkedAt(kNow - std::chrono::hours(48)))
           .With(Node("a").Draining("a")),
       StepKind::kWait, Row::kMarkedWaiting},
      {"C9_a_running_drain_gets_no_second_one", World().With(marked).With(Node("a").Draining("a")),
       StepKind::kWait, Row::kMarkedWaiting},
      {"a_disconnected_node_is_waited_for",
       World().With(marked).With(Node("a").Status(NodeStatus::kDisconnected)), StepKind::kWait,
       Row::kMarkedWaiting},
      {"C17_an_initializing_node_is_drained", World().With(marked).With(Node("a").Initializing()),
       StepKind::kStartDrain, Row::kMarkedStartDrain},
  };
}

TEST(NextStep, C5_C6_C7_C9_C11_C15_C17_the_first_row_that_matches_decides) {
  std::vector<Case> cases = Cases();
  for (Case& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_STEP(each.world.StepOf("a"), each.kind, each.row);
  }
}

constexpr char kUnread[] = "node n1 (metal), which could be it: HTTP 500";

TEST(NextStep, C6_from_having_no_node_nothing_is_concluded_while_one_that_could_be_it_is_unread) {
  for (const Vm& vm : {Vm("a").Age(std::chrono::hours(9)), Vm("a").Marked(), Vm("a").Joined()}) {
    World world;
    world.With(vm).With(Vm("b").Joined());
    world.Policy().replace_unhealthy_after = std::chrono::minutes(1);
    world.Raw().vms[0].unread_node = kUnread;
    world.Raw().vms[0].unhealthy_for = std::chrono::hours(1);
    world.Raw().vms[0].awaited_for = kReplacementWait;
    const StepKind step = world.StepOf("a").kind;
    EXPECT_TRUE(step == StepKind::kWait || step == StepKind::kNothing) << StepName(step);
    EXPECT_NE(world.StepOf("b").row, Row::kNomadUnreadable);
    EXPECT_FALSE(IsBroken(world.Raw().vms[0], world.Snapshot()));
    EXPECT_FALSE(LooksUnhealthy(world.Raw().vms[0], world.Raw()));
  }
}

TEST(NextStep, C13_a_new_vm_whose_old_one_is_gone_is_started_in_a_dry_run_too) {
  World world;
  world.With(Vm("new").Stopped());
  harvester::VirtualMachine& vm = world.Raw().vms[0].vm.Change();
  vm.run_strategy = harvester::kHalted;
  vm.join_timeout = harvester::JoinTimeout{.none = true};
  vm.replaces = harvester::Replaces{
      .vm = "old", .uid = "uid-old", .reason = {ReplaceKind::kExpired}, .start = "RerunOnFailure"};
  world.Policy().dry_run = true;
  EXPECT_STEP(world.StepOf("new"), StepKind::kStart, Row::kUnmarkedStart);
  world.With(Vm("old").Joined()).With(Node("old"));
  EXPECT_STEP(world.StepOf("new"), StepKind::kWait, Row::kUnmarkedHalted);
}

TEST(NextStep, C13_R8_in_a_dry_run_a_new_vm_that_is_not_needed_is_reported_and_not_marked) {
  World world;
  world.With(Vm("new").Stopped()).With(Vm("old").Joined()).With(Node("old"));
  harvester::VirtualMachine& fresh = world.Raw().vms[0].vm.Change();
  fresh.run_strategy = harvester::kHalted;
  fresh.join_timeout = harvester::JoinTimeout{.none = true};
  fresh.replaces = harvester::Replaces{
      .vm = "old", .uid = "uid-old", .reason = {ReplaceKind::kExpired}, .start = "RerunOnFailure"};
  world.Raw().vms[1].stays_unrecorded = true;
  EXPECT_STEP(world.StepOf("new"), StepKind::kMarkReplaced, Row::kUnmarkedNotNeeded);
  world.Policy().dry_run = true;
  const Step step = world.StepOf("new");
  EXPECT_STEP(step, StepKind::kReport, Row::kUnmarkedHalted);
  EXPECT_NE(step.reason.find("dry run"), std::string::npos) << step.reason;
}

TEST(NextStep, C6_R6_an_old_vm_whose_node_could_not_be_read_is_left_alone) {
  World world;
  world.With(Vm("old").Joined()).With(Vm("new").Joined()).With(Node("new"));
  world.Raw().vms[1].vm.Change().replaces =
      harvester::Replaces{.vm = "old", .uid = "uid-old", .reason = {ReplaceKind::kExpired}};
  EXPECT_STEP(world.StepOf("old"), StepKind::kKeepReplaced, Row::kUnmarkedStays);
  world.Raw().vms[0].unread_node = kUnread;
  EXPECT_NE(world.StepOf("old").row, Row::kUnmarkedStays);
}

TEST(NextStep, C7_an_old_vm_waits_while_it_is_not_known_where_the_autoscaler_runs) {
  World world;
  world.With(Vm("old").Joined()).With(Node("old")).With(Vm("new").Joined()).With(Node("new"));
  world.Raw().vms[1].vm.Change().replaces =
      harvester::Replaces{.vm = "old", .uid = "uid-old", .reason = {ReplaceKind::kExpired}};
  EXPECT_STEP(world.StepOf("old"), StepKind::kMarkReplaced, Row::kUnmarkedReplaced);
  world.Raw().own_node_problem = absl::UnavailableError("HTTP 500");
  EXPECT_EQ(world.StepOf("old").kind, StepKind::kNothing);
}

// The new VM's node was not ready for long, so that it was marked, and is ready again by now.
TEST(NextStep, R3_no_vm_gives_way_to_one_that_is_being_removed) {
  World world;
  world.With(Vm("old").Joined()).With(Node("old"));
  world.With(Vm("new").Joined().Marked()).With(Node("new"));
  harvester::VirtualMachine& fresh = world.Raw().vms[1].vm.Change();
  fresh.replaces =
      harvester::Replaces{.vm = "old", .uid = "uid-old", .reason = {ReplaceKind::kExpired}};
  fresh.mark->reason = harvester::MarkReason::kUnhealthy;
  EXPECT_STEP(world.StepOf("new"), StepKind::kRollBack, Row::kMarkedRecovered);
  EXPECT_EQ(world.StepOf("old").kind, StepKind::kNothing);
}

TEST(NextStep, C17_a_vm_that_harvester_stopped_for_maintenance_is_unhealthy_after_two_hours) {
  World world;
  world.With(Vm("a").Joined().Stopped())
      .With(Node("a").Down())
      .With(Vm("b").Joined())
      .With(Node("b"));
  world.Policy().replace_unhealthy_after = std::chrono::minutes(10);
  world.Raw().vms[0].vm.Change().stopped_for_host = "rack1-a";
  world.Raw().vms[0].unhealthy_for = std::chrono::minutes(119);
  EXPECT_FALSE(IsUnhealthy(world.Raw().vms[0], world.Snapshot()));
  world.Raw().vms[0].unhealthy_for = std::chrono::minutes(120);
  EXPECT_TRUE(IsUnhealthy(world.Raw().vms[0], world.Snapshot()));
  world.Policy().replace_unhealthy_after = std::chrono::hours(5);
  EXPECT_FALSE(IsUnhealthy(world.Raw().vms[0], world.Snapshot())) << "the policy waits for longer";
}

TEST(NextStep, C15_a_marked_vm_that_never_joined_waits_for_an_unread_node_and_says_which) {
  World world;
  world.With(Vm("a").Marked());
  EXPECT_STEP(world.StepOf("a"), StepKind::kDelete, Row::kMarkedNeverJoined);
  world.Raw().vms[0].unread_node = kUnread;
  const Step step = world.StepOf("a");
  EXPECT_STEP(step, StepKind::kWait, Row::kNomadUnreadable);
  EXPECT_NE(step.reason.find("metal"), std::string::npos) << step.reason;
}

TEST(NextStep, L6_an_unread_node_does_not_keep_a_drain_from_being_undone) {
  World world;
  world.With(Vm("a").Joined()).With(Node("other", "n9").Draining("a"));
  world.Raw().vms[0].unread_node = kUnread;
  EXPECT_STEP(world.StepOf("a"), StepKind::kCancelDrain, Row::kUnmarkedDraining);
}

TEST(NextStep, C15_a_vm_of_another_region_is_left_alone_and_an_unset_region_differs_from_none) {
  EXPECT_STEP(World().Region("eu").With(Vm("a").Region("us").Marked()).StepOf("a"), StepKind::kWait,
              Row::kOtherNomad);
  EXPECT_NE(World().Region("eu").With(Vm("a").Region("").Marked()).StepOf("a").row,
            Row::kOtherNomad);
  EXPECT_NE(World().Region("").With(Vm("a").Region("us").Marked()).StepOf("a").row,
            Row::kOtherNomad);
}

// A world whose Nomad has these keys.
World OfCluster(const std::string& keys) {
  World world;
  world.Raw().nomad_cluster = keys;
  return world;
}

TEST(NextStep, C15_a_vm_of_another_cluster_is_left_alone_whatever_this_nomad_does_not_know) {
  const Vm gone = Vm("a").Joined().Marked().NodeGone().OfCluster("k1,k2");
  EXPECT_STEP(OfCluster("k3").With(gone).StepOf("a"), StepKind::kWait, Row::kOtherNomad);
  EXPECT_STEP(OfCluster("").With(gone).StepOf("a"), StepKind::kWait, Row::kOtherNomad);
  EXPECT_STEP(OfCluster("k2,k3").With(gone).StepOf("a"), StepKind::kDelete, Row::kMarkedGone);
  // While its keys are not known, Nomad counts as unreadable before this is asked.
  EXPECT_STEP(World().With(gone).StepOf("a"), StepKind::kDelete, Row::kMarkedGone);
  const Vm older = Vm("a").Joined().Marked().NodeGone();
  EXPECT_STEP(OfCluster("k3").With(older).StepOf("a"), StepKind::kDelete, Row::kMarkedGone);
}

TEST(NextStep, C15_the_keys_of_the_cluster_are_recorded_once_the_vm_has_its_node) {
  const auto row = [](const std::string& recorded, const std::string& keys) {
    World world = OfCluster(keys);
    return world.With(Vm("a").Joined().OfCluster(recorded)).With(Node("a")).StepOf("a").row;
  };
  EXPECT_EQ(row("", "k1"), Row::kUnmarkedCluster);
  EXPECT_EQ(row("k1", "k1,k2"), Row::kUnmarkedCluster) << "a key was made since";
  EXPECT_EQ(row("k1,k2", "k2"), Row::kUnmarkedOther) << "an old key is gone";
  EXPECT_EQ(row("k1", "k1"), Row::kUnmarkedOther);
  EXPECT_EQ(row("", ""), Row::kUnmarkedOther) << "Nomad before 1.7";
  EXPECT_EQ(row("k1", "k2"), Row::kOtherNomad);
  World lost = OfCluster("k1");
  EXPECT_EQ(lost.With(Vm("a").Joined()).StepOf("a").row, Row::kUnmarkedOther)
      << "nothing says that it belongs to this one";
}

TEST(NextStep, C4_no_node_is_purged_while_the_pool_belongs_to_another_cluster) {
  World world = OfCluster("k1");
  world.With(Node("b").DrainedBy(DrainStatus::kComplete, "b", "act", false, true).Down());
  EXPECT_EQ(Decisions(world.Snapshot()).to_purge().size(), 1U);
  world.With(Vm("a").Joined().OfCluster("k2"));
  EXPECT_TRUE(Decisions(world.Snapshot()).to_purge().empty());
}

TEST(NextStep, C4_a_node_that_another_harvester_drained_is_not_purged) {
  World world;
  world.Raw().harvester = "uid-1";
  const PoolSnapshot snapshot = world.Snapshot();
  nomad::Node node =
      Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", false, true).Down().Get();
  EXPECT_EQ(NextStepOfGoneVm(node, snapshot).row, Row::kGonePurge) << "an older version's drain";
  node.last_drain->meta["harvester"] = "uid-1";
  EXPECT_EQ(NextStepOfGoneVm(node, snapshot).row, Row::kGonePurge);
  node.last_drain->meta["harvester"] = "uid-2";
  EXPECT_EQ(NextStepOfGoneVm(node, snapshot).row, Row::kGoneNothing);
}

TEST(NextStep, C4_while_the_namespace_could_not_be_read_no_node_that_names_a_harvester_is_purged) {
  World world;
  nomad::Node node =
      Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", false, true).Down().Get();
  world.Raw().harvester_unread = true;
  EXPECT_EQ(NextStepOfGoneVm(node, world.Snapshot()).row, Row::kGonePurge)
      << "a drain of an older version, or without the right";
  node.last_drain->meta["harvester"] = "uid-2";
  EXPECT_EQ(NextStepOfGoneVm(node, world.Snapshot()).row, Row::kGoneNothing);
  world.Raw().harvester_unread = false;
  EXPECT_EQ(NextStepOfGoneVm(node, world.Snapshot()).row, Row::kGonePurge)
      << "the right to read a namespace is optional";
}

TEST(NextStep, C5_the_down_node_of_a_paused_guest_says_nothing) {
  World world;
  world.With(Vm("a").Joined().Marked().Paused().NodeDownFor(std::chrono::hours(1)))
      .With(Node("a").Down());
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kMarkedWaiting);
  world.Raw().vms[0].vm.Change().printable_status = "Migrating";
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kMarkedWaiting);
  world.Raw().vms[0].vm.Change().printable_status = "Running";
  EXPECT_STEP(world.StepOf("a"), StepKind::kDelete, Row::kMarkedDown);
}

TEST(NextStep, S5_the_mark_of_the_vm_that_was_restored_is_rolled_back_and_its_drain_undone) {
  World world;
  world.With(Vm("a").Joined().Marked()).With(Node("a").Draining("a"));
  world.Raw().vms[0].vm.Change().uid = "uid-new";
  EXPECT_STEP(world.StepOf("a"), StepKind::kRollBack, Row::kMarkOfAnother);
  harvester::VirtualMachine& vm = world.Raw().vms[0].vm.Change();
  vm.has_mark = false;
  vm.mark.reset();
  EXPECT_STEP(world.StepOf("a"), StepKind::kCancelDrain, Row::kUnmarkedDraining);
  World drained;
  drained.With(Vm("a").Joined()).With(Node("a").Drained("a"));
  drained.Raw().vms[0].vm.Change().uid = "uid-new";
  EXPECT_STEP(drained.StepOf("a"), StepKind::kEnable, Row::kUnmarkedDrained);
}

TEST(NextStep, C4_a_drain_of_another_harvester_is_not_that_of_a_vm_that_was_restored_here) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Draining("a"));
  world.Raw().vms[0].vm.Change().uid = "uid-restored-here";
  world.Nodes()[0].last_drain->meta["harvester"] = "there";
  world.Raw().harvester = "here";
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedOther);
  world.Nodes()[0].last_drain->meta["harvester"] = "here";
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedDraining);
}

TEST(NextStep, S5_a_drain_for_a_vm_of_that_name_in_another_namespace_is_left_alone) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Draining("a"));
  world.Raw().vms[0].vm.Change().uid = "uid-restored-here";
  world.Nodes()[0].last_drain->meta["pool"] = "other/web";
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedOther) << world.StepOf("a").reason;
}

TEST(NextStep, C15_a_younger_node_keeps_no_broken_vm_without_an_instance) {
  const Node younger = Node("metal", "n9");
  World broken;
  broken.With(Vm("a").FailsToStart("DataVolumeError")).With(younger);
  EXPECT_EQ(broken.StepOf("a").row, Row::kUnmarkedCandidate);
  broken.Raw().vms[0].vm.Change().instance_exists = false;
  EXPECT_EQ(broken.StepOf("a").row, Row::kUnmarkedBroken) << "no guest, no client";
}

TEST(NextStep, C4_a_terminating_vm_is_halted_after_a_minute) {
  const auto step = [](const Vm& vm, base::Duration terminating) {
    World world;
    world.With(vm);
    world.Raw().vms[0].vm.Change().deleted_at = kNow - terminating;
    return world.StepOf("a");
  };
  Vm off = Vm("a").Stopped().Terminating();
  EXPECT_STEP(step(off, seconds(60)), StepKind::kHalt, Row::kTerminatingHeld);
  EXPECT_STEP(step(off, seconds(59)), StepKind::kWait, Row::kTerminating);
  EXPECT_STEP(step(Vm("a").Stopped().Unmanaged(), seconds(60)), StepKind::kWait, Row::kTerminating);
  // Its status says that it has an instance: a quota may deny writes of the status, too.
  EXPECT_STEP(step(Vm("a").Joined(), seconds(60)), StepKind::kHalt, Row::kTerminatingHeld);
  EXPECT_STEP(step(off.RunStrategy("Halted"), seconds(60)), StepKind::kWait, Row::kTerminating);
}

TEST(NextStep, a_drain_of_ours_without_a_mark_is_cancelled_and_the_node_enabled) {
  const Step step = World().With(Vm("a").Joined()).With(Node("a").Draining("a")).StepOf("a");
  EXPECT_STEP(step, StepKind::kCancelDrain, Row::kUnmarkedDraining);
  EXPECT_TRUE(step.mark_eligible);
  EXPECT_EQ(step.node_id, "node-a");
}

TEST(NextStep, cancelling_leaves_a_node_ineligible_that_was_so_before) {
  const Step step = World()
                        .With(Vm("a").Joined())
                        .With(Node("a").DrainedBy(DrainStatus::kDraining, "a", "act", true))
                        .StepOf("a");
  EXPECT_STEP(step, StepKind::kCancelDrain, Row::kUnmarkedDraining);
  EXPECT_FALSE(step.mark_eligible);
}

TEST(NextStep, a_drain_of_ours_is_undone_on_a_node_that_no_longer_links) {
  const Step step =
      World().With(Vm("a").Joined()).With(Node("other", "n9").Draining("a")).StepOf("a");
  EXPECT_STEP(step, StepKind::kCancelDrain, Row::kUnmarkedDraining);
  EXPECT_EQ(step.node_id, "n9");
}

TEST(NextStep, the_undone_drain_is_recorded_once_the_node_is_eligible) {
  const Step step =
      World().With(Vm("a").Joined()).With(Node("a").Drained("a").Eligible()).StepOf("a");
  EXPECT_STEP(step, StepKind::kRecordRolledBack, Row::kUnmarkedRecord);
  EXPECT_EQ(step.value, "act@2026-03-01T11:59:00Z");
}

TEST(NextStep, C6_a_client_that_registered_anew_is_recorded) {
  const Step step = World().With(Vm("a").Joined("gone")).With(Node("a")).StepOf("a");
  EXPECT_STEP(step, StepKind::kRecordCluster, Row::kUnmarkedCluster);
  EXPECT_EQ(step.value, "node-a");
  EXPECT_NE(step.reason.find("before it was gone"), std::string::npos) << step.reason;
  EXPECT_EQ(World().With(Vm("a").Joined("gone")).With(Node("a").Down()).StepOf("a").kind,
            StepKind::kNothing);
}

TEST(NextStep, C6_a_vm_whose_node_is_away_while_another_has_its_name_is_not_touched) {
  for (const auto status : {nomad::NodeStatus::kDown, nomad::NodeStatus::kDisconnected,
                            nomad::NodeStatus::kInitializing}) {
    for (const bool marked : {false, true}) {
      Vm vm = Vm("a").Joined();
      if (marked) vm.Marked();
      Node own("a");
      own.Status(status);
      World world;
      world.With(vm).With(own).With(Node("a", "forged").Index(900)).Idle("a");
      EXPECT_EQ(world.StepOf("a").row, marked ? Row::kMarkedAmbiguous : Row::kUnmarkedAmbiguous);
    }
  }
}

// A VM that has not booted, of a policy with introduction tokens.
World WithToken(base::Duration age) {
  World world;
  world.Policy().intro_token = config::IntroToken::kAuto;
  world.With(Vm("a").Age(age).Stopped().InstanceRuns(false));
  world.Raw().vms[0].vm.Change().printable_status = "Provisioning";
  return world;
}

TEST(NextStep, the_introduction_token_of_a_vm_that_has_not_booted_is_looked_after_in_time) {
  World world = WithToken(std::chrono::minutes(14));
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  world.Raw().vms[0].known_for = std::chrono::minutes(2);
  EXPECT_STEP(world.StepOf("a"), StepKind::kRenewToken, Row::kUnmarkedTokenEnds);
  world.Raw().vms[0].token_check_in = std::chrono::seconds(0);
  EXPECT_STEP(world.StepOf("a"), StepKind::kRenewToken, Row::kUnmarkedTokenEnds);
  world.Raw().vms[0].token_check_in = std::chrono::seconds(1);
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  EXPECT_STEP(WithToken(std::chrono::minutes(1)).StepOf("a"), StepKind::kWait,
              Row::kUnmarkedWaiting);
}

TEST(NextStep, no_token_is_looked_after_once_its_vm_runs_has_a_node_or_the_policy_has_none) {
  World runs = WithToken(std::chrono::minutes(14));
  runs.Raw().vms[0].instance_runs = true;
  EXPECT_STEP(runs.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  World seen_to_run = WithToken(std::chrono::minutes(14));
  seen_to_run.Raw().vms[0].vm.Change().ready = true;
  EXPECT_STEP(seen_to_run.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  EXPECT_STEP(WithToken(std::chrono::minutes(14)).With(Node("a")).StepOf("a"),
              StepKind::kRecordJoin, Row::kUnmarkedJoins);
  World stopped = WithToken(std::chrono::minutes(14));
  stopped.Raw().vms[0].vm.Change().printable_status = "Stopped";
  EXPECT_STEP(stopped.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  World off = WithToken(std::chrono::minutes(14));
  off.Policy().intro_token = config::IntroToken::kOff;
  EXPECT_STEP(off.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
}

TEST(NextStep, a_broken_vm_gets_no_new_token) {
  EXPECT_STEP(WithToken(std::chrono::hours(1)).StepOf("a"), StepKind::kMarkBroken,
              Row::kUnmarkedBroken);
}

TEST(NextStep, R8_a_vm_that_waited_for_its_start_boots_without_a_token_that_is_refused) {
  World world;
  world.Policy().intro_token = config::IntroToken::kAuto;
  world.With(
      Vm("b").Stopped().InstanceRuns(false).NoTimeout().Replaces("gone", {ReplaceKind::kDrifted}));
  harvester::VirtualMachine& vm = world.Raw().vms[0].vm.Change();
  vm.run_strategy = harvester::kHalted;
  vm.replaces->start = "RerunOnFailure";
  EXPECT_STEP(world.StepOf("b"), StepKind::kRenewToken, Row::kUnmarkedTokenEnds);
  world.Raw().vms[0].token_refused_for = kRefusedForGood;
  EXPECT_STEP(world.StepOf("b"), StepKind::kStart, Row::kUnmarkedStart);
}

TEST(NextStep, C15_time_without_nomad_does_not_count_towards_the_deadline) {
  World world;
  world.With(Vm("a").Age(std::chrono::minutes(16)));
  world.Raw().vms[0].nomad_unreadable_for = std::chrono::minutes(2);
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
}

TEST(NextStep, C17_a_vm_that_was_seen_new_is_overdue_a_minute_before_it_was_watched_for_its_time) {
  World world;
  world.With(Vm("a"));
  VmView& view = world.Raw().vms[0];
  view.seen_new = true;
  view.known_for = view.vm->join_timeout->limit - std::chrono::seconds(61);
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kUnmarkedWaiting);
  view.known_for += std::chrono::seconds(1);
  EXPECT_STEP(world.StepOf("a"), StepKind::kMarkBroken, Row::kUnmarkedBroken);
}

TEST(NextStep, an_overdue_vm_is_kept_if_the_policy_says_so) {
  World world;
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  EXPECT_STEP(world.With(Vm("a")).StepOf("a"), StepKind::kReport, Row::kUnmarkedBrokenKept);
}

TEST(NextStep, C3_a_start_that_fails_is_removed_even_if_overdue_vms_are_kept) {
  World world;
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  EXPECT_STEP(world.With(Vm("a").Age(std::chrono::minutes(2)).FailsToStart("no host")).StepOf("a"),
              StepKind::kMarkBroken, Row::kUnmarkedBroken);
}

TEST(NextStep, C13_a_policy_in_dry_run_marks_nothing) {
  World world;
  world.Policy().dry_run = true;
  EXPECT_STEP(world.With(Vm("a")).StepOf("a"), StepKind::kReport, Row::kUnmarkedBrokenKept);
}

TEST(NextStep, C17_without_a_policy_no_vm_is_ready_that_never_was) {
  const Step joins = World()
                         .WithoutPolicy()
                         .With(Vm("a").Age(std::chrono::minutes(1)))
                         .With(Node("a"))
                         .StepOf("a");
  EXPECT_STEP(joins, StepKind::kRecordJoin, Row::kUnmarkedJoins);
  EXPECT_FALSE(joins.node_is_ready);
  const Step waits = World().WithoutPolicy().With(Vm("a").Registered()).With(Node("a")).StepOf("a");
  EXPECT_STEP(waits, StepKind::kWait, Row::kUnmarkedWaiting);
  EXPECT_THAT(waits.reason, testing::HasSubstr("without a policy"));
  const Vm broken = Vm("a").Registered().Marked().ForBeingBroken();
  EXPECT_EQ(World().With(broken).With(Node("a")).StepOf("a").row, Row::kMarkedRecovered);
  EXPECT_EQ(World().WithoutPolicy().With(broken).With(Node("a")).StepOf("a").row,
            Row::kMarkedRecovered)
      << "which drivers it needs is not known, and work may be on it";
}

TEST(NextStep, an_overdue_vm_is_never_marked_while_an_unlinked_younger_node_could_be_it) {
  const Step step = World().With(Vm("a")).With(Node("localhost", "n1")).StepOf("a");
  EXPECT_STEP(step, StepKind::kReport, Row::kUnmarkedCandidate);
  EXPECT_EQ(step.node_id, "n1");
}

TEST(NextStep, a_join_is_recorded_once) {
  const Step step = World().With(Vm("a")).With(Node("a")).StepOf("a");
  EXPECT_STEP(step, StepKind::kRecordJoin, Row::kUnmarkedJoins);
  EXPECT_EQ(step.node_id, "node-a");
  EXPECT_STEP(World().With(Vm("a").Joined()).With(Node("a")).StepOf("a"), StepKind::kNothing,
              Row::kUnmarkedOther);
}

TEST(NextStep, C9_a_poststop_task_that_still_runs_keeps_the_vm) {
  World world;
  world.With(Vm("a").Joined().Marked()).With(Node("a").Drained("a")).Running("a");
  world.Raw().allocations["node-a"][0].client_status = nomad::ClientStatus::kFailed;
  EXPECT_STEP(world.StepOf("a"), StepKind::kWait, Row::kMarkedWaiting);
}

World PlacedLate(const std::string& desired_status, base::Duration drained_for) {
  World world;
  world.With(Vm("a").Joined().Marked()).With(Node("a").Drained("a"));
  nomad::Allocation late;
  late.id = "late";
  late.node_id = "node-a";
  late.desired_status = desired_status;
  late.client_status = nomad::ClientStatus::kRunning;
  late.all_tasks_dead = false;
  world.Raw().allocations["node-a"] = {late};
  world.Raw().vms.back().node_drained_for = drained_for;
  return world;
}

TEST(NextStep, C9_a_node_that_got_work_while_its_drain_began_is_drained_once_more) {
  const Step step = PlacedLate("run", std::chrono::seconds(10)).StepOf("a");
  EXPECT_STEP(step, StepKind::kStartDrain, Row::kMarkedDrainAgain);
  EXPECT_FALSE(step.was_ineligible) << "its ineligibility is ours";
}

TEST(NextStep, C9_tasks_that_are_to_stop_after_a_drain_are_waited_for) {
  EXPECT_STEP(PlacedLate("stop", std::chrono::hours(1)).StepOf("a"), StepKind::kWait,
              Row::kMarkedWaiting);
  EXPECT_STEP(PlacedLate("run", std::chrono::seconds(9)).StepOf("a"), StepKind::kWait,
              Row::kMarkedWaiting);
}

TEST(NextStep, C9_an_allocation_that_stays_lost_on_a_ready_node_holds_a_removal_for_five_minutes) {
  const auto row_after = [](base::Duration drained_for, nomad::NodeStatus status) {
    World world = PlacedLate("stop", drained_for);
    world.Raw().allocations["node-a"][0].client_status = nomad::ClientStatus::kLost;
    world.Nodes()[0].status = status;
    return world.StepOf("a").row;
  };
  const base::Duration enough = std::chrono::minutes(5);
  EXPECT_EQ(row_after(enough, NodeStatus::kReady), Row::kMarkedIdle);
  EXPECT_EQ(row_after(enough - std::chrono::seconds(1), NodeStatus::kReady), Row::kMarkedWaiting);
  EXPECT_EQ(row_after(enough, NodeStatus::kDisconnected), Row::kMarkedWaiting);
}

TEST(NextStep, C9_system_jobs_that_the_drain_leaves_running_are_no_late_work) {
  World world = PlacedLate("run", std::chrono::hours(1));
  world.Raw().vms.back().vm.Change().mark->ignore_system = true;
  world.Raw().allocations["node-a"][0].job_type = "system";
  EXPECT_STEP(world.StepOf("a"), StepKind::kDelete, Row::kMarkedIdle);
}

TEST(NextStep, a_marked_vm_with_a_ready_node_is_drained) {
  const Step step = World().With(Vm("a").Joined().Marked()).With(Node("a")).StepOf("a");
  EXPECT_STEP(step, StepKind::kStartDrain, Row::kMarkedStartDrain);
  EXPECT_FALSE(step.was_ineligible);
}

TEST(NextStep, a_drain_remembers_that_the_node_was_ineligible_before) {
  EXPECT_TRUE(World()
                  .With(Vm("a").Joined().Marked())
                  .With(Node("a").Ineligible())
                  .StepOf("a")
                  .was_ineligible);
  EXPECT_FALSE(World()
                   .With(Vm("a").Joined().Marked("new"))
                   .With(Node("a").Drained("a", "old"))
                   .StepOf("a")
                   .was_ineligible)
      << "ineligible by an unrecorded drain of our own";
}

TEST(NextStep, C4_a_drain_remembers_that_an_operator_made_the_node_ineligible_after_a_roll_back) {
  EXPECT_TRUE(World()
                  .With(Vm("a").Joined().RolledBack("old@2026-03-01T11:59:00Z").Marked("new"))
                  .With(Node("a").Drained("a", "old"))
                  .StepOf("a")
                  .was_ineligible);
}

TEST(NextStep, C4_the_node_of_a_gone_vm_is_purged_only_if_it_is_down_and_our_drain_is_complete) {
  World world;
  const PoolSnapshot& snapshot = world.Snapshot();
  const auto row_of = [&](DrainStatus drain, nomad::NodeStatus status) {
    Node node = Node("a").DrainedBy(drain, "a", "act", false, true);
    return NextStepOfGoneVm(node.Status(status).Get(), snapshot).row;
  };
  EXPECT_EQ(row_of(DrainStatus::kComplete, nomad::NodeStatus::kDown), Row::kGonePurge);
  for (const nomad::NodeStatus status :
       {nomad::NodeStatus::kDisconnected, nomad::NodeStatus::kInitializing,
        nomad::NodeStatus::kReady, nomad::NodeStatus::kUnknown}) {
    EXPECT_EQ(row_of(DrainStatus::kComplete, status), Row::kGoneNothing);
  }
  for (const DrainStatus drain : {DrainStatus::kCanceled, DrainStatus::kDraining}) {
    EXPECT_EQ(row_of(drain, nomad::NodeStatus::kDown), Row::kGoneNothing);
  }
}

TEST(NextStep, the_node_of_a_gone_vm_is_purged_only_if_wanted) {
  World world;
  const PoolSnapshot& snapshot = world.Snapshot();
  const auto step_of = [&](Node node) { return NextStepOfGoneVm(node.Get(), snapshot); };
  EXPECT_STEP(step_of(Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", false, true).Down()),
              StepKind::kPurge, Row::kGonePurge);
  EXPECT_STEP(step_of(Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", false, true)),
              StepKind::kNothing, Row::kGoneNothing);
  EXPECT_STEP(step_of(Node("a").Drained("a").Down()), StepKind::kNothing, Row::kGoneNothing);
  EXPECT_STEP(step_of(Node("a").Down()), StepKind::kNothing, Row::kGoneNothing);
}

TEST(NextStep, C4_the_node_of_a_gone_vm_of_another_pool_or_namespace_is_not_purged) {
  World world;
  const PoolSnapshot& snapshot = world.Snapshot();
  for (const char* pool : {"default/db", "other/web", "web", ""}) {
    SCOPED_TRACE(pool);
    nomad::Node node =
        Node("a").DrainedBy(DrainStatus::kComplete, "a", "act", false, true).Down().Get();
    node.last_drain->meta["pool"] = pool;
    EXPECT_STEP(NextStepOfGoneVm(node, snapshot), StepKind::kNothing, Row::kGoneNothing);
  }
}

TEST(NextStep, C9_a_drain_that_runs_is_late_only_if_two_clocks_say_so) {
  const auto row = [](base::Duration known, bool complete, bool force) {
    Vm vm = Vm("a").Joined().Marked().Late().DrainKnownFor(known);
    if (!force) vm.NoForce();
    World world;
    world.With(vm).With(complete ? Node("a").Drained("a") : Node("a").Draining("a"));
    if (complete) world.Running("a");
    harvester::Mark& mark = *world.Raw().vms[0].vm.Change().mark;
    mark.marked_at = mark.drain_deadline.at - std::chrono::minutes(15);
    return world.StepOf("a").row;
  };
  const harvester::Mark mark = *Vm("a").Marked().Late().View().vm->mark;
  const base::Duration planned = std::chrono::minutes(15) + mark.grace;
  for (const bool force : {false, true}) {
    const Row ends = force ? Row::kMarkedLateForced : Row::kMarkedLate;
    EXPECT_EQ(row(planned - std::chrono::seconds(1), false, force), Row::kMarkedWaiting);
    EXPECT_EQ(row(planned, false, force), ends);
    EXPECT_EQ(row(mark.grace - std::chrono::seconds(1), true, force), Row::kMarkedWaiting);
    EXPECT_EQ(row(mark.grace, true, force), ends) << "Nomad's own deadline has passed";
  }
  World none;
  none.With(Vm("a").Joined().Marked().Late().DrainKnownFor({})).With(Node("a"));
  EXPECT_EQ(none.StepOf("a").row, Row::kMarkedLate) << "there is no drain to end early";
}

TEST(NextStep, C9_a_date_that_is_ahead_at_the_first_look_gives_up_no_removal) {
  const auto row = [](base::Duration known, base::Duration own_behind) {
    World world;
    world.With(Vm("a").Joined().Marked().Late()).With(Node("a"));
    harvester::Mark& mark = *world.Raw().vms[0].vm.Change().mark;
    mark.marked_at = mark.drain_deadline.at - std::chrono::minutes(15);
    world.Raw().vms[0].known_for = known;
    world.Raw().own_now = kNow - own_behind;
    return world.StepOf("a").row;
  };
  const base::Duration hour = std::chrono::hours(1);
  EXPECT_EQ(row({}, {}), Row::kMarkedLate) << "both clocks say so";
  EXPECT_EQ(row({}, hour), Row::kMarkedStartDrain) << "one of them is wrong";
  EXPECT_EQ(row(hour, hour), Row::kMarkedLate) << "this machine's: that only delays";
}

TEST(NextStep, C9_a_drain_at_once_is_late_when_its_grace_has_passed) {
  harvester::Mark mark{.marked_at = kNow};
  mark.drain_deadline = {.kind = harvester::DrainDeadline::Kind::kNow};
  mark.grace = std::chrono::minutes(5);
  EXPECT_EQ(LateAt(mark), kNow + std::chrono::minutes(5));
}

TEST(NextStep, a_vm_that_has_joined_and_lost_its_node_gets_no_token) {
  World world = WithToken(std::chrono::minutes(14));
  world.Raw().vms[0].vm.Change().joined_at = kNow - std::chrono::minutes(5);
  world.Raw().vms[0].vm.Change().joined_node_id = "node-a";
  EXPECT_STEP(world.StepOf("a"), StepKind::kNothing, Row::kUnmarkedOther);
}

}  // namespace
}  // namespace nomad_harvester::scaling
