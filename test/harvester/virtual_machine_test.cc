// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/virtual_machine.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

VirtualMachine WithAnnotation(const char* key, const std::string& value) {
  json object = SampleVmObject();
  object["metadata"]["annotations"][key] = value;
  return ParseVirtualMachine(object);
}

TEST(ParseVirtualMachine, reads_what_we_wrote_and_what_the_server_added) {
  const VirtualMachine vm = ParseVirtualMachine(SampleVmObject());
  EXPECT_EQ(vm.ns, "nomad");
  EXPECT_EQ(vm.name, "batch-7f3k2");
  EXPECT_EQ(vm.uid, "uid-1");
  EXPECT_EQ(vm.resource_version, "1001");
  EXPECT_EQ(vm.created_at, At("2026-11-21T02:00:00Z"));
  EXPECT_FALSE(IsTerminating(vm));
  EXPECT_EQ(vm.pool, "batch");
  EXPECT_EQ(vm.firmware_uuid, SampleIdentity().firmware_uuid);
  EXPECT_EQ(vm.action_id, "a-1");
  ASSERT_TRUE(vm.join_timeout.has_value());
  EXPECT_FALSE(vm.join_timeout->none);
  EXPECT_EQ(vm.join_timeout->limit, std::chrono::minutes(15));
  EXPECT_EQ(vm.nodes, SampleNodes());
  EXPECT_FALSE(HasJoined(vm));
  EXPECT_FALSE(vm.has_mark);
  EXPECT_EQ(vm.run_strategy, "RerunOnFailure");
  EXPECT_EQ(vm.printable_status, "Running");
  EXPECT_TRUE(vm.instance_exists);
  EXPECT_TRUE(vm.ready);
  EXPECT_THAT(vm.claim_names, ElementsAre("batch-7f3k2-disk-0-x2b4c"));
  EXPECT_THAT(vm.conditions, IsEmpty()) << "none reports a fault";
  EXPECT_TRUE(IsMember(vm));
}

TEST(ParseVirtualMachine, keeps_the_conditions_that_report_a_fault) {
  json object = SampleVmObject();
  json& conditions = object["status"]["conditions"];
  conditions[0]["status"] = "False";
  for (const char* type : {"LiveMigratable", "Paused", "Failure", "PodScheduled"}) {
    for (const char* status : {"True", "False", "Unknown"}) {
      conditions.push_back({{"type", type}, {"status", status}});
    }
  }
  std::vector<std::string> kept;
  const VirtualMachine vm = ParseVirtualMachine(object);
  for (const Condition& c : vm.conditions) kept.push_back(c.type + "=" + c.status);
  EXPECT_THAT(kept, ElementsAre("Ready=False", "LiveMigratable=False", "Paused=True",
                                "Failure=True", "PodScheduled=False"));
  EXPECT_EQ(vm.conditions[0].last_transition, At("2026-11-21T02:01:00Z"));
}

TEST(ParseVirtualMachine, reads_nothing_from_an_empty_object) {
  const VirtualMachine vm = ParseVirtualMachine(json::object());
  EXPECT_EQ(vm.name, "");
  EXPECT_EQ(vm.created_at, base::WallTime{});
  EXPECT_EQ(vm.termination_grace, std::chrono::seconds(120));
  EXPECT_FALSE(vm.join_timeout.has_value());
  EXPECT_FALSE(vm.nodes.has_value());
  EXPECT_FALSE(IsMember(vm));
}

TEST(ParseVirtualMachine, lowers_the_firmware_uuid) {
  json object = SampleVmObject();
  object["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"] = "ABCDEF-12";
  EXPECT_EQ(ParseVirtualMachine(object).firmware_uuid, "abcdef-12");
}

