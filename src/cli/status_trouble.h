// SPDX-License-Identifier: Apache-2.0
// What of a pool needs somebody, for harvester status. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_STATUS_TROUBLE_H_
#define NOMAD_HARVESTER_CLI_STATUS_TROUBLE_H_

#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/maintenance.h"

namespace nomad_harvester::cli {

// A VM that is younger has no trouble yet with joining.
inline constexpr base::Duration kJoinsWithin = std::chrono::minutes(5);

// One reason, however many VMs share it.
struct Trouble {
  std::string text;              // of the first VM, if there are several
  std::vector<std::string> vms;  // sorted; empty: it concerns the pool
};

// First what concerns the pool, then the VMs' by their names. What the line "Ready" says already is
// not repeated, and nothing is said about nodes while Nomad cannot be read. Pure.
std::vector<Trouble> FindTroubles(const scaling::Inspection& inspection);

// "creating VMs failed 2 times in a row; it is tried again at …".
std::string BackOffText(const std::string& cause, const harvester::BackOffEntry& entry,
                        base::WallTime now);
// As Nomad spells it.
std::string_view NodeStatusName(nomad::NodeStatus status);
// "2026-03-01T11:10:00Z, action act: …".
std::string ErrorText(const harvester::ErrorRecord& error);

// What to do about removals that are unfinished in a pool for which no policy was given.
std::string UnclaimedCure(const scaling::PoolKey& pool);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_STATUS_TROUBLE_H_
