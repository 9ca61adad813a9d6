// SPDX-License-Identifier: Apache-2.0
// A pool's refusals, failures and leftovers, kept between runs. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_
#define NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_

#include <map>
#include <set>
#include <string>

#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/plan.h"

#include "rules/retries.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// Kept in this process. Not thread-safe: the pool's gate lets one loop use it at a time.
struct PoolBacklog {
  explicit PoolBacklog(runtime::Random& random) : retries(random) {}

  // Keeps only records about objects of this Look and about a Scale's VMs, given by name, and of
  // these only what their steps still need.
  void ForgetWhatIsGone(const Decisions& decisions, const PoolKey& pool,
                        std::set<std::string> of_scale);

  Retries retries;
  Leftovers leftovers;  // as the last sweep found them
  // How often each VM's removal was refused, by VM name. Other victims are tried first.
  struct Refusals {
    int count = 0;
    base::MonoTime last{};
  };
  std::map<std::string, Refusals> removal_refusals;
  // Messages to operators about VMs that stay as they are, by uid, so that they are not repeated
  // every round.
  std::map<std::string, std::string> reported;
  // Names of VMs already counted by the back-off of starts or joins, so that each counts once (rule
  // C12).
  std::set<std::string> counted;
  // When a VM last could not start, by zone.
  std::map<std::string, base::MonoTime> zone_failures;
  // Times at which VMs with leftovers disappeared.
  std::map<std::string, base::MonoTime> gone_since;
  // The VM of each claim that goes with a VM that was observed as marked.
  std::map<std::string, std::string> seen_claims;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_