TEST(ParseVirtualMachine, is_terminating_with_a_deletionTimestamp) {
  json object = SampleVmObject();
  object["metadata"]["deletionTimestamp"] = "2026-11-21T02:30:00Z";
  const VirtualMachine vm = ParseVirtualMachine(object);
  EXPECT_TRUE(IsTerminating(vm));
  EXPECT_EQ(vm.deleted_at, At("2026-11-21T02:30:00Z"));
}

TEST(ParseVirtualMachine, reads_the_join_timeout) {
  EXPECT_TRUE(WithAnnotation(kJoinTimeoutAnnotation, "none").join_timeout->none);
  EXPECT_EQ(WithAnnotation(kJoinTimeoutAnnotation, "90s").join_timeout->limit,
            std::chrono::seconds(90));
  for (const char* text : {"", "15", "0s", "-1m", "None", "soon"}) {
    EXPECT_FALSE(WithAnnotation(kJoinTimeoutAnnotation, text).join_timeout.has_value()) << text;
  }
}

TEST(ParseVirtualMachine, reads_the_join) {
  json object = SampleVmObject();
  object["metadata"]["annotations"][kNodeIdAnnotation] = "node-1";
  object["metadata"]["annotations"][kJoinedAtAnnotation] = "2026-11-21T02:05:00Z";
  const VirtualMachine vm = ParseVirtualMachine(object);
  EXPECT_TRUE(HasJoined(vm));
  EXPECT_EQ(vm.joined_at, At("2026-11-21T02:05:00Z"));
  EXPECT_EQ(vm.joined_node_id, "node-1");
}

TEST(ParseVirtualMachine, C17_a_vm_was_ready_unless_the_plugin_wrote_that_it_was_not_yet) {
  json object = SampleVmObject();
  json& annotations = object["metadata"]["annotations"];
  annotations[kReadyAtAnnotation] = kNotReadyYet;
  EXPECT_FALSE(WasReady(ParseVirtualMachine(object))) << "it has not joined";
  annotations[kJoinedAtAnnotation] = "2026-11-21T02:05:00Z";
  EXPECT_TRUE(ParseVirtualMachine(object).awaits_ready);
  EXPECT_FALSE(WasReady(ParseVirtualMachine(object)));
  annotations[kReadyAtAnnotation] = "2026-11-21T02:06:00Z";
  EXPECT_TRUE(WasReady(ParseVirtualMachine(object)));
  EXPECT_EQ(ParseVirtualMachine(object).ready_at, At("2026-11-21T02:06:00Z"));
  annotations[kReadyAtAnnotation] = "an operator's";
  EXPECT_TRUE(WasReady(ParseVirtualMachine(object)));
  annotations.erase(kReadyAtAnnotation);
  EXPECT_TRUE(WasReady(ParseVirtualMachine(object))) << "an operator has removed it";
}

TEST(ParseVirtualMachine, C15_a_join_whose_time_was_edited_is_still_a_join) {
  const VirtualMachine vm = WithAnnotation(kJoinedAtAnnotation, "monday");
  EXPECT_TRUE(HasJoined(vm));
  EXPECT_EQ(vm.joined_at, vm.created_at);
}

TEST(ParseVirtualMachine, distinguishes_a_mark_from_an_unreadable_one) {
  const VirtualMachine marked = WithAnnotation(kScaleInAnnotation, ToAnnotation(SampleMark()));
  EXPECT_TRUE(marked.has_mark);
  EXPECT_EQ(marked.mark, SampleMark());
  for (const char* text : {"", "true", "{}"}) {
    const VirtualMachine edited = WithAnnotation(kScaleInAnnotation, text);
    EXPECT_TRUE(edited.has_mark) << text;
    EXPECT_FALSE(edited.mark.has_value()) << text;
  }
}

