// SPDX-License-Identifier: Apache-2.0
// Builds the objects to POST: the VirtualMachine, and the Secret with its user data.
//
// The Secret is created before the VM, so that a VM always has its user data. Once the VM has a
// uid, the VM becomes its owner, and the garbage collector removes the Secret with the VM.
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/harvester/vm_spec.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/kube/resource_type.h"

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// Returns the labels pool and managed-by, which list selectors use.
std::map<std::string, std::string> ManagedLabels(const VmSpec& vm_spec) {
  return {{kPoolLabel, vm_spec.pool}, {kManagedByLabel, kManagedByValue}};
}

constexpr std::int64_t kDefaultDiskBytes = std::int64_t{10} * 1024 * 1024 * 1024;

// Returns the JSON value that the VM gets for the field; null: none.
json JsonOf(const policy::MachineField& field, const policy::MachineValue& value) {
  if (const bool* const flag = std::get_if<bool>(&value)) {
    return *flag ? json::parse(field.flag) : json();
  }
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  const std::int64_t number = std::get<std::int64_t>(value);
  if (field.type == policy::FieldType::kQuantity) return base::FormatBinaryQuantity(number);
  return number;
}

std::map<std::string, json> FieldsIn(policy::FieldPlace place, const VmSpec& vm_spec) {
  std::map<std::string, json> fields;
  for (const policy::MachineField& field : policy::MachineFields()) {
    const auto value = vm_spec.machine.find(field.key);
    if (field.place != place || value == vm_spec.machine.end()) continue;
    json written = JsonOf(field, value->second);
    if (!written.is_null()) fields.emplace(field.path, std::move(written));
  }
  return fields;
}

std::map<std::string, std::string> TextsIn(policy::FieldPlace place, const VmSpec& vm_spec) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : FieldsIn(place, vm_spec)) {
    texts.emplace(name, value.is_string() ? value.get<std::string>() : base::DumpJson(value));
  }
  return texts;
}

// The plugin's own labels are added first, so that the operator's do not override them.
std::map<std::string, std::string> VmLabels(const VmSpec& vm_spec) {
  std::map<std::string, std::string> labels = ManagedLabels(vm_spec);
  labels.emplace(kCreatorLabel, kManagedByValue);
  labels.merge(TextsIn(policy::FieldPlace::kLabel, vm_spec));
  for (const auto& [key, value] : vm_spec.tags) {
    labels.emplace("tag.harvesterhci.io/" + key, value);
  }
  labels.insert(vm_spec.labels.begin(), vm_spec.labels.end());
  return labels;
}

// The parts of a VM's disk. A part that the disk does not have is null.
struct Disk {
  json device;
  json volume;
  json claim;
};

json BuildClaim(const VmSpec& vm_spec, const policy::DataDisk& disk) {
  json claim = {
      {"metadata", {{"labels", ManagedLabels(vm_spec)}}},
      {"spec",
       {{"accessModes", json::array({disk.read_write_once ? "ReadWriteOnce" : "ReadWriteMany"})},
        {"volumeMode", "Block"},
        {"resources", {{"requests", {{"storage", base::FormatBinaryQuantity(disk.bytes)}}}}}}}};
  if (!disk.storage_class.empty()) claim["spec"]["storageClassName"] = disk.storage_class;
  return claim;
}

void SetImage(const Image& image, json* claim) {
  (*claim)["metadata"]["annotations"]["harvesterhci.io/imageId"] = image.ns + "/" + image.name;
}

json Virtio() { return {{"bus", "virtio"}}; }
json NewClaim() { return {{"persistentVolumeClaim", json::object()}}; }

json PartOrNull(const std::shared_ptr<const json>& part) {
  return part == nullptr ? json() : *part;
}

