// SPDX-License-Identifier: Apache-2.0
//
// What Status reports.

#include "nomad_harvester/scaling/status_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::NodeStatus;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

StatusReport Report(World& world, const StatusInputs& inputs = {}) {
  return ReportStatus(world.Snapshot(), inputs);
}

std::string Counter(const StatusReport& report, const std::string& name) {
  const auto found = report.status.meta.find("harvester." + name);
  return found == report.status.meta.end() ? "absent" : found->second;
}

harvester::VirtualMachine& Last(World& world) { return world.Raw().vms.back().vm.Change(); }

#define EXPECT_READY(report)                               \
  do {                                                     \
    EXPECT_TRUE((report).status.ready) << (report).reason; \
    EXPECT_THAT((report).reason, IsEmpty());               \
    EXPECT_FALSE((report).expected);                       \
  } while (false)

TEST(StatusReport, S1_a_converged_pool_is_ready_with_every_counter_at_zero) {
  World world = PoolOf({"a", "b"});
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 2);
  EXPECT_THAT(report.warning, IsEmpty());
  const StringMap zeros = {
      {"harvester.pending", "0"},   {"harvester.draining", "0"}, {"harvester.broken", "0"},
      {"harvester.stopped", "0"},   {"harvester.lost", "0"},     {"harvester.stuck", "0"},
      {"harvester.unready", "0"},   {"harvester.drifted", "0"},  {"harvester.unlinked", "0"},
      {"harvester.unmanaged", "0"}, {"harvester.leftovers", "0"}};
  EXPECT_EQ(report.status.meta, zeros);
}

TEST(StatusReport, S2_an_empty_pool_is_ready) {
  World world;
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 0);
}

TEST(StatusReport, S1_only_members_of_this_pool_that_stay_are_counted) {
  World world = PoolOf({"a"});
  world.With(Vm("marked").Joined().Marked()).With(Node("marked").Draining("marked"));
  world.With(Vm("going").Joined().Terminating());
  world.With(Vm("late"));
  world.With(Vm("copy").Joined().Unmanaged());
  world.With(Vm("db-1").Joined().InPool("db"));
  const StatusReport report = Report(world);
  EXPECT_EQ(report.status.count, 1);
  EXPECT_EQ(Counter(report, "draining"), "1");
  EXPECT_EQ(Counter(report, "broken"), "1");
  EXPECT_EQ(Counter(report, "unmanaged"), "1");
}

TEST(StatusReport, S1_a_marked_vm_that_never_joined_is_draining_and_no_longer_broken) {
  World world = PoolOf({"a"});
  world.With(Vm("late").Marked().ForBeingBroken());
  const StatusReport report = Report(world);
  EXPECT_EQ(report.status.count, 1);
  EXPECT_EQ(Counter(report, "draining"), "1");
  EXPECT_EQ(Counter(report, "broken"), "0");
  EXPECT_THAT(report.warning, IsEmpty());
}

TEST(StatusReport, S1_a_joined_vm_that_is_stopped_or_lost_its_node_counts_with_one_warning) {
  World world = PoolOf({"a"});
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.With(Vm("gone").Joined());
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 3);
  EXPECT_EQ(Counter(report, "stopped"), "1");
  EXPECT_EQ(Counter(report, "lost"), "2");
  EXPECT_EQ(report.warning, "stopped: off; without a Nomad node: off, gone");
  for (VmView& view : world.Raw().vms) {
    if (view.vm->name == "gone") view.unread_node = "node n9 (metal), which could be it: HTTP 500";
  }
  EXPECT_EQ(Counter(Report(world), "lost"), "1") << "its node may be there";
}

TEST(StatusReport,
     C17_a_vm_that_harvester_stopped_for_its_hosts_maintenance_is_neither_stopped_nor_lost) {
  World world = PoolOf({"a"});
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.Raw().vms.back().vm.Change().stopped_for_host = "rack1-a";
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 2);
  EXPECT_EQ(Counter(report, "stopped"), "0");
  EXPECT_EQ(Counter(report, "lost"), "0");
  EXPECT_THAT(report.warning, IsEmpty());
  const PoolSnapshot snapshot = world.Snapshot();
  EXPECT_EQ(VmStateName(StateOf(*snapshot.seen->FindVm("off"), snapshot)), "maintenance");
  world.Raw().vms.back().vm.Change().printable_status = "Running";
  EXPECT_EQ(Counter(Report(world), "lost"), "1") << "it was started again";
}

