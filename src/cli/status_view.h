// SPDX-License-Identifier: Apache-2.0
// The output of nomad-harvester status, for people and for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
#define NOMAD_HARVESTER_CLI_STATUS_VIEW_H_

#include <cstddef>
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

enum class StatusDetail { kUsual, kWide };

// Problems first, then a few lines and aligned tables, without colours. A table wider than `width`
// columns (0: no limit) becomes blocks (text.h); lines are not folded. `note`, about the pool's
// name, is printed first unless it is empty.
std::string StatusTable(const PoolStatus& status, StatusDetail detail = StatusDetail::kUsual,
                        std::size_t width = 0, const std::string& note = "");
// "web-a: its node …", or "3 VMs (web-a, …): …".
std::string FindingText(const Finding& finding);
// Status' non-zero counters: "1 pending, 2 lost".
std::string CountersText(const PoolStatus& status);
// Describes one VM of the pool in full.
std::string VmStory(const PoolStatus& status, const VmStatus& vm,
                    const scaling::EventsView& events = {});

// The members are documented in docs/commands.md. Other programs depend on them: members may be
// added, but none changes its name or meaning. Secrets are not removed yet.
nlohmann::ordered_json StatusDocument(const PoolStatus& status);
// The VM's element of `vms`, with its events, which are null if unknown.
nlohmann::ordered_json VmDocument(const VmStatus& vm, const scaling::EventsView& events);

// Everything shown, except for text that changes only with the clock.
std::string StateWithoutTimes(PoolStatus status, const scaling::EventsView& events = {});

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
