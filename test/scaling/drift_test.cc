// SPDX-License-Identifier: Apache-2.0
//
// Where VMs that have drifted come in the order of victims (C8), and when a scale-in reads by what
// they are known.

#include "nomad_harvester/scaling/drift.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drivers/scale_call.h"
#include "pool_fixture.h"
#include "world.h"

namespace nomad_harvester::scaling {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;

constexpr char kOldParts[] = R"({"cpu":"1","image":"1","tags":"1"})";
constexpr char kNewParts[] = R"({"cpu":"1","image":"2","tags":"2"})";

Vm Old(const std::string& name) { return Vm(name).Joined().MadeOf("v2:old", kOldParts); }
Vm New(const std::string& name) { return Vm(name).Joined().MadeOf("v2:new", kNewParts); }

// Of a scale-in to nothing.
std::vector<std::string> Order(World& world,
                               CurrentTemplate current = {.hash = "v2:new", .parts = kNewParts}) {
  PlanInputs inputs = world.Inputs();
  inputs.cordoned_hosts = {"cordoned"};
  inputs.current_template = std::move(current);
  const auto plan = PlanScale(world.Snapshot(), 0, inputs);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> victims;
  for (const PlannedRemoval& removal : plan->remove) {
    victims.push_back(removal.vm + ": " + removal.reason);
  }
  return victims;
}

// `old` is busier than `new`, which is on a cordoned host.
World MixedPool() {
  World world;
  world.With(New("new").RunsOn("cordoned")).With(Node("new")).Idle("new");
  world.With(Old("old")).With(Node("old")).Running("old", 900);
  world.With(Vm("young").Age(minutes(1)));
  return world;
}

TEST(Drift, C8_drifted_vms_go_after_those_that_are_not_ready_and_before_cordoned_ones) {
  World world = MixedPool();
  EXPECT_THAT(Order(world),
              ElementsAre("young: has not joined yet",
                          HasSubstr("old: drifted (image, tags), least_busy"), HasSubstr("new: ")));
}

TEST(Drift, C8_it_decides_nothing_while_nobody_knows_what_new_vms_are_made_of) {
  World world = MixedPool();
  EXPECT_THAT(Order(world, {}),
              ElementsAre(HasSubstr("young"), HasSubstr("new"), HasSubstr("old")));
}

TEST(Drift, C8_parts_that_the_policy_ignores_are_none) {
  World world = MixedPool();
  world.Policy().drift_ignore = {"tags"};
  EXPECT_THAT(Order(world)[1], HasSubstr("old: drifted (image), "));
  world.Policy().drift_ignore = {"image", "tags"};
  EXPECT_THAT(Order(world), ElementsAre(HasSubstr("young"), HasSubstr("new"), HasSubstr("old")));
}

TEST(Drift, C8_a_vm_whose_parts_are_not_known_has_drifted_whatever_is_ignored) {
  const VmView view = Vm("old").MadeOf("v2:old", "").View();
  EXPECT_THAT(DriftOf(view.vm, {.hash = "v2:new", .parts = kNewParts}, {"image", "tags"}),
              Optional(IsEmpty()));
}

TEST(Drift, C8_it_comes_before_even_zones) {
  World world;
  world.Policy().zones = {"x", "y"};
  for (const char* name : {"x1", "x2", "x3"}) {
    world.With(New(name).Zone("x")).With(Node(name)).Idle(name);
  }
  world.With(Old("y1").Zone("y")).With(Node("y1")).Idle("y1");
  EXPECT_THAT(Order(world)[0], HasSubstr("y1: drifted"));
}

TEST(Drift, C8_the_strategy_empty_does_not_offer_a_busy_one) {
  World world = MixedPool();
  world.Policy().selector = policy::SelectorStrategy::kEmpty;
  EXPECT_THAT(Order(world), Not(testing::Contains(HasSubstr("old"))));
}

class DriftedPool : public PoolFixture {
 protected:
  void AddOlder(const std::string& vm) {
    const std::int64_t cpus = std::exchange(policy_.cpu_cores, 4);
    AddVm(vm);
    policy_.cpu_cores = cpus;
  }
  absl::Status Scale(std::int64_t count) {
    if (hold_ == nullptr) HoldLease();
    Forget();
    ScaleCall call(Deps(), policy_, {.count = count});
    return call.Run(context());
  }
};

TEST_F(DriftedPool, C8_a_scale_in_reads_what_new_vms_are_made_of_and_takes_the_old_one) {
  AddOlder("web-old");
  AddVm("web-new");
  ASSERT_THAT(Scale(1), support::IsOk());
  EXPECT_TRUE(IsMarked("web-old"));
  EXPECT_FALSE(IsMarked("web-new"));
}

TEST_F(DriftedPool, L7_nothing_is_read_for_it_of_a_pool_whose_vms_are_all_alike) {
  AddVm("web-a");
  AddVm("web-b");
  ASSERT_THAT(Scale(1), support::IsOk());
  EXPECT_EQ(Count("get virtualmachineimages"), 0U);
}

TEST_F(DriftedPool, C8_nothing_is_read_for_it_if_the_policy_says_off) {
  policy_.replace_drifted = config::ReplaceDrifted::kOff;
  AddOlder("web-old");
  AddVm("web-new");
  ASSERT_THAT(Scale(1), support::IsOk());
  EXPECT_TRUE(IsMarked("web-new")) << "newest_create_index";
  EXPECT_EQ(Count("get virtualmachineimages"), 0U);
}

TEST_F(DriftedPool, C8_without_an_answer_the_scale_in_goes_on_by_the_strategy) {
  AddOlder("web-old");
  AddVm("web-new");
  Always("list virtualmachineimages", simulator::Fault::Delay(std::chrono::hours(1)));
  const base::MonoTime began = clock_.Now();
  ASSERT_THAT(Scale(1), support::IsOk());
  EXPECT_LT(clock_.Now() - began, minutes(1));
  EXPECT_TRUE(IsMarked("web-new")) << "newest_create_index";
  EXPECT_EQ(Logged("WARN Could not read the VM template; drift is unknown"), 1U);
}

}  // namespace
}  // namespace nomad_harvester::scaling
