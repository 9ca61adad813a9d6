// SPDX-License-Identifier: Apache-2.0
//
// What a Scale decides from a snapshot.

#include "nomad_harvester/scaling/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using support::IsOk;
using support::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a Scale to this count does, which nothing refuses.
ScalePlan PlanTo(World& world, std::int64_t desired) {
  const auto plan = PlanScale(world.Snapshot(), desired, world.Inputs());
  EXPECT_THAT(plan, IsOk());
  return plan.value_or(ScalePlan());
}

std::vector<std::string> VictimsTo(World& world, std::int64_t desired) {
  return NamesIn(PlanTo(world, desired).remove);
}

TEST(PlanScale, C1_the_observed_count_decides_and_equal_has_no_effect) {
  World world = IdlePoolOf({"a", "b"});
  const ScalePlan plan = PlanTo(world, 2);
  EXPECT_EQ(plan.direction, Direction::kNone);
  EXPECT_EQ(plan.from, 2);
  EXPECT_THAT(plan.create, IsEmpty());
  EXPECT_THAT(plan.remove, IsEmpty());
}

TEST(PlanScale, a_negative_count_is_refused) {
  World world = IdlePoolOf({"a"});
  EXPECT_EQ(PlanScale(world.Snapshot(), -2, world.Inputs()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PlanScale, S1_marked_terminating_broken_and_copied_vms_do_not_count) {
  World world = IdlePoolOf({"a"});
  world.With(Vm("b").Joined().Marked()).With(Node("b").Down());
  world.With(Vm("c").Joined().Terminating());
  world.With(Vm("d"));  // overdue
  world.With(Vm("e").Joined().Unmanaged());
  world.With(Vm("f").Age(std::chrono::minutes(1)));  // still being created: counts
  world.With(Vm("g").Joined().InPool("db"));
  const ScalePlan plan = PlanTo(world, 4);
  EXPECT_EQ(plan.from, 2);
  EXPECT_EQ(plan.create.size(), 2U);
}

TEST(PlanScale, growth_is_capped_by_max_scale_out) {
  World world = IdlePoolOf({"a"});
  world.Policy().max_scale_out = 2;
  const ScalePlan plan = PlanTo(world, 9);
  EXPECT_EQ(plan.to, 3);
  EXPECT_TRUE(plan.capped);
  EXPECT_EQ(plan.create.size(), 2U);
}

TEST(PlanScale, shrinking_is_capped_by_max_scale_in) {
  World world = IdlePoolOf({"a", "b", "c"});
  world.Policy().max_scale_in = 1;
  const ScalePlan plan = PlanTo(world, 0);
  EXPECT_EQ(plan.to, 2);
  EXPECT_EQ(plan.remove.size(), 1U);
}

TEST(PlanScale, R4_a_scale_in_that_would_not_lower_the_count_is_refused) {
  World world = IdlePoolOf({"a"});
  world.With(Vm("b").Joined().Protected()).With(Node("b"));
  PlanInputs inputs = world.Inputs();
  EXPECT_TRUE(PlanScale(world.Snapshot(), 0, inputs).ok());
  inputs.newly_counted = 1;
  const auto refused = PlanScale(world.Snapshot(), 0, inputs);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("would not lower the count"));
}

TEST(PlanScale, C3_more_vms_than_the_lease_can_name_are_refused_unless_growth_is_capped) {
  World world;
  const auto huge = PlanScale(world.Snapshot(), std::int64_t{1} << 62, {});
  EXPECT_THAT(huge, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_scale_out")));
  EXPECT_THAT(PlanScale(world.Snapshot(), 1001, world.Inputs()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1001")));
  const auto most = PlanScale(world.Snapshot(), 1000, world.Inputs());
  ASSERT_THAT(most, IsOk());
  EXPECT_THAT(most->create, SizeIs(1000));
}

TEST(PlanScale,
     C3_more_removals_than_the_lease_can_name_are_refused_unless_max_scale_in_limits_them) {
  World world;
  for (int i = 0; i < 1001; ++i) {
    const std::string name = "vm" + std::to_string(i);
    world.With(Vm(name).Joined()).With(Node(name));
  }
  EXPECT_THAT(PlanScale(world.Snapshot(), 0, world.Inputs()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_scale_in")));
  EXPECT_THAT(PlanScale(world.Snapshot(), 1, world.Inputs()), IsOk());
  world.Policy().max_scale_in = 1000;
  EXPECT_THAT(PlanScale(world.Snapshot(), 0, world.Inputs()), IsOk());
}

TEST(PlanScale, C3_the_largest_limits_do_not_overflow) {
  World world = IdlePoolOf({"a", "b"});
  world.Policy().max_scale_out = world.Policy().max_scale_in = INT64_MAX;
  const auto out = PlanScale(world.Snapshot(), 3, world.Inputs());
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ(out->to, 3);
  const auto in = PlanScale(world.Snapshot(), 1, world.Inputs());
  ASSERT_THAT(in, IsOk());
  EXPECT_EQ(in->to, 1);
}

TEST(PlanScale, C14_removals_of_vms_with_a_ready_node_are_cancelled_before_any_vm_is_created) {
  World world = IdlePoolOf({"a"});
  world.With(Vm("b").Joined().Marked()).With(Node("b").Draining("b"));
  world.With(Vm("c").Joined().Marked()).With(Node("c").Down());
  const ScalePlan plan = PlanTo(world, 3);
  EXPECT_THAT(plan.cancel_removals, ElementsAre("b"));
  EXPECT_EQ(plan.create.size(), 1U);
}

TEST(PlanScale, C14_removals_for_the_join_timeout_are_never_cancelled) {
  World world;
  world.With(Vm("b").Joined().Marked().ForBeingBroken()).With(Node("b"));
  const ScalePlan plan = PlanTo(world, 1);
  EXPECT_THAT(plan.cancel_removals, IsEmpty());
  EXPECT_EQ(plan.create.size(), 1U);
}

TEST(PlanScale, C10_names_that_an_earlier_action_left_over_are_used_first_under_their_own_action) {
  World world = IdlePoolOf({"web-seen"});
  world.Pool().action->create = {{"web-left", "old"}, {"web-seen", "old"}};
  const ScalePlan plan = PlanTo(world, 3);
  ASSERT_EQ(plan.create.size(), 2U);
  EXPECT_EQ(plan.create[0].name, "web-left");
  EXPECT_EQ(plan.create[0].action_id, "old");
  EXPECT_EQ(plan.create[1].name, "") << "a name whose VM has existed is never used again";
}

TEST(PlanScale, S1_the_pool_does_not_grow_while_a_broken_vm_stays) {
  World world = IdlePoolOf({"a"});
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  world.With(Vm("b"));
  const auto plan = PlanScale(world.Snapshot(), 3, world.Inputs());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("VM b is broken"));
}

TEST(PlanScale, broken_vms_that_are_removed_do_not_stop_growth) {
  World world = IdlePoolOf({"a"});
  world.With(Vm("b"));
  const ScalePlan plan = PlanTo(world, 3);
  EXPECT_EQ(plan.create.size(), 2U);
}

TEST(PlanScale, C15_a_node_that_came_up_in_the_wrong_pool_stops_creation_and_names_both) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").Class("wrong"));
  const auto plan = PlanScale(world.Snapshot(), 3, world.Inputs());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string text(plan.status().message());
  EXPECT_THAT(text, HasSubstr("node_class=wrong"));
  EXPECT_THAT(text, HasSubstr("expected node_class=web"));
}

TEST(PlanScale, C15_a_vm_of_other_identifiers_stops_no_creation_and_may_be_a_victim) {
  World world;
  world.With(Vm("a").Joined().NodeClass("old")).With(Node("a").Class("old")).Idle("a");
  ASSERT_TRUE(PlanScale(world.Snapshot(), 2, world.Inputs()).ok());
  EXPECT_THAT(VictimsTo(world, 0), ElementsAre("a"));
}

// Joined VMs in zones, by name; with equal load, the younger one goes first.
World ZonedPool(std::initializer_list<std::pair<std::string, std::string>> vms) {
  World world;
  std::uint64_t index = 200;
  for (const auto& [name, zone] : vms) {
    world.With(Vm(name).Joined().Zone(zone)).With(Node(name).Index(index++)).Idle(name);
  }
  world.Policy().zones = {"z1", "z2", "z3"};
  return world;
}

std::vector<std::string> ZonesOf(const ScalePlan& plan) {
  std::vector<std::string> zones;
  for (const PlannedCreation& creation : plan.create) zones.push_back(creation.zone);
  return zones;
}

TEST(Zones, new_vms_go_where_the_fewest_are_and_else_in_the_policys_order) {
  World world = ZonedPool({{"a", "z1"}, {"b", "z1"}, {"c", "z2"}, {"d", "elsewhere"}});
  const ScalePlan plan = PlanTo(world, 9);
  EXPECT_THAT(ZonesOf(plan), ElementsAre("z3", "z2", "z3", "z1", "z2"));
  EXPECT_THAT(Describe(plan), HasSubstr("create 5 (1 in zone z1, 2 in zone z2, 2 in zone z3)"));
}

TEST(Zones, vms_that_are_removal_cancelled_count) {
  World world = ZonedPool({{"a", "z2"}});
  world.With(Vm("b").Joined().Zone("z1").Marked()).With(Node("b").Draining("b"));
  const ScalePlan plan = PlanTo(world, 3);
  ASSERT_THAT(plan.cancel_removals, ElementsAre("b"));
  EXPECT_THAT(ZonesOf(plan), ElementsAre("z3"));
}

TEST(Zones, one_where_vms_do_not_start_blocks_no_other) {
  World world = ZonedPool({{"a", "z1"}, {"b", "z2"}});
  PlanInputs inputs = world.Inputs();
  inputs.failing_zones = {"z3"};
  EXPECT_THAT(ZonesOf(*PlanScale(world.Snapshot(), 4, inputs)), ElementsAre("z1", "z2"));
  inputs.failing_zones = {"z1", "z2", "z3"};
  EXPECT_THAT(ZonesOf(*PlanScale(world.Snapshot(), 4, inputs)), ElementsAre("z3", "z1"));
}

TEST(Zones, are_not_assigned_if_they_are_not_split) {
  World world = ZonedPool({{"a", "z1"}});
  world.Policy().evenly_split_zones = false;
  EXPECT_THAT(ZonesOf(PlanTo(world, 2)), ElementsAre(""));
}

TEST(Zones, C8_the_next_victim_is_from_the_fullest_zone) {
  World world = ZonedPool({{"a", "z1"}, {"b", "z1"}, {"c", "z1"}, {"d", "z2"}, {"e", "z3"}});
  EXPECT_THAT(VictimsTo(world, 3), ElementsAre("c", "b"));
  // Now all are even, and the strategy's order decides.
  EXPECT_THAT(VictimsTo(world, 2), ElementsAre("c", "b", "e"));
  world.Policy().evenly_split_zones = false;
  EXPECT_THAT(VictimsTo(world, 3), ElementsAre("e", "d"));
}

TEST(Zones, C8_balance_comes_after_vms_that_go_first_and_counts_them) {
  World world = ZonedPool({{"a", "z1"}, {"b", "z1"}, {"c", "z2"}, {"d", "z2"}});
  world.With(Vm("e").Joined().Zone("z1").DeleteFirst()).With(Node("e").Index(300)).Idle("e");
  world.With(Vm("f").Joined().Zone("z1").Protected()).With(Node("f").Index(301)).Idle("f");
  EXPECT_THAT(VictimsTo(world, 3), ElementsAre("e", "b", "d"));
}

TEST(Zones, C8_balance_does_not_choose_a_vm_that_came_back_or_was_refused_before_others) {
  World world = ZonedPool({{"a", "z1"}, {"b", "z1"}, {"c", "z1"}, {"d", "z2"}});
  PlanInputs refused = world.Inputs();
  refused.refusals = {{"b", 1}, {"c", 1}};
  EXPECT_THAT(NamesIn(PlanScale(world.Snapshot(), 2, refused)->remove), ElementsAre("a", "d"));
  for (const std::size_t vm : {1U, 2U}) {
    world.Raw().vms[vm].vm.Change().removal_undone = {kNow - std::chrono::minutes(59), "why"};
  }
  EXPECT_THAT(VictimsTo(world, 2), ElementsAre("a", "d"));
}

TEST(ChooseVictims, C8_delete_first_then_stopped_or_lost_then_not_joined_then_the_strategy) {
  World world = IdlePoolOf({"busy", "idle"});
  world.Running("busy", 500);
  world.With(Vm("young").Age(std::chrono::minutes(1)));
  world.With(Vm("lost").Joined());
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.With(Vm("chosen").Joined().DeleteFirst()).With(Node("chosen")).Running("chosen", 900);
  EXPECT_THAT(VictimsTo(world, 0), ElementsAre("chosen", "off", "lost", "young", "idle", "busy"));
}

TEST(ChooseVictims, C8_a_vm_that_was_just_made_is_not_stopped_but_has_not_joined) {
  World world;
  world.With(Vm("new").Age(std::chrono::seconds(1)).Stopped());
  world.With(Vm("lost").Joined());
  const ScalePlan plan = PlanTo(world, 0);
  EXPECT_THAT(NamesIn(plan.remove), ElementsAre("lost", "new"));
  EXPECT_EQ(plan.remove[1].reason, "has not joined yet");
}

TEST(ChooseVictims, ties_go_to_the_younger_node_then_to_the_name) {
  World world = IdlePoolOf({"a", "b", "c"});
  EXPECT_THAT(VictimsTo(world, 1), ElementsAre("c", "b"));
}

TEST(ChooseVictims, C8_ties_of_vms_that_no_strategy_ranks_go_to_the_younger_node_then_to_the_name) {
  World world = IdlePoolOf({"idle"});
  world.With(Vm("off-a").Joined().Stopped()).With(Node("off-a").Down().Index(301));
  world.With(Vm("off-b").Joined().Stopped()).With(Node("off-b").Down().Index(302));
  world.With(Vm("off-d").Joined().Stopped()).With(Node("off-d").Down().Index(300));
  world.With(Vm("off-c").Joined().Stopped()).With(Node("off-c").Down().Index(300));
  EXPECT_THAT(VictimsTo(world, 1), ElementsAre("off-b", "off-a", "off-c", "off-d"));
}

TEST(ChooseVictims, C7_protected_vms_protected_nodes_and_the_own_node_are_never_chosen) {
  World world;
  world.With(Vm("vm").Joined().Protected()).With(Node("vm"));
  world.With(Vm("meta").Joined()).With(Node("meta").Meta("harvester_protect", "true"));
  world.With(Vm("own").Joined()).With(Node("own"));
  world.Raw().own_node_id = "node-own";
  const auto plan = PlanScale(world.Snapshot(), 0, {});
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string text(plan.status().message());
  EXPECT_THAT(text, HasSubstr("vm: protected by its annotation"));
  EXPECT_THAT(text, HasSubstr("meta: protected by its node's meta"));
  EXPECT_THAT(text, HasSubstr("own: the autoscaler itself runs on its node"));
}

TEST(ChooseVictims, C7_protection_ends_at_its_time) {
  World world;
  world.With(Vm("ended").Joined().ProtectedUntil(kNow)).With(Node("ended"));
  world.With(Vm("holds").Joined().ProtectedUntil(kNow + std::chrono::seconds(1)));
  world.With(Node("holds"));
  EXPECT_THAT(VictimsTo(world, 1), ElementsAre("ended"));
}

TEST(ChooseVictims, C7_a_vm_whose_volume_another_vm_uses_is_never_chosen) {
  World world;
  world.With(Vm("a").Joined().Claim("shared")).With(Node("a")).Idle("a");
  world.With(Vm("copy").Unmanaged().Claim("shared"));
  EXPECT_FALSE(PlanScale(world.Snapshot(), 0, world.Inputs()).ok());
}

TEST(ChooseVictims, a_vm_with_two_ready_nodes_is_passed_over_and_the_others_are_chosen) {
  World world = IdlePoolOf({"b"});
  world.With(Vm("a").Joined()).With(Node("a", "n1")).With(Node("a", "n2"));
  const ScalePlan plan = PlanTo(world, 0);
  EXPECT_THAT(NamesIn(plan.remove), ElementsAre("b"));
  EXPECT_EQ(plan.missing_victims, 1);
  ASSERT_EQ(plan.passed_over.size(), 1U);
  EXPECT_EQ(plan.passed_over[0].vm, "a");
}

TEST(ChooseVictims, C6_a_vm_that_a_node_nobody_could_read_may_be_is_passed_over) {
  World world = IdlePoolOf({"b"});
  world.With(Vm("a"));
  world.Raw().vms.back().unread_node = "node n1 (metal), which could be it: HTTP 500";
  const ScalePlan plan = PlanTo(world, 0);
  EXPECT_THAT(NamesIn(plan.remove), ElementsAre("b"));
  ASSERT_EQ(plan.passed_over.size(), 1U);
  EXPECT_EQ(plan.passed_over[0].reason, "node n1 (metal), which could be it: HTTP 500");
}

TEST(ChooseVictims, C8_vms_rolled_back_within_the_hour_are_chosen_last) {
  World world = IdlePoolOf({"a", "b"});
  world.With(Vm("back").Joined()).With(Node("back").DrainCancelled("back").Eligible().Index(999));
  world.Idle("back");
  EXPECT_EQ(VictimsTo(world, 0).back(), "back");
}

TEST(ChooseVictims, C8_after_an_hour_a_drain_that_was_undone_decides_nothing_any_more) {
  const std::vector<std::pair<Vm, Node>> undone = {
      {Vm("back").Joined(), Node("back").DrainCancelled("back")},
      {Vm("back").Joined().RolledBack("act@2026-03-01T11:59:00Z"), Node("back").Drained("back")}};
  for (auto [vm, node] : undone) {
    World world = IdlePoolOf({"a"});
    world.With(vm).With(node.Eligible().Index(999)).Idle("back");
    const auto victims = [&] { return VictimsTo(world, 0); };
    world.Nodes()[1].last_drain->updated_at = kNow - std::chrono::minutes(59);
    EXPECT_THAT(victims(), ElementsAre("a", "back"));
    for (const base::Duration ago : {std::chrono::minutes(60), std::chrono::minutes(-300)}) {
      world.Nodes()[1].last_drain->updated_at = kNow - ago;
      EXPECT_THAT(victims(), ElementsAre("back", "a"));
    }
  }
}

TEST(ChooseVictims, empty_offers_only_empty_nodes) {
  World world = IdlePoolOf({"a", "b"});
  world.Policy().selector = policy::SelectorStrategy::kEmpty;
  world.Running("b");
  const ScalePlan plan = PlanTo(world, 0);
  EXPECT_THAT(NamesIn(plan.remove), ElementsAre("a"));
  EXPECT_EQ(plan.missing_victims, 1);
}

// Why VM a of the world is passed over when one of two VMs goes.
std::string WhyNotA(World world) {
  world.With(Vm("b").Joined()).With(Node("b"));
  const auto plan = PlanScale(world.Snapshot(), 1, world.Inputs());
  EXPECT_TRUE(plan.ok());
  EXPECT_EQ(plan->remove.at(0).vm, "b");
  return plan->passed_over.empty() ? "" : plan->passed_over[0].reason;
}

TEST(ChooseVictims, C8_a_paused_guest_whose_node_is_down_or_gone_is_passed_over) {
  const std::string why = "its guest is paused or migrates, so that its node cannot be drained";
  EXPECT_EQ(WhyNotA(World().With(Vm("a").Joined().Paused()).With(Node("a").Down())), why);
  EXPECT_EQ(WhyNotA(World().With(Vm("a").Joined().Paused())), why);
}

TEST(ChooseVictims, C8_what_would_be_rolled_back_anyway_is_passed_over) {
  EXPECT_EQ(
      WhyNotA(
          World().With(Vm("a").Joined()).With(Node("a").Status(nomad::NodeStatus::kDisconnected))),
      "its node is disconnected");
  EXPECT_THAT(WhyNotA(World().With(Vm("a").Joined()).With(Node("metal", "n9"))),
              testing::HasSubstr("node metal (n9) could be it"));
  EXPECT_THAT(WhyNotA(World()
                          .With(Vm("a").Joined("node-x"))
                          .With(Node("renamed", "node-x").Status(nomad::NodeStatus::kDown))),
              testing::HasSubstr("its node node-x has another name now, renamed"));
  EXPECT_THAT(
      WhyNotA(World().With(Vm("a").Joined("node-x").Stopped()).With(Node("clone", "node-x"))),
      testing::HasSubstr("its node node-x has another name now, clone"))
      << "a clone took over its client";
}

TEST(ChooseVictims, C8_a_stopped_vm_is_a_victim_whatever_younger_node_there_is) {
  World world;
  world.With(Vm("a").Joined().Stopped()).With(Node("metal", "n9"));
  world.With(Vm("b").Joined()).With(Node("b"));
  const ScalePlan plan = PlanTo(world, 1);
  EXPECT_EQ(plan.remove.at(0).vm, "a");
  world.Raw().vms[0].vm.Change().removal_undone = {kNow - std::chrono::minutes(59), "why"};
  EXPECT_EQ(PlanScale(world.Snapshot(), 1, world.Inputs())->remove.at(0).vm, "b")
      << "its removal was rolled back within the last hour";
  world.Raw().vms[0].vm.Change().removal_undone = {kNow + std::chrono::hours(24), "why"};
  EXPECT_EQ(PlanScale(world.Snapshot(), 1, world.Inputs())->remove.at(0).vm, "a")
      << "a clock that was wrong says so";
}

TEST(ChooseVictims, an_operators_drain_is_passed_over) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a").DrainedByOperator());
  EXPECT_FALSE(PlanScale(world.Snapshot(), 0, world.Inputs()).ok());
}

TEST(MassLoss, C15_more_than_a_fifth_and_more_than_one_is_alarming) {
  World five = IdlePoolOf({"a", "b", "c", "d"});
  five.With(Vm("x").Joined());
  EXPECT_FALSE(five.Snapshot().mass_loss().alarming) << "one is never alarming";
  five.With(Vm("y").Joined());
  EXPECT_TRUE(five.Snapshot().mass_loss().alarming);
  five.Raw().vms.back().unread_node = "node n9 (metal), which could be it: HTTP 500";
  EXPECT_FALSE(five.Snapshot().mass_loss().alarming) << "y may have its node";
}

TEST(MassLoss, C15_nodes_that_are_down_or_disconnected_while_their_guests_run_count) {
  for (const nomad::NodeStatus status :
       {nomad::NodeStatus::kDown, nomad::NodeStatus::kDisconnected}) {
    World world = IdlePoolOf({"a", "b"});
    for (const char* name : {"x", "y"}) {
      world.With(Vm(name).Joined()).With(Node(name).Status(status));
    }
    EXPECT_TRUE(world.Snapshot().mass_loss().alarming);
  }
}

TEST(MassLoss, C15_ten_of_which_two_are_lost_are_exactly_a_fifth_and_not_alarming) {
  World ten = IdlePoolOf({"a", "b", "c", "d", "e", "f", "g", "h"});
  ten.With(Vm("x").Joined()).With(Vm("y").Joined());
  EXPECT_FALSE(ten.Snapshot().mass_loss().alarming);
}

TEST(MassLoss, C15_there_is_none_while_nomad_cannot_be_read) {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Joined());
  EXPECT_TRUE(world.Snapshot().mass_loss().alarming);
  const MassLoss loss = world.NomadUnreadable().Snapshot().mass_loss();
  EXPECT_FALSE(loss.alarming);
  EXPECT_EQ(loss.lost, 0);
  EXPECT_EQ(loss.of, 0);
}

TEST(Describe, C13_names_victims_and_reasons) {
  World world = IdlePoolOf({"a", "b"});
  const ScalePlan plan = PlanTo(world, 1);
  EXPECT_THAT(Describe(plan), HasSubstr("scale in 2 → 1: remove b (node node-b): least_busy"));
}

}  // namespace
}  // namespace nomad_harvester::scaling
