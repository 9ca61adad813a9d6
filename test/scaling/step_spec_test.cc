// SPDX-License-Identifier: Apache-2.0
//
// What carrying out a step consists of: its category, and the reads before its write, in order.

#include "nomad_harvester/scaling/step_spec.h"

#include <set>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<StepKind> AllKinds() {
  std::vector<StepKind> kinds;
  for (int i = 0; i <= static_cast<int>(StepKind::kPurge); ++i) {
    kinds.push_back(static_cast<StepKind>(i));
  }
  return kinds;
}
const std::vector<StepKind> kKinds = AllKinds();

TEST(StepSpec, every_kind_has_its_own_row_and_name) {
  std::set<std::string_view> names;
  for (const StepKind kind : kKinds) {
    EXPECT_EQ(SpecOf(kind).kind, kind) << StepName(kind);
    names.insert(StepName(kind));
  }
  EXPECT_EQ(names.size(), kKinds.size());
}

TEST(StepSpec, C14_what_undoes_a_removal_is_a_repair_and_what_leads_to_a_deletion_a_removal) {
  const std::set<StepKind> repairs = {StepKind::kCancelDrain, StepKind::kEnable,
                                      StepKind::kRecordRolledBack, StepKind::kRollBack};
  const std::set<StepKind> removals = {StepKind::kMarkBroken,   StepKind::kMarkUnhealthy,
                                       StepKind::kMarkReplaced, StepKind::kStartDrain,
                                       StepKind::kDelete,       StepKind::kHalt};
  const std::set<StepKind> records = {StepKind::kRecordJoin, StepKind::kRecordReady,
                                      StepKind::kRecordCluster};
  const std::set<StepKind> upkeep = {StepKind::kRenewToken, StepKind::kPublishHost,
                                     StepKind::kUnpublishHost, StepKind::kKeepReplaced,
                                     StepKind::kStart};
  for (const StepKind kind : kKinds) {
    EXPECT_EQ(IsRepair(kind), repairs.contains(kind)) << StepName(kind);
    EXPECT_EQ(IsRemoval(kind), removals.contains(kind)) << StepName(kind);
    EXPECT_EQ(IsUpkeep(kind), upkeep.contains(kind)) << StepName(kind);
    EXPECT_EQ(IsAct(kind), repairs.contains(kind) || removals.contains(kind) ||
                               records.contains(kind) || upkeep.contains(kind))
        << StepName(kind);
  }
  EXPECT_EQ(SpecOf(StepKind::kPurge).category, StepCategory::kCleanUp) << "its VM is gone";
}

// Steps as the rules decide them, with the row and the node.

TEST(ReadsOf, C5_a_drained_node_its_allocations_and_then_the_vm_are_read_before_the_deletion) {
  const Step step =
      World().With(Vm("a").Joined().Marked()).With(Node("a").Drained("a")).Idle("a").StepOf("a");
  ASSERT_EQ(step.row, Row::kMarkedIdle);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNodes, Read::kNode, Read::kAllocations, Read::kVm));
}

TEST(ReadsOf, C5_a_down_node_the_vm_and_then_its_instance_are_read_before_the_deletion) {
  const Step step = World()
                        .With(Vm("a").Joined().Marked().InstanceRuns(false))
                        .With(Node("a").Down())
                        .StepOf("a");
  ASSERT_EQ(step.row, Row::kMarkedDown);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNodes, Read::kNode, Read::kVm, Read::kInstance));
}

TEST(ReadsOf, C5_the_deadline_rule_does_not_ask_for_allocations) {
  const Step step =
      World().With(Vm("a").Joined().Marked().Late()).With(Node("a").Draining("a")).StepOf("a");
  ASSERT_EQ(step.row, Row::kMarkedLateForced);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNodes, Read::kNode, Read::kVm));
}

TEST(ReadsOf, C15_without_a_node_the_whole_list_and_the_marks_node_prove_that_there_is_none) {
  const Step gone = World().With(Vm("a").Joined().Marked().NodeGone()).StepOf("a");
  ASSERT_EQ(gone.row, Row::kMarkedGone);
  EXPECT_THAT(ReadsOf(gone),
              ElementsAre(Read::kNodes, Read::kMarksNode, Read::kCluster, Read::kVm));
  const Step never_joined = World().With(Vm("a").Marked()).StepOf("a");
  ASSERT_EQ(never_joined.row, Row::kMarkedNeverJoined);
  EXPECT_THAT(ReadsOf(never_joined),
              ElementsAre(Read::kNodes, Read::kMarksNode, Read::kCluster, Read::kVm));
}

