// SPDX-License-Identifier: Apache-2.0
// A pool's refusals, failures, leftovers and template, kept between runs. Private to module
// scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_
#define NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "nomad_harvester/harvester/host_room.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/rules.h"

#include "execution/pool_history.h"
#include "rules/pool_record.h"
#include "rules/retries.h"

namespace nomad_harvester::scaling {

// What is left of a VM that is gone (rule L4).
struct Leftover {
  std::string what;         // "volume web-a-disk-0-x (being deleted)"
  bool in_trouble = false;  // the clean-up of every object has failed
};
using Leftovers = std::map<std::string, Leftover>;  // by VM name
// Adds one object to the leftovers of `vm`. `key`: identifies its clean-up in `retries`.
void AddLeftover(const std::string& vm, const std::string& what, const Retries& retries,
                 const Retries::Key& key, Leftovers* leftovers);

// What new VMs of the pool are made of, as this process last read it.
struct KnownTemplate {
  CurrentTemplate current{};
  std::optional<base::MonoTime> read_at{};  // when it was read for a replacement
};

// Kept in this process. Not thread-safe: the pool's gate lets one loop use it at a time.
struct PoolBacklog {
  explicit PoolBacklog(runtime::Random& random) : retries(random) {}

  // Keeps only records about objects of this Observation, and of these only what their steps still
  // need.
  void ForgetWhatIsGone(const Decisions& decisions, const PoolKey& pool);

  Retries retries;
  Leftovers leftovers;  // as the last sweep found them
  // How often each VM's removal was refused, by VM name. Other victims are tried first.
  struct Refusals {
    int count = 0;
    base::MonoTime last{};
  };
  std::map<std::string, Refusals> removal_refusals;
  void CountRefusedRemoval(const std::string& vm, base::MonoTime now);
  // Messages to operators about VMs that stay as they are, by uid, so that they are not repeated
  // every round.
  std::map<std::string, std::string> reported;
  // Names of VMs that this process has made: it tells if they stay broken, or their join is
  // refused.
  std::set<std::string> awaited;
  Unrecorded unrecorded;
  // The ids of the actions that were counted, by cause: an action counts as one failure of a cause
  // (rule C12). Kept while a VM names the action.
  std::map<std::string, std::set<std::string>> failed_actions;
  void CountFailure(std::string_view cause, const std::string& action);
  // The VMs of scale-ins whose DELETE was accepted, by name, until an observation shows that it had
  // an effect (rule L2).
  struct Deletion {
    std::string action;
    // One that was not may be a replacement, which did not count (rule R4).
    bool was_ready = false;
  };
  std::map<std::string, Deletion> deletions;
  // The id of the action that removed a VM last: what else of it fails is no failure of removals
  // (rule C12).
  std::string removed_last;
  // When a Scale ended without an answer to the creation of a VM, which may still appear.
  std::map<std::string, base::MonoTime> unanswered;
  // Names of VMs already counted by the back-off of starts or joins, so that each counts once (rule
  // C12).
  std::set<std::string> counted;
  // When a VM last could not start, by zone.
  std::map<std::string, base::MonoTime> zone_failures;
  // The zones in which a VM could not start of late.
  std::set<std::string> FailingZones(base::MonoTime now) const;
  KnownTemplate new_vms;
  // What a VM asks of its host, by the last trial creation.
  std::optional<harvester::VmNeed> need;
  // When the forecast of the hosts' room alone refused new VMs first and last (rule C2). Unset: the
  // last one had room for one, or a VM was made since.
  struct ForecastRefusals {
    base::MonoTime first;
    base::MonoTime last;
  };
  std::optional<ForecastRefusals> refused_by_forecast;
  // What was logged last, so that it is logged once per change: why nothing is replaced, classes
  // that cannot be checked, and that Nomad has no introduction tokens although the policy wants
  // them.
  std::optional<std::string> replacement_blocked_reason;
  std::string unread_classes;
  bool without_intro_tokens = false;
  // The action of each VM that was last observed as marked, by VM name.
  std::map<std::string, std::string> marked;
  // Times at which VMs with leftovers disappeared.
  std::map<std::string, base::MonoTime> gone_since;
  // The VM of each claim that goes with a VM that was observed as marked.
  std::map<std::string, std::string> seen_claims;
  PoolHistory history;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_BACKLOG_H_