TEST(ParseVirtualMachine, C7_protects_in_doubt_and_never_deletes_first_in_doubt) {
  struct Case {
    const char* text;
    bool protects;
    bool delete_first;
  };
  const base::WallTime now = At("2026-11-21T02:00:00Z");
  for (const Case& c :
       {Case{"true", true, true}, Case{"1", true, true}, Case{"false", false, false},
        Case{"0", false, false}, Case{"yes", true, false}, Case{"", true, false}}) {
    EXPECT_EQ(WithAnnotation(kProtectAnnotation, c.text).protect.HoldsAt(now), c.protects)
        << c.text;
    EXPECT_EQ(WithAnnotation(kDeleteFirstAnnotation, c.text).delete_first, c.delete_first)
        << c.text;
  }
  EXPECT_FALSE(ParseVirtualMachine(SampleVmObject()).protect.HoldsAt(now));
  EXPECT_FALSE(ParseVirtualMachine(SampleVmObject()).delete_first);
}

TEST(ParseVirtualMachine, C7_protects_until_a_time) {
  const VirtualMachine vm = WithAnnotation(kProtectAnnotation, "2026-11-21T02:00:00Z");
  EXPECT_TRUE(vm.protect.HoldsAt(At("2026-11-21T01:59:59Z")));
  EXPECT_FALSE(vm.protect.HoldsAt(At("2026-11-21T02:00:00Z")));
}

TEST(ParseVirtualMachine, C8_reads_when_a_removal_was_undone_and_why) {
  const VirtualMachine vm =
      WithAnnotation(kRemovalUndoneAnnotation, "2026-11-21T02:03:04Z it was protected");
  EXPECT_EQ(vm.removal_undone, (CancelledRemoval{At("2026-11-21T02:03:04Z"), "it was protected"}));
  EXPECT_EQ(WithAnnotation(kRemovalUndoneAnnotation, "true").removal_undone, std::nullopt);
  EXPECT_EQ(ParseVirtualMachine(SampleVmObject()).removal_undone, std::nullopt);
}

TEST(ParseVirtualMachine, C18_is_held_by_each_annotation_whatever_it_says) {
  json object = SampleVmObject();
  EXPECT_THAT(ParseVirtualMachine(object).holds, testing::IsEmpty());
  object["metadata"]["annotations"]["nomad-harvester-autoscaler/hold-vpn"] = "true";
  object["metadata"]["annotations"]["nomad-harvester-autoscaler/hold-backup"] = "";
  EXPECT_THAT(ParseVirtualMachine(object).holds, testing::ElementsAre("backup", "vpn"));
}

TEST(ParseVirtualMachine, reads_the_termination_grace) {
  json object = SampleVmObject();
  json& grace = object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
  grace = 300;
  EXPECT_EQ(ParseVirtualMachine(object).termination_grace, std::chrono::seconds(300));
  grace = 0;
  EXPECT_EQ(ParseVirtualMachine(object).termination_grace, std::chrono::seconds(0));
  for (const json& value : {json(-5), json(9223372036854775807), json("300")}) {
    grace = value;
    EXPECT_EQ(ParseVirtualMachine(object).termination_grace, std::chrono::seconds(120)) << value;
  }
}

TEST(ParseVirtualMachine, C7_finds_the_claims_of_every_kind_of_volume) {
  json object = SampleVmObject();
  object["spec"]["template"]["spec"]["volumes"] = json::parse(R"([
    {"name": "a", "persistentVolumeClaim": {"claimName": "claim-a", "hotpluggable": true}},
    {"name": "b", "dataVolume": {"name": "claim-b"}},
    {"name": "c", "secret": {"secretName": "secret-c"}},
    {"name": "d", "cloudInitNoCloud": {"secretRef": {"name": "secret-d"}}},
    {"name": "e", "containerDisk": {"image": "x"}}, null, {"persistentVolumeClaim": {}}])");
  const VirtualMachine vm = ParseVirtualMachine(object);
  EXPECT_THAT(vm.claim_names, ElementsAre("claim-a", "claim-b"));
}

