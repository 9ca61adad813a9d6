// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/harvester/vm_template.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

constexpr char kClaimsAnnotation[] = "harvesterhci.io/volumeClaimTemplates";

// State while one version is read: the rest of its spec, the result so far, and the reasons why it
// cannot be used.
struct VersionReading {
  json spec;
  VmTemplate result;
  std::vector<std::string> refused;

  void Refuse(std::string why) { refused.push_back(std::move(why)); }
  void AddNote(std::string what) { result.notes.push_back(std::move(what)); }
};

// Returns the value at a JSON pointer; null if there is none.
json* Find(json* value, const char* pointer) {
  const json::json_pointer path(pointer);
  return value != nullptr && value->contains(path) ? &value->at(path) : nullptr;
}

// Removes the member at a JSON pointer and returns it; null if it is missing.
json Take(json* value, std::string_view pointer) {
  const json::json_pointer path{std::string(pointer)};
  if (value == nullptr || !value->contains(path)) return nullptr;
  json taken = std::move(value->at(path));
  value->at(path.parent_pointer()).erase(path.back());
  return taken;
}
void Drop(json* value, std::initializer_list<const char*> pointers) {
  for (const char* const pointer : pointers) Take(value, pointer);
}

// Removes null members. The API server treats them as absent, but in a merge patch they would
// remove the VM's own members.
void DropNulls(json* value) {
  if (value->is_object()) {
    for (auto member = value->begin(); member != value->end();) {
      member = member->is_null() ? value->erase(member) : std::next(member);
    }
  }
  if (!value->is_structured()) return;
  for (json& part : *value) DropNulls(&part);
}

std::string TextOf(const json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::map<std::string, std::string> TextsOf(const json* object) {
  std::map<std::string, std::string> texts;
  if (object == nullptr || !object->is_object()) return texts;
  for (const auto& [key, value] : object->items()) {
    if (value.is_string()) texts.emplace(key, value.get<std::string>());
  }
  return texts;
}

// A quantity is a string, but may be a number in a user's YAML.
std::int64_t QuantityOf(const json* value) {
  if (value == nullptr) return 0;
  const auto quantity =
      base::ParseQuantity(value->is_string() ? value->get<std::string>() : base::DumpJson(*value));
  return quantity.ok() ? *quantity : 0;
}

// Labels and annotations with these keys are not adopted.
bool IsOfOneVm(std::string_view key) {
  constexpr std::string_view kPrefixes[] = {
      // The template may have been made from a VM of a pool.
      "nomad-harvester-autoscaler/",
      "harvesterhci.io/clone-backend-storage-",
      // Fleet, Argo CD, Flux and Helm recognise the objects that they made by these keys, and
      // delete such an object if their source does not have it
      // (rancher/wrangler:pkg/apply/desiredset.go, argoproj/argo-cd:common/common.go,
      // fluxcd/kustomize-controller, helm/helm:pkg/action/validate.go).
      "objectset.rio.cattle.io/",
      "fleet.cattle.io/",
      "argocd.argoproj.io/",
      "kustomize.toolkit.fluxcd.io/",
      "helm.toolkit.fluxcd.io/",
      "meta.helm.sh/",
      "helm.sh/",
  };
  // Harvester, KubeVirt or the plugin write them about one VM, or derive them from other members
  // (harvester/harvester:pkg/util/constants.go,
  // kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go).
  constexpr std::string_view kKeys[] = {
      "app.kubernetes.io/instance",  // as of the deployment tools above
      kManagedByLabel,
      kClaimsAnnotation,
      kRemovedClaimsAnnotation,
      "harvesterhci.io/vmRunStrategy",
      "harvesterhci.io/sshNames",
      "harvesterhci.io/vmName",
      "harvesterhci.io/mac-address",
      "harvesterhci.io/insufficient-resource-quota",
      "harvesterhci.io/maintain-mode-strategy-node-name",
      "harvesterhci.io/migrationTargetNodeName",
      "harvesterhci.io/migrationUID",
      "harvesterhci.io/migrationState",
      "harvesterhci.io/waitingStorageMigration",
      "harvesterhci.io/upgrade-patched",
      "harvesterhci.io/timestamp",
      "network.harvesterhci.io/ips",
      "kubectl.kubernetes.io/last-applied-configuration",
      "kubevirt.io/latest-observed-api-version",
      "kubevirt.io/storage-observed-api-version",
  };
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [key](std::string_view prefix) { return key.starts_with(prefix); });
}

