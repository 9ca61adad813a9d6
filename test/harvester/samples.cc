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
  NodesRecord nodes;
  nodes.region = "global";
  nodes.node_class = "batch";
  nodes.datacenter = "dc1";
  nodes.node_pool = "workers";
  nodes.node_attribute = "unique.hostname";
  nodes.index = 4711;
  return nodes;
}

Mark SampleMark() {
  Mark mark;
  mark.action = "a-1";
  mark.reason = MarkReason::kScaleIn;
  mark.vm_uid = "uid-1";
  mark.node_id = "node-1";
  mark.marked_at = At("2026-11-21T02:03:04Z");
  mark.drain_deadline = {DrainDeadline::Kind::kAt, At("2026-11-21T02:18:04Z")};
  mark.grace = std::chrono::minutes(5);
  mark.force = true;
  mark.ignore_system = false;
  mark.purge = true;
  mark.nodes = SampleNodes();
  return mark;
}

Image SampleImage() {
  Image image;
  image.ns = "default";
  image.name = "image-rx7kp";
  image.display_name = "ubuntu-24.04";
  image.storage_class = "lh-1234";
  image.virtual_size = 3758096384;
  image.imported = true;
  return image;
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
  VmIdentity identity;
  identity.name = "batch-7f3k2";
  identity.firmware_uuid = "0b0a7d4e-4c3e-4f0c-9d5d-2f6a8f1f7c11";
  identity.action_id = "a-1";
  identity.claim_random = "x2b4c";
  return identity;
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

}  // namespace nomad_harvester::harvester
