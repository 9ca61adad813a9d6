// SPDX-License-Identifier: Apache-2.0
// The output of harvester status. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
#define NOMAD_HARVESTER_CLI_STATUS_VIEW_H_

#include <cstddef>
#include <optional>
#include <string>

#include "nomad_harvester/scaling/maintenance.h"

namespace nomad_harvester::cli {

enum class StatusDetail { kUsual, kWide };

// For people: what is wrong first, then a few lines and aligned tables, without colours. A table
// that is wider than `width` columns (0: no limit) becomes blocks (text.h); lines are not folded.
std::string StatusTable(const scaling::Inspection& inspection,
                        StatusDetail detail = StatusDetail::kUsual, std::size_t width = 0);
// Everything about one VM, for people; nullopt: the pool has no such VM.
std::optional<std::string> VmStory(const scaling::Inspection& inspection, const std::string& vm,
                                   const scaling::EventsView& events = {});
// For programs: one object, indented. Its members are documented in docs/operations.md: members may
// be added, but never change. Of a VM: its element of `vms`, and its events; empty: of the pool.
std::optional<std::string> StatusJson(const scaling::Inspection& inspection,
                                      const std::string& vm = "",
                                      const scaling::EventsView& events = {});
std::optional<std::string> StatusYaml(const scaling::Inspection& inspection,
                                      const std::string& vm = "",
                                      const scaling::EventsView& events = {});
// What differs if something has happened: all of it but what merely goes on with the clock.
std::string StateWithoutTimes(const scaling::Inspection& inspection,
                              const scaling::EventsView& events = {});

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
