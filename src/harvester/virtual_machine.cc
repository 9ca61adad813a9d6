// SPDX-License-Identifier: Apache-2.0
// Reads kubevirt.io/v1 objects. A member that is missing or of another type counts as absent.
#include "nomad_harvester/harvester/virtual_machine.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/parse.h"

#include "nlohmann/json.hpp"
#include "object_fields.h"
#include "vm_fields.h"

namespace nomad_harvester::harvester {
namespace {

using base::JsonEvent;
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

void AddClaim(VirtualMachine& vm, const JsonEvent& event) {
  if (!event.text.empty()) vm.claim_names.emplace_back(event.text);
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

void AddAddressOf(VirtualMachineInstance& instance, const JsonEvent& event) {
  AddAddress(std::string(event.text), instance.addresses);
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
              })));
  return *kFields;
}

absl::Status FinishVirtualMachine(VirtualMachine& vm) {
  ReadOurAnnotations(vm);
  vm.conditions.erase(std::remove_if(vm.conditions.begin(), vm.conditions.end(),
                                     [](const Condition& c) { return c.type.empty(); }),
                      vm.conditions.end());
  return absl::OkStatus();
}

VirtualMachine ParseVirtualMachine(const json& object) {
  VirtualMachine vm;
  VirtualMachineFields().Read(object, vm);
  FinishVirtualMachine(vm).IgnoreError();
  return vm;
}

const base::JsonFields<VirtualMachineInstance>& InstanceFields() {
  using Instance = VirtualMachineInstance;
  static const auto* const kFields = new base::JsonFields<Instance>({
      {"metadata.name", &base::SetText<&Instance::name>},
      {"status.phase", &base::SetText<&Instance::phase>},
      {"status.interfaces.ipAddress", &AddAddressOf},
      {"status.interfaces.ipAddresses", &AddAddressOf},
  });
  return *kFields;
}

VirtualMachineInstance ParseInstance(const json& object) {
  VirtualMachineInstance instance;
  InstanceFields().Read(object, instance);
  return instance;
}

}  // namespace nomad_harvester::harvester
