// SPDX-License-Identifier: Apache-2.0
//
// Observes a pool from outside the plugin's process.

#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/lease.h"
#include "nomad_harvester/kube/object.h"
#include "nomad_harvester/scaling/maintenance.h"
#include "nomad_harvester/scaling/observer.h"

#include "execution/read_only.h"
#include "observation/nomad_reads.h"

namespace nomad_harvester::scaling {
namespace {

LeaseView ReadLease(const runtime::Context& context, const Clients& clients, const PoolKey& key,
                    const log::Logger& logger) {
  LeaseView view;
  if (!clients.config->pool_lease) {
    view.problem = "switched off by pool_lease";
    return view;
  }
  const auto observed =
      clients.kube->Get(context, kube::kLeases, key.ns, harvester::LeaseName(key.pool));
  if (kube::IsNotFound(observed.status())) return view;
  if (!observed.ok()) {
    view.problem = base::Message(observed.status());
    return view;
  }
  const kube::Lease lease = kube::ParseLease(*observed);
  view.present = true;
  view.holder = lease.holder;
  view.renewed_at = lease.renew_time;
  view.live = MayBeAlive(lease);
  view.record = ParsePoolRecord(lease, logger);
  return view;
}

}  // namespace

absl::StatusOr<Inspection> Maintenance::Inspect(const runtime::Context& caller,
                                                const config::PoolPolicy& policy) const {
  const runtime::Context context = caller.WithWritePermit(std::make_shared<ReadOnly>());
  Inspection inspection;
  PoolSnapshot& snapshot = inspection.snapshot;
  snapshot.key = {.ns = policy.ns, .pool = policy.pool};
  snapshot.policy = policy;
  inspection.lease = ReadLease(context, clients_, snapshot.key, options_.logger);
  if (const absl::Status ended = context.Check(); absl::IsDeadlineExceeded(ended)) {
    return base::MakeStatus(ended.code(), "Harvester cannot be read: " + inspection.lease.problem);
  }
  snapshot.lease_used = inspection.lease.problem.empty();
  snapshot.action = inspection.lease.record.action;

  const harvester::VmStore vms(clients_.kube, policy.ns);
  NomadReads nodes(clients_.nomad_urgent);
  ObserverMemory memory;
  Observer observer(*clients_.nomad, nodes, vms, memory, *options_.executor, options_.logger);
  NH_ASSIGN_OR_RETURN(Look look,
                      observer.Observe(context, LookFor(clients_.config->nomad.region, policy),
                                       {.nodes_limit = context.Remaining() / 2}));
  snapshot.seen = std::make_shared<const Snapshot>(std::move(look));

  StatusInputs inputs;
  inputs.scale_open = inspection.lease.live && inspection.lease.record.action.has_value();
  inputs.last_event = inspection.lease.record.last_event;
  inputs.paused = inspection.lease.record.paused;
  inspection.report = ReportStatus(snapshot, inputs);
  return inspection;
}

}  // namespace nomad_harvester::scaling
