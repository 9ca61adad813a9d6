// SPDX-License-Identifier: Apache-2.0
// Parses a kubevirt.io/v1 object into a VirtualMachine. A member that is missing or of another type
// counts as absent.
#include "nomad_harvester/harvester/virtual_machine.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

// Harvester's controller sets it when it halts a VM
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, stopVM).
constexpr char kQuotaAnnotation[] = "harvesterhci.io/insufficient-resource-quota";

std::optional<JoinTimeout> ParseJoinTimeout(const std::string& text) {
  if (text == "none") return JoinTimeout{true, {}};
  const auto limit = base::ParseGoDuration(text);
  if (!limit.ok() || *limit <= base::Duration::zero()) return std::nullopt;
  return JoinTimeout{false, *limit};
}

void ReadMetadata(const json& object, VirtualMachine& vm) {
  Metadata metadata = ParseMetadata(object);
  vm.ns = std::move(metadata.ns);
  vm.name = std::move(metadata.name);
  vm.uid = std::move(metadata.uid);
  vm.resource_version = std::move(metadata.resource_version);
  vm.created_at = metadata.created_at;
  vm.deleted_at = metadata.deleted_at;
  vm.labels = std::move(metadata.labels);
  vm.annotations = std::move(metadata.annotations);
}

void ReadOurAnnotations(VirtualMachine& vm) {
  vm.pool = ValueOf(vm.labels, kPoolLabel);
  vm.action_id = ValueOf(vm.annotations, kActionIdAnnotation);
  vm.join_timeout = ParseJoinTimeout(ValueOf(vm.annotations, kJoinTimeoutAnnotation));
  auto nodes = ParseNodesRecord(ValueOf(vm.annotations, kNodesAnnotation));
  if (nodes.ok()) vm.nodes = *std::move(nodes);
  vm.joined_node_id = ValueOf(vm.annotations, kNodeIdAnnotation);
  if (const auto joined = vm.annotations.find(kJoinedAtAnnotation);
      joined != vm.annotations.end()) {
    // A VM that has joined must never count as not joined, even if its time was edited.
    const auto at = base::ParseRfc3339(joined->second);
    vm.joined_at = at.ok() ? *at : vm.created_at;
  }
  if (const auto mark = vm.annotations.find(kScaleInAnnotation); mark != vm.annotations.end()) {
    vm.has_mark = true;
    auto parsed = ParseMark(mark->second);
    if (parsed.ok()) vm.mark = *std::move(parsed);
  }
  vm.rolled_back = ValueOf(vm.annotations, kRolledBackAnnotation);
  const auto refused = base::ParseRfc3339(ValueOf(vm.annotations, kRemovalRefusedAnnotation));
  if (refused.ok()) vm.removal_refused_at = *refused;
  if (const auto protect = vm.annotations.find(kProtectAnnotation);
      protect != vm.annotations.end()) {
    vm.protect = ParseHold(protect->second);
  }
  vm.delete_first =
      base::ParseGoBool(ValueOf(vm.annotations, kDeleteFirstAnnotation)).value_or(false);
  vm.quota_halt = ValueOf(vm.annotations, kQuotaAnnotation);
}

void AddName(const json& volume, const char* source, const char* member,
             std::vector<std::string>& names) {
  const json* found = base::FindMember(volume, source);
  if (found == nullptr) return;
  std::string name = base::GetString(*found, member);
  if (!name.empty()) names.push_back(std::move(name));
}

// The claim of a DataVolume has the DataVolume's name
// (kubevirt/containerized-data-importer:doc/datavolumes.md).
void ReadVolumes(const json& spec, VirtualMachine& vm) {
  const json* volumes = base::FindMember(spec, "volumes");
  if (volumes == nullptr || !volumes->is_array()) return;
  for (const json& volume : *volumes) {
    AddName(volume, "persistentVolumeClaim", "claimName", vm.claim_names);
    AddName(volume, "dataVolume", "name", vm.claim_names);
    AddName(volume, "secret", "secretName", vm.secret_names);
    for (const char* cloud_init : {"cloudInitNoCloud", "cloudInitConfigDrive"}) {
      const json* source = base::FindMember(volume, cloud_init);
      if (source == nullptr) continue;
      AddName(*source, "secretRef", "name", vm.secret_names);
      AddName(*source, "networkDataSecretRef", "name", vm.secret_names);
    }
  }
}

void ReadSpec(const json& object, VirtualMachine& vm) {
  const json* spec = base::FindMember(object, "spec");
  if (spec == nullptr) return;
  vm.run_strategy = base::GetString(*spec, "runStrategy");
  const json* guest = base::FindPath(*spec, {"template", "spec"});
  if (guest == nullptr) return;
  if (const json* firmware = base::FindPath(*guest, {"domain", "firmware"})) {
    vm.firmware_uuid = base::AsciiLower(base::GetString(*firmware, "uuid"));
  }
  // Limited, because a duration in nanoseconds holds only 292 years.
  constexpr std::int64_t kMaxGraceSeconds = 100LL * 365 * 24 * 3600;
  const std::int64_t grace = base::GetInt(*guest, "terminationGracePeriodSeconds", -1);
  if (grace >= 0 && grace <= kMaxGraceSeconds) vm.termination_grace = std::chrono::seconds(grace);
  ReadVolumes(*guest, vm);
}

void ReadStatus(const json& object, VirtualMachine& vm) {
  const json* status = base::FindMember(object, "status");
  if (status == nullptr) return;
  vm.printable_status = base::GetString(*status, "printableStatus");
  vm.instance_exists = base::GetBool(*status, "created");
  vm.ready = base::GetBool(*status, "ready");
  vm.conditions = ParseConditions(object);
}

// Older releases append "/<prefix length>" to an address
// (harvester/docker-machine-driver-harvester:harvester/harvester.go).
void AddAddress(std::string address, std::vector<std::string>& addresses) {
  if (const auto slash = address.find('/'); slash != std::string::npos) address.resize(slash);
  if (address.empty()) return;
  for (const std::string& known : addresses) {
    if (known == address) return;
  }
  addresses.push_back(std::move(address));
}

}  // namespace

VirtualMachine ParseVirtualMachine(const json& object) {
  VirtualMachine vm;
  ReadMetadata(object, vm);
  ReadOurAnnotations(vm);
  ReadSpec(object, vm);
  ReadStatus(object, vm);
  return vm;
}

VirtualMachineInstance ParseInstance(const json& object) {
  VirtualMachineInstance instance;
  instance.name = ParseMetadata(object).name;
  const json* status = base::FindMember(object, "status");
  if (status == nullptr) return instance;
  instance.phase = base::GetString(*status, "phase");
  const json* interfaces = base::FindMember(*status, "interfaces");
  if (interfaces == nullptr || !interfaces->is_array()) return instance;
  for (const json& interface : *interfaces) {
    AddAddress(base::GetString(interface, "ipAddress"), instance.addresses);
    const json* more = base::FindMember(interface, "ipAddresses");
    if (more == nullptr || !more->is_array()) continue;
    for (const json& address : *more) {
      if (address.is_string()) AddAddress(address.get<std::string>(), instance.addresses);
    }
  }
  return instance;
}

}  // namespace nomad_harvester::harvester
