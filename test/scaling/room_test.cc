// SPDX-License-Identifier: Apache-2.0
//
// How many new VMs the hosts have room for, in which zones (rule C2).

#include "rules/room.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/zones.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// A host in the zone with that memory, of which nothing is used. It has SplitPool's VM of the zone.
harvester::HostRoom HostOf(const std::string& name, const std::string& zone,
                           const std::string& memory) {
  harvester::HostRoom room;
  room.host.name = name;
  room.host.zone = zone;
  room.host.allocatable["memory"] = memory;
  room.vms[{"default", "web"}] = {"web-" + zone};
  return room;
}
// A VM that needs 4 GiB.
harvester::VmNeed Need() {
  harvester::VmNeed need;
  need.amounts[harvester::kMemory] = need.least[harvester::kMemory] = 4 * kGi;
  return need;
}
// A pool that is split over zones a, b and c, of which it has a VM in each but c.
World SplitPool() {
  World world;
  world.Policy().zones = {"a", "b", "c"};
  world.Policy().evenly_split_zones = true;
  world.With(Vm("web-a").Joined().Zone("a")).With(Node("web-a"));
  world.With(Vm("web-b").Joined().Zone("b")).With(Node("web-b"));
  return world;
}
ScalePlan PlanOf(const PoolSnapshot& snapshot, std::size_t count, const PlanInputs& inputs = {}) {
  ScalePlan plan;
  plan.create.resize(count);
  AssignZones(snapshot, inputs, &plan);
  return plan;
}
std::vector<std::string> ZonesOf(const ScalePlan& plan) {
  std::vector<std::string> zones;
  zones.reserve(plan.create.size());
  for (const PlannedCreation& creation : plan.create) zones.push_back(creation.zone);
  return zones;
}

TEST(ForecastPlan, C2_vms_that_fit_where_they_are_planned_stay_there) {
  const PoolSnapshot snapshot = SplitPool().Snapshot();
  ScalePlan plan = PlanOf(snapshot, 3);
  ASSERT_THAT(ZonesOf(plan), ElementsAre("c", "a", "b"));
  const std::vector<harvester::HostRoom> hosts = {
      HostOf("h1", "a", "4Gi"), HostOf("h2", "b", "4Gi"), HostOf("h3", "c", "4Gi")};
  const auto forecast = ForecastPlan(hosts, Need(), snapshot, {}, &plan);
  EXPECT_EQ(FitsIn(forecast), 3U);
  EXPECT_EQ(forecast.why, "");
  EXPECT_THAT(ZonesOf(plan), ElementsAre("c", "a", "b"));
}

TEST(ForecastPlan, C2_vms_go_to_zones_that_have_room_and_as_evenly_as_that_allows) {
  const PoolSnapshot snapshot = SplitPool().Snapshot();
  ScalePlan plan = PlanOf(snapshot, 5);
  const std::vector<harvester::HostRoom> hosts = {HostOf("h1", "a", "9Gi"),
                                                  HostOf("h2", "b", "20Gi")};
  const auto forecast = ForecastPlan(hosts, Need(), snapshot, {}, &plan);
  EXPECT_EQ(FitsIn(forecast), 5U);
  EXPECT_THAT(ZonesOf(plan), ElementsAre("a", "b", "a", "b", "b"));
}

TEST(ForecastPlan, C2_what_no_zone_has_room_for_does_not_fit_and_the_reason_is_told) {
  const PoolSnapshot snapshot = SplitPool().Snapshot();
  ScalePlan plan = PlanOf(snapshot, 3);
  const std::vector<harvester::HostRoom> hosts = {HostOf("h1", "a", "5Gi"),
                                                  HostOf("h2", "b", "5Gi")};
  const auto forecast = ForecastPlan(hosts, Need(), snapshot, {}, &plan);
  EXPECT_EQ(FitsIn(forecast), 2U);
  EXPECT_FALSE(forecast.never);
  EXPECT_THAT(forecast.why, HasSubstr("1 GiB of memory free"));
}

TEST(ForecastPlan, C2_only_what_no_host_of_any_zone_could_hold_never_fits) {
  const PoolSnapshot snapshot = SplitPool().Snapshot();
  ScalePlan plan = PlanOf(snapshot, 1);
  ASSERT_THAT(ZonesOf(plan), ElementsAre("c"));
  auto forecast = ForecastPlan({HostOf("h1", "a", "3Gi"), HostOf("h2", "b", "4Gi")}, Need(),
                               snapshot, {}, &plan);
  EXPECT_FALSE(forecast.never);
  EXPECT_EQ(FitsIn(forecast), 1U);
  EXPECT_THAT(ZonesOf(plan), ElementsAre("b"));
  forecast = ForecastPlan({HostOf("h1", "a", "3Gi")}, Need(), snapshot, {}, &plan);
  EXPECT_TRUE(forecast.never);
  EXPECT_THAT(NeverText(forecast),
              StartsWith("no host could hold a VM, even if it were empty: host h1 has 3 GiB"));
}

