// SPDX-License-Identifier: Apache-2.0
// The data about a VM and a node that nomad-harvester status shows: JSON members and texts. Private
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
  const char* key;              // in JSON and YAML; null: in neither
  const char* title = nullptr;  // of its column; null: none
  bool wide = false;            // the column appears only with -o wide
  nlohmann::ordered_json (*json)(const VmStatus&) = nullptr;
  std::string (*text)(const VmStatus&) = nullptr;  // of the cell; null: the JSON value, a string

  std::string Cell(const VmStatus& vm) const;
};
// All fields of a VM, in the order of JSON. Other programs depend on the keys: fields may be added,
// but none changes its name or meaning. Wide columns come after the others.
std::span<const VmField> VmFields();

// Returns null if there is none.
nlohmann::ordered_json TimeJson(const std::optional<base::WallTime>& time);
nlohmann::ordered_json NodeJson(const nomad::Node& node);
// "ready, draining, ineligible".
std::string NodeText(const nomad::Node& node);
// "scale-in, until 2026-03-01T12:14:00Z"; empty: no mark.
std::string MarkText(const harvester::VirtualMachine& vm);
// "cpu,image"; empty: none, or not known.
std::string DriftText(const VmStatus& vm);
// The two largest non-zero units: "3d4h", "5m".
std::string AgeText(base::Duration age);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_FIELDS_H_
