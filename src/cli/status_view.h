// SPDX-License-Identifier: Apache-2.0
// What nomad-harvester status prints for people. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
#define NOMAD_HARVESTER_CLI_STATUS_VIEW_H_

#include <cstddef>
#include <string>

#include "pool_status.h"

namespace nomad_harvester::cli {

enum class StatusDetail { kUsual, kWide };

// What is wrong first, then a few lines and aligned tables, without colours. A table that is wider
// than `width` columns (0: no limit) becomes blocks (text.h); lines are not folded. A note on the
// pool's name stands above all that is shown of it; empty: none.
std::string StatusTable(const PoolStatus& status, StatusDetail detail = StatusDetail::kUsual,
                        std::size_t width = 0, const std::string& note = "");
// Status' counters without those that are 0: "1 pending, 2 lost".
std::string CountersText(const PoolStatus& status);
// Everything about one VM of the pool.
std::string VmStory(const PoolStatus& status, const VmStatus& vm,
                    const scaling::EventsView& events = {});

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
