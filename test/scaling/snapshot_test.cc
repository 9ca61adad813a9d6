// SPDX-License-Identifier: Apache-2.0
//
// The indexes of a snapshot and of its nodes.

#include "nomad_harvester/scaling/snapshot.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<const Snapshot> Seen(World world) { return world.Snapshot().seen; }

std::vector<std::string> NamesOf(const std::vector<const VmView*>& views) {
  std::vector<std::string> names;
  names.reserve(views.size());
  for (const VmView* view : views) names.push_back(view->vm->name);
  return names;
}

std::vector<std::string> IdsAt(const NodeSet& nodes, const std::vector<std::size_t>& indexes) {
  std::vector<std::string> ids;
  ids.reserve(indexes.size());
  for (const std::size_t index : indexes) ids.push_back(nodes.all()[index].id);
  return ids;
}

TEST(Snapshot, finds_a_vm_by_name_and_by_uid) {
  const auto seen = Seen(World().With(Vm("a")).With(Vm("b")));
  ASSERT_NE(seen->FindVm("b"), nullptr);
  EXPECT_EQ(seen->FindVm("b")->vm->uid, "uid-b");
  EXPECT_EQ(seen->FindVmByUid("uid-b"), seen->FindVm("b"));
  EXPECT_EQ(seen->FindVm("uid-b"), nullptr);
  EXPECT_EQ(seen->FindVmByUid("b"), nullptr);
}

TEST(Snapshot, the_vms_of_a_pool_are_those_with_its_label_in_the_order_of_the_list) {
  const auto seen = Seen(
      World().With(Vm("z")).With(Vm("db-1").InPool("db")).With(Vm("a").Unmanaged()).With(Vm("m")));
  EXPECT_THAT(NamesOf(seen->VmsOfPool("web")), ElementsAre("z", "a", "m"));
  EXPECT_THAT(NamesOf(seen->VmsOfPool("db")), ElementsAre("db-1"));
  EXPECT_THAT(seen->VmsOfPool("none"), IsEmpty());
}

TEST(Snapshot, C7_a_claim_is_shared_if_two_vms_use_it_of_whatever_pool) {
  const auto seen = Seen(World()
                             .With(Vm("a").Claim("own-a").Claim("data"))
                             .With(Vm("db-1").InPool("db").Claim("data"))
                             .With(Vm("copy").Unmanaged().Claim("images")));
  EXPECT_THAT(seen->shared_claims(), ElementsAre("data"));
}

TEST(Snapshot, C7_a_vm_that_uses_a_claim_twice_shares_it_with_nobody) {
  const auto seen = Seen(World().With(Vm("a").Claim("data").Claim("data")));
  EXPECT_THAT(seen->shared_claims(), IsEmpty());
}

TEST(Snapshot, it_links_a_look_that_was_not_linked) {
  World world;
  world.With(Vm("a")).With(Node("other")).With(Node("a"));
  const auto seen = Seen(world);
  EXPECT_EQ(seen->FindVm("a")->link.state, nodepool::LinkState::kLinked);
  EXPECT_EQ(seen->nodes().all()[seen->FindVm("a")->link.node].id, "node-a");
}

TEST(NodeSet, finds_a_node_by_id) {
  const auto seen = Seen(World().With(Node("a")).With(Node("b")));
  EXPECT_EQ(seen->nodes().Find("node-b"), 1U);
  EXPECT_EQ(seen->nodes().Find("b"), std::nullopt);
}

TEST(NodeSet, knows_the_nodes_that_were_drained_for_a_vm_whether_they_link_or_not) {
  World world;
  world.With(Vm("b"))
      .With(Vm("a"))
      .With(Vm("c"))
      .With(Node("a").Draining("a"))
      .With(Node("y").Drained("b"))
      .With(Node("x").Drained("a", "old"))
      .With(Node("z").DrainedByOperator())
      .With(Node("g").Drained("gone", "act-g"));
  const auto seen = Seen(world);
  const NodeSet& nodes = seen->nodes();
  const auto drained_for = [&](std::string_view vm) {
    std::vector<std::string> ids;
    for (const auto& [index, node] : nodes.DrainedFor(seen->IndexOf(*seen->FindVm(vm)))) {
      ids.push_back(nodes.all()[node].id);
    }
    return ids;
  };
  EXPECT_THAT(drained_for("a"), ElementsAre("node-a", "node-x"));
  EXPECT_THAT(drained_for("b"), ElementsAre("node-y"));
  EXPECT_THAT(drained_for("c"), IsEmpty());
  EXPECT_EQ(nodes.drained().size(), 3U) << "an operator's drain is not ours";
  ASSERT_EQ(nodes.orphaned_nodes().size(), 1U);
  EXPECT_EQ(nodes.orphaned_nodes()[0].node->id, "node-g");
  EXPECT_EQ(nodes.orphaned_nodes()[0].mark.action, "act-g");
}

TEST(NodeSet, C6_ready_nodes_that_no_vm_has_are_unlinked) {
  World world;
  world.With(Vm("a"))
      .With(Vm("two"))
      .With(Node("a"))
      .With(Node("x"))
      .With(Node("y").Down())
      .With(Node("two", "n1"))
      .With(Node("two", "n2"));
  const auto seen = Seen(world);
  const NodeSet& nodes = seen->nodes();
  EXPECT_THAT(IdsAt(nodes, nodes.unlinked_ready()), ElementsAre("node-x"))
      << "not the down one, nor two that tie for a VM";
  EXPECT_TRUE(nodes.IsLinked(*nodes.Find("n1")));
  EXPECT_FALSE(nodes.IsLinked(*nodes.Find("node-y")));
}

}  // namespace
}  // namespace nomad_harvester::scaling
