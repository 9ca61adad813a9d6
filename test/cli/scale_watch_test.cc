// SPDX-License-Identifier: Apache-2.0
#include "scale_watch.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/replacement.h"

#include "scaling/world.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Direction;
using scaling::Node;
using scaling::Vm;
using scaling::World;
using std::chrono::minutes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string Open(World world) { return OpenText(WatchedPoolOf(world.Snapshot())); }

TEST(WatchedPool, a_pool_whose_vms_are_ready_has_nothing_open) {
  EXPECT_EQ(Open(World()), "");
  EXPECT_EQ(Open(World().With(Vm("a").Joined()).With(Node("a"))), "");
}

TEST(WatchedPool, a_vm_is_open_until_its_node_is_ready) {
  EXPECT_THAT(Open(World().With(Vm("a").Age(minutes(1)))), StartsWith("a (pending"));
  EXPECT_THAT(
      Open(World().With(Vm("a").Age(minutes(1)).Registered()).With(Node("a").Initializing())),
      StartsWith("a (registered"));
  EXPECT_THAT(Open(World().With(Vm("a").Age(minutes(1))).With(Node("a"))), HasSubstr("a ("))
      << "that it is ready has to be recorded";
  EXPECT_EQ(Open(World().With(Vm("a").Age(minutes(1)).NoTimeout())), "")
      << "without a deadline nobody waits";
}

TEST(WatchedPool, a_vm_that_is_not_ready_in_time_is_open_unless_it_is_kept) {
  World world;
  world.With(Vm("a"));
  EXPECT_THAT(Open(world), StartsWith("a (broken"));
  world.Policy().on_join_timeout = config::OnJoinTimeout::kKeep;
  EXPECT_EQ(Open(world), "");
}

TEST(WatchedPool, a_removal_is_open_until_nothing_is_left) {
  EXPECT_THAT(Open(World().With(Vm("a").Joined().Marked()).With(Node("a").Draining("a"))),
              AllOf(StartsWith("a (draining: node a"), HasSubstr("drains")));
  EXPECT_THAT(Open(World().With(Vm("a").Joined().Marked().Terminating())),
              StartsWith("a (deleting"));
  World gone;
  gone.Pool().action->names = {"a"};
  EXPECT_EQ(Open(gone), "a (gone: what is left of it is removed)");
  EXPECT_THAT(
      Open(World().With(
          Node("a").DrainedBy(nomad::DrainStatus::kComplete, "a", "act", false, true).Down())),
      AllOf(StartsWith("a (gone: its node"), HasSubstr("is to be purged")));
}

TEST(WatchedPool, a_drain_that_has_no_mark_is_open_until_it_is_undone) {
  EXPECT_THAT(Open(World().With(Vm("a").Joined()).With(Node("a").Draining("a"))),
              StartsWith("a (ready: "));
}

TEST(WatchedPool, C10_the_action_is_open_until_it_is_closed_on_the_lease) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a"));
  world.Pool().action->names = {"a", "b"};
  world.Pool().action->create = {{"b", "act"}};
  EXPECT_THAT(Open(world), StartsWith("a (ready")) << "b waits for the next growth";
  world.Pool().action.reset();
  EXPECT_EQ(Open(world), "");
}

TEST(WatchedPool, R2_replacements_are_no_work_of_a_scale) {
  World world;
  world.With(Vm("old").Joined().Marked().ForReplacement()).With(Node("old").Draining("old"));
  world.With(Vm("older").Joined()).With(Node("older"));
  world.With(Vm("new").Age(minutes(1)).Replaces("older", {scaling::ReplaceKind::kDrifted}));
  EXPECT_EQ(Open(world), "");
}

TEST(WatchedPool, C15_what_belongs_to_another_region_is_no_work_of_this_one) {
  EXPECT_EQ(Open(World().Region("eu").With(Vm("a").Region("us").Joined().Marked())), "");
  EXPECT_EQ(Open(World().With(Vm("copy").Unmanaged().Marked()).NotNamed("copy")), "");
}

TEST(WatchedPool, a_change_is_one_line_for_each_vm) {
  const WatchedPool before = {{"a", {.state = "pending", .why = "boots", .open = true}},
                              {"b", {.state = "ready"}},
                              {"c", {.state = "deleting", .open = true}},
                              {"d", {.state = "draining", .why = "1 left", .open = true}},
                              {"e", {.state = "gone", .open = true}}};
  const WatchedPool now = {{"a", {.state = "registered", .why = "starts", .open = true}},
                           {"b", {.state = "ready"}},
                           {"d", {.state = "draining", .why = "none left", .open = true}},
                           {"f", {.state = "ready"}}};
  EXPECT_THAT(ChangesBetween(before, now),
              ElementsAre("a: registered: starts", "f: ready", "c: gone"));
  EXPECT_THAT(ChangesBetween(now, now), IsEmpty());
}

TEST(WatchLimit, is_what_the_policy_grants_and_ten_minutes) {
  config::PoolPolicy policy;
  policy.join_timeout = minutes(20);
  policy.drain_deadline = minutes(30);
  policy.drain_grace = minutes(2);
  policy.hold_timeout = minutes(3);
  EXPECT_EQ(WatchLimit(policy, Direction::kOut), minutes(30));
  EXPECT_EQ(WatchLimit(policy, Direction::kIn), minutes(45));
  EXPECT_EQ(WatchLimit(policy, Direction::kNone), minutes(45));
  policy.drain_deadline = minutes(-1);  // immediately
  EXPECT_EQ(WatchLimit(policy, Direction::kIn), minutes(15));
  policy.drain_deadline = minutes(0);  // none
  EXPECT_EQ(WatchLimit(policy, Direction::kIn), std::nullopt);
}

}  // namespace
}  // namespace nomad_harvester::cli