Disk BuildRootDisk(const VmSpec& vm_spec) {
  Disk root{.device = {{"bootOrder", 1}, {"disk", Virtio()}},
            .volume = NewClaim(),
            .claim = BuildClaim(vm_spec, {.bytes = vm_spec.disk_bytes,
                                          .storage_class = vm_spec.image.storage_class})};
  if (!vm_spec.base.disks.empty()) {
    const VmBase::Disk& base = vm_spec.base.disks.front();
    root.device = PartOrNull(base.device);
    root.volume = PartOrNull(base.volume);
    if (base.claim != nullptr) root.claim.merge_patch(*base.claim);
  }
  SetImage(vm_spec.image, &root.claim);
  return root;
}

// Returns the root disk, a template's further disks, and the policy's data disks.
std::vector<Disk> BuildDisks(const VmSpec& vm_spec, const VmIdentity& identity) {
  std::vector<Disk> disks = {BuildRootDisk(vm_spec)};
  for (std::size_t i = 1; i < vm_spec.base.disks.size(); ++i) {
    const VmBase::Disk& base = vm_spec.base.disks[i];
    Disk disk{.device = PartOrNull(base.device), .volume = PartOrNull(base.volume), .claim = {}};
    if (base.claim != nullptr) {
      disk.claim = BuildClaim(vm_spec, {.bytes = base.bytes, .storage_class = base.storage_class});
      disk.claim.merge_patch(*base.claim);
      if (base.from_image) SetImage(base.image, &disk.claim);
    }
    disks.push_back(std::move(disk));
  }
  for (const policy::DataDisk& disk : vm_spec.data_disks) {
    disks.push_back(Disk{
        .device = {{"disk", Virtio()}}, .volume = NewClaim(), .claim = BuildClaim(vm_spec, disk)});
  }
  for (std::size_t i = 0; i < disks.size(); ++i) {
    auto& [device, volume, claim] = disks[i];
    if (!device.is_null()) {
      device["name"] = DiskName(i);
      if (!volume.is_null()) volume["name"] = DiskName(i);
    }
    if (claim.is_null()) continue;
    claim["metadata"]["name"] =
        ClaimName(identity.name, static_cast<int>(i), identity.claim_random);
    volume["persistentVolumeClaim"]["claimName"] = claim["metadata"]["name"];
  }
  return disks;
}

std::map<std::string, std::string> VmAnnotations(const VmSpec& vm_spec,
                                                 const VmIdentity& identity) {
  json claims = json::array();
  std::vector<std::string> claim_names;
  for (const Disk& disk : BuildDisks(vm_spec, identity)) {
    if (disk.claim.is_null()) continue;
    claim_names.push_back(kube::NameOf(disk.claim));
    claims.push_back(disk.claim);
  }
  // The plugin's own annotations are added first, so that the operator's do not override them.
  std::map<std::string, std::string> annotations = {
      {kSelfAnnotation, SelfValue(identity.name, identity.firmware_uuid)},
      {kActionIdAnnotation, identity.action_id},
      {kTemplateHashAnnotation, vm_spec.template_hash},
      {kTemplatePartsAnnotation, vm_spec.template_parts},
      {kJoinTimeoutAnnotation, vm_spec.join_timeout},
      {kNodesAnnotation, ToAnnotation(vm_spec.nodes)},
      // Harvester's controller creates the claims from this annotation. Claims without an image, or
      // with one that Longhorn backs, are created unchanged; claims of CDI images lose their labels
      // (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go,
      // createPVCsFromAnnotation).
      {"harvesterhci.io/volumeClaimTemplates", base::DumpJson(claims)},
      // With this annotation, every DELETE of the VM removes its disks, even one by kubectl.
      {kRemovedClaimsAnnotation, absl::StrJoin(claim_names, ",")},
      {"harvesterhci.io/vmRunStrategy", std::string(policy::NameOf(vm_spec.run_strategy))},
      {"harvesterhci.io/sshNames", "[]"},
      {"network.harvesterhci.io/ips", "[]"},
  };
  if (!vm_spec.nomad_cluster.empty()) {
    annotations.emplace(kNomadClusterAnnotation, vm_spec.nomad_cluster);
  }
  if (!identity.zone.empty()) annotations.emplace(kZoneAnnotation, identity.zone);
  for (const std::string& hold : vm_spec.deletion_holds) {
    annotations.emplace(kHoldAnnotationPrefix + hold, "true");
  }
  if (identity.replaces.has_value()) {
    annotations.emplace(kReplacesAnnotation, ToAnnotation(*identity.replaces));
  }
  annotations.merge(TextsIn(policy::FieldPlace::kAnnotation, vm_spec));
  annotations.insert(vm_spec.annotations.begin(), vm_spec.annotations.end());
  annotations.emplace("field.cattle.io/description", "Nomad client of pool " + vm_spec.pool);
  return annotations;
}

