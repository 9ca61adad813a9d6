// SPDX-License-Identifier: Apache-2.0
//
// Registered and ready (rule C17): what is recorded, counted, chosen and removed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr base::Duration kYoung = minutes(2);
constexpr base::Duration kOld = minutes(16);  // past its join deadline

World WithDrivers() {
  World world;
  world.Policy().ready_drivers = {"docker"};
  return world;
}

// The victims of a scale-in by `count`.
std::vector<std::string> VictimsOf(World& world, std::int64_t count) {
  const PoolSnapshot snapshot = world.Snapshot();
  const auto plan = PlanScale(snapshot, CountOf(snapshot) - count, world.Inputs());
  if (!plan.ok()) return {std::string(plan.status().message())};
  return NamesIn(plan->remove);
}

StatusReport Report(World& world) { return ReportStatus(world.Snapshot(), {}); }

bool FirstCounts(World& world) {
  const PoolSnapshot snapshot = world.Snapshot();
  return Counts(*snapshot.vms().at(0), snapshot);
}

VmState StateOfFirst(World& world) {
  const PoolSnapshot snapshot = world.Snapshot();
  return StateOf(*snapshot.vms().at(0), snapshot);
}

TEST(Readiness, C17_a_broken_vm_that_is_cut_off_is_kept_while_its_work_may_come_back) {
  World world;
  world.With(Vm("a").Registered().Age(kOld))
      .With(Node("a").Status(nomad::NodeStatus::kDisconnected));
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedCutOff) << "its allocations are read first";
  nomad::Allocation allocation;
  allocation.node_id = "node-a";
  allocation.client_status = nomad::ClientStatus::kUnknown;
  world.Raw().allocations["node-a"] = {allocation};
  const Step kept = world.StepOf("a");
  EXPECT_EQ(kept.row, Row::kUnmarkedBrokenKept);
  EXPECT_THAT(kept.reason, HasSubstr("within the time that its group gives it"));
  world.Raw().allocations["node-a"].clear();
  const Step marks = world.StepOf("a");
  EXPECT_EQ(marks.row, Row::kUnmarkedCutOff);
  EXPECT_EQ(marks.kind, StepKind::kMarkBroken);
}

TEST(Readiness, C17_a_join_is_recorded_whether_its_node_is_ready_or_not) {
  for (const Node& node : {Node("a"), Node("a").Initializing(), Node("a").Ineligible()}) {
    World world;
    EXPECT_EQ(world.With(Vm("a").Age(kYoung)).With(node).StepOf("a").row, Row::kUnmarkedJoins);
  }
}

TEST(Readiness, C17_that_a_node_is_ready_is_recorded_once) {
  World world;
  world.With(Vm("a").Age(kYoung).Registered()).With(Node("a"));
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.kind, StepKind::kRecordReady);
  EXPECT_EQ(step.node_id, "node-a");
  World recorded;
  recorded.With(Vm("a").Age(kYoung).Joined()).With(Node("a"));
  EXPECT_EQ(recorded.StepOf("a").kind, StepKind::kNothing);
}

TEST(Readiness, C17_a_vm_waits_for_its_node_and_says_what_it_lacks) {
  struct Case {
    Node node;
    const char* why;
  };
  for (const Case& each :
       {Case{Node("a").Initializing(), "it is initializing"}, Case{Node("a").Down(), "it is down"},
        Case{Node("a").Driver("docker", true).Ineligible(), "it is ineligible"},
        Case{Node("a"), "its driver docker is not detected"},
        Case{Node("a").Driver("docker", false, "no daemon"),
             "its driver docker is not healthy: no daemon"}}) {
    World world = WithDrivers();
    world.With(Vm("a").Age(kYoung).Registered()).With(each.node);
    const Step step = world.StepOf("a");
    EXPECT_EQ(step.row, Row::kUnmarkedWaiting) << each.why;
    EXPECT_THAT(step.reason, HasSubstr(each.why));
    EXPECT_TRUE(FirstCounts(world)) << each.why;
  }
}

TEST(Readiness, C17_what_is_not_ready_by_its_join_deadline_is_broken_and_says_how_far_it_came) {
  World world;
  world.With(Vm("a").Age(kOld).Registered()).With(Node("a").Initializing());
  world.Raw().vms[0].vm.Change().joined_at = kNow - kOld + minutes(5);
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedBroken);
  EXPECT_EQ(step.node_id, "node-a");
  EXPECT_THAT(step.reason, HasSubstr("its node node-a registered at"));
  EXPECT_THAT(
      step.reason,
      HasSubstr("but it is initializing (join_timeout ended 10m0s after its registration)"));
  EXPECT_FALSE(FirstCounts(world));
}

