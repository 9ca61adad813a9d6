// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/policy/machine_fields.h"

#include <utility>

namespace nomad_harvester::policy {
namespace {

using enum FieldType;
using enum FieldPlace;

constexpr MachineField kFields[] = {
    {.key = "cpu_model", .type = kCpuModel, .path = "/domain/cpu/model", .part = "cpu"},
    // Harvester's UI calls it CPU pinning; KubeVirt looks for hosts with the label cpumanager
    // (kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/types.go, CPUManager).
    {.key = "cpu_pinning",
     .type = kFlag,
     .path = "/domain/cpu/dedicatedCpuPlacement",
     .part = "cpu"},
    // harvester/harvester:pkg/util/constants.go, AnnotationReservedMemory;
    // pkg/webhook/resources/virtualmachine/validator.go, checkReservedMemoryAnnotation.
    {.key = "reserved_memory",
     .type = kQuantity,
     .place = kAnnotation,
     .path = "harvesterhci.io/reservedMemory",
     .part = "memory"},
    // kubevirt/kubevirt:staging/src/kubevirt.io/api/core/v1/schema.go, TPMDevice.
    {.key = "tpm", .type = kFlag, .path = "/domain/devices/tpm", .flag = "{}"},
    {.key = "priority_class",
     .type = kObjectName,
     .path = "/priorityClassName",
     .part = "placement",
     .taken_from_template = true},
    // Harvester's maintenance reads it of the VM, of the instance and of the pod
    // (harvester/harvester:pkg/controller/master/nodedrain/nodedrain_controller.go,
    // pkg/util/drainhelper; the values: pkg/util/constants.go, MaintainModeStrategy*).
    {.key = "maintain_mode_strategy",
     .type = kChoice,
     .choices = "Migrate,ShutdownAndRestartAfterEnable,ShutdownAndRestartAfterDisable,Shutdown",
     .place = kLabel,
     .path = "harvesterhci.io/maintain-mode-strategy"},
    {.key = "termination_grace_period", .type = kSeconds, .path = "/terminationGracePeriodSeconds"},
};

// Every member of the document hashed by harvester::TemplateHash, except those of MachineFields. A
// member that a pool may lack belongs to a part that every pool has, or is a part that VMs without
// it also lack.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {"annotations", "annotations"},
    {"availability_zones", "placement"},
    {"cpu", "cpu"},
    {"data_disks", "disks"},
    {"disk", "disks"},
    {"firmware", "firmware"},
    {"gpus", "devices"},
    {"host_devices", "devices"},
    {"host_spread", "placement"},
    {"image", "image"},
    {"keys", "keys"},
    {"labels", "labels"},
    {"memory", "memory"},
    {"network_data", "network_data"},
    {"networks", "networks"},
    {"node_selector", "placement"},
    {"nodes", "nodes"},
    {"run_strategy", "run_strategy"},
    {"storage_class", "image"},
    {"tags", "tags"},
    {"template_rest", "template"},
    {"template_version", "template"},
    {"user_data", "user_data"},
};

std::string_view PartOf(const MachineField& field) {
  return field.part.empty() ? field.key : field.part;
}

}  // namespace

std::span<const MachineField> MachineFields() { return kFields; }

std::string TextOf(const MachineValues& values, std::string_view key) {
  const auto found = values.find(key);
  const auto* const text =
      found == values.end() ? nullptr : std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

std::string TemplatePartOf(std::string_view member) {
  for (const auto& [name, part] : kParts) {
    if (name == member) return std::string(part);
  }
  for (const MachineField& field : MachineFields()) {
    if (field.key == member) return std::string(PartOf(field));
  }
  return std::string(member);
}

const std::set<std::string, std::less<>>& TemplatePartNames() {
  static const auto* const kAll = [] {
    auto* all = new std::set<std::string, std::less<>>();
    for (const auto& [name, part] : kParts) all->emplace(part);
    for (const MachineField& field : MachineFields()) all->emplace(PartOf(field));
    return all;
  }();
  return *kAll;
}

}  // namespace nomad_harvester::policy
