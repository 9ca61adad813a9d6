// SPDX-License-Identifier: Apache-2.0
// Watches a pool until a Scale that was accepted has ended. Private to module cli.
#ifndef NOMAD_HARVESTER_CLI_SCALE_WATCH_H_
#define NOMAD_HARVESTER_CLI_SCALE_WATCH_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::cli {

// A VM of the pool, or one that is gone and has left something behind.
struct WatchedVm {
  std::string state;  // "draining"
  std::string why;    // the reason of its next step; may be empty
  bool open = false;  // a Scale has not ended with it
};
using WatchedPool = std::map<std::string, WatchedVm>;  // by name

// A replacement is not open: it is no work of a Scale.
WatchedPool WatchedPoolOf(const scaling::PoolSnapshot& snapshot);
// One line for each VM whose state differs, without its end.
std::vector<std::string> ChangesBetween(const WatchedPool& before, const WatchedPool& now);
// "web-a (draining: …), web-b (pending)"; empty: the Scale has ended.
std::string OpenText(const WatchedPool& pool);

// How long an accepted Scale may take; nullopt: drains have no deadline.
std::optional<base::Duration> WatchLimit(const config::PoolPolicy& policy,
                                         scaling::Direction direction);

struct Watch {
  std::function<absl::StatusOr<scaling::Inspection>()> look;
  std::function<void()> wake;  // lets the background go on; called between two looks
  std::function<void(const std::string& line)> say;
};
// Says what differs from `before`, until nothing is open; every minute what is open if nothing
// changes. Returns the last look. Fails only if the context ends: with what is open then.
absl::StatusOr<scaling::Inspection> WatchUntilEnded(const runtime::Context& context,
                                                    WatchedPool before, const Watch& watch);

}  // namespace nomad_harvester::cli

#endif  // NOMAD_HARVESTER_CLI_SCALE_WATCH_H_