TEST(Readiness, C17_a_broken_vm_is_kept_while_an_operator_drains_its_node) {
  World world = WithDrivers();
  world.With(Vm("a").Age(kOld).Registered())
      .With(Node("a").Driver("docker", false).DrainedByOperator());
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedBrokenKept);
  EXPECT_THAT(step.reason, HasSubstr("while another client drains its node"));
}

TEST(Readiness, C17_the_policy_may_keep_what_is_not_ready) {
  World world;
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  world.With(Vm("a").Age(kOld).Registered()).With(Node("a").Initializing());
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedBrokenKept);
}

TEST(Readiness, C17_a_vm_that_was_ready_or_joined_before_that_was_recorded_is_never_broken) {
  for (const Node& node : {Node("a").Initializing(), Node("a").Down(), Node("a").Ineligible()}) {
    World world = WithDrivers();
    world.With(Vm("a").Age(kOld).Joined()).With(node);
    EXPECT_EQ(world.StepOf("a").kind, StepKind::kNothing);
    EXPECT_TRUE(FirstCounts(world));
  }
}

TEST(Readiness, C17_a_vm_without_a_deadline_is_never_broken) {
  World world;
  world.With(Vm("a").Age(kOld).Registered().NoTimeout()).With(Node("a").Initializing());
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kNothing);
}

TEST(Readiness, C15_nothing_is_broken_while_nomad_cannot_be_read) {
  World world;
  world.With(Vm("a").Age(kOld).Registered()).With(Node("a").Initializing()).NomadUnreadable();
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kWait);
}

World Broken(const Node& node) {
  World world = WithDrivers();
  world.With(Vm("a").Age(kOld).Registered().Marked().ForBeingBroken()).With(node);
  return world;
}

nomad::Allocation Running() {
  nomad::Allocation allocation;
  allocation.id = "alloc-1";
  allocation.node_id = "node-a";
  allocation.client_status = nomad::ClientStatus::kRunning;
  return allocation;
}

TEST(Readiness, C9_without_a_proof_that_nothing_runs_its_node_is_drained) {
  World world = Broken(Node("a").Initializing());
  world.Idle("a");
  world.Raw().allocations_complete = false;
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kStartDrain);
}

TEST(Readiness, C7_a_broken_vm_with_a_dynamic_host_volume_is_kept) {
  World world = WithDrivers();
  world.With(Vm("a").Age(kOld).Registered()).With(Node("a").Initializing());
  EXPECT_EQ(world.StepOf("a").kind, StepKind::kMarkBroken);
  world.Nodes()[0].dynamic_host_volumes = {"data"};
  EXPECT_EQ(world.StepOf("a").row, Row::kUnmarkedBrokenKept);
}

TEST(Readiness, C17_a_broken_vm_whose_node_was_never_ready_is_deleted_without_a_drain) {
  World world = Broken(Node("a").Initializing());
  world.Idle("a");
  const Step step = world.StepOf("a");
  EXPECT_EQ(step.row, Row::kMarkedNeverReady);
  EXPECT_EQ(step.kind, StepKind::kDelete);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNodes, Read::kNode, Read::kAllocations, Read::kVm));
}

TEST(Readiness, C17_a_broken_vm_is_drained_first_if_work_could_be_on_its_node) {
  World unhealthy_driver = Broken(Node("a").Driver("docker", false));
  EXPECT_EQ(unhealthy_driver.StepOf("a").row, Row::kMarkedStartDrain);
  World unread = Broken(Node("a").Initializing());
  EXPECT_EQ(unread.StepOf("a").row, Row::kMarkedStartDrain) << "its allocations were not read";
  World with_work = Broken(Node("a").Initializing());
  with_work.Raw().allocations["node-a"] = {Running()};
  EXPECT_EQ(with_work.StepOf("a").row, Row::kMarkedStartDrain);
}

TEST(Readiness, C17_a_broken_vm_that_is_ready_at_last_is_kept) {
  World world = Broken(Node("a").Driver("docker", true));
  EXPECT_EQ(world.StepOf("a").row, Row::kMarkedRecovered);
  World drained = Broken(Node("a").Driver("docker", true).Draining("a"));
  EXPECT_EQ(drained.StepOf("a").row, Row::kMarkedWaiting) << "its drain has begun";
}

TEST(Readiness, C8_what_is_not_ready_goes_before_what_is) {
  World world;
  world.With(Vm("ready").Joined()).With(Node("ready").Index(900));
  world.With(Vm("stopped").Joined().Stopped()).With(Node("stopped"));
  world.With(Vm("starts").Registered().Age(kYoung)).With(Node("starts").Initializing());
  world.With(Vm("fell-back").Joined()).With(Node("fell-back").Initializing());
  world.With(Vm("comes").Age(kYoung));
  std::vector<std::string> all = VictimsOf(world, 5);
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all.front(), "stopped");
  EXPECT_EQ(all.back(), "ready");
  EXPECT_THAT(VictimsOf(world, 4), Not(testing::Contains("ready")));
}

