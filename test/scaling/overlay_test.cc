// SPDX-License-Identifier: Apache-2.0
//
// One VM of a snapshot with the objects that an act has read again just before its write (rule C5).

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/snapshot.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using nodepool::LinkState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A snapshot of a world, and VM a of it as an act reads it again.
struct Again {
  explicit Again(World& world) : snapshot(world.Snapshot()) {}

  PoolSnapshot snapshot;
  Overlay a{snapshot, *snapshot.seen->FindVm("a")};
};

std::string IdOf(const nomad::Node* node) { return node == nullptr ? "none" : node->id; }

std::vector<std::string> IdsOf(const std::vector<const nomad::Node*>& nodes) {
  std::vector<std::string> ids;
  ids.reserve(nodes.size());
  for (const nomad::Node* node : nodes) ids.push_back(node->id);
  return ids;
}

std::string ActionOf(const Overlay& seen) {
  const auto drain = nodepool::ParseDrainMark(*seen.node());
  return drain.has_value() ? std::string(drain->action) : "none";
}

World TwoVms() {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Joined()).With(Node("a")).With(Node("b"));
  return world;
}

TEST(Overlay, without_anything_read_again_it_is_the_snapshot) {
  World world = TwoVms();
  world.Idle("a");
  const Again again(world);
  EXPECT_EQ(&again.a.view(), again.snapshot.seen->FindVm("a"));
  EXPECT_EQ(again.a.node(), &again.snapshot.nodes()[0]);
  EXPECT_EQ(again.a.now(), kNow);
  ASSERT_NE(again.a.AllocationsOf("node-a"), nullptr);
  EXPECT_THAT(*again.a.AllocationsOf("node-a"), IsEmpty());
  EXPECT_EQ(again.a.AllocationsOf("node-b"), nullptr) << "they were not read";
}

TEST(OverlaySetNode, a_node_that_was_read_again_replaces_the_old_one) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-a", Node("a").Draining("a", "new").Get());
  ASSERT_NE(again.a.node(), nullptr);
  EXPECT_TRUE(again.a.node()->draining);
  EXPECT_EQ(ActionOf(again.a), "new");
  EXPECT_FALSE(again.snapshot.nodes()[0].draining) << "the snapshot stays as it was";
}

TEST(OverlaySetNode, a_drain_that_was_replaced_no_longer_counts) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Draining("a", "old"));
  Again again(world);
  EXPECT_THAT(IdsOf(again.a.NodesDrainedForIt()), ElementsAre("node-a"));
  again.a.SetNode("node-a", Node("a").Get());
  EXPECT_EQ(ActionOf(again.a), "none");
  EXPECT_THAT(again.a.NodesDrainedForIt(), IsEmpty());
}

TEST(OverlaySetNode, a_node_that_is_gone_links_no_longer) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Draining("a"));
  Again again(world);
  again.a.SetNode("node-a", std::nullopt);
  EXPECT_EQ(again.a.node(), nullptr);
  EXPECT_EQ(again.a.view().link.state, LinkState::kNone);
  EXPECT_THAT(again.a.NodesDrainedForIt(), IsEmpty());
  EXPECT_EQ(again.a.Candidate(), nullptr);
}

TEST(OverlaySetNode, when_the_better_of_two_nodes_is_gone_the_other_one_links) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a", "old").Down()).With(Node("a", "new"));
  Again again(world);
  ASSERT_EQ(IdOf(again.a.node()), "new");
  again.a.SetNode("new", std::nullopt);
  EXPECT_EQ(IdOf(again.a.node()), "old");
}

TEST(OverlaySetNode, C6_a_node_that_became_ready_again_makes_a_tie) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a", "old").Down()).With(Node("a", "new"));
  Again again(world);
  again.a.SetNode("old", Node("a", "old").Get());
  EXPECT_EQ(again.a.view().link.state, LinkState::kAmbiguous);
  EXPECT_EQ(again.a.node(), nullptr);
}