World Unhealthy() {
  World world;
  world.Policy().replace_unhealthy_after = std::chrono::minutes(5);
  world.With(Vm("a").Joined().Stopped().InstanceRuns(false));
  world.Raw().vms.back().unhealthy_for = std::chrono::minutes(6);
  world.Raw().vms.back().awaited_for = kReplacementWait;
  return world;
}

TEST(ReadsOf, an_unhealthy_vm_is_read_with_its_node_before_its_mark) {
  const Step step = Unhealthy().With(Node("a").Down()).StepOf("a");
  ASSERT_EQ(step.kind, StepKind::kMarkUnhealthy);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNode, Read::kVm));
}

TEST(ReadsOf, C17_the_allocations_of_a_disconnected_node_are_read_before_its_vm_is_marked) {
  const Step step =
      Unhealthy().With(Node("a").Status(nomad::NodeStatus::kDisconnected)).StepOf("a");
  ASSERT_EQ(step.kind, StepKind::kMarkUnhealthy);
  EXPECT_THAT(ReadsOf(step), ElementsAre(Read::kNode, Read::kAllocations, Read::kVm));
}

TEST(ReadsOf, C15_an_unhealthy_vm_without_a_node_needs_the_whole_list_before_its_mark) {
  const Step step = Unhealthy().StepOf("a");
  ASSERT_EQ(step.kind, StepKind::kMarkUnhealthy);
  EXPECT_THAT(ReadsOf(step),
              ElementsAre(Read::kNodes, Read::kMarksNode, Read::kCluster, Read::kVm));
}

TEST(ReadsOf, C15_the_clusters_keys_are_read_before_a_vm_without_a_node_is_marked_as_broken) {
  EXPECT_THAT(ReadsOf({.kind = StepKind::kMarkBroken}), ElementsAre(Read::kCluster));
  EXPECT_THAT(ReadsOf({.kind = StepKind::kMarkBroken, .node_id = "node-a"}), IsEmpty());
}

TEST(ReadsOf, C6_the_node_is_read_in_full_before_it_is_drained_enabled_or_its_drain_is_cancelled) {
  for (const StepKind kind : {StepKind::kStartDrain, StepKind::kEnable, StepKind::kCancelDrain}) {
    EXPECT_THAT(ReadsOf({.kind = kind, .node_id = "node-a"}), ElementsAre(Read::kNode))
        << StepName(kind);
  }
}

TEST(ReadsOf, a_purge_first_makes_sure_that_the_vm_is_gone) {
  EXPECT_THAT(ReadsOf({.kind = StepKind::kPurge, .row = Row::kGonePurge, .node_id = "node-a"}),
              ElementsAre(Read::kVmGone, Read::kNode, Read::kCluster));
}

TEST(ReadsOf, writes_with_a_precondition_of_their_own_and_steps_without_a_write_read_nothing) {
  for (const StepKind kind :
       {StepKind::kNothing, StepKind::kWait, StepKind::kReport, StepKind::kRecordRolledBack,
        StepKind::kRecordJoin, StepKind::kRollBack}) {
    EXPECT_THAT(ReadsOf({.kind = kind, .node_id = "node-a"}), IsEmpty()) << StepName(kind);
    EXPECT_EQ(SpecOf(kind).recheck, Recheck::kNone) << StepName(kind);
  }
}

TEST(StepSpec, L1_only_what_is_published_is_carried_out_aside) {
  for (const StepKind kind : kKinds) {
    EXPECT_EQ(IsDeferred(kind), kind == StepKind::kPublishHost || kind == StepKind::kUnpublishHost)
        << StepName(kind);
    if (!IsDeferred(kind)) continue;
    EXPECT_THAT(ReadsOf({.kind = kind, .node_id = "node-a"}), IsEmpty());
  }
}

TEST(ReadsOf, what_was_read_again_is_always_checked_again) {
  for (const StepKind kind : kKinds) {
    const bool reads =
        !ReadsOf({.kind = kind}).empty() || !ReadsOf({.kind = kind, .node_id = "node-a"}).empty();
    EXPECT_EQ(reads, SpecOf(kind).recheck != Recheck::kNone) << StepName(kind);
  }
  EXPECT_EQ(SpecOf(StepKind::kDelete).recheck, Recheck::kSameRow)
      << "C5: the node is still what its row asks";
}

}  // namespace
}  // namespace nomad_harvester::scaling
