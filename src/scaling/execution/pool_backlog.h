// SPDX-License-Identifier: Apache-2.0
// What a pool's loop remembers about refusals, failures and leftovers. Private to module scaling.
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

// Kept from run to run in this process. Not thread-safe: the pool's gate lets one loop use it at a
// time.
struct PoolBacklog {
  explicit PoolBacklog(runtime::Random& random) : retries(random) {}

  // Keeps only records about objects of this look, and about the VMs of a Scale, which are given by
  // name.
  void ForgetWhatIsGone(const Decisions& decisions, const PoolKey& pool,
                        std::set<std::string> of_scale);

  Retries retries;
  Leftovers leftovers;  // as the last sweep found them
  // How often the removal of a VM was refused, by VM name. Other victims are tried first.
  struct Refusals {
    int count = 0;
    base::MonoTime last{};
  };
  std::map<std::string, Refusals> removal_refusals;
  // By uid, what an operator was told about VMs that stay as they are, so that not every round
  // repeats it.
  std::map<std::string, std::string> reported;
  // Names of VMs that the back-off of starts or joins has counted, so that they count once (rule
  // C12).
  std::set<std::string> counted;
  // When a VM last could not start, by zone.
  std::map<std::string, base::MonoTime> zone_failures;
  // Since when VMs that left something have been gone.
  std::map<std::string, base::MonoTime> gone_since;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_
