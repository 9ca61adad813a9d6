// SPDX-License-Identifier: Apache-2.0
// The output of harvester status. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
#define NOMAD_HARVESTER_CLI_STATUS_VIEW_H_

#include <string>

#include "nomad_harvester/scaling/maintenance.h"

namespace nomad_harvester::cli {

// For people: a few lines and aligned tables, without colours.
std::string StatusTable(const scaling::Inspection& inspection);
// For programs: one JSON object, indented. Its members are documented in docs/operations.md:
// members may be added, but never change.
std::string StatusJson(const scaling::Inspection& inspection);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_VIEW_H_
