// SPDX-License-Identifier: Apache-2.0
//
// The rows that publish on which Harvester host a VM runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/status_report.h"

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::HasSubstr;

const harvester::PublishedHost kOnA{.node_id = "node-a", .host = "rack1-a"};
const harvester::PublishedHost kOnAInRack1{.node_id = "node-a", .host = "rack1-a", .zone = "rack1"};

World Publishing() {
  World world;
  world.Policy().publish_host = true;
  return world;
}
Step StepOf(const Vm& vm, const Node& node = Node("a")) {
  return Publishing().With(vm).With(node).StepOf("a");
}
bool Publishes(const Vm& vm) { return StepOf(vm).row == Row::kUnmarkedPublish; }

TEST(PublishHost, a_joined_vm_of_which_nothing_was_published_is_published) {
  const Step step = StepOf(Vm("a").Joined().RunsOn("rack1-a"));
  EXPECT_EQ(step.row, Row::kUnmarkedPublish);
  EXPECT_EQ(step.kind, StepKind::kPublishHost);
  EXPECT_EQ(step.node_id, "node-a");
  EXPECT_THAT(step.reason, HasSubstr("rack1-a"));
}

TEST(PublishHost, what_was_published_is_not_published_again) {
  EXPECT_FALSE(Publishes(Vm("a").Joined().RunsOn("rack1-a").Published(kOnA)));
  EXPECT_FALSE(Publishes(Vm("a").Joined().RunsOn("rack1-a", "rack1").Published(kOnAInRack1)));
}

TEST(PublishHost, another_host_or_another_node_is_published_again) {
  EXPECT_TRUE(Publishes(Vm("a").Joined().RunsOn("rack1-b").Published(kOnA)));
  EXPECT_TRUE(Publishes(
      Vm("a").Joined().RunsOn("rack1-a").Published({.node_id = "old", .host = "rack1-a"})));
}

TEST(PublishHost, a_zone_that_is_known_is_compared_and_an_unknown_one_is_not) {
  EXPECT_TRUE(Publishes(Vm("a").Joined().RunsOn("rack1-a", "rack1").Published(kOnA)));
  EXPECT_TRUE(Publishes(Vm("a").Joined().RunsOn("rack1-a", "rack2").Published(kOnAInRack1)));
  EXPECT_TRUE(Publishes(Vm("a").Joined().RunsOn("rack1-a", "").Published(kOnAInRack1)))
      << "the host lost its label";
  EXPECT_FALSE(Publishes(Vm("a").Joined().RunsOn("rack1-a").Published(kOnAInRack1)));
  EXPECT_FALSE(Publishes(Vm("a").Joined().RunsOn("rack1-a", "").Published(kOnA)));
}

TEST(PublishHost, waits_for_the_join_and_for_a_node_that_is_ready) {
  EXPECT_EQ(StepOf(Vm("a").RunsOn("rack1-a")).row, Row::kUnmarkedJoins);
  EXPECT_EQ(StepOf(Vm("a").Joined().RunsOn("rack1-a"), Node("a").Down()).row, Row::kUnmarkedOther);
  EXPECT_EQ(
      StepOf(Vm("a").Joined().RunsOn("rack1-a"), Node("a").Status(nomad::NodeStatus::kDisconnected))
          .row,
      Row::kUnmarkedOther);
  EXPECT_EQ(Publishing().With(Vm("a").Joined().RunsOn("rack1-a")).StepOf("a").row,
            Row::kUnmarkedOther)
      << "no node";
}

TEST(PublishHost, nothing_is_concluded_from_a_host_that_is_unknown) {
  EXPECT_FALSE(Publishes(Vm("a").Joined()));
  EXPECT_FALSE(Publishes(Vm("a").Joined().Published(kOnA)));
}

TEST(PublishHost, a_marked_vm_and_one_whose_drain_is_to_be_undone_are_left_alone) {
  EXPECT_EQ(StepOf(Vm("a").Joined().RunsOn("rack1-a").Marked()).row, Row::kMarkedStartDrain);
  EXPECT_EQ(StepOf(Vm("a").Joined().RunsOn("rack1-a"), Node("a").Draining("a")).row,
            Row::kUnmarkedDraining);
}

TEST(PublishHost, C13_a_dry_run_publishes_and_unsets_nothing) {
  World on = Publishing();
  on.Policy().dry_run = true;
  EXPECT_EQ(on.With(Vm("a").Joined().RunsOn("rack1-a")).With(Node("a")).StepOf("a").row,
            Row::kUnmarkedOther);
  World off;
  off.Policy().dry_run = true;
  EXPECT_EQ(off.With(Vm("a").Joined().Published(kOnA)).With(Node("a")).StepOf("a").row,
            Row::kUnmarkedOther);
}

TEST(PublishHost, without_the_key_what_was_published_is_unset_readable_or_not) {
  const Step step = World().With(Vm("a").Joined().Published(kOnA)).With(Node("a")).StepOf("a");
  EXPECT_EQ(step.row, Row::kUnmarkedUnpublish);
  EXPECT_EQ(step.kind, StepKind::kUnpublishHost);
  EXPECT_EQ(step.node_id, "node-a");
  World edited;
  edited.With(Vm("a").Joined()).With(Node("a"));
  edited.Raw().vms.back().vm.Change().has_published_host = true;
  EXPECT_EQ(edited.StepOf("a").row, Row::kUnmarkedUnpublish);
  EXPECT_EQ(World().With(Vm("a").Joined().RunsOn("rack1-a")).With(Node("a")).StepOf("a").row,
            Row::kUnmarkedOther);
  EXPECT_EQ(World()
                .With(Vm("a").Joined().Published(kOnA))
                .With(Node("a"))
                .WithoutPolicy()
                .StepOf("a")
                .row,
            Row::kUnmarkedOther)
      << "which keys the policy has is unknown";
}

TEST(PublishHost, S5_what_is_to_be_published_wakes_the_background) {
  EXPECT_TRUE(NeedsResumption(
      Decisions(Publishing().With(Vm("a").Joined().RunsOn("rack1-a")).With(Node("a")).Snapshot())));
  EXPECT_FALSE(
      NeedsResumption(Decisions(Publishing()
                                    .With(Vm("a").Joined().RunsOn("rack1-a").Published(kOnA))
                                    .With(Node("a"))
                                    .Snapshot())));
}

}  // namespace
}  // namespace nomad_harvester::scaling