TEST(ParseInstance, reads_phase_host_and_addresses) {
  const VirtualMachineInstance instance = ParseInstance(json::parse(R"({
    "metadata": {"name": "batch-7f3k2"},
    "status": {"phase": "Running", "nodeName": "host-1", "interfaces": [
      {"name": "nic-0", "ipAddress": "10.0.0.5/24", "ipAddresses": ["10.0.0.5", "fe80::1"]},
      {"interfaceName": "docker0", "ipAddress": "172.17.0.1"}, {}]}})"));
  EXPECT_EQ(instance.name, "batch-7f3k2");
  EXPECT_EQ(instance.phase, "Running");
  EXPECT_EQ(instance.host, "host-1");
  EXPECT_THAT(instance.addresses, ElementsAre("10.0.0.5", "fe80::1", "172.17.0.1"));
}

TEST(ParseInstance, has_no_address_before_the_guest_reports_one) {
  for (const char* interfaces : {"null", "[]", "{}"}) {
    const VirtualMachineInstance instance = ParseInstance(json::parse(
        std::string(R"({"status": {"phase": "Scheduling", "interfaces": )") + interfaces + "}}"));
    EXPECT_EQ(instance.phase, "Scheduling");
    EXPECT_THAT(instance.addresses, IsEmpty());
  }
}

VirtualMachine WithClaims(std::vector<std::string> in_spec, std::vector<std::string> removed) {
  VirtualMachine vm;
  vm.name = "web-x";
  vm.claim_names = std::move(in_spec);
  vm.removed_claims = std::move(removed);
  return vm;
}

TEST(ClaimsThatGoWith, C4_are_those_that_spec_and_annotation_name) {
  const VirtualMachine vm = ParseVirtualMachine(SampleVmObject());
  EXPECT_THAT(vm.removed_claims, ElementsAre("batch-7f3k2-disk-0-x2b4c"));
  EXPECT_EQ(ClaimsThatGoWith(vm), vm.removed_claims);
  EXPECT_THAT(WithAnnotation(kRemovedClaimsAnnotation, " a, ,b ,").removed_claims,
              ElementsAre("a", "b"));
  EXPECT_THAT(ClaimsThatGoWith(WithClaims({"a", "data"}, {"a", "detached"})), ElementsAre("a"));
  EXPECT_THAT(ClaimsThatGoWith(WithClaims({"a"}, {})), IsEmpty()) << "somebody wants to keep them";
}

TEST(ClaimsThatGoWith, C4_are_also_those_that_were_restored_in_their_place) {
  const std::vector<std::string> made = {"web-x-disk-0-r4", "web-x-disk-1-r4"};
  EXPECT_THAT(ClaimsThatGoWith(WithClaims({"restore-b-5f-disk-0", "web-x-disk-1-r4"}, made)),
              ElementsAre("restore-b-5f-disk-0", "web-x-disk-1-r4"));
  EXPECT_THAT(ClaimsThatGoWith(WithClaims({"restore-c-6a-disk-0"}, {"restore-b-5f-disk-0"})),
              ElementsAre("restore-c-6a-disk-0"))
      << "restored twice";
}

TEST(ClaimsThatGoWith, C4_are_no_volumes_that_were_attached) {
  const std::vector<std::string> made = {"web-x-disk-0-r4"};
  EXPECT_THAT(ClaimsThatGoWith(WithClaims({"web-x-disk-0-r4", "restore-b-5f-data", "data",
                                           "restore-b-5f-disk-1", "web-y-disk-0-r4"},
                                          made)),
              ElementsAre("web-x-disk-0-r4"));
}

TEST(ClaimsThatGoWith, C4_an_attached_volume_that_another_vm_was_restored_to_stays) {
  VirtualMachine vm;
  vm.name = "web-x";
  vm.removed_claims = {ClaimName("web-x", 0, "r4nd0")};
  vm.claim_names = {vm.removed_claims[0], "restore-db-backup-5f0c9d-disk-0"};
  EXPECT_THAT(ClaimsThatGoWith(vm), testing::ElementsAre(vm.claim_names[0]));
}

}  // namespace
}  // namespace nomad_harvester::harvester
