// SPDX-License-Identifier: Apache-2.0
// Prints the output of nomad-harvester status for people. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
#define NOMAD_HARVESTER_CLI_STATUS_VIEW_H_

#include <cstddef>
#include <string>

#include "pool_status.h"

namespace nomad_harvester::cli {

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

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
