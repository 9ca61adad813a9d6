// SPDX-License-Identifier: Apache-2.0
// What disks, placement and network data of a policy become in the objects. The whole objects:
// golden_test.cc.
#include <chrono>
#include <string>
#include <vector>

#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kGibi = std::int64_t{1} << 30;

json VmOf(const VmSpec& vm_spec) { return BuildVirtualMachine(vm_spec, SampleIdentity()); }
json GuestOf(const VmSpec& vm_spec) { return VmOf(vm_spec)["spec"]["template"]["spec"]; }

TEST(DataDisks, C10_are_removed_with_the_vm_and_recognised_as_its_own) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.data_disks = {{100 * kGibi, "", false}, {20 * kGibi, "lvm", true}};
  const json vm = VmOf(vm_spec);
  EXPECT_EQ(vm["metadata"]["annotations"]["harvesterhci.io/removedPersistentVolumeClaims"],
            "batch-7f3k2-disk-0-x2b4c,batch-7f3k2-disk-1-x2b4c,batch-7f3k2-disk-2-x2b4c");
  const std::vector<std::string> claims = ParseVirtualMachine(vm).claim_names;
  EXPECT_THAT(claims, ElementsAre("batch-7f3k2-disk-0-x2b4c", "batch-7f3k2-disk-1-x2b4c",
                                  "batch-7f3k2-disk-2-x2b4c"));
  for (const std::string& claim : claims) EXPECT_TRUE(IsClaimNameOf(claim, "batch-7f3k2")) << claim;
}

TEST(Placement, selects_hosts_by_affinity_and_never_by_a_node_selector) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.host_spread = policy::HostSpread::kOff;
  vm_spec.node_selector = {{"disk", "nvme"}, {"rack", "r1"}};
  vm_spec.machine["priority_class"] = std::string("batch-low");
  const json guest = GuestOf(vm_spec);
  EXPECT_EQ(guest["affinity"], json::parse(R"({"nodeAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "disk", "operator": "In", "values": ["nvme"]},
      {"key": "rack", "operator": "In", "values": ["r1"]}]}]}}})"));
  EXPECT_FALSE(guest.contains("nodeSelector"));
  EXPECT_EQ(guest["priorityClassName"], "batch-low");
}

TEST(Placement, in_zones_is_host_affinity_beside_the_selected_labels) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.host_spread = policy::HostSpread::kOff;
  vm_spec.node_selector = {{"disk", "nvme"}};
  vm_spec.zones = {"b", "a"};
  EXPECT_EQ(GuestOf(vm_spec)["affinity"], json::parse(R"({"nodeAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "disk", "operator": "In", "values": ["nvme"]},
      {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b", "a"]}]}]}}})"));
  EXPECT_EQ(ParseVirtualMachine(VmOf(vm_spec)).zone, "");
}

TEST(Placement, in_one_zone_stands_on_the_vm) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.host_spread = policy::HostSpread::kOff;
  vm_spec.zones = {"b", "a"};
  VmIdentity identity = SampleIdentity();
  identity.zone = "a";
  const json vm = BuildVirtualMachine(vm_spec, identity);
  EXPECT_EQ(vm["spec"]["template"]["spec"]["affinity"], json::parse(R"({"nodeAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]}}})"));
  EXPECT_EQ(ParseVirtualMachine(vm).zone, "a");
}

TEST(Operation, is_told_to_kubevirt_and_harvester) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.machine["cpu_model"] = std::string("EPYC-Rome");
  vm_spec.machine["maintain_mode_strategy"] = std::string("Shutdown");
  vm_spec.machine["termination_grace_period"] = std::int64_t{300};
  const json vm = VmOf(vm_spec);
  EXPECT_EQ(GuestOf(vm_spec)["domain"]["cpu"]["model"], "EPYC-Rome");
  // Harvester asks the VM, the instance and the pod.
  EXPECT_EQ(vm["metadata"]["labels"]["harvesterhci.io/maintain-mode-strategy"], "Shutdown");
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["labels"]["harvesterhci.io/maintain-mode-strategy"],
            "Shutdown");
  EXPECT_EQ(vm["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 300);
  EXPECT_EQ(ParseVirtualMachine(vm).termination_grace, std::chrono::minutes(5))
      << "rules S2 and L4 wait for so long";
}

TEST(ComposeNetworkData, renders_the_template_byte_for_byte) {
  EXPECT_THAT(ComposeNetworkData("# of {{vm_name}}\nversion: 2\n", {{"vm_name", "web-a"}}),
              IsOkAndHolds("# of web-a\nversion: 2\n"));
}

TEST(ComposeNetworkData, has_a_version_that_cloud_init_knows) {
  for (const char* const good :
       {"version: 1\nconfig: []\n", "version: 2\nethernets: {a: {dhcp4: true}}\n",
        "network:\n  version: 2\n  ethernets: {a: {version: 9}}\n",
        "network: {ethernets: {a: {}}, version: 1}", "network:\n  config: disabled\n",
        "config: disabled\n", "ethernets:\n  a: {dhcp4: true}\nversion: 2\n"}) {
    EXPECT_THAT(ComposeNetworkData(good, {}), IsOkAndHolds(good));
  }
  for (const char* const bad :
       {"version: 3\n", "version:\n", "version: [2]\n", "ethernets: {a: {version: 2}}\n",
        "network:\n  version: 3\n", "network: 2\n", "network: []\n", "config: []\n",
        "network: {a: {version: 2}}\n", "network: {version: 2}\nother: 1\n",
        "renderer: networkd\n"}) {
    EXPECT_THAT(
        ComposeNetworkData(bad, {}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no version that cloud-init knows")))
        << bad;
  }
}

TEST(ComposeNetworkData, has_to_be_a_mapping_in_yaml) {
  const auto refused = [](const std::string& source) {
    return ComposeNetworkData(source, {{"x", ""}}).status();
  };
  EXPECT_THAT(refused("{{y}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown variable \"y\"")));
  EXPECT_THAT(refused("version: [hunter2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("network data is not valid YAML: line 2"),
                             Not(HasSubstr("hunter2")))));
  EXPECT_THAT(refused("- a\n"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("network data is not a mapping")));
  for (const char* const empty : {"{{x}}", "# only a comment\n", "{}"}) {
    EXPECT_THAT(refused(empty),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("network data is empty")))
        << empty;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
