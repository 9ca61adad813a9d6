// SPDX-License-Identifier: Apache-2.0
#include "harvester/samples.h"

#include "gtest/gtest.h"

namespace nomad_harvester::harvester {

using nlohmann::json;

base::WallTime At(std::string_view text) {
  const auto time = base::ParseRfc3339(text);
  EXPECT_TRUE(time.ok()) << text;
  return time.ok() ? *time : base::WallTime{};
}

NodesRecord SampleNodes() {
  return {.region = "global",
          .node_class = "batch",
          .datacenter = "dc1",
          .node_pool = "workers",
          .node_attribute = "unique.hostname",
          .index = 4711};
}

Mark SampleMark() {
  return {.action = "a-1",
          .reason = MarkReason::kScaleIn,
          .vm_uid = "uid-1",
          .node_id = "node-1",
          .marked_at = At("2026-11-21T02:03:04Z"),
          .drain_deadline = {DrainDeadline::Kind::kAt, At("2026-11-21T02:18:04Z")},
          .grace = std::chrono::minutes(5),
          .force = true,
          .ignore_system = false,
          .purge = true,
          .nodes = SampleNodes()};
}

Image SampleImage() {
  return {.ns = "default",
          .name = "image-rx7kp",
          .display_name = "ubuntu-24.04",
          .storage_class = "lh-1234",
          .virtual_size = 3758096384,
          .imported = true};
}

VmSpec SampleVmSpec() {
  VmSpec vm_spec;
  vm_spec.ns = "nomad";
  vm_spec.pool = "batch";
  vm_spec.image = SampleImage();
  vm_spec.cpu_cores = 4;
  vm_spec.memory_bytes = 8589934592;
  vm_spec.disk_bytes = 42949672960;
  vm_spec.networks = {{false, "default", "vlan100"}};
  vm_spec.labels = {{"team", "data"}};
  vm_spec.annotations = {{"example.org/cost", "42"}};
  vm_spec.tags = {{"stage", "prod"}};
  vm_spec.template_hash = "0123456789abcdef";
  vm_spec.template_parts = R"({"cpu":"01234567"})";
  vm_spec.join_timeout = "15m0s";
  vm_spec.nodes = SampleNodes();
  return vm_spec;
}

VmIdentity SampleIdentity() {
  return {.name = "batch-7f3k2",
          .firmware_uuid = "0b0a7d4e-4c3e-4f0c-9d5d-2f6a8f1f7c11",
          .action_id = "a-1",
          .claim_random = "x2b4c"};
}

json SampleVmObject() {
  json vm = BuildVirtualMachine(SampleVmSpec(), SampleIdentity());
  vm["metadata"]["uid"] = "uid-1";
  vm["metadata"]["resourceVersion"] = "1001";
  vm["metadata"]["creationTimestamp"] = "2026-11-21T02:00:00Z";
  vm["status"] = {
      {"created", true},
      {"ready", true},
      {"printableStatus", "Running"},
      {"conditions",
       {{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2026-11-21T02:01:00Z"}}}}};
  return vm;
}

json SampleTemplateVersion() {
  json version = json::parse(R"({
    "metadata": {"namespace": "default", "name": "worker-x7", "uid": "u-7"},
    "spec": {"templateId": "default/worker", "keyPairIds": ["default/ops"], "vm": {
      "metadata": {
        "name": "one-vm",
        "labels": {"harvesterhci.io/os": "linux", "harvesterhci.io/creator": "harvester",
                   "tag.harvesterhci.io/stage": "test", "nomad-harvester-autoscaler/pool": "other"},
        "annotations": {"harvesterhci.io/reservedMemory": "256Mi",
                        "harvesterhci.io/mac-address": "{}",
                        "harvesterhci.io/sshNames": "[\"default/ops\"]",
                        "nomad-harvester-autoscaler/protect": "true"}},
      "spec": {"runStrategy": "Halted", "template": {
        "metadata": {
          "labels": {"example.org/scrape": "yes", "harvesterhci.io/vmName": "one-vm"},
          "annotations": {"harvesterhci.io/waitForLeaseInterfaceNames": "[\"nic-a\"]",
                          "harvesterhci.io/sshNames": "[\"default/ops\"]",
                          "example.org/note": "kept"}},
        "spec": {
          "evictionStrategy": "LiveMigrate", "hostname": "one-vm", "nodeSelector": {"disk": "nvme"},
          "priorityClassName": "high", "terminationGracePeriodSeconds": 300,
          "tolerations": [{"key": "example.org/batch", "operator": "Exists"}],
          "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
              [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}]}]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
              {"weight": 1, "podAffinityTerm": {
                "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions":
                  [{"key": "harvesterhci.io/creator", "operator": "Exists"}]}}}]}},
          "domain": {
            "machine": {"type": "q35"},
            "cpu": {"sockets": 2, "cores": 1, "threads": 2, "maxSockets": 2, "model": "EPYC"},
            "memory": {"guest": "4Gi", "hugepages": {"pageSize": "2Mi"}},
            "resources": {"limits": {"cpu": "4", "memory": "4Gi"},
                          "requests": {"cpu": "250m", "memory": "2730Mi"}},
            "clock": {"utc": {}},
            "features": {"acpi": {"enabled": true}, "smm": {"enabled": true}},
            "firmware": {"uuid": "7a1d3c5e-0000-4000-8000-000000000001", "serial": "7a1d3c5e",
                         "bootloader": {"efi": {"secureBoot": true, "persistent": false}}},
            "devices": {
              "tpm": {},
              "inputs": [{"name": "pointer", "type": "tablet", "bus": "usb"}],
              "disks": [{"name": "iso", "bootOrder": 2, "cdrom": {"bus": "sata"}},
                        {"name": "root", "bootOrder": 1, "cache": "none", "disk": {"bus": "scsi"}},
                        {"name": "data", "disk": {"bus": "virtio"}},
                        {"name": "drivers", "cdrom": {"bus": "sata"}},
                        {"name": "cloudinitdisk", "disk": {"bus": "virtio"}}],
              "interfaces": [{"name": "default", "model": "e1000",
                              "macAddress": "52:54:00:aa:bb:cc", "masquerade": {}},
                             {"name": "nic-a", "model": "virtio", "bridge": {}}],
              "hostDevices": [{"name": "hsm-1", "deviceName": "example.org/hsm"},
                              {"name": "hsm-2", "deviceName": "example.org/hsm"}],
              "gpus": [{"name": "gpu1", "deviceName": "nvidia.com/GA102GL_A10"}]}},
          "networks": [{"name": "default", "pod": {}},
                       {"name": "nic-a", "multus": {"networkName": "default/vlan100"}}],
          "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "tpl-root"}},
            {"name": "iso", "persistentVolumeClaim": {"claimName": "tpl-iso"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "tpl-data"}},
            {"name": "drivers", "containerDisk": {"image":
              "registry.suse.com/suse/vmdp/vmdp:2.5.4", "imagePullPolicy": "IfNotPresent"}},
            {"name": "cloudinitdisk", "cloudInitNoCloud": {"secretRef": {"name": "s"}}}]}}}}}})");
  const json claims = json::parse(R"([
    {"metadata": {"name": "tpl-iso", "annotations": {"harvesterhci.io/imageId": "default/tools"}},
     "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block",
              "storageClassName": "longhorn-tools", "resources": {"requests": {"storage": "1Gi"}}}},
    {"metadata": {"name": "tpl-root",
                  "annotations": {"harvesterhci.io/imageId": "default/image-rx7kp"}},
     "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
              "volumeName": "pvc-of-one-vm", "resources": {"requests": {"storage": "50Gi"}}}},
    {"metadata": {"name": "tpl-data"},
     "spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block", "storageClassName": "fast",
              "resources": {"requests": {"storage": "20Gi"}}}}])");
  version["spec"]["vm"]["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] =
      claims.dump();
  return version;
}

}  // namespace nomad_harvester::harvester
