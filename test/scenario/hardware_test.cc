// SPDX-License-Identifier: Apache-2.0
//
// Pools whose VMs have more than a root disk and user data.

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"

#include "harness.h"
#include "support/hosts.h"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(DataDisks, C10_come_with_each_vm_and_are_gone_with_it) {
  Harness h;
  h.policy["data_disks"] = "100Gi,20Gi@harvester-longhorn";
  h.Reach(3);
  EXPECT_EQ(h.Claims().size(), 9U);
  h.Reach(1);
  EXPECT_EQ(h.Claims().size(), 3U);
  h.CheckAtRest(1);
}

TEST(DataDisks, L4_that_harvester_leaves_are_removed_after_their_vm) {
  Harness h;
  h.policy["data_disks"] = "100Gi,20Gi";
  h.Reach(1);
  h.cluster.KeepClaims(true);
  ASSERT_TRUE(h.Scale(0).ok()) << h.Transcript();
  EXPECT_TRUE(h.Claims().empty());
  h.CheckAtRest(0);
}

TEST(DataDisks, C10_of_a_vm_that_a_killed_process_removed_are_found_by_the_next) {
  Harness h;
  h.policy["data_disks"] = "100Gi,20Gi";
  h.Reach(2);
  h.cluster.KeepClaims(true);
  h.ScaleAndDieAt(0, "delete", "persistentvolumeclaims", false);
  h.Restart();
  h.Converge(0);
  EXPECT_TRUE(h.Claims().empty());
  h.CheckAtRest(0);
}

TEST(DataDisks, C2_of_a_class_that_does_not_exist_refuse_growth_without_a_trace) {
  Harness h;
  h.policy["data_disks"] = "100Gi@fast";
  const absl::Status scaled = h.Scale(2);
  EXPECT_EQ(scaled.code(), absl::StatusCode::kNotFound) << scaled;
  EXPECT_THAT(scaled.ToString(), HasSubstr("data_disks: storage class fast"));
  EXPECT_TRUE(h.Secrets().empty());
  h.CheckAtRest(0);
}

TEST(Template, C10_gives_vms_that_come_and_go_without_a_trace) {
  Harness h;
  h.UseTemplate();
  EXPECT_THAT(h.Scale(2).ToString(), HasSubstr("the namespace has no templates"));
  h.CheckAtRest(0);
  h.PutTemplate("worker-a", "4Gi");
  h.Reach(2);
  EXPECT_EQ(h.Claims().size(), 4U);
  h.PutTemplate("worker-b", "8Gi");
  h.Reach(3);
  std::map<std::string, int> by_memory;
  for (const json& vm : h.Vms()) {
    const json& limits = vm["spec"]["template"]["spec"]["domain"]["resources"]["limits"];
    ++by_memory[limits["memory"].get<std::string>()];
  }
  EXPECT_THAT(by_memory, ElementsAre(Pair("4Gi", 2), Pair("8Gi", 1)));
  ASSERT_TRUE(h.Scale(0).ok()) << h.Transcript();
  EXPECT_TRUE(h.Claims().empty());
  h.CheckAtRest(0);
}

TEST(NetworkData, is_in_the_secret_that_the_vm_refers_to) {
  Harness h;
  h.policy["network_data"] = "version: 2 # {{vm_name}}";
  h.Reach(1);
  const std::vector<json> secrets = h.Secrets();
  ASSERT_EQ(secrets.size(), 1U);
  EXPECT_TRUE(secrets[0]["data"].contains("networkdata"));
  h.CheckAtRest(1);
}

std::map<std::string, int> VmsByZone(const Harness& h) {
  std::map<std::string, int> zones;
  for (const json& vm : h.Vms()) {
    ++zones[vm["metadata"]["annotations"].value(harvester::kZoneAnnotation, "")];
  }
  return zones;
}

TEST(Zones, C8_stay_even_when_vms_come_and_go) {
  Harness h;
  for (const char* zone : {"a", "b", "c"}) h.cluster.PutObject(support::HostIn(zone));
  h.policy["availability_zones"] = "a,b,c";
  h.policy["user_data"] = "#cloud-config\n# {{zone}}\n";
  h.Reach(7);
  EXPECT_THAT(VmsByZone(h), ElementsAre(Pair("a", 3), Pair("b", 2), Pair("c", 2)));
  h.Reach(3);
  EXPECT_THAT(VmsByZone(h), ElementsAre(Pair("a", 1), Pair("b", 1), Pair("c", 1)));
  h.Reach(5);
  EXPECT_THAT(VmsByZone(h), ElementsAre(Pair("a", 2), Pair("b", 2), Pair("c", 1)));
  h.CheckAtRest(5);
}

TEST(Zones, one_without_room_costs_one_vm_and_then_no_more_while_others_have_room) {
  Harness h;
  for (const char* zone : {"a", "b"}) h.cluster.PutObject(support::HostIn(zone));
  h.policy["availability_zones"] = "a,b";
  h.cluster.FailStart(1, "ErrorUnschedulable", "no host has room");
  EXPECT_THAT(h.Scale(1).ToString(), HasSubstr("no host has room"));
  h.clock.Advance(minutes(2));
  h.Reach(1);
  h.Reach(3);
  EXPECT_THAT(VmsByZone(h), ElementsAre(Pair("b", 3))) << "the first one was to run in a";
  h.clock.Advance(hours(3));
  ASSERT_TRUE(h.Scale(4).ok()) << h.Transcript();
  EXPECT_THAT(VmsByZone(h), ElementsAre(Pair("a", 1), Pair("b", 3)));
}

}  // namespace
}  // namespace nomad_harvester::scenario