TEST(StatusReport, S1_a_vm_that_never_joined_is_not_stopped_and_a_marked_one_is_not_lost) {
  World world;
  world.With(Vm("new").Age(minutes(1)).Stopped()).With(Vm("marked").Joined().Marked());
  const StatusReport report = Report(world);
  EXPECT_EQ(Counter(report, "stopped"), "0");
  EXPECT_EQ(Counter(report, "lost"), "0");
}

TEST(StatusReport, S2_a_vm_that_waits_to_join_counts_and_blocks_as_the_agent_expects) {
  World world = PoolOf({"a"});
  world.With(Vm("new").Age(minutes(1)));
  const StatusReport report = Report(world);
  EXPECT_FALSE(report.status.ready);
  EXPECT_TRUE(report.expected);
  EXPECT_EQ(report.reason, "waiting to join Nomad: new");
  EXPECT_EQ(report.status.count, 2);
  EXPECT_EQ(Counter(report, "pending"), "1");
}

TEST(StatusReport, S2_a_vm_waits_until_its_deadline_and_no_longer) {
  World before;
  before.With(Vm("a").Age(minutes(15) - nanoseconds(1)));
  EXPECT_FALSE(Report(before).status.ready);
  World after;
  after.With(Vm("a").Age(minutes(15)));
  const StatusReport report = Report(after);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 0);
  EXPECT_EQ(Counter(report, "broken"), "1");
  EXPECT_EQ(report.warning, "broken: a");
}

TEST(StatusReport, S2_a_vm_without_a_join_deadline_does_not_wait) {
  World world;
  world.With(Vm("a").NoTimeout());
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 1);
}

TEST(StatusReport, S2_a_reason_names_the_first_five_vms) {
  World world;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) world.With(Vm(name).Age(minutes(1)));
  EXPECT_EQ(Report(world).reason, "waiting to join Nomad: a, b, c, d, e and 2 more");
}

TEST(StatusReport, S2_a_reason_says_why_a_vm_does_not_start) {
  World world;
  world.With(Vm("a").Age(minutes(1))).With(Vm("b").Age(minutes(1)));
  world.Raw().vms[1].pod_message = "0/3 nodes are available: 3 Insufficient memory.";
  EXPECT_EQ(Report(world).reason,
            "waiting to join Nomad: a, b; b does not start: 0/3 nodes are available: 3 "
            "Insufficient memory.");
}

TEST(StatusReport, C3_a_vm_whose_start_fails_is_broken_before_its_deadline) {
  World world;
  world.With(Vm("a").Age(minutes(1)).FailsToStart("ErrorPvcNotFound"));
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 0);
  EXPECT_EQ(Counter(report, "broken"), "1");
  EXPECT_EQ(Counter(report, "pending"), "0");
}

TEST(StatusReport, C15_a_vm_of_another_region_counts_and_neither_waits_nor_is_lost_or_broken) {
  World world;
  world.Region("eu").With(Vm("new").Age(minutes(1)).Region("us"));
  world.With(Vm("late").Region("us")).With(Vm("old").Joined().Region("us"));
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 3);
  EXPECT_THAT(report.warning, IsEmpty());
}

TEST(StatusReport, S2_an_open_scale_blocks_and_is_expected) {
  World world = PoolOf({"a"});
  const StatusReport report = Report(world, {.scale_open = true});
  EXPECT_FALSE(report.status.ready);
  EXPECT_TRUE(report.expected);
  EXPECT_EQ(report.reason, "a Scale is open on the pool");
  EXPECT_EQ(report.status.count, 1);
}

TEST(StatusReport, R3_a_swap_blocks_and_is_expected) {
  World world = PoolOf({"old"});
  world.With(Vm("new").Age(minutes(2)).Joined().Replaces("old", {ReplaceKind::kDrifted}))
      .With(Node("new"));
  Last(world).ready_at = kNow - seconds(20);
  const StatusReport report = Report(world);
  EXPECT_FALSE(report.status.ready);
  EXPECT_TRUE(report.expected) << report.reason;
  Last(world).ready_at = kNow + std::chrono::hours(5);  // by a wrong clock
  EXPECT_READY(Report(world));
}

TEST(StatusReport, R3_a_new_vm_that_boots_in_the_place_of_a_marked_one_does_not_block) {
  World world;
  world.With(Vm("old").Joined().Marked()).With(Node("old"));
  world.With(Vm("new").Age(minutes(2)).Replaces("old", {ReplaceKind::kUnhealthy}));
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 1);
}