TEST(Readiness, C8_a_node_that_registered_a_moment_ago_is_a_victim_like_any_other) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Initializing());
  EXPECT_THAT(VictimsOf(world, 1), ElementsAre("a"));
}

TEST(Readiness, S2_a_vm_that_has_yet_to_be_ready_blocks_until_its_deadline) {
  World world;
  world.With(Vm("a").Age(kYoung).Registered()).With(Node("a").Initializing());
  const StatusReport waiting = Report(world);
  EXPECT_EQ(waiting.reason, "waiting for Nomad nodes to be ready: a (it is initializing)");
  EXPECT_TRUE(waiting.expected);
  EXPECT_EQ(waiting.status.meta.at("harvester.pending"), "1");
  EXPECT_EQ(StateOfFirst(world), VmState::kRegistered);
  World late;
  late.With(Vm("a").Age(kOld).Registered()).With(Node("a").Initializing());
  EXPECT_THAT(Report(late).reason, IsEmpty());
  EXPECT_EQ(StateOfFirst(late), VmState::kBroken);
}

TEST(Readiness, S2_a_vm_whose_node_is_ready_is_not_waited_for_until_that_is_recorded) {
  for (const bool joined : {false, true}) {
    World world;
    world.With((joined ? Vm("a").Registered() : Vm("a")).Age(kYoung)).With(Node("a"));
    EXPECT_THAT(Report(world).reason, IsEmpty());
    EXPECT_EQ(StateOfFirst(world), VmState::kReady);
    EXPECT_THAT(JustBecameReady(world.Snapshot()), testing::SizeIs(1));
  }
  World recorded;
  recorded.With(Vm("a").Age(kYoung).Joined()).With(Node("a"));
  EXPECT_THAT(JustBecameReady(recorded.Snapshot()), IsEmpty());
}

TEST(Readiness, S4_a_vm_that_does_not_count_is_no_event_when_its_node_is_ready) {
  World world;
  world.With(Vm("a").Age(kYoung).Marked()).With(Node("a"));
  ASSERT_FALSE(FirstCounts(world));
  EXPECT_THAT(JustBecameReady(world.Snapshot()), IsEmpty());
}

TEST(Readiness, S2_node_filter_ignore_init_keeps_its_meaning) {
  World world = WithDrivers();
  world.Policy().filter_ignore_init = true;
  world.With(Vm("a").Age(kYoung).Registered()).With(Node("a").Initializing());
  EXPECT_THAT(Report(world).reason, IsEmpty());
  world.With(Vm("b").Age(kYoung).Registered()).With(Node("b"));
  EXPECT_THAT(Report(world).reason, HasSubstr("b (its driver docker is not detected)"));
}

TEST(Readiness, S2_a_node_that_falls_back_blocks_for_five_minutes) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Initializing());
  EXPECT_EQ(Report(world).reason, "node node-a is initializing");
  world.Raw().initializing_for["node-a"] = minutes(5) - std::chrono::seconds(1);
  EXPECT_EQ(Report(world).reason, "node node-a is initializing");
  world.Raw().initializing_for["node-a"] = minutes(5);
  const StatusReport report = Report(world);
  EXPECT_THAT(report.reason, IsEmpty());
  EXPECT_EQ(report.status.count, 1);
  EXPECT_EQ(report.status.meta.at("harvester.unready"), "1");
  EXPECT_THAT(report.warning, HasSubstr("not ready: a"));
}

TEST(Readiness, S2_an_initializing_node_that_is_no_vms_blocks_for_five_minutes) {
  World world;
  world.With(Node("other").Initializing());
  EXPECT_EQ(Report(world).reason, "node node-other is initializing");
  world.Raw().initializing_for["node-other"] = minutes(5);
  EXPECT_THAT(Report(world).reason, IsEmpty());
}

TEST(Readiness, S4_a_disconnected_node_counts_as_unready) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Status(nomad::NodeStatus::kDisconnected));
  EXPECT_EQ(Report(world).status.meta.at("harvester.unready"), "1");
  EXPECT_EQ(Report(world).status.meta.at("harvester.lost"), "0");
}

TEST(Readiness, C15_nodes_that_fall_back_at_once_are_a_mass_loss_and_new_ones_are_none) {
  World fallen;
  World young;
  for (const char* name : {"a", "b", "c"}) {
    fallen.With(Vm(name).Joined()).With(Node(name).Initializing());
    young.With(Vm(name).Age(kYoung).Registered()).With(Node(name).Initializing());
  }
  EXPECT_TRUE(fallen.Snapshot().mass_loss().alarming);
  EXPECT_FALSE(young.Snapshot().mass_loss().alarming);
}

}  // namespace
}  // namespace nomad_harvester::scaling
