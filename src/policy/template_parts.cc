// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/policy/template_parts.h"

#include <utility>

#include "nomad_harvester/policy/machine_fields.h"

namespace nomad_harvester::policy {
namespace {

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