// Labels or annotations without those of one VM.
std::map<std::string, std::string> Shared(const json* object) {
  std::map<std::string, std::string> texts = TextsOf(object);
  std::erase_if(texts, [](const auto& entry) { return IsOfOneVm(entry.first); });
  return texts;
}

void ReadMetadata(const json& vm, VersionReading* reading) {
  reading->result.labels = Shared(base::FindPath(vm, {"metadata", "labels"}));
  reading->result.annotations = Shared(base::FindPath(vm, {"metadata", "annotations"}));
  std::erase_if(reading->result.annotations, [reading](const auto& entry) {
    // harvester/harvester:pkg/util/constants.go, StaticIPAnnotationKeyPrefix.
    if (!entry.first.starts_with("static-ip.harvesterhci.io/")) return false;
    reading->AddNote("the static address " + entry.first);
    return true;
  });
  constexpr char kHotplug[] = "harvesterhci.io/enableCPUAndMemoryHotplug";
  reading->result.hotplug = base::TextAt(vm, {"metadata", "annotations", kHotplug}) == "true";
  json* const of_guest = Find(&reading->spec, "/template/metadata");
  if (of_guest == nullptr) return;
  for (const char* const kind : {"labels", "annotations"}) {
    std::map<std::string, std::string> shared = Shared(base::FindMember(*of_guest, kind));
    // Harvester's UI writes them for access credentials.
    std::erase_if(shared, [](const auto& entry) {
      return entry.first.starts_with("harvesterhci.io/dynamic-ssh-key-");
    });
    (*of_guest)[kind] = shared;
  }
}

// Harvester computes requests and the guest's memory from the limits unless both can be changed
// while the VM runs (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go).
void ReadSize(VersionReading* reading) {
  json* const resources = Find(&reading->spec, "/template/spec/domain/resources");
  reading->result.cpu_cores = QuantityOf(Find(resources, "/limits/cpu"));
  reading->result.memory_bytes = QuantityOf(Find(resources, "/limits/memory"));
  Drop(resources, {"/requests/cpu", "/requests/memory"});
  const json* const requests = Find(resources, "/requests");
  if (requests != nullptr && requests->empty()) Drop(resources, {"/requests"});
  json* const cpu = Find(&reading->spec, "/template/spec/domain/cpu");
  std::int64_t product = 1;
  bool counted = false;
  for (const char* const count : {"cores", "sockets", "threads"}) {
    const std::int64_t number = cpu == nullptr ? 0 : base::GetInt(*cpu, count);
    if (number < 1 || number > 4096) continue;
    counted = true;
    product *= number;
  }
  // A count that is absent or 0 means 1. It is written, because otherwise that of
  // BuildVirtualMachine would apply.
  for (const char* const count : {"cores", "sockets", "threads"}) {
    if (counted && base::GetInt(*cpu, count) == 0) (*cpu)[count] = 1;
  }
  if (reading->result.cpu_cores == 0 && counted) reading->result.cpu_cores = product;
  if (reading->result.hotplug) return;
  Drop(cpu, {"/maxSockets"});
  // Harvester 1.8 sets maxSockets to 1, and KubeVirt refuses a VM with more sockets.
  if (counted && base::GetInt(*cpu, "sockets") > 1) {
    (*cpu)["cores"] = base::GetInt(*cpu, "cores") * base::GetInt(*cpu, "sockets");
    (*cpu)["sockets"] = 1;
  }
  Drop(&reading->spec,
       {"/template/spec/domain/memory/guest", "/template/spec/domain/memory/maxGuest"});
}

// The templates of claims, by the claim's name.
std::map<std::string, json> ClaimsOf(const json& vm, VersionReading* reading) {
  std::map<std::string, json> claims;
  const std::string text = base::TextAt(vm, {"metadata", "annotations", kClaimsAnnotation});
  auto list = base::ParseJson(text.empty() ? "[]" : text, "the annotation");
  if (!list.ok() || !list->is_array()) {
    reading->Refuse(std::string("its annotation ") + kClaimsAnnotation + " cannot be read");
    return claims;
  }
  DropNulls(&*list);
  for (const json& claim : *list) {
    const std::string name = base::TextAt(claim, {"metadata", "name"});
    if (!name.empty()) claims.emplace(name, claim);
  }
  return claims;
}