TEST(OverlaySetNode, a_node_that_is_not_in_the_list_is_ignored) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("n9", Node("a", "n9").Draining("a").Get());
  EXPECT_EQ(IdOf(again.a.node()), "node-a");
  EXPECT_THAT(again.a.NodesDrainedForIt(), IsEmpty());
  again.a.SetNode("n9", std::nullopt);
  EXPECT_EQ(IdOf(again.a.node()), "node-a");
}

TEST(OverlaySetNode, C6_a_node_that_has_another_vms_name_now_is_not_this_vms) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-a", Node("b", "node-a").Get());
  EXPECT_EQ(again.a.node(), nullptr);
}

TEST(OverlaySetNode, C6_the_uuid_of_another_vm_contradicts_the_link) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-a", Node("a").Meta("harvester_vm_uuid", "fw-b").Get());
  EXPECT_EQ(again.a.view().link.state, LinkState::kContradicted);
  EXPECT_EQ(again.a.node(), nullptr);
}

TEST(OverlaySetNode, another_node_may_turn_out_to_be_drained_for_this_vm) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-b", Node("b").Drained("a").Get());
  EXPECT_THAT(IdsOf(again.a.NodesDrainedForIt()), ElementsAre("node-b"));
  EXPECT_EQ(IdOf(again.a.node()), "node-a");
}

TEST(OverlaySetNodes, the_whole_list_may_have_another_node_for_the_vm) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNodes(ListOf({Node("b").Get(), Node("a", "again").Draining("a", "new").Get()}));
  EXPECT_EQ(IdOf(again.a.node()), "again");
  EXPECT_EQ(ActionOf(again.a), "new");
  EXPECT_THAT(IdsOf(again.a.NodesDrainedForIt()), ElementsAre("again"));
}

TEST(OverlaySetNodes, C15_an_empty_list_has_no_node_and_no_candidate) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Draining("a")).With(Node("x"));
  Again again(world);
  again.a.SetNodes(ListOf({}));
  EXPECT_EQ(again.a.node(), nullptr);
  EXPECT_EQ(again.a.view().link.state, LinkState::kNone);
  EXPECT_THAT(again.a.NodesDrainedForIt(), IsEmpty());
  EXPECT_EQ(again.a.Candidate(), nullptr);
}

TEST(OverlaySetNodes, C6_the_other_vms_of_the_namespace_still_have_their_names) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNodes(ListOf({Node("a").Meta("harvester_vm_uuid", "fw-b").Get()}));
  EXPECT_EQ(again.a.view().link.state, LinkState::kContradicted);
}

TEST(OverlaySetNodes, a_node_that_was_read_alone_replaces_that_of_the_new_list) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNodes(ListOf({Node("x").Get(), Node("b").Get(), Node("a").Get()}));
  again.a.SetNode("node-a", Node("a").Drained("a", "new").Get());
  EXPECT_EQ(IdOf(again.a.node()), "node-a");
  EXPECT_EQ(ActionOf(again.a), "new");
  again.a.SetNode("node-a", std::nullopt);
  EXPECT_EQ(again.a.node(), nullptr);
}

TEST(OverlaySetNodes, a_new_list_replaces_a_node_that_was_read_before_it) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-a", Node("a").Draining("a").Get());
  again.a.SetNodes(ListOf({Node("a").Get()}));
  EXPECT_FALSE(again.a.node()->draining);
  EXPECT_EQ(ActionOf(again.a), "none");
  EXPECT_THAT(again.a.NodesDrainedForIt(), IsEmpty());
}

TEST(OverlayCandidate, C6_a_younger_ready_node_without_a_vm_could_be_this_one) {
  World world;
  world.With(Vm("a")).With(Node("x"));
  const Again again(world);
  EXPECT_EQ(IdOf(again.a.Candidate()), "node-x");
}

