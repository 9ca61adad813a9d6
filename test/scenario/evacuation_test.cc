// SPDX-License-Identifier: Apache-2.0
//
// on_host_maintenance: VMs leave a Harvester host that is cordoned (docs/behaviour.md, R7).

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness.h"
#include "support/hosts.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using support::Host;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A pool whose policy lets VMs leave cordoned hosts.
class Evacuation : public testing::Test {
 protected:
  Evacuation() : h_(support::TwoHosts()) { h_.policy["on_host_maintenance"] = "evacuate"; }

  void MakePool(int count) {
    ASSERT_TRUE(h_.Scale(count).ok());
    h_.Tick(seconds(30));
    before_ = h_.VmNames();
  }
  std::vector<std::string> On(const std::string& host) const {
    std::vector<std::string> vms;
    for (const std::string& vm : h_.VmNames()) {
      if (h_.cluster.HostOfVm(vm) == host) vms.push_back(vm);
    }
    return vms;
  }
  void Pin(const std::string& vm) {
    ASSERT_TRUE(h_.cluster.PutObject(support::Pinned(h_.cluster.Vm(vm))));
  }
  void PinAll() {
    for (const std::string& vm : h_.VmNames()) Pin(vm);
  }

  Harness h_;
  std::vector<std::string> before_;
};

TEST_F(Evacuation, R7_vms_that_cannot_migrate_leave_a_cordoned_host_one_at_a_time) {
  MakePool(4);
  PinAll();
  ASSERT_EQ(On("rack1-a").size(), 2U);
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  for (int i = 0; i < 90 && !On("rack1-a").empty(); ++i) {
    h_.Tick(seconds(10));
    EXPECT_EQ(h_.Status()->count, 4) << h_.Transcript();
    EXPECT_LE(h_.VmNames().size(), 5U) << "one at a time";
  }
  EXPECT_TRUE(On("rack1-a").empty()) << h_.Transcript();
  EXPECT_THAT(h_.log->Text(), HasSubstr("host rack1-a is cordoned"));
  h_.WaitUntilReady();
  h_.CheckAtRest(4);
}

TEST_F(Evacuation, R7_a_vm_that_can_migrate_is_left_to_harvester) {
  MakePool(4);
  const std::string pinned = On("rack1-a").at(0);
  Pin(pinned);
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  h_.Tick(minutes(20));
  EXPECT_EQ(On("rack1-a").size(), 1U) << h_.Transcript();
  EXPECT_THAT(On("rack1-a"), Not(Contains(pinned)));
}

// VMs that tolerate the cordon.
TEST_F(Evacuation, R7_a_vm_that_comes_to_the_same_host_again_is_not_replaced_again) {
  // No key of a policy gives VMs a toleration.
  h_.UseTemplate();
  h_.PutTemplate("worker-1", "4Gi",
                 {{{"key", "node.kubernetes.io/unschedulable"}, {"operator", "Exists"}}});
  ASSERT_TRUE(h_.cluster.DeleteObject(Host("rack2-a", false)));
  MakePool(2);
  PinAll();
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  for (int i = 0; i < 240; ++i) {
    h_.Tick(seconds(30));
    for (const std::string& vm : h_.VmNames()) {
      if (!support::IsPinned(h_.cluster.Vm(vm))) Pin(vm);
    }
  }
  EXPECT_LE(h_.cluster.RequestCount(System::kHarvester, "create", "virtualmachines"), 3 + 2 * 2)
      << h_.Transcript();
}

TEST_F(Evacuation, R7_a_list_of_instances_that_is_old_moves_no_vm) {
  MakePool(2);
  PinAll();
  h_.Tick(minutes(2));
  h_.cluster.Forbid("list", "virtualmachineinstances");
  h_.Tick(minutes(3));
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  h_.Tick(minutes(20));
  EXPECT_EQ(h_.VmNames(), before_) << h_.Transcript();
}

TEST_F(Evacuation, R7_a_host_that_was_cordoned_for_a_moment_is_not_left) {
  MakePool(2);
  PinAll();
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  h_.cluster.ResetCounters();
  for (int i = 0; i < 61 && h_.cluster.RequestCount(System::kHarvester, "list", "nodes") == 0;
       ++i) {
    h_.Tick(seconds(1));
  }
  h_.Tick(seconds(20));
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", false)));
  h_.Tick(minutes(20));
  EXPECT_EQ(h_.VmNames(), before_) << h_.Transcript();
}

TEST_F(Evacuation, R7_report_removes_nothing_and_reads_no_host) {
  h_.policy["on_host_maintenance"] = "report";
  MakePool(2);
  PinAll();
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack1-a", true)));
  h_.cluster.ResetCounters();
  h_.Tick(minutes(20));
  EXPECT_EQ(h_.VmNames(), before_) << h_.Transcript();
  EXPECT_EQ(h_.cluster.RequestCount(System::kHarvester, "list", "nodes"), 0);
}

TEST_F(Evacuation, R7_hosts_are_listed_once_a_minute) {
  MakePool(2);
  h_.Tick(minutes(2));
  h_.cluster.ResetCounters();
  for (int i = 0; i < 120; ++i) {
    h_.clock.Advance(seconds(5));
    ASSERT_TRUE(h_.Status().ok());
  }
  EXPECT_LE(h_.cluster.RequestCount(System::kHarvester, "list", "nodes"), 12);
  EXPECT_GE(h_.cluster.RequestCount(System::kHarvester, "list", "nodes"), 9);
}

// The new VM has no host to go to, and the old one stays.
TEST_F(Evacuation, R5_without_room_elsewhere_it_waits_and_goes_on_within_two_minutes_of_room) {
  MakePool(2);
  PinAll();
  for (const char* host : {"rack1-a", "rack2-a"}) {
    ASSERT_TRUE(h_.cluster.PutObject(Host(host, true)));
  }
  h_.Tick(minutes(60));
  for (const std::string& vm : before_) EXPECT_THAT(h_.VmNames(), Contains(vm)) << h_.Transcript();
  EXPECT_THAT(h_.log->Text(), HasSubstr("there has been no room for a new VM since"));
  EXPECT_THAT(h_.log->Text(), Not(HasSubstr("it has stopped")));
  ASSERT_TRUE(h_.cluster.PutObject(Host("rack2-a", false)));
  h_.Tick(minutes(10));
  EXPECT_TRUE(On("rack1-a").empty()) << h_.Transcript();
  EXPECT_EQ(h_.VmNames().size(), 2U);
}

}  // namespace
}  // namespace nomad_harvester::scenario