// Moves the claim's size, image and class into members of the disk, and drops its name. The rest
// becomes the template of the disk's claim.
void ReadClaim(const std::string& disk_name, json claim, VersionReading* reading,
               VmBase::Disk* disk) {
  const json image = Take(&claim, "/metadata/annotations/harvesterhci.io~1imageId");
  disk->from_image = !image.is_null();
  const std::string id = TextOf(image);
  const std::size_t slash = id.find('/');
  if (slash != std::string::npos) {
    disk->image.ns = id.substr(0, slash);
    disk->image.name = id.substr(slash + 1);
  }
  json* const spec = Find(&claim, "/spec");
  const json storage = Take(spec, "/resources/requests/storage");
  disk->bytes = QuantityOf(&storage);
  if (disk->bytes == 0) reading->Refuse("volume " + disk_name + " has no size");
  disk->storage_class = TextOf(Take(spec, "/storageClassName"));
  for (const std::string source : {"dataSource", "dataSourceRef"}) {
    // Harvester's UI omits it, too
    // (harvester/harvester-ui-extension:pkg/harvester/edit/kubevirt.io.virtualmachine/index.vue).
    if (!Take(spec, "/" + source).is_null()) {
      reading->AddNote("the " + source + " of volume " + disk_name);
    }
  }
  Drop(spec, {"/volumeName"});
  json rest = json::object();
  for (const char* const kind : {"labels", "annotations"}) {
    const auto shared = Shared(base::FindPath(claim, {"metadata", kind}));
    if (!shared.empty()) rest["metadata"][kind] = shared;
  }
  if (spec != nullptr) {
    const std::vector<std::string> modes = base::GetStrings(*spec, "accessModes");
    disk->read_write_once = std::find(modes.begin(), modes.end(), "ReadWriteOnce") != modes.end();
    if (!spec->empty()) rest["spec"] = std::move(*spec);
  }
  disk->claim = std::make_shared<const json>(std::move(rest));
}

bool IsCloudInit(const json& volume) {
  return volume.contains("cloudInitNoCloud") || volume.contains("cloudInitConfigDrive");
}

// `device` or `volume` may be null: a file system has no device, an empty CD-ROM drive no volume.
void AddDisk(const std::string& name, json device, json volume,
             const std::map<std::string, json>& claims, VersionReading* reading) {
  VmBase::Disk disk;
  if (volume.contains("dataVolume")) {
    return reading->Refuse("volume " + name + " is a DataVolume, which one VM can use");
  }
  if (json* const source = Find(&volume, "/persistentVolumeClaim"); source != nullptr) {
    const std::string claim_name = base::GetString(*source, "claimName");
    const auto claim = claims.find(claim_name);
    if (claim == claims.end()) {
      return reading->Refuse("volume " + name + " is the existing claim " + claim_name +
                             ", which one VM can use");
    }
    Drop(source, {"/claimName"});
    ReadClaim(name, claim->second, reading, &disk);
  }
  if (device.is_null() && IsDiskName(name)) {
    return reading->Refuse("volume " + name + " has no disk, and a name that the VMs' disks have");
  }
  if (!device.is_null()) {
    // KubeVirt treats a device of unspecified kind as a hard disk.
    disk.hard_disk = !device.contains("cdrom") && !device.contains("lun");
    // The disk gets a new name; a volume without a device keeps its own.
    Drop(&device, {"/name"});
    Drop(&volume, {"/name"});
    disk.device = std::make_shared<const json>(std::move(device));
  }
  if (volume.is_object()) disk.volume = std::make_shared<const json>(std::move(volume));
  reading->result.base.disks.push_back(std::move(disk));
}

// Moves the root disk to the front: the first hard disk from an image. The template may leave the
// image to its users.
void OrderDisks(VersionReading* reading) {
  std::vector<VmBase::Disk>& disks = reading->result.base.disks;
  const auto root = std::find_if(disks.begin(), disks.end(), [](const VmBase::Disk& disk) {
    return disk.hard_disk && disk.from_image;
  });
  if (root == disks.end()) {
    return reading->Refuse(
        "it has no hard disk from an image, only what would have to be installed first");
  }
  std::rotate(disks.begin(), root, root + 1);
  for (auto disk = disks.begin() + 1; disk != disks.end(); ++disk) {
    if (disk->from_image && disk->image.name.empty()) {
      reading->Refuse("a disk beside the root disk is to be from an image, but names none");
    }
  }
}

