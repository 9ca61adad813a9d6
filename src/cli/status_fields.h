// SPDX-License-Identifier: Apache-2.0
// What nomad-harvester status says about a VM and about a node: members of JSON, and texts. Private
// to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_FIELDS_H_
#define NOMAD_HARVESTER_CLI_STATUS_FIELDS_H_

#include <optional>
#include <span>
#include <string>

#include "nlohmann/json_fwd.hpp"
#include "pool_status.h"

namespace nomad_harvester::cli {

struct VmField {
  const char* key;              // of JSON and YAML; null: it is in neither
  const char* title = nullptr;  // of its column; null: it has none
  bool wide = false;            // the column is one of -o wide
  nlohmann::ordered_json (*json)(const VmStatus&) = nullptr;
  std::string (*text)(const VmStatus&) = nullptr;  // of the cell; null: the JSON value, a string

  std::string Cell(const VmStatus& vm) const;
};
// Everything about a VM, in the order of JSON. Other programs depend on the keys: there may be more
// of them, and none changes its name or meaning. Wide columns come after the others.
std::span<const VmField> VmFields();

// Null: there is none.
nlohmann::ordered_json TimeJson(const std::optional<base::WallTime>& time);
nlohmann::ordered_json NodeJson(const nomad::Node& node);
// "ready, draining, ineligible".
std::string NodeText(const nomad::Node& node);
// "scale-in, until 2026-03-01T12:14:00Z"; empty: it has none.
std::string MarkText(const harvester::VirtualMachine& vm);
// "cpu,image"; empty: none, or not known.
std::string DriftText(const VmStatus& vm);
// The two largest units that are not 0: "3d4h", "5m".
std::string AgeText(base::Duration age);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_FIELDS_H_