TEST(StatusReport, R3_a_new_vm_whose_node_lacks_a_driver_does_not_block) {
  World world = PoolOf({"old"});
  world.Policy().ready_drivers = {"docker"};
  world.With(Vm("new").Age(minutes(2)).Registered().Replaces("old", {ReplaceKind::kDrifted}));
  world.With(Node("new").Driver("docker", false));
  EXPECT_READY(Report(world));
  world.Nodes().pop_back();
  world.With(Node("new").Driver("docker", true));
  EXPECT_FALSE(Report(world).status.ready) << "until that is recorded";
}

TEST(StatusReport, R5_a_new_vm_that_was_ready_and_is_lost_is_told_and_does_not_count) {
  World world = PoolOf({"old"});
  world.With(Vm("new").Joined().Stopped().Replaces("old", {ReplaceKind::kDrifted}))
      .With(Node("new").Down());
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 1);
  EXPECT_EQ(report.warning, "stopped: new; without a Nomad node: new");
  EXPECT_EQ(Counter(report, "lost"), "1");
  World unready = PoolOf({"old"});
  unready.With(Vm("new").Joined().Replaces("old", {ReplaceKind::kDrifted}));
  unready.With(Node("new").Status(NodeStatus::kDisconnected));
  EXPECT_EQ(Counter(Report(unready), "unready"), "1");
}

TEST(StatusReport, C15_while_nomad_cannot_be_read_nothing_is_broken_or_lost_and_nothing_is_ready) {
  World world;
  world.With(Vm("late")).NomadUnreadable();
  for (const char* name : {"a", "b", "c"}) world.With(Vm(name).Joined());
  world.With(Node("foreign"));  // from a list that was read before Nomad became unreadable
  const StatusReport report = Report(world);
  EXPECT_FALSE(report.status.ready);
  EXPECT_FALSE(report.expected) << "the agent did not ask for that";
  EXPECT_EQ(report.reason, "Nomad cannot be read: no leader");
  EXPECT_EQ(report.status.count, 4);
  EXPECT_THAT(report.warning, IsEmpty());
  EXPECT_EQ(Counter(report, "broken"), "0");
  EXPECT_EQ(Counter(report, "lost"), "absent");
  EXPECT_EQ(Counter(report, "unlinked"), "absent");
  EXPECT_EQ(Counter(report, "pending"), "1") << "its deadline tells nothing";
}

TEST(StatusReport, S2_vms_that_we_marked_and_their_nodes_do_not_block_without_a_scale) {
  World world = PoolOf({"a"});
  world.With(Vm("b").Joined().Marked()).With(Node("b").Draining("b"));
  world.With(Vm("c").Joined().Marked()).With(Node("c").Status(NodeStatus::kInitializing));
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.status.count, 1);
  EXPECT_EQ(Counter(report, "draining"), "2");
}

TEST(StatusReport, S2_a_drain_of_ours_without_its_mark_does_not_block_either) {
  World world = PoolOf({"a"});
  world.With(Vm("b").Joined()).With(Node("b").Draining("b"));
  world.With(Node("renamed").Draining("a"));
  EXPECT_READY(Report(world));
}

TEST(StatusReport, S2_the_draining_node_of_a_deleted_vm_blocks_only_if_it_is_another_pools) {
  World world = PoolOf({"a"});
  world.With(Node("gone").Draining("gone"));
  EXPECT_READY(Report(world));
  world.Nodes().back().last_drain->meta =
      nodepool::ToMeta({.action = "act", .vm = "gone", .vm_uid = "uid-gone", .pool = "default/db"});
  EXPECT_EQ(Report(world).reason, "node node-gone is draining");
}

TEST(StatusReport, S2_the_mark_on_a_copy_excuses_no_drain) {
  World world;
  world.With(Vm("a").Joined().Marked().Unmanaged()).With(Node("a").DrainedByOperator());
  EXPECT_EQ(Report(world).reason, "node node-a is draining");
}

TEST(StatusReport, S2_a_draining_member_blocks_unless_the_policy_ignores_it) {
  World world = PoolOf({"a"});
  world.With(Node("foreign").DrainedByOperator());
  const StatusReport report = Report(world);
  EXPECT_FALSE(report.status.ready);
  EXPECT_FALSE(report.expected);
  EXPECT_EQ(report.reason, "node node-foreign is draining");
  world.Policy().filter_ignore_init = true;
  EXPECT_FALSE(Report(world).status.ready);
  world.Policy().filter_ignore_drain = true;
  EXPECT_READY(Report(world));
}

