// SPDX-License-Identifier: Apache-2.0
// Builds the objects to POST: the VirtualMachine, and the Secret with its user data.
//
// The Secret is created before the VM, so that a VM always has its user data. Once the VM has a
// uid, the VM becomes its owner, and the garbage collector removes the Secret with the VM.
#include <algorithm>
#include <map>
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/kube/resource_type.h"

#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// The labels pool and managed-by, by which lists select.
std::map<std::string, std::string> ManagedLabels(const VmSpec& vm_spec) {
  return {{kPoolLabel, vm_spec.pool}, {kManagedByLabel, kManagedByValue}};
}

constexpr std::int64_t kDefaultDiskBytes = std::int64_t{10} * 1024 * 1024 * 1024;

// The operator's labels are added first, so that the plugin's own labels override them.
std::map<std::string, std::string> VmLabels(const VmSpec& vm_spec) {
  std::map<std::string, std::string> labels = vm_spec.labels;
  for (const auto& [key, value] : vm_spec.tags) {
    labels.insert_or_assign("tag.harvesterhci.io/" + key, value);
  }
  labels.insert_or_assign(kCreatorLabel, kManagedByValue);
  for (const auto& [key, value] : ManagedLabels(vm_spec)) labels.insert_or_assign(key, value);
  return labels;
}

// Harvester's controller creates the claim from this annotation: unchanged if Longhorn backs the
// image; claims of CDI images lose their labels
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
// createPVCsFromAnnotation).
std::string ClaimTemplates(const VmSpec& vm_spec, const VmIdentity& identity) {
  const json claim = {
      {"metadata",
       {{"name", identity.claim_name},
        {"labels", ManagedLabels(vm_spec)},
        {"annotations",
         {{"harvesterhci.io/imageId", vm_spec.image.ns + "/" + vm_spec.image.name}}}}},
      {"spec",
       {{"accessModes", json::array({"ReadWriteMany"})},
        {"volumeMode", "Block"},
        {"resources",
         {{"requests", {{"storage", base::FormatBinaryQuantity(vm_spec.disk_bytes)}}}}},
        {"storageClassName", vm_spec.image.storage_class}}}};
  return base::DumpJson(json::array({claim}));
}

std::map<std::string, std::string> VmAnnotations(const VmSpec& vm_spec,
                                                 const VmIdentity& identity) {
  std::map<std::string, std::string> annotations = {
      {"field.cattle.io/description", "Nomad client of pool " + vm_spec.pool}};
  for (const auto& [key, value] : vm_spec.annotations) annotations.insert_or_assign(key, value);
  const std::map<std::string, std::string> ours = {
      {kSelfAnnotation, SelfValue(identity.name, identity.firmware_uuid)},
      {kActionIdAnnotation, identity.action_id},
      {kTemplateHashAnnotation, vm_spec.template_hash},
      {kJoinTimeoutAnnotation, vm_spec.join_timeout},
      {kNodesAnnotation, ToAnnotation(vm_spec.nodes)},
      {"harvesterhci.io/volumeClaimTemplates", ClaimTemplates(vm_spec, identity)},
      // With it any DELETE of the VM, also by kubectl, removes the disk.
      {"harvesterhci.io/removedPersistentVolumeClaims", identity.claim_name},
      {"harvesterhci.io/vmRunStrategy", std::string(policy::NameOf(vm_spec.run_strategy))},
      {"harvesterhci.io/sshNames", "[]"},
      {"network.harvesterhci.io/ips", "[]"},
  };
  for (const auto& [key, value] : ours) annotations.insert_or_assign(key, value);
  return annotations;
}

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
  if (network.management) return {{"name", NicName(index)}, {"pod", json::object()}};
  return {{"name", NicName(index)}, {"multus", {{"networkName", network.ns + "/" + network.name}}}};
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

// Builds spec.template: the guest that KubeVirt runs. `labels` are those of the VM. They must also
// be in the template, because Harvester keeps the instance's labels equal to the template's
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, SyncLabelsToVmi), and
// because anti-affinity selects by them.
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

}  // namespace

json BuildVirtualMachine(const VmSpec& vm_spec, const VmIdentity& identity) {
  const std::map<std::string, std::string> labels = VmLabels(vm_spec);
  return {{"apiVersion", "kubevirt.io/v1"},
          {"kind", "VirtualMachine"},
          {"metadata",
           {{"name", identity.name},
            {"namespace", vm_spec.ns},
            {"labels", labels},
            {"annotations", VmAnnotations(vm_spec, identity)}}},
          {"spec",
           {{"runStrategy", policy::NameOf(vm_spec.run_strategy)},
            {"template", BuildGuestTemplate(vm_spec, identity, labels)}}}};
}

absl::StatusOr<std::int64_t> RootDiskBytes(const Image& image, const std::int64_t* wanted) {
  if (wanted == nullptr) return std::max(kDefaultDiskBytes, image.virtual_size);
  if (*wanted < image.virtual_size) {
    return base::InvalidArgument("disk_size " + base::FormatBinaryQuantity(*wanted) +
                                 " is smaller than the virtual size of image " + image.ns + "/" +
                                 image.name + ", " +
                                 base::FormatBinaryQuantity(image.virtual_size));
  }
  return *wanted;
}

// `data`, not `stringData`: base64 preserves every byte of the rendered text. The key is one that
// KubeVirt reads (kubevirt/kubevirt:pkg/cloud-init/cloud-init.go).
json BuildSecret(const VmSpec& vm_spec, const VmIdentity& identity, const std::string& user_data) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", SecretName(identity.name)},
            {"namespace", vm_spec.ns},
            {"labels", ManagedLabels(vm_spec)},
            {"annotations", {{kActionIdAnnotation, identity.action_id}}}}},
          {"type", "Opaque"},
          {"data", {{"userdata", base::Base64Encode(user_data)}}}};
}

// With blockOwnerDeletion true, clusters that run the admission plugin
// OwnerReferencesPermissionEnforcement require the right to update the VM's finalizers.
json BuildSecretOwnerPatch(const VmIdentity& identity, const std::string& vm_uid,
                           const std::string& secret_resource_version) {
  const json owner = {{"apiVersion", "kubevirt.io/v1"},
                      {"kind", std::string(kube::kVirtualMachines.kind)},
                      {"name", identity.name},
                      {"uid", vm_uid},
                      {"blockOwnerDeletion", false}};
  return {
      {"metadata",
       {{"resourceVersion", secret_resource_version}, {"ownerReferences", json::array({owner})}}}};
}

}  // namespace nomad_harvester::harvester