std::string NicName(std::size_t index) { return "nic-" + std::to_string(index); }

constexpr char kRequiredTerms[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferredTerms[] = "preferredDuringSchedulingIgnoredDuringExecution";

// Both return a member of a template's object. If the member has another type there, they first
// replace it by an empty object or list.
json& ObjectAt(json& object, const char* key) {
  if (!object.is_object()) object = json::object();
  json& member = object[key];
  if (!member.is_object()) member = json::object();
  return member;
}
json& ListAt(json& object, const char* key) {
  if (!object.is_object()) object = json::object();
  json& member = object[key];
  if (!member.is_array()) member = json::array();
  return member;
}

// Spreads the VMs of the pool over hosts. Required anti-affinity makes VMs unschedulable as soon as
// there are more VMs than hosts.
void AddHostSpread(const VmSpec& vm_spec, json& anti_affinity) {
  const json term = {{"labelSelector", {{"matchLabels", {{kPoolLabel, vm_spec.pool}}}}},
                     {"topologyKey", "kubernetes.io/hostname"}};
  if (vm_spec.host_spread == policy::HostSpread::kRequired) {
    ListAt(anti_affinity, kRequiredTerms).push_back(term);
  } else {
    const json preferred = {{"weight", 100}, {"podAffinityTerm", term}};
    ListAt(anti_affinity, kPreferredTerms).push_back(preferred);
  }
}

// Does not use spec.nodeSelector: Harvester's upgrade assumes that a VM with it cannot be migrated
// (harvester/harvester:pkg/util/virtualmachineinstance/virtualmachineinstance.go).
void AddHostLabels(const VmSpec& vm_spec, const VmIdentity& identity, json& node_affinity) {
  json expressions = json::array();
  const auto require = [&](const std::string& key, const std::vector<std::string>& values) {
    expressions.push_back({{"key", key}, {"operator", "In"}, {"values", values}});
  };
  for (const auto& [key, value] : vm_spec.node_selector) require(key, {value});
  if (!vm_spec.zones.empty()) {
    require("topology.kubernetes.io/zone",
            identity.zone.empty() ? vm_spec.zones : std::vector{identity.zone});
  }
  // A host needs to match only one of the terms, so each term gets the labels.
  json& terms = ListAt(ObjectAt(node_affinity, kRequiredTerms), "nodeSelectorTerms");
  if (terms.empty()) terms.push_back(json::object());
  for (json& term : terms) {
    json& all = ListAt(term, "matchExpressions");
    for (const json& expression : expressions) all.push_back(expression);
  }
}

json BuildAffinity(const VmSpec& vm_spec, const VmIdentity& identity) {
  json affinity = json::object();
  if (vm_spec.base.spec != nullptr) {
    const json* const base = base::FindPath(*vm_spec.base.spec, {"template", "spec", "affinity"});
    if (base != nullptr && base->is_object()) affinity = *base;
  }
  if (vm_spec.host_spread != policy::HostSpread::kOff) {
    AddHostSpread(vm_spec, affinity["podAntiAffinity"]);
  }
  if (!vm_spec.node_selector.empty() || !vm_spec.zones.empty()) {
    AddHostLabels(vm_spec, identity, affinity["nodeAffinity"]);
  }
  return affinity;
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

void AddDevices(const std::vector<policy::DeviceRequest>& requests, const std::string& prefix,
                json* devices) {
  int number = 0;
  for (const policy::DeviceRequest& request : requests) {
    for (std::int64_t i = 0; i < request.count; ++i) {
      devices->push_back(
          {{"name", prefix + std::to_string(number++)}, {"deviceName", request.resource}});
    }
  }
}

json BuildDevices(const VmSpec& vm_spec, const VmIdentity& identity) {
  json interfaces = json::array();
  for (std::size_t i = 0; i < vm_spec.networks.size(); ++i) {
    interfaces.push_back(BuildInterface(vm_spec.networks[i], i));
  }
  json disks = json::array();
  for (const Disk& disk : BuildDisks(vm_spec, identity)) {
    if (!disk.device.is_null()) disks.push_back(disk.device);
  }
  disks.push_back({{"name", kCloudInitDisk}, {"disk", Virtio()}});
  // Without a tablet device, the mouse pointer in Harvester's console is out of step with the
  // user's.
  const json tablet = {{"name", "tablet"}, {"type", "tablet"}, {"bus", "usb"}};
  json devices = {{"disks", disks}, {"interfaces", interfaces}, {"inputs", json::array({tablet})}};
  json host_devices = json::array();
  json gpus = json::array();
  AddDevices(vm_spec.host_devices, "hostdevice-", &host_devices);
  AddDevices(vm_spec.gpus, "gpu-", vm_spec.gpus_are_host_devices ? &host_devices : &gpus);
  if (!host_devices.empty()) devices["hostDevices"] = std::move(host_devices);
  if (!gpus.empty()) devices["gpus"] = std::move(gpus);
  return devices;
}

// Secure boot is always written, because KubeVirt's default is true, and it needs SMM
// (kubevirt/kubevirt:pkg/virt-api/webhooks/validating-webhook/admitters/vmi-create-admitter.go,
// validateDomainSpec).
void SetFirmware(policy::Firmware firmware, json* domain) {
  if (firmware == policy::Firmware::kBios) return;
  const bool secure = firmware == policy::Firmware::kUefiSecure;
  (*domain)["firmware"]["bootloader"] = {{"efi", {{"secureBoot", secure}}}};
  if (secure) (*domain)["features"]["smm"] = {{"enabled", true}};
}

// Sets limits only: Harvester computes the requests and the guest's memory from them
// (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go).
json BuildDomain(const VmSpec& vm_spec, const VmIdentity& identity) {
  json domain = {{"machine", {{"type", "q35"}}},
                 {"cpu", {{"cores", vm_spec.cpu_cores}, {"sockets", 1}, {"threads", 1}}},
                 {"resources",
                  {{"limits",
                    {{"cpu", std::to_string(vm_spec.cpu_cores)},
                     {"memory", base::FormatBinaryQuantity(vm_spec.memory_bytes)}}}}},
                 {"features", {{"acpi", {{"enabled", true}}}}},
                 {"firmware", {{"uuid", identity.firmware_uuid}}},
                 {"devices", BuildDevices(vm_spec, identity)}};
  SetFirmware(vm_spec.firmware, &domain);
  return domain;
}

json BuildVolumes(const VmSpec& vm_spec, const VmIdentity& identity) {
  json volumes = json::array();
  for (const Disk& disk : BuildDisks(vm_spec, identity)) {
    if (!disk.volume.is_null()) volumes.push_back(disk.volume);
  }
  const json secret = {{"name", SecretName(identity.name)}};
  json cloud_init = {{"secretRef", secret}};
  if (vm_spec.has_network_data) cloud_init["networkDataSecretRef"] = secret;
  volumes.push_back({{"name", kCloudInitDisk}, {"cloudInitNoCloud", std::move(cloud_init)}});
  return volumes;
}

json BuildGuest(const VmSpec& vm_spec, const VmIdentity& identity) {
  json networks = json::array();
  for (std::size_t i = 0; i < vm_spec.networks.size(); ++i) {
    networks.push_back(BuildNetwork(vm_spec.networks[i], i));
  }
  json guest = {{"evictionStrategy", "LiveMigrateIfPossible"},
                {"hostname", identity.name},
                {"domain", BuildDomain(vm_spec, identity)},
                {"networks", std::move(networks)},
                {"volumes", BuildVolumes(vm_spec, identity)}};
  json affinity = BuildAffinity(vm_spec, identity);
  if (!affinity.empty()) guest["affinity"] = std::move(affinity);
  for (auto& [path, value] : FieldsIn(policy::FieldPlace::kGuest, vm_spec)) {
    guest[json::json_pointer(path)] = std::move(value);
  }
  return guest;
}

// Builds spec.template: the guest that KubeVirt runs. `labels` are the VM's. They must also be in
// the template, because Harvester keeps the instance's labels equal to the template's
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, SyncLabelsToVmi), and
// because anti-affinity uses them.
json BuildGuestTemplate(const VmSpec& vm_spec, const VmIdentity& identity,
                        const std::map<std::string, std::string>& labels) {
  json template_labels = labels;
  template_labels["harvesterhci.io/vmName"] = identity.name;
  return {{"metadata",
           {{"labels", template_labels},
            {"annotations",
             {{"harvesterhci.io/sshNames", "[]"},
              {"harvesterhci.io/waitForLeaseInterfaceNames", "[]"}}}}},
          {"spec", BuildGuest(vm_spec, identity)}};
}

// Merges the template into `spec`. The template takes precedence; labels and affinity are combined.
void AddBase(const VmSpec& vm_spec, const VmIdentity& identity, json* spec) {
  const json ours = *spec;
  spec->merge_patch(*vm_spec.base.spec);
  json& guest_template = (*spec)["template"];
  guest_template["metadata"]["labels"].update(ours["template"]["metadata"]["labels"]);
  json affinity = BuildAffinity(vm_spec, identity);
  if (!affinity.empty()) guest_template["spec"]["affinity"] = std::move(affinity);
}

}  // namespace

