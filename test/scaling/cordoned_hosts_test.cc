// SPDX-License-Identifier: Apache-2.0
//
// Where VMs on cordoned Harvester hosts come in the order of victims (C8).

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

PlanInputs Cordoned(const World& world, std::set<std::string> hosts) {
  PlanInputs inputs = world.Inputs();
  inputs.cordoned_hosts = std::move(hosts);
  return inputs;
}

World& Add(World& world, const std::string& name, const std::string& host,
           const std::string& zone = "") {
  return world.With(Vm(name).Joined().RunsOn(host).Zone(zone)).With(Node(name)).Idle(name);
}

TEST(CordonedHosts, C8_their_vms_go_after_delete_first_stopped_and_not_joined_ones) {
  World world;
  Add(world, "idle", "host-1");
  Add(world, "busy", "host-2").Running("busy", 900);
  world.With(Vm("young").Age(std::chrono::minutes(1)));
  world.With(Vm("off").Joined().Stopped()).With(Node("off").Down());
  world.With(Vm("chosen").Joined().DeleteFirst().RunsOn("host-1")).With(Node("chosen"));
  const auto plan = PlanScale(world.Snapshot(), 0, Cordoned(world, {"host-2"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("chosen", "off", "young", "busy", "idle"));
  EXPECT_THAT(Describe(*plan), HasSubstr("its host host-2 is cordoned, least_busy"));
}

TEST(CordonedHosts, C8_among_their_vms_the_strategy_decides) {
  World world;
  Add(world, "a", "host-1").Running("a", 900);
  Add(world, "b", "host-1").Running("b", 100);
  Add(world, "c", "host-2");
  const auto plan = PlanScale(world.Snapshot(), 1, Cordoned(world, {"host-1"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("b", "a"));
}

TEST(CordonedHosts, C8_the_strategy_empty_does_not_offer_a_busy_one) {
  World world;
  world.Policy().selector = policy::SelectorStrategy::kEmpty;
  Add(world, "busy", "host-1").Running("busy");
  Add(world, "idle", "host-2");
  const auto plan = PlanScale(world.Snapshot(), 0, Cordoned(world, {"host-1"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("idle"));
}

World TwoZones() {
  World world;
  world.Policy().zones = {"x", "y"};
  Add(world, "x1", "host-1", "x");
  Add(world, "x2", "host-1", "x");
  Add(world, "x3", "host-2", "x");
  Add(world, "y1", "host-3", "y");
  Add(world, "y2", "host-3", "y");
  Add(world, "y3", "host-3", "y");
  return world;
}

TEST(CordonedHosts, C8_zones_stay_balanced) {
  World world = TwoZones();
  const auto plan = PlanScale(world.Snapshot(), 2, Cordoned(world, {"host-1"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<std::string> victims = NamesIn(plan->remove);
  ASSERT_EQ(victims.size(), 4U);
  EXPECT_EQ(std::count_if(victims.begin(), victims.end(),
                          [](const std::string& vm) { return vm.starts_with('x'); }),
            2);
  EXPECT_THAT(victims, ::testing::IsSupersetOf({"x1", "x2"})) << "of zone x the cordoned ones";
  EXPECT_TRUE(victims.front().starts_with('x')) << "of zones with as many VMs the cordoned one";
}

TEST(CordonedHosts, C8_vms_that_came_back_lately_go_last_all_the_same) {
  World world;
  Add(world, "a", "host-2");
  world.With(Vm("back").Joined().RunsOn("host-1"));
  world.With(Node("back").DrainCancelled("back").Eligible()).Idle("back");
  const auto plan = PlanScale(world.Snapshot(), 0, Cordoned(world, {"host-1"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(NamesIn(plan->remove), ElementsAre("a", "back"));
}

TEST(CordonedHosts, C8_without_any_or_without_the_right_to_know_nothing_changes) {
  World world = TwoZones();
  const auto known = PlanScale(world.Snapshot(), 2, Cordoned(world, {}));
  ASSERT_TRUE(known.ok());
  World elsewhere = TwoZones();
  for (VmView& view : elsewhere.Raw().vms) view.host.clear();
  const auto unknown = PlanScale(elsewhere.Snapshot(), 2, Cordoned(elsewhere, {"host-1", ""}));
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(NamesIn(known->remove), NamesIn(unknown->remove));
  EXPECT_THAT(Describe(*unknown), Not(HasSubstr("cordoned")));
}

TEST(CordonedHosts, C8_a_zone_does_not_lose_more_vms_than_another_because_its_hosts_are_cordoned) {
  World world = TwoZones();
  const auto plan = PlanScale(world.Snapshot(), 4, Cordoned(world, {"host-1"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<std::string> victims = NamesIn(plan->remove);
  ASSERT_EQ(victims.size(), 2U);
  EXPECT_TRUE(victims[0].starts_with('x'));
  EXPECT_TRUE(victims[1].starts_with('y'));
}

}  // namespace
}  // namespace nomad_harvester::scaling