TEST(OverlayCandidate, C6_a_node_that_was_read_again_is_judged_as_it_is_now) {
  const std::vector<std::pair<std::string, nomad::Node>> no_candidates = {
      {"down", Node("x").Down().Get()},
      {"older than the VM", Node("x").Index(100).Get()},
      {"of another pool", Node("x").Class("db").Get()},
      {"declared foreign", Node("x").Meta("harvester_vm_uuid", "none").Get()},
      {"another VM by its uuid", Node("x").Meta("harvester_vm_uuid", "FW-B").Get()},
      {"another namespace's VM by its uuid",
       Node("x").Meta("harvester_vm_uuid", "6fa46a4c-18b7-4d0f-9e8b-2f6f1c1d8a11").Get()},
  };
  for (const auto& [what, node] : no_candidates) {
    World world;
    world.With(Vm("a")).With(Vm("b")).With(Node("x"));
    Again again(world);
    again.a.SetNode("node-x", node);
    EXPECT_EQ(IdOf(again.a.Candidate()), "none") << what;
  }
  World world;
  world.With(Vm("a")).With(Node("x").Meta("harvester_vm_uuid", "fw-a"));
  Again again(world);
  EXPECT_EQ(IdOf(again.a.Candidate()), "node-x") << "its uuid is this VM's";
  again.a.SetNode("node-x", std::nullopt);
  EXPECT_EQ(IdOf(again.a.Candidate()), "none") << "gone";
}

TEST(OverlayCandidate, C6_a_uuid_that_several_nodes_have_names_none_of_them) {
  World world;
  world.With(Vm("a"));
  for (const char* name : {"x", "y"}) {
    world.With(Node(name).Meta("harvester_vm_uuid", "6fa46a4c-18b7-4d0f-9e8b-2f6f1c1d8a11"));
  }
  const Again again(world);
  EXPECT_EQ(IdOf(again.a.Candidate()), "node-x");
}

TEST(OverlayCandidate, C6_its_own_node_under_another_name_could_still_be_it) {
  World world = TwoVms();
  Again again(world);
  again.a.SetNode("node-a", Node("localhost", "node-a").Get());
  EXPECT_EQ(again.a.node(), nullptr);
  EXPECT_EQ(IdOf(again.a.Candidate()), "node-a");
}

TEST(OverlayCandidate, C6_another_vms_node_under_another_name_is_still_that_vms) {
  World world;
  world.With(Vm("a")).With(Vm("b").Joined()).With(Node("b"));
  Again again(world);
  again.a.SetNode("node-b", Node("localhost", "node-b").Get());
  EXPECT_EQ(IdOf(again.a.Candidate()), "none");
}

TEST(OverlayCandidate, the_list_that_was_read_again_has_the_candidates) {
  World world;
  world.With(Vm("a"));
  Again again(world);
  EXPECT_EQ(IdOf(again.a.Candidate()), "none");
  again.a.SetNodes(ListOf({Node("x").Get()}));
  EXPECT_EQ(IdOf(again.a.Candidate()), "node-x");
}

TEST(OverlaySetVm, C9_the_vm_as_it_is_now_decides_at_the_time_of_the_observation) {
  World world = TwoVms();
  Again again(world);
  harvester::VirtualMachine vm = again.a.view().vm;
  vm.protect.always = true;
  again.a.SetVm(vm);
  EXPECT_TRUE(again.a.view().vm->protect.always);
  EXPECT_EQ(again.a.now(), kNow);
  EXPECT_EQ(IdOf(again.a.node()), "node-a") << "its link stays";
  EXPECT_FALSE(again.snapshot.seen->FindVm("a")->vm->protect.always);
}

TEST(OverlaySetVm, what_is_read_of_the_instance_and_the_marks_node_is_kept) {
  World world = TwoVms();
  Again again(world);
  again.a.SetInstance(false);
  again.a.SetMarksNodeGone(true);
  again.a.SetVm(again.a.view().vm);
  EXPECT_EQ(again.a.view().instance_runs, std::optional<bool>(false));
  EXPECT_TRUE(again.a.view().node_gone);
}

TEST(OverlaySetAllocations, what_was_read_again_replaces_what_was_known) {
  World world = TwoVms();
  world.Running("a").Running("b");
  Again again(world);
  again.a.SetAllocations("node-a", {});
  ASSERT_NE(again.a.AllocationsOf("node-a"), nullptr);
  EXPECT_THAT(*again.a.AllocationsOf("node-a"), IsEmpty());
  EXPECT_EQ(again.a.AllocationsOf("node-b")->size(), 1U);
}

}  // namespace
}  // namespace nomad_harvester::scaling
