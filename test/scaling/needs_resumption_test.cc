// SPDX-License-Identifier: Apache-2.0
//
// When an observation of Status starts the background work.

#include <initializer_list>

#include <gtest/gtest.h>

#include "nomad_harvester/scaling/status_report.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nomad::DrainStatus;
using std::chrono::minutes;

std::vector<std::size_t> ToRead(World& world) { return NodesToReadInFull(world.Linked()); }

bool Needed(World& world) { return NeedsResumption(Decisions(world.Snapshot())); }

TEST(NeedsResumption, is_false_in_steady_state) {
  World world = PoolOf({"a", "b"});
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.With(Vm("new").Age(minutes(1)));
  world.With(Vm("free").NoTimeout());
  world.With(Vm("going").Joined().Terminating());
  world.With(Vm("copy").Joined().Unmanaged());
  world.With(Node("foreign")).With(Node("ops").DrainedByOperator());
  EXPECT_FALSE(Needed(world));
  World empty;
  EXPECT_FALSE(Needed(empty));
}

TEST(NeedsResumption, S5_a_mark_needs_it_readable_or_not_and_regardless_of_nomad) {
  World marked;
  marked.With(Vm("a").Joined().Marked()).With(Node("a").Draining("a"));
  EXPECT_TRUE(Needed(marked));
  World unreadable;
  unreadable.With(Vm("a").Joined().UnreadableMark());
  EXPECT_TRUE(Needed(unreadable));
  marked.NomadUnreadable();
  EXPECT_TRUE(Needed(marked));
}

TEST(NeedsResumption, S5_marks_of_copies_and_of_other_regions_do_not) {
  World world = PoolOf({"a"});
  world.With(Vm("copy").Joined().Marked().Unmanaged());
  world.Region("eu").With(Vm("far").Joined().Region("us").Marked());
  EXPECT_FALSE(Needed(world));
}

TEST(NeedsResumption, S5_a_drain_of_ours_without_a_mark_needs_it_until_it_is_undone) {
  World draining;
  draining.With(Vm("a").Joined()).With(Node("a").Draining("a"));
  EXPECT_TRUE(Needed(draining));
  World drained;
  drained.With(Vm("a").Joined()).With(Node("a").Drained("a"));
  EXPECT_TRUE(Needed(drained));
  World recorded;
  recorded.With(Vm("a").Joined().RolledBack("act@2026-03-01T11:59:00Z"))
      .With(Node("a").Drained("a").Eligible());
  EXPECT_FALSE(Needed(recorded));
}

TEST(NeedsResumption, S5_a_join_to_record_needs_it) {
  World world;
  world.With(Vm("a").Age(minutes(1))).With(Node("a"));
  EXPECT_TRUE(Needed(world));
}

TEST(NeedsResumption, S5_an_overdue_join_needs_it_unless_such_vms_are_kept) {
  World world;
  world.With(Vm("a"));
  EXPECT_TRUE(Needed(world));
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  EXPECT_FALSE(Needed(world));
  World failing;
  failing.With(Vm("a").Age(minutes(1)).FailsToStart("ErrImagePull"));
  EXPECT_TRUE(Needed(failing));
}

TEST(NeedsResumption, C13_an_overdue_join_does_not_under_dry_run) {
  World world;
  world.With(Vm("a"));
  world.Policy().dry_run = true;
  EXPECT_FALSE(Needed(world));
}

TEST(NeedsResumption, S5_the_node_of_a_deleted_vm_needs_it_if_it_must_be_purged) {
  const auto node = [](bool purge) {
    return Node("gone").DrainedBy(DrainStatus::kComplete, "gone", "act", false, purge).Down();
  };
  World purge = PoolOf({"a"});
  purge.With(node(true));
  EXPECT_TRUE(Needed(purge));
  World keep = PoolOf({"a"});
  keep.With(node(false));
  EXPECT_FALSE(Needed(keep));
  World standing = PoolOf({"a"});
  standing.With(Vm("gone").Joined().Terminating()).With(node(true));
  EXPECT_FALSE(Needed(standing)) << "the VM is still there";
  purge.NomadUnreadable();
  EXPECT_FALSE(Needed(purge));
}

TEST(NeedsResumption, C6_an_unread_pool_node_needs_it_only_while_a_vm_lacks_its_node) {
  nomad::Node stub = Node("ip-10-0-0-7").Get();
  stub.full = false;
  stub.attributes.clear();
  World settled = PoolOf({"a"});
  settled.Nodes().push_back(stub);
  EXPECT_FALSE(Needed(settled));
  World waiting = PoolOf({"a"});
  waiting.With(Vm("new").Age(minutes(1)));
  waiting.Nodes().push_back(stub);
  EXPECT_TRUE(Needed(waiting)) << "it may be the VM, under another name";
  waiting.Nodes().back().full = true;
  EXPECT_FALSE(Needed(waiting));
}

TEST(NeedsResumption, C6_two_ready_nodes_of_a_vms_name_are_read_in_full) {
  nomad::Node stub = Node("a", "node-a2").Get();
  stub.full = false;
  World world = PoolOf({"a"});
  world.Nodes().push_back(stub);
  EXPECT_EQ(ToRead(world).size(), 1U);
  EXPECT_TRUE(Needed(world));
  world.Nodes().back().status = nomad::NodeStatus::kDown;
  EXPECT_TRUE(ToRead(world).empty()) << "an old node is not a rival";
  world.Nodes().back().status = nomad::NodeStatus::kReady;
  world.Nodes().back().full = true;
  EXPECT_FALSE(Needed(world)) << "a tie that nothing settles is reported, not worked on";
}

TEST(NeedsResumption, C6_the_names_of_two_ready_nodes_are_compared_as_short_host_names) {
  nomad::Node stub = Node("A.example.org", "node-a2").Get();
  stub.full = false;
  World world = PoolOf({"a"});
  world.Nodes().push_back(stub);
  EXPECT_EQ(ToRead(world).size(), 1U);
}

TEST(NeedsResumption, S5_a_name_to_create_whose_vm_exists_needs_it) {
  World world = PoolOf({"a"});
  world.Pool().action->create["b"] = "act";
  EXPECT_FALSE(Needed(world)) << "the next Scale uses the name";
  world.Pool().action->create["a"] = "act";
  EXPECT_TRUE(Needed(world)) << "it may never be used again";
}

TEST(NeedsResumption, vms_of_other_pools_do_not_need_it) {
  World world = PoolOf({"a"});
  world.With(Vm("db-1").InPool("db").Joined().Marked()).With(Vm("db-2").InPool("db"));
  world.With(Vm("db-3").InPool("db").Age(minutes(1))).With(Node("db-3"));
  EXPECT_FALSE(Needed(world));
}

}  // namespace
}  // namespace nomad_harvester::scaling