TEST(WaitingForHosts, C2_they_are_the_vms_that_are_to_run_and_have_no_host) {
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  world.With(Vm("web-new").Zone("new").Stopped().RunStrategy("RerunOnFailure"));
  world.With(Vm("web-restarts").Joined().Zone("restarts"));
  world.With(Vm("web-halted").RunStrategy("Halted"));
  world.With(Vm("web-stopped").Joined().Stopped());
  world.With(Vm("web-gone").Terminating());
  world.With(Vm("web-marked").Marked());
  world.With(Vm("web-copy").Unmanaged());
  const std::vector<harvester::HostRoom> hosts = {HostOf("h1", "a", "4Gi")};
  EXPECT_THAT(WaitingForHosts(hosts, world.Snapshot()), ElementsAre("new", "restarts"));
}

TEST(ForecastPlan, C2_a_place_is_kept_for_a_vm_that_was_just_made) {
  World world;
  world.With(Vm("web-a").Joined()).With(Node("web-a"));
  const std::vector<harvester::HostRoom> hosts = {HostOf("h1", "a", "9Gi")};
  const auto fits = [&] {
    const PoolSnapshot snapshot = world.Snapshot();
    ScalePlan plan = PlanOf(snapshot, 2);
    return FitsIn(ForecastPlan(hosts, Need(), snapshot, {}, &plan));
  };
  EXPECT_EQ(fits(), 2U);
  world.With(Vm("web-b"));
  EXPECT_EQ(fits(), 1U);
}

TEST(ForecastPlan, C2_a_zone_keeps_the_place_of_a_vm_that_was_just_made_in_it) {
  World world = SplitPool();
  world.With(Vm("web-new").Zone("c"));
  const PoolSnapshot snapshot = world.Snapshot();
  ScalePlan plan = PlanOf(snapshot, 2);
  const std::vector<harvester::HostRoom> hosts = {
      HostOf("h1", "a", "4Gi"), HostOf("h2", "b", "4Gi"), HostOf("h3", "c", "7Gi")};
  EXPECT_EQ(FitsIn(ForecastPlan(hosts, Need(), snapshot, {.failing_zones = {"a", "b"}}, &plan)),
            2U);
  EXPECT_THAT(ZonesOf(plan), ElementsAre("a", "b"));
}

TEST(AssignZones, C3_a_zone_in_which_vms_do_not_start_is_used_if_no_other_has_room) {
  const PoolSnapshot snapshot = SplitPool().Snapshot();
  PlanInputs inputs{.failing_zones = {"b"}};
  EXPECT_THAT(ZonesOf(PlanOf(snapshot, 3, inputs)), ElementsAre("c", "a", "c"));
  inputs.zone_room = {{"a", 0}, {"b", 2}, {"c", 1}};
  EXPECT_THAT(ZonesOf(PlanOf(snapshot, 3, inputs)), ElementsAre("c", "b", "b"));
  inputs.failing_zones = {"a", "b", "c"};
  inputs.zone_room.clear();
  EXPECT_THAT(ZonesOf(PlanOf(snapshot, 3, inputs)), ElementsAre("c", "a", "b"));
}

TEST(FindRoom, C2_counts_the_vms_that_fit_on_all_hosts_up_to_a_thousand) {
  struct Case {
    std::vector<harvester::HostRoom> hosts;
    std::int64_t vms;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{HostOf("h1", "", "7Gi")}, 1, "1 more VM: host h1 has 3 GiB of memory free"},
      {{HostOf("h1", "", "8Gi"), HostOf("h2", "", "44Gi")}, 13, "13 more VMs: hosts h1 and h2"},
      {{HostOf("h1", "", "1000Gi")}, 250, "250 more VMs: host h1"},
      {{HostOf("h1", "", "1Ti"), HostOf("h2", "", "1Pi")}, 1000, "at least 1000 more VMs"},
      {{HostOf("h1", "", "3Gi")}, 0, "no more VM: host h1 has 3 GiB of memory"}};
  for (const Case& c : cases) {
    const harvester::Room room = FindRoom(c.hosts, Need());
    EXPECT_EQ(room.vms, c.vms);
    EXPECT_THAT(Describe(room), StartsWith(c.text));
  }
}

}  // namespace
}  // namespace nomad_harvester::scaling