TEST(StatusReport, S2_an_initializing_member_blocks_unless_the_policy_ignores_it) {
  World world = PoolOf({"a"});
  world.With(Node("foreign").Status(NodeStatus::kInitializing));
  EXPECT_EQ(Report(world).reason, "node node-foreign is initializing");
  world.Policy().filter_ignore_drain = true;
  EXPECT_FALSE(Report(world).status.ready);
  world.Policy().filter_ignore_init = true;
  EXPECT_READY(Report(world));
}

TEST(StatusReport, S2_a_node_that_drains_blocks_in_any_status_and_is_named_once) {
  World world;
  world.With(Node("a").DrainedByOperator().Initializing());
  EXPECT_EQ(Report(world).reason, "node node-a is initializing");
  world.Policy().filter_ignore_init = true;
  EXPECT_EQ(Report(world).reason, "node node-a is draining");
  for (const NodeStatus status :
       {NodeStatus::kDown, NodeStatus::kDisconnected, NodeStatus::kUnknown}) {
    world.Nodes()[0].status = status;
    EXPECT_EQ(Report(world).reason, "node node-a is draining");
  }
}

TEST(StatusReport, S2_the_reason_names_the_first_ten_of_eleven_nodes) {
  World world;
  for (char name = 'a'; name <= 'k'; ++name) world.With(Node({name}).DrainedByOperator());
  EXPECT_THAT(Report(world).reason,
              AllOf(testing::StartsWith("node node-a is draining, node node-b is draining"),
                    testing::EndsWith("node node-j is draining")));
}

TEST(StatusReport, S2_an_operators_drain_of_one_of_our_vms_blocks) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").DrainedByOperator());
  EXPECT_EQ(Report(world).reason, "node node-a is draining");
}

TEST(StatusReport, S2_neither_ineligible_nor_down_members_nor_other_pools_nodes_block) {
  World world = PoolOf({"a"});
  world.With(Vm("b").Joined()).With(Node("b").Ineligible());
  world.With(Vm("c").Joined()).With(Node("c").Down());
  world.With(Node("d").Status(NodeStatus::kDisconnected));
  world.With(Node("e").Status(NodeStatus::kUnknown).Ineligible());
  world.With(Node("db").Class("db").DrainedByOperator());
  EXPECT_READY(Report(world));
}

TEST(StatusReport, S2_a_terminating_vm_blocks_for_its_grace_and_ten_minutes_and_is_stuck_then) {
  World world = PoolOf({"a"});
  world.With(Vm("b").Joined().Terminating());
  Last(world).termination_grace = seconds(300);
  Last(world).deleted_at = kNow - (minutes(15) - nanoseconds(1));
  StatusReport report = Report(world);
  EXPECT_EQ(report.reason, "being deleted: b");
  EXPECT_EQ(Counter(report, "stuck"), "0");
  Last(world).deleted_at = kNow - minutes(15);
  report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(Counter(report, "stuck"), "1");
  EXPECT_EQ(report.warning, "stuck in deletion: b");
  EXPECT_EQ(report.status.count, 1);
}

TEST(StatusReport, S2_a_marked_vm_that_terminates_does_not_block) {
  World world;
  world.With(Vm("a").Joined().Marked().Terminating());
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(Counter(report, "draining"), "0");
}

TEST(StatusReport, C15_one_vm_without_a_node_is_not_a_mass_loss) {
  World world;
  world.With(Vm("a").Joined());
  const StatusReport report = Report(world);
  EXPECT_READY(report);
  EXPECT_EQ(report.warning, "without a Nomad node: a");
}

TEST(StatusReport, C15_a_fifth_of_the_pool_is_not_a_mass_loss) {
  World world = PoolOf({"a", "b", "c", "d", "e", "f", "g", "h"});
  world.With(Vm("x").Joined()).With(Vm("y").Joined());
  EXPECT_READY(Report(world));
}

TEST(StatusReport, C15_more_than_a_fifth_at_once_blocks_for_ten_minutes_then_warns) {
  World world = PoolOf({"a", "b", "c", "d", "e", "f", "g"});
  world.With(Vm("x").Joined()).With(Vm("y").Joined());
  StatusReport report = Report(world, {.mass_loss_for = minutes(10) - nanoseconds(1)});
  EXPECT_FALSE(report.status.ready);
  EXPECT_FALSE(report.expected);
  EXPECT_THAT(report.reason, HasSubstr("2 of 9 running VMs"));
  EXPECT_EQ(report.status.count, 9);
  report = Report(world, {.mass_loss_for = minutes(10)});
  EXPECT_READY(report);
  EXPECT_THAT(report.warning, AllOf(HasSubstr("x, y"), HasSubstr("more than a fifth")));
}

