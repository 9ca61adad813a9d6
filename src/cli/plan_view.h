// SPDX-License-Identifier: Apache-2.0
// What a Scale would do, for people and for programs. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_PLAN_VIEW_H_
#define NOMAD_HARVESTER_CLI_PLAN_VIEW_H_

#include <cstddef>
#include <string>

#include "nomad_harvester/scaling/proposal.h"

#include "nlohmann/json_fwd.hpp"

namespace nomad_harvester::cli {

// For people: a heading, and a table for each kind of thing that would be done. Without control
// sequences and secrets, for a terminal of `width` columns (0: no limit, nothing is folded).
std::string PlanText(const scaling::Proposal& proposal, std::size_t width = 0);
// What is replaced besides, and why that rests: the same way. Empty: nothing.
std::string ReplacementText(const scaling::Proposal& proposal, std::size_t width = 0);
// Why it stops short of the count that was asked for, as one line without its end; empty: it does
// not.
std::string LimitText(const scaling::Proposal& proposal);
// Whether, and why, it would be refused: the same way.
std::string RefusalText(const scaling::Proposal& proposal, std::size_t width = 0);
// All of it, for programs.
nlohmann::ordered_json PlanDocument(const scaling::Proposal& proposal);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_PLAN_VIEW_H_
