// SPDX-License-Identifier: Apache-2.0
// Builds the VirtualMachine to POST.
#include <algorithm>
#include <map>
#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "guest_template.h"
#include "labels.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

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

}  // namespace nomad_harvester::harvester
