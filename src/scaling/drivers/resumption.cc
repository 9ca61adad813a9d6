// SPDX-License-Identifier: Apache-2.0
#include "drivers/resumption.h"

#include <memory>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/lease_hold.h"

namespace nomad_harvester::scaling {

Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   SharedPolicy policy) {
  Resumed resumed;
  const auto hold = LeaseHold::Acquire(deps.lease, context, LeaseUser::kResumption);
  resumed.lease = hold.status();
  if (!hold.ok()) return resumed;
  const ShowLeaseHeld shown(deps.metrics(), deps.lease.used());
  Reconciler loop(deps, std::move(policy));
  resumed.outcome = loop.RunResumption((*hold)->context());
  resumed.interrupted = (*hold)->context().cancel_reason() != runtime::CancelReason::kNone;
  resumed.last_event = loop.last_event();
  resumed.last = loop.last();
  if (!(*hold)->Release(loop.closed_record()) && resumed.outcome.ok()) {
    resumed.outcome = base::Unavailable("the action on the pool's Lease could not be closed");
  }
  return resumed;
}

}  // namespace nomad_harvester::scaling
