// SPDX-License-Identifier: Apache-2.0
// Reads kubevirt.io/v1 objects. A missing member, or one of another type, counts as absent.
#include "nomad_harvester/harvester/virtual_machine.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "object_fields.h"

namespace nomad_harvester::harvester {
namespace {

using base::JsonEvent;
using nlohmann::json;

// Harvester's controller sets it when it halts a VM
// (harvester/harvester:pkg/controller/master/virtualmachine/vm_controller.go, stopVM).
constexpr char kQuotaAnnotation[] = "harvesterhci.io/insufficient-resource-quota";
// The annotation behind VirtualMachine::stopped_for_host.
constexpr char kStoppedForHost[] = "harvesterhci.io/maintain-mode-strategy-node-name";

std::optional<JoinTimeout> ParseJoinTimeout(const std::string& text) {
  if (text == "none") return JoinTimeout{true, {}};
  const auto limit = base::ParseGoDuration(text);
  if (!limit.ok() || *limit <= base::Duration::zero()) return std::nullopt;
  return JoinTimeout{false, *limit};
}

void ReadOurAnnotations(VirtualMachine& vm) {
  // Status lists VMs by this label, and a Scale lists all of them; both must count the same.
  const bool managed = base::ValueOf(vm.labels, kManagedByLabel) == kManagedByValue;
  vm.pool = managed ? base::ValueOf(vm.labels, kPoolLabel) : "";
  vm.self = base::ValueOf(vm.annotations, kSelfAnnotation);
  vm.action_id = base::ValueOf(vm.annotations, kActionIdAnnotation);
  vm.template_hash = base::ValueOf(vm.annotations, kTemplateHashAnnotation);
  vm.template_parts = base::ValueOf(vm.annotations, kTemplatePartsAnnotation);
  vm.zone = base::ValueOf(vm.annotations, kZoneAnnotation);
  vm.join_timeout = ParseJoinTimeout(base::ValueOf(vm.annotations, kJoinTimeoutAnnotation));
  vm.nodes = base::ToOptional(ParseNodesRecord(base::ValueOf(vm.annotations, kNodesAnnotation)));
  vm.nomad_cluster = base::ValueOf(vm.annotations, kNomadClusterAnnotation);
  vm.joined_node_id = base::ValueOf(vm.annotations, kNodeIdAnnotation);
  if (const auto joined = vm.annotations.find(kJoinedAtAnnotation);
      joined != vm.annotations.end()) {
    // A VM that has joined must never count as not joined, even if its time was edited.
    vm.joined_at = base::ParseRfc3339(joined->second).value_or(vm.created_at);
  }
  // Likewise, only the value that the plugin writes means that the VM was never ready.
  const std::string ready_at = base::ValueOf(vm.annotations, kReadyAtAnnotation);
  vm.awaits_ready = vm.joined_at.has_value() && ready_at == kNotReadyYet;
  vm.ready_at = base::ToOptional(base::ParseRfc3339(ready_at));
  if (const auto mark = vm.annotations.find(kScaleInAnnotation); mark != vm.annotations.end()) {
    vm.has_mark = true;
    vm.mark = base::ToOptional(ParseMark(mark->second));
  }
  vm.rolled_back = base::ValueOf(vm.annotations, kRolledBackAnnotation);
  vm.removal_undone =
      base::ToOptional(ParseUndoneRemoval(base::ValueOf(vm.annotations, kRemovalUndoneAnnotation)));
  if (const auto published = vm.annotations.find(kPublishedHostAnnotation);
      published != vm.annotations.end()) {
    vm.has_published_host = true;
    vm.published_host = base::ToOptional(ParsePublishedHost(published->second));
  }
  if (const auto protect = vm.annotations.find(kProtectAnnotation);
      protect != vm.annotations.end()) {
    vm.protect = base::ParseHold(protect->second);
  }
  vm.delete_first =
      base::ParseGoBool(base::ValueOf(vm.annotations, kDeleteFirstAnnotation)).value_or(false);
  const std::string_view prefix = kHoldAnnotationPrefix;
  for (const auto& [key, value] : vm.annotations) {
    if (key.starts_with(prefix)) vm.holds.push_back(key.substr(prefix.size()));
  }
  vm.replace_request = base::ValueOf(vm.annotations, kReplaceAnnotation);
  if (!base::ParseGoBool(vm.replace_request).value_or(true)) vm.replace_request.clear();
  vm.replaces = base::ToOptional(ParseReplaces(base::ValueOf(vm.annotations, kReplacesAnnotation)));
  // Harvester also trims the names.
  vm.removed_claims = absl::StrSplit(base::ValueOf(vm.annotations, kRemovedClaimsAnnotation), ',',
                                     absl::SkipWhitespace());
  for (std::string& claim : vm.removed_claims) absl::StripAsciiWhitespace(&claim);
  vm.quota_halt = base::ValueOf(vm.annotations, kQuotaAnnotation);
  vm.stopped_for_host = base::ValueOf(vm.annotations, kStoppedForHost);
}

// The volume claim templates alone take 1 KiB per VM, and a large pool is held in memory.
void DropUnused(VirtualMachine& vm) {
  vm.labels.clear();
  std::erase_if(vm.annotations, [](const auto& a) {
    return a.first != kProtectAnnotation && a.first != kDeleteFirstAnnotation;
  });
  std::erase_if(vm.conditions, [](const Condition& c) { return !ReportsFault(c); });
  vm.conditions.shrink_to_fit();
}

void Complete(VirtualMachine& vm, const JsonEvent& /*end*/) {
  ReadOurAnnotations(vm);
  DropUnused(vm);
}

void AddClaim(VirtualMachine& vm, const JsonEvent& event) {
  if (!event.text.empty()) vm.claim_names.emplace_back(event.text);
}

// Older releases append "/<prefix length>" to an address
// (harvester/docker-machine-driver-harvester:harvester/harvester.go).
void AddAddress(VirtualMachineInstance& instance, const JsonEvent& event) {
  const std::string_view address = event.text.substr(0, event.text.find('/'));
  auto& known = instance.addresses;
  if (address.empty() || std::find(known.begin(), known.end(), address) != known.end()) return;
  known.emplace_back(address);
}

}  // namespace

const base::JsonFields<VirtualMachine>& VirtualMachineFields() {
  using Vm = VirtualMachine;
  // The claim of a DataVolume has the DataVolume's name
  // (kubevirt/containerized-data-importer:doc/datavolumes.md).
  static const auto* const kFields =
      new base::JsonFields<Vm>(
          WithMetadata<Vm>(
              WithConditions<Vm>({
                  {"spec.runStrategy", &base::SetText<&Vm::run_strategy>},
                  {"spec.template.spec.domain.firmware.uuid",
                   [](Vm& vm, const JsonEvent& e) { vm.firmware_uuid = base::AsciiLower(e.text); }},
                  {"spec.template.spec.terminationGracePeriodSeconds",
                   [](Vm& vm, const JsonEvent& e) {
                     // Limited, because a duration in nanoseconds holds only 292 years.
                     constexpr std::int64_t kMax = 100LL * 365 * 24 * 3600;
                     if (e.kind != JsonEvent::Kind::kInt || e.integer < 0 || e.integer > kMax)
                       return;
                     vm.termination_grace = std::chrono::seconds(e.integer);
                   }},
                  {"spec.template.spec.volumes.persistentVolumeClaim.claimName", &AddClaim},
                  {"spec.template.spec.volumes.dataVolume.name", &AddClaim},
                  {"status.printableStatus", &base::SetText<&Vm::printable_status>},
                  {"status.created", &base::SetBool<&Vm::instance_exists>},
                  {"status.ready", &base::SetBool<&Vm::ready>},
                  {"", &Complete},
              })));
  return *kFields;
}

VirtualMachine ParseVirtualMachine(const json& object) {
  return VirtualMachineFields().Read(object);
}

const base::JsonFields<VirtualMachineInstance>& InstanceFields() {
  using Instance = VirtualMachineInstance;
  static const auto* const kFields = new base::JsonFields<Instance>(WithConditions<Instance>({
      {"metadata.name", &base::SetText<&Instance::name>},
      {"status.phase", &base::SetText<&Instance::phase>},
      {"status.nodeName", &base::SetText<&Instance::host>},
      {"status.interfaces.ipAddress", &AddAddress},
      {"status.interfaces.ipAddresses", &AddAddress},
      {"status.phaseTransitionTimestamps",
       [](Instance& instance, const JsonEvent& e) {
         if (e.kind == JsonEvent::Kind::kObject) instance.phases.emplace_back();
       }},
      {"status.phaseTransitionTimestamps.phase",
       [](Instance& instance, const JsonEvent& e) {
         if (!instance.phases.empty()) instance.phases.back().phase = e.text;
       }},
      {"status.phaseTransitionTimestamps.phaseTransitionTimestamp",
       [](Instance& instance, const JsonEvent& e) {
         if (!instance.phases.empty()) instance.phases.back().at = TimeOf(e);
       }},
  }));
  return *kFields;
}

VirtualMachineInstance ParseInstance(const json& object) { return InstanceFields().Read(object); }

std::vector<std::string> ClaimsThatGoWith(const VirtualMachine& vm) {
  const std::set<std::string_view> named(vm.removed_claims.begin(), vm.removed_claims.end());
  std::set<std::string_view> disks;
  for (const std::string_view claim : named) disks.insert(DiskOfClaim(claim, vm.name));
  // A disk that still has its own claim was not restored: the other claim of that disk's name is
  // attached.
  for (const std::string& claim : vm.claim_names) {
    if (named.contains(claim)) disks.erase(DiskOfClaim(claim, vm.name));
  }
  disks.erase("");
  std::vector<std::string> going;
  for (const std::string& claim : vm.claim_names) {
    if (named.contains(claim) || disks.contains(DiskOfClaim(claim, vm.name))) {
      going.push_back(claim);
    }
  }
  return going;
}

}  // namespace nomad_harvester::harvester