void ReadDisks(const json& vm, VersionReading* reading) {
  const std::map<std::string, json> claims = ClaimsOf(vm, reading);
  const json devices = Take(&reading->spec, "/template/spec/domain/devices/disks");
  const json volumes = Take(&reading->spec, "/template/spec/volumes");
  std::map<std::string, json> by_name;
  if (volumes.is_array()) {
    for (const json& volume : volumes) by_name.emplace(base::GetString(volume, "name"), volume);
  }
  if (devices.is_array()) {
    for (const json& device : devices) {
      if (!device.is_object()) continue;
      const std::string name = base::GetString(device, "name");
      auto volume = by_name.extract(name);
      if (!volume.empty() && IsCloudInit(volume.mapped())) continue;
      AddDisk(name, device, volume.empty() ? json() : volume.mapped(), claims, reading);
    }
  }
  for (const auto& [name, volume] : by_name) {
    if (!IsCloudInit(volume)) AddDisk(name, nullptr, volume, claims, reading);
  }
  OrderDisks(reading);
}

void ReadNetworks(const std::string& ns, VersionReading* reading) {
  json* const interfaces = Find(&reading->spec, "/template/spec/domain/devices/interfaces");
  if (interfaces != nullptr && interfaces->is_array()) {
    for (json& one : *interfaces) Drop(&one, {"/macAddress"});
  }
  json* const networks = Find(&reading->spec, "/template/spec/networks");
  if (networks == nullptr || !networks->is_array()) return;
  for (json& network : *networks) {
    if (network.is_object() && network.contains("pod")) {
      reading->result.networks.push_back({.management = true, .ns = {}, .name = {}});
      continue;
    }
    json* const name = Find(&network, "/multus/networkName");
    if (name == nullptr || !name->is_string()) {
      reading->Refuse("network " + base::GetString(network, "name") +
                      " is neither the pod network nor one of Multus");
      continue;
    }
    // A bare name means a network of the VM's namespace
    // (harvester/harvester:pkg/webhook/resources/virtualmachine/mutator.go).
    std::string full = name->get<std::string>();
    if (full.find('/') == std::string::npos) full = ns + "/" + full;
    *name = full;
    const std::size_t slash = full.find('/');
    reading->result.networks.push_back(
        {.management = false, .ns = full.substr(0, slash), .name = full.substr(slash + 1)});
  }
}

// Takes only the deviceName. Device names are arbitrary; any other member belongs to one of
// Harvester's releases or to one device of one host.
std::vector<policy::DeviceRequest> TakeDevices(const std::string& kind, VersionReading* reading) {
  std::vector<policy::DeviceRequest> requests;
  const json devices = Take(&reading->spec, "/template/spec/domain/devices/" + kind);
  if (!devices.is_array()) return requests;
  for (const json& device : devices) {
    const std::string resource = base::GetString(device, "deviceName");
    if (resource.empty() || device.size() > 2) {
      reading->Refuse(kind + ": " + base::GetString(device, "name") +
                      " says more than a deviceName, which cannot be given to several VMs");
      continue;
    }
    const auto same =
        std::find_if(requests.begin(), requests.end(),
                     [&](const policy::DeviceRequest& r) { return r.resource == resource; });
    if (same != requests.end()) {
      ++same->count;
    } else {
      requests.push_back({.resource = resource, .count = 1});
    }
  }
  return requests;
}

void ReadPlacement(VersionReading* reading) {
  json* const guest = Find(&reading->spec, "/template/spec");
  const json selector = Take(guest, "/nodeSelector");
  reading->result.node_selector = TextsOf(&selector);
  for (const policy::MachineField& field : policy::MachineFields()) {
    if (!field.taken_from_template) continue;
    const json value = Take(guest, field.path);
    if (value.is_string()) reading->result.machine.emplace(field.key, value.get<std::string>());
  }
}

void ReadRunStrategy(VersionReading* reading) {
  const json running = Take(&reading->spec, "/running");
  std::string name = TextOf(Take(&reading->spec, "/runStrategy"));
  if (running.is_boolean()) name = running.get<bool>() ? "Always" : "Halted";
  if (name.empty()) return;
  for (const auto& choice : policy::kRunStrategies) {
    if (choice.name == name) reading->result.run_strategy = choice.value;
  }
  if (!reading->result.run_strategy.has_value()) {
    reading->AddNote("the run strategy " + name + ", with which a VM does not boot");
  }
}

