// SPDX-License-Identifier: Apache-2.0
// spec.template: the guest's specification for KubeVirt.
#include <string>

#include "nomad_harvester/harvester/vm_spec.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

json Guest(const VmSpec& vm_spec) {
  return BuildVirtualMachine(vm_spec, SampleIdentity())["spec"]["template"];
}

TEST(Guest, is_described_as_KubeVirt_wants_it) {
  EXPECT_EQ(Guest(SampleVmSpec())["spec"], json::parse(R"({
    "evictionStrategy": "LiveMigrateIfPossible",
    "hostname": "batch-7f3k2",
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
      {"weight": 100, "podAffinityTerm": {
        "labelSelector": {"matchLabels": {"nomad-harvester-autoscaler/pool": "batch"}},
        "topologyKey": "kubernetes.io/hostname"}}]}},
    "domain": {
      "machine": {"type": "q35"},
      "cpu": {"cores": 4, "sockets": 1, "threads": 1},
      "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
      "features": {"acpi": {"enabled": true}},
      "firmware": {"uuid": "0b0a7d4e-4c3e-4f0c-9d5d-2f6a8f1f7c11"},
      "devices": {
        "disks": [{"name": "disk-0", "bootOrder": 1, "disk": {"bus": "virtio"}},
                  {"name": "cloudinitdisk", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "nic-0", "model": "virtio", "bridge": {}}],
        "inputs": [{"name": "tablet", "type": "tablet", "bus": "usb"}]}},
    "networks": [{"name": "nic-0", "multus": {"networkName": "default/vlan100"}}],
    "volumes": [
      {"name": "disk-0", "persistentVolumeClaim": {"claimName": "batch-7f3k2-disk-0-x2b4c"}},
      {"name": "cloudinitdisk",
       "cloudInitNoCloud": {"secretRef": {"name": "batch-7f3k2-cloudinit"}}}]})"));
}

// Anti-affinity selects pods, and Harvester removes labels that are only on the instance.
TEST(Guest, repeats_the_labels_of_the_VM) {
  const json vm = BuildVirtualMachine(SampleVmSpec(), SampleIdentity());
  json expected = vm["metadata"]["labels"];
  expected["harvesterhci.io/vmName"] = "batch-7f3k2";
  EXPECT_EQ(vm["spec"]["template"]["metadata"]["labels"], expected);
}

TEST(Guest, carries_no_annotation_of_ours) {
  EXPECT_EQ(Guest(SampleVmSpec())["metadata"]["annotations"], json::parse(R"({
    "harvesterhci.io/sshNames": "[]", "harvesterhci.io/waitForLeaseInterfaceNames": "[]"})"));
}

TEST(Guest, reaches_the_management_network_by_masquerade) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.networks = {{true, "", ""}, {false, "net", "storage"}};
  const json spec = Guest(vm_spec)["spec"];
  EXPECT_EQ(spec["networks"], json::parse(R"([
    {"name": "nic-0", "pod": {}},
    {"name": "nic-1", "multus": {"networkName": "net/storage"}}])"));
  EXPECT_EQ(spec["domain"]["devices"]["interfaces"], json::parse(R"([
    {"name": "nic-0", "model": "virtio", "masquerade": {}},
    {"name": "nic-1", "model": "virtio", "bridge": {}}])"));
}

TEST(Guest, never_carries_user_data_or_requests) {
  const std::string text = Guest(SampleVmSpec()).dump();
  for (const char* absent : {"userData", "requests", "macAddress", "ownerReferences"}) {
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
  }
}

TEST(Guest, has_memory_that_is_not_a_multiple_of_anything) {
  VmSpec vm_spec = SampleVmSpec();
  vm_spec.memory_bytes = 1000000001;
  EXPECT_EQ(Guest(vm_spec)["spec"]["domain"]["resources"]["limits"]["memory"], "1000000001");
}

}  // namespace
}  // namespace nomad_harvester::harvester
