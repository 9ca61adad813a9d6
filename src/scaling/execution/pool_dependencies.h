// SPDX-License-Identifier: Apache-2.0
// Dependencies shared by the parts of a pool's loop. Private to module scaling.
#ifndef NOMAD_HARVESTER_SCALING_POOL_DEPENDENCIES_H_
#define NOMAD_HARVESTER_SCALING_POOL_DEPENDENCIES_H_

#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/demand/reader.h"
#include "nomad_harvester/harvester/vm_store.h"
#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/reconcile_event.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "execution/pool_backlog.h"
#include "execution/pool_metrics.h"
#include "execution/vm_events.h"
#include "observation/hosts.h"
#include "observation/nomad_reads.h"

namespace nomad_harvester::scaling {

// References to objects that outlive one run of the loop. Cheap to copy.
struct PoolDependencies {
  PoolKey key;
  const Clients& clients;
  const harvester::VmStore& vms;
  NomadReads& nodes;
  demand::Reader& work;
  Hosts& hosts;
  ObserverMemory& memory;
  PoolBacklog& backlog;
  PoolLease& lease;
  runtime::Clock& clock;
  runtime::Random& random;
  runtime::Executor& executor;
  log::Logger logger;
  ReconcileListener events = nullptr;
  VmEvents* vm_events = nullptr;  // null: none are written
  std::string agents_reason{};    // of a Scale
  std::string call{};             // identifies the Scale by its action; empty: the background
  bool collects = false;          // on behalf of an operator: PoolSnapshot::collected

  // Posts an Event about one VM.
  void PostEvent(harvester::VmEvent event) const {
    if (vm_events != nullptr) vm_events->Post(key, std::move(event), call);
  }
  void PostEvents(std::vector<harvester::VmEvent> all) const {
    for (harvester::VmEvent& event : all) PostEvent(std::move(event));
  }
  void Notify(const ReconcileEvent& event) const {
    if (events) events(event);
  }
  PoolMetrics metrics() const { return {clients.metrics_sink.get(), key}; }
  const nomad::NomadClient& nomad() const { return *clients.nomad; }
  // The reads of the loop; uses the same objects.
  Observer observer() const { return {nomad(), nodes, vms, memory, executor, logger}; }
  std::size_t parallelism() const {
    return static_cast<std::size_t>(clients.config->max_concurrency);
  }
};

// Makes a new action id, which also identifies the action's log lines.
inline std::string NewActionId(runtime::Random& random) { return random.NextName(12); }

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_POOL_DEPENDENCIES_H_