void ReadCredentials(const json& version, const json& vm, VersionReading* reading) {
  const json credentials = Take(&reading->spec, "/template/spec/accessCredentials");
  if (!credentials.empty()) reading->AddNote("the access credentials");
  std::set<std::string> keys;
  const json* const spec = base::FindMember(version, "spec");
  for (const std::string& key : base::GetStrings(*spec, "keyPairIds")) keys.insert(key);
  const std::string text =
      base::TextAt(vm, {"metadata", "annotations", "harvesterhci.io/sshNames"});
  const auto names = base::ParseJson(text.empty() ? "[]" : text, "the names");
  if (names.ok() && names->is_array()) {
    for (const json& name : *names) {
      if (name.is_string()) keys.insert(name.get<std::string>());
    }
  }
  reading->result.ssh_keys.assign(keys.begin(), keys.end());
}

// True if the parts that are merged later are objects. The rest of the spec is used unchanged.
bool IsComplete(json* spec) {
  const json* const devices = Find(spec, "/template/spec/domain/devices");
  const json* const metadata = Find(spec, "/template/metadata");
  return devices != nullptr && devices->is_object() &&
         (metadata == nullptr || metadata->is_object());
}

}  // namespace

absl::StatusOr<VmTemplate> ReadVmTemplate(const json& version, const std::string& ns) {
  VersionReading reading;
  const json* const vm = base::FindPath(version, {"spec", "vm"});
  const json* const spec = vm == nullptr ? nullptr : base::FindMember(*vm, "spec");
  if (spec != nullptr) reading.spec = *spec;
  DropNulls(&reading.spec);
  if (!IsComplete(&reading.spec)) return base::FailedPrecondition("it describes no VM");
  reading.result.id = base::TextAt(version, {"metadata", "namespace"}) + "/" +
                      base::TextAt(version, {"metadata", "name"}) + " (" +
                      base::TextAt(version, {"metadata", "uid"}) + ")";
  ReadMetadata(*vm, &reading);
  ReadSize(&reading);
  ReadDisks(*vm, &reading);
  ReadNetworks(ns, &reading);
  reading.result.host_devices = TakeDevices("hostDevices", &reading);
  reading.result.gpus = TakeDevices("gpus", &reading);
  ReadPlacement(&reading);
  ReadRunStrategy(&reading);
  ReadCredentials(version, *vm, &reading);
  Drop(&reading.spec, {"/template/spec/hostname", "/template/spec/domain/firmware/uuid",
                       "/template/spec/domain/firmware/serial"});
  if (!Take(&reading.spec, "/dataVolumeTemplates").empty()) {
    reading.Refuse("it has dataVolumeTemplates, whose names one VM can use");
  }
  reading.result.base.spec = std::make_shared<const json>(std::move(reading.spec));
  if (reading.refused.empty()) return std::move(reading.result);
  return base::FailedPrecondition(absl::StrJoin(reading.refused, "; "));
}

VmBase Override(const VmBase& base, const TemplateOverrides& overrides) {
  VmBase changed = base;
  json spec = *base.spec;
  json* const guest = Find(&spec, "/template/spec");
  if (overrides.cpu) {
    Drop(guest, {"/domain/cpu/cores", "/domain/cpu/sockets", "/domain/cpu/threads",
                 "/domain/resources/limits/cpu"});
  }
  if (overrides.memory) Drop(guest, {"/domain/resources/limits/memory"});
  if (overrides.networks) {
    Drop(guest, {"/domain/devices/interfaces", "/networks"});
    Drop(&spec, {"/template/metadata/annotations/harvesterhci.io~1waitForLeaseInterfaceNames"});
  }
  if (overrides.firmware) Drop(guest, {"/domain/firmware/bootloader", "/domain/features/smm"});
  for (const policy::MachineField& field : policy::MachineFields()) {
    const bool in_guest = field.place == policy::FieldPlace::kGuest;
    if (in_guest && overrides.machine.contains(field.key)) Take(guest, field.path);
  }
  if (overrides.data_disks) {
    changed.disks.erase(std::remove_if(changed.disks.begin() + 1, changed.disks.end(),
                                       [](const VmBase::Disk& disk) {
                                         return disk.hard_disk && disk.claim != nullptr;
                                       }),
                        changed.disks.end());
  }
  changed.spec = std::make_shared<const json>(std::move(spec));
  return changed;
}

}  // namespace nomad_harvester::harvester
