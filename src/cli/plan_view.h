// SPDX-License-Identifier: Apache-2.0
// Shows what a Scale would do, for people and for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PLAN_VIEW_H_
#define NOMAD_HARVESTER_CLI_PLAN_VIEW_H_

#include <cstddef>
#include <string>

#include "nomad_harvester/scaling/proposal.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// For people: a heading, and a table for each kind of action. Without control sequences and
// secrets, for a terminal with `width` columns (0: no limit, no folding).
std::string PlanText(const scaling::Proposal& proposal, std::size_t width = 0);
// Likewise, the VMs that are also replaced, and why that waits. Empty: none.
std::string ReplacementText(const scaling::Proposal& proposal, std::size_t width = 0);
// Says in one line, without its end, why it stops short of the requested count; empty: it does not.
std::string LimitText(const scaling::Proposal& proposal);
// Likewise, whether and why it would be refused.
std::string RefusalText(const scaling::Proposal& proposal, std::size_t width = 0);
// Everything, for programs.
nlohmann::ordered_json PlanDocument(const scaling::Proposal& proposal);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PLAN_VIEW_H_
