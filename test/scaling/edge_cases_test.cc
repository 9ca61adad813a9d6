// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nomad_harvester/scaling/plan.h"

#include "answers.h"
#include "rules/retries.h"
#include "support/seeded_random.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

TEST(EdgeCases, L2_a_failure_that_follows_conflicts_is_logged_when_it_begins) {
  const auto random = support::MakeSeededRandom(1);
  Retries retries(*random);
  const base::MonoTime now{std::chrono::hours(5)};
  const Retries::Key key("delete", "uid-a");
  for (int i = 0; i < 8; ++i) retries.Record(key, Conflict(), now);
  EXPECT_TRUE(retries.Record(key, Failure(), now));
}

TEST(EdgeCases, L2_conflicts_alone_end_without_a_line) {
  const auto random = support::MakeSeededRandom(1);
  Retries retries(*random);
  const base::MonoTime now{std::chrono::hours(5)};
  const Retries::Key key("delete", "uid-a");
  retries.Record(key, Conflict(), now);
  EXPECT_FALSE(retries.Record(key, Done(), now));
}

TEST(EdgeCases, C6_its_own_node_under_another_name_could_still_be_it_at_another_place_of_the_list) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a"));
  const PoolSnapshot snapshot = world.Snapshot();
  Overlay a(snapshot, *snapshot.seen->FindVm("a"));
  a.SetNodes(ListOf({Node("x").Down().Get(), Node("a").Get()}));
  a.SetNode("node-a", Node("localhost", "node-a").Get());
  ASSERT_NE(a.Candidate(), nullptr);
  EXPECT_EQ(a.Candidate()->id, "node-a");
}

TEST(EdgeCases, C6_another_vms_node_is_no_candidate_at_the_index_of_this_vms_old_one) {
  World world;
  world.With(Vm("a").Joined()).With(Vm("b").Joined()).With(Node("a")).With(Node("b"));
  const PoolSnapshot snapshot = world.Snapshot();
  Overlay a(snapshot, *snapshot.seen->FindVm("a"));
  a.SetNodes(ListOf({Node("b").Get()}));
  a.SetNode("node-b", Node("localhost", "node-b").Get());
  EXPECT_EQ(a.Candidate(), nullptr);
}

TEST(EdgeCases, C14_a_vm_whose_node_cannot_be_enabled_is_no_victim) {
  World world;
  world.With(Vm("a").Joined()).With(Node("a")).Idle("a");
  world.With(Vm("m").Joined()).With(Node("m").Drained("m").Index(900)).Idle("m");
  PlanInputs inputs = world.Inputs();
  inputs.left_out = {{"m", "its roll-back does not succeed"}};
  const auto plan = PlanScale(world.Snapshot(), 1, inputs);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->remove.size(), 1U);
  EXPECT_EQ(plan->remove[0].vm, "a");
}

}  // namespace
}  // namespace nomad_harvester::scaling
