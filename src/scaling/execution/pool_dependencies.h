// SPDX-License-Identifier: Apache-2.0
// Dependencies shared by the parts of a pool's loop. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_TOOLS_H_
#define NOMAD_HARVESTER_SCALING_POOL_TOOLS_H_

#include <map>
#include <set>
#include <string>

#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/reconcile_event.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "execution/pool_metrics.h"
#include "execution/vm_events.h"
#include "observation/hosts.h"
#include "observation/nomad_reads.h"
#include "rules/retries.h"
#include "rules/tracker.h"

namespace nomad_harvester::scaling {

// What a pool remembers from run to run, in this process. The pool's gate lets one loop use it at a
// time.
struct PoolTroubles {
  explicit PoolTroubles(runtime::Random& random) : retries(random) {}

  Retries retries;
  Leftovers leftovers;  // as the last sweep found them
  // How often the removal of a VM was refused, by name: another one is tried before it.
  struct Refusals {
    int count = 0;
    base::MonoTime last{};
  };
  std::map<std::string, Refusals> removal_refusals;
  // What an operator was told about VMs that stay as they are, by uid: not again by every round.
  std::map<std::string, std::string> reported;
  // The VMs, by name, that the back-off of starts or joins has counted: not again (rule C12).
  std::set<std::string> counted;
  // When a VM last could not start, by zone.
  std::map<std::string, base::MonoTime> zone_failures;
  // Since when VMs that left something have been gone.
  std::map<std::string, base::MonoTime> gone_since;
};

// References to objects that outlive one run of the loop. Cheap to copy.
struct PoolDependencies {
  PoolKey key;
  const Clients& clients;
  const harvester::VmStore& vms;
  NomadReads& nodes;
  Hosts& hosts;
  ObserverMemory& memory;
  PoolTroubles& troubles;
  PoolLease& lease;
  runtime::Clock& clock;
  runtime::Random& random;
  runtime::Executor& executor;
  log::Logger logger;
  ReconcileListener events = nullptr;
  VmEvents* vm_events = nullptr;  // null: none are written
  std::string agents_reason{};    // of a Scale
  std::string call{};             // the Scale, by its action; empty: the background
  bool collects = false;          // for an operator: PoolSnapshot::collected

  // Posts an Event about one VM.
  void Tell(harvester::VmEvent event) const {
    if (vm_events != nullptr) vm_events->Post(key, std::move(event), call);
  }
  void Notify(const ReconcileEvent& event) const {
    if (events) events(event);
  }
  PoolMetrics metrics() const { return {clients.metrics_sink.get(), key}; }
  const nomad::NomadClient& nomad() const { return *clients.nomad; }
  std::size_t parallelism() const {
    return static_cast<std::size_t>(clients.config->max_concurrency);
  }
};

// A new action id; it also identifies the log lines of the action.
inline std::string NewActionId(runtime::Random& random) { return random.NextName(12); }

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_TOOLS_H_
