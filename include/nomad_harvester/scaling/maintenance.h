// SPDX-License-Identifier: Apache-2.0
// For commands: looks at a pool as Status does, and collects what an interrupted action left
// behind, by the background work of Status and nothing else.
#ifndef NOMAD_HARVESTER_SCALING_MAINTENANCE_H_
#define NOMAD_HARVESTER_SCALING_MAINTENANCE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/log/logger.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/clients.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/reconcile_event.h"
#include "nomad_harvester/scaling/snapshot.h"
#include "nomad_harvester/scaling/status_report.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

struct MaintenanceOptions {
  runtime::Clock* clock = nullptr;  // outlives the maintenance, as does the executor
  std::shared_ptr<runtime::Random> random;
  log::Logger logger;
  // For the loop's own lines, most of which are also reported as events.
  log::Logger loop_logger;
  runtime::Executor* executor = nullptr;
  // Tells this process from every other one on the pool's Lease.
  std::string holder;
};

// The pool's Lease as somebody sees it who does not take it.
struct LeaseView {
  std::string problem;  // why it is not used or cannot be read; empty: it is
  bool present = false;
  std::string holder;
  std::optional<base::WallTime> renewed_at;
  bool live = false;  // its holder has renewed it a moment ago
  PoolRecord record;
};

struct Inspection {
  PoolSnapshot snapshot;
  LeaseView lease;
  // As Status would answer, but for what only the plugin's process knows (drifted). While a live
  // process holds the Lease for an action, a Scale counts as open.
  StatusReport report;
};

// Something that is left after all, and why.
struct Unfinished {
  std::string vm;
  std::string why;
};
struct Collection {
  // OK: whatever could be collected was. ABORTED: another live process holds the pool's Lease, and
  // nothing was done.
  absl::Status outcome;
  // What needs an operator, or somebody else. What a policy keeps on purpose is not in here.
  std::vector<Unfinished> unfinished;
};

class Maintenance {
 public:
  Maintenance(MaintenanceOptions options, Clients clients);

  // Only reads. An error: Harvester cannot be read. A Nomad that cannot be read is told by the
  // snapshot, and is a reason not to be ready.
  absl::StatusOr<Inspection> Inspect(const runtime::Context& context,
                                     const config::PoolPolicy& policy) const;

  // Every pool of which the namespace holds a VM, volume, Secret or Lease, or Nomad a node that was
  // drained for it. Only reads.
  absl::StatusOr<std::set<PoolKey>> FindPools(const runtime::Context& context,
                                              const std::string& ns) const;

  // PoolLoop::RunResumption under the pool's Lease, to its end: drains are waited for. Without a
  // policy nothing is begun: VMs that never joined stay unfinished.
  Collection Collect(const runtime::Context& context, const PoolKey& key,
                     const std::optional<config::PoolPolicy>& policy,
                     const ReconcileListener& events) const;
  // Reports as events what Collect would begin with. Only reads, and does not take the Lease.
  Collection Preview(const runtime::Context& context, const PoolKey& key,
                     const std::optional<config::PoolPolicy>& policy,
                     const ReconcileListener& events) const;

 private:
  const MaintenanceOptions options_;
  const Clients clients_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_MAINTENANCE_H_