json BuildVirtualMachine(const VmSpec& vm_spec, const VmIdentity& identity) {
  const std::map<std::string, std::string> labels = VmLabels(vm_spec);
  json vm = {{"apiVersion", "kubevirt.io/v1"},
             {"kind", "VirtualMachine"},
             {"metadata",
              {{"name", identity.name},
               {"namespace", vm_spec.ns},
               {"labels", labels},
               {"annotations", VmAnnotations(vm_spec, identity)}}},
             {"spec",
              {{"runStrategy", policy::NameOf(vm_spec.run_strategy)},
               {"template", BuildGuestTemplate(vm_spec, identity, labels)}}}};
  if (vm_spec.base.spec != nullptr) AddBase(vm_spec, identity, &vm["spec"]);
  if (identity.halted) vm["spec"]["runStrategy"] = kHalted;
  return vm;
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

// `data`, not `stringData`: base64 preserves every byte of the rendered text. The keys are those
// that KubeVirt reads (kubevirt/kubevirt:pkg/cloud-init/cloud-init.go).
json BuildSecret(const VmSpec& vm_spec, const VmIdentity& identity, const CloudInit& cloud_init) {
  json data = {{"userdata", base::Base64Encode(cloud_init.user_data)}};
  if (!cloud_init.network_data.empty()) {
    data["networkdata"] = base::Base64Encode(cloud_init.network_data);
  }
  json annotations = {{kActionIdAnnotation, identity.action_id}};
  if (!cloud_init.intro_token.jwt.empty()) {
    data[kIntroTokenKey] = base::Base64Encode(cloud_init.intro_token.jwt.Reveal());
    annotations[kIntroTokenExpiresAnnotation] = base::FormatRfc3339(cloud_init.intro_token.expires);
  }
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", SecretName(identity.name)},
            {"namespace", vm_spec.ns},
            {"labels", ManagedLabels(vm_spec)},
            {"annotations", std::move(annotations)}}},
          {"type", "Opaque"},
          {"data", std::move(data)}};
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
