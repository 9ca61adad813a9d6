// SPDX-License-Identifier: Apache-2.0
#include "guest_template.h"

#include <string>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/harvester/metadata.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr char kRootDisk[] = "disk-0";
// The name by which Harvester's UI recognises the cloud-init volume
// (harvester/harvester:pkg/builder/cloudinit.go).
constexpr char kCloudInitDisk[] = "cloudinitdisk";

std::string NicName(std::size_t index) { return "nic-" + std::to_string(index); }

// Preferred, not required: spreads the VMs of the pool over hosts. Required anti-affinity would
// make VMs unschedulable as soon as there are more VMs than hosts.
json BuildAffinity(const VmSpec& vm_spec) {
  const json term = {{"labelSelector", {{"matchLabels", {{kPoolLabel, vm_spec.pool}}}}},
                     {"topologyKey", "kubernetes.io/hostname"}};
  const json preferred = {{"weight", 100}, {"podAffinityTerm", term}};
  return {{"podAntiAffinity",
           {{"preferredDuringSchedulingIgnoredDuringExecution", json::array({preferred})}}}};
}

// The management network uses masquerade; every other network uses a bridge and its full name,
// because Harvester's webhooks look up a bare name in different namespaces
// (harvester/harvester:pkg/webhook/resources/virtualmachine/{mutator,validator}.go).
json BuildNetwork(const Network& network, std::size_t index) {
  json object = {{"name", NicName(index)}};
  if (network.management) {
    object["pod"] = json::object();
  } else {
    object["multus"] = {{"networkName", network.ns + "/" + network.name}};
  }
  return object;
}

json BuildInterface(const Network& network, std::size_t index) {
  return {{"name", NicName(index)},
          {"model", "virtio"},
          {network.management ? "masquerade" : "bridge", json::object()}};
}

json BuildDevices(const VmSpec& vm_spec) {
  json interfaces = json::array();
  for (std::size_t i = 0; i < vm_spec.networks.size(); ++i) {
    interfaces.push_back(BuildInterface(vm_spec.networks[i], i));
  }
  const json virtio = {{"bus", "virtio"}};
  json disks = json::array();
  disks.push_back({{"name", kRootDisk}, {"bootOrder", 1}, {"disk", virtio}});
  disks.push_back({{"name", kCloudInitDisk}, {"disk", virtio}});
  // Without a tablet device, the mouse pointer in Harvester's console is not in step with the
  // user's.
  const json tablet = {{"name", "tablet"}, {"type", "tablet"}, {"bus", "usb"}};
  return {{"disks", disks}, {"interfaces", interfaces}, {"inputs", json::array({tablet})}};
}

// Sets limits only: Harvester computes the requests and the guest's memory from them
// (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go).
json BuildDomain(const VmSpec& vm_spec, const VmIdentity& identity) {
  return {{"machine", {{"type", "q35"}}},
          {"cpu", {{"cores", vm_spec.cpu_cores}, {"sockets", 1}, {"threads", 1}}},
          {"resources",
           {{"limits",
             {{"cpu", std::to_string(vm_spec.cpu_cores)},
              {"memory", base::FormatBinaryQuantity(vm_spec.memory_bytes)}}}}},
          {"features", {{"acpi", {{"enabled", true}}}}},
          {"firmware", {{"uuid", identity.firmware_uuid}}},
          {"devices", BuildDevices(vm_spec)}};
}

json BuildVolumes(const VmIdentity& identity) {
  json volumes = json::array();
  volumes.push_back(
      {{"name", kRootDisk}, {"persistentVolumeClaim", {{"claimName", identity.claim_name}}}});
  const json secret = {{"name", SecretName(identity.name)}};
  volumes.push_back({{"name", kCloudInitDisk}, {"cloudInitNoCloud", {{"secretRef", secret}}}});
  return volumes;
}

}  // namespace

json BuildGuestTemplate(const VmSpec& vm_spec, const VmIdentity& identity,
                        const std::map<std::string, std::string>& labels) {
  json networks = json::array();
  for (std::size_t i = 0; i < vm_spec.networks.size(); ++i) {
    networks.push_back(BuildNetwork(vm_spec.networks[i], i));
  }
  json template_labels = labels;
  template_labels["harvesterhci.io/vmName"] = identity.name;
  return {{"metadata",
           {{"labels", template_labels},
            {"annotations",
             {{"harvesterhci.io/sshNames", "[]"},
              {"harvesterhci.io/waitForLeaseInterfaceNames", "[]"}}}}},
          {"spec",
           {{"evictionStrategy", "LiveMigrateIfPossible"},
            {"hostname", identity.name},
            {"affinity", BuildAffinity(vm_spec)},
            {"domain", BuildDomain(vm_spec, identity)},
            {"networks", networks},
            {"volumes", BuildVolumes(identity)}}}};
}

}  // namespace nomad_harvester::harvester