TEST(StatusReport, C15_marked_stopped_and_foreign_vms_are_not_part_of_a_mass_loss) {
  World world = PoolOf({"a", "b"});
  world.With(Vm("marked").Joined().Marked()).With(Vm("off").Joined().Stopped());
  world.With(Vm("copy").Joined().Unmanaged()).With(Vm("db").Joined().InPool("db"));
  world.With(Vm("gone").Joined());
  EXPECT_THAT(Report(world).warning, Not(HasSubstr("more than a fifth")));
}

TEST(StatusReport, C15_a_node_that_is_lost_after_its_drain_began_is_part_of_a_mass_loss) {
  World world = PoolOf({"a", "b"});
  world.With(Vm("x").Joined().Marked()).With(Node("x").Draining("x").Down());
  world.With(Vm("y").Joined().Marked()).With(Node("y").Draining("y").Down());
  EXPECT_THAT(Report(world).reason, HasSubstr("2 of 4 running VMs"));
  for (nomad::Node& node : world.Nodes()) node.last_drain.reset();
  EXPECT_READY(Report(world));  // they were marked when they were lost
}

TEST(StatusReport, S4_the_last_event_is_reported_in_nanoseconds_and_absent_before_the_first) {
  World world;
  EXPECT_EQ(Report(world).status.meta.count("nomad_autoscaler.last_event"), 0U);
  const StatusReport report = Report(world, {.last_event = At("2026-03-01T11:00:00.000000001Z")});
  EXPECT_EQ(report.status.meta.at("nomad_autoscaler.last_event"), "1772362800000000001");
}

TEST(StatusReport, S4_drifted_counts_members_of_another_template_once_a_preflight_has_computed_it) {
  World world = PoolOf({"a", "b", "c"});
  world.Raw().vms[0].vm.Change().template_hash = "old";
  world.Raw().vms[1].vm.Change().template_hash = "new";
  EXPECT_EQ(Counter(Report(world), "drifted"), "0");
  EXPECT_EQ(Counter(Report(world, {.current_template = {.hash = "new", .parts = {}}}), "drifted"),
            "1");
  EXPECT_EQ(Counter(Report(world, {.current_template = {.hash = "newer", .parts = {}}}), "drifted"),
            "2");
  EXPECT_EQ(
      Counter(Report(world, {.current_template = {.hash = "v9:new", .parts = {}}}), "drifted"), "0")
      << "hashes of another version mean nothing";
}

TEST(StatusReport, S4_what_has_drifted_is_named_with_the_parts_that_are_known) {
  World world = PoolOf({"a", "b", "c"});
  const auto made_from = [&](std::size_t vm, const char* hash, const char* parts) {
    harvester::VirtualMachine& made = world.Raw().vms[vm].vm.Change();
    made.template_hash = hash;
    made.template_parts = parts;
  };
  made_from(0, "old", R"({"cpu":"1","image":"1","memory":"1"})");
  made_from(1, "new", R"({"cpu":"2","image":"2","memory":"1"})");
  made_from(2, "old", "");
  const StatusInputs inputs{
      .current_template = {.hash = "new", .parts = R"({"cpu":"2","image":"2","memory":"1"})"}};
  EXPECT_EQ(Report(world, inputs).drift, "a (cpu, image), c");
  EXPECT_EQ(Report(world).drift, "");
}

TEST(StatusReport, S4_a_large_pool_that_has_drifted_is_named_in_part) {
  World world;
  for (char c = 'a'; c <= 'z'; ++c) {
    const std::string name(1, c);
    world.With(Vm(name).Joined()).With(Node(name));
  }
  for (auto& view : world.Raw().vms) view.vm.Change().template_hash = "old";
  EXPECT_THAT(Report(world, {.current_template = {.hash = "new", .parts = {}}}).drift,
              testing::EndsWith("s, t and 6 more"));
}

TEST(StatusReport, S4_unlinked_counts_pool_nodes_that_are_linked_to_no_vm) {
  World world = PoolOf({"a"});
  world.With(Node("foreign")).With(Node("old").Down()).With(Node("db").Class("db"));
  EXPECT_EQ(Counter(Report(world), "unlinked"), "2");
}

TEST(StatusReport, S4_a_contradicted_node_is_neither_lost_nor_unlinked) {
  World world = PoolOf({"a"});
  world.With(Vm("b").Joined()).With(Node("b").Meta("harvester_vm_uuid", "fw-a"));
  const StatusReport report = Report(world);
  EXPECT_EQ(Counter(report, "lost"), "0");
  EXPECT_EQ(Counter(report, "unlinked"), "0");
}

}  // namespace
}  // namespace nomad_harvester::scaling
