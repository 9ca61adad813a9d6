// SPDX-License-Identifier: Apache-2.0
#include "resumption.h"

#include <utility>

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;

constexpr base::Duration kReleaseBudget = std::chrono::milliseconds(700);

}  // namespace

Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   std::optional<config::PoolPolicy> policy) {
  Resumed resumed;
  const runtime::CancelSource hold(context);
  resumed.lease = deps.lease.Acquire(hold.context(), LeaseUser::kResumption,
                                     [&hold] { hold.Cancel(CancelReason::kLeaseLost); });
  if (!resumed.lease.ok()) return resumed;
  Reconciler loop(deps, std::move(policy));
  resumed.outcome = loop.RunResumption(hold.context().WithWritePermit(deps.lease.permit()));
  resumed.interrupted = hold.context().cancel_reason() != CancelReason::kNone;
  resumed.last_event = loop.last_event();
  resumed.last = loop.last();
  EndHold(deps.lease, hold.context());
  return resumed;
}

void EndHold(PoolLease& lease, const runtime::Context& context) {
  if (context.cancel_reason() == CancelReason::kClient) {
    lease.StopRenewal();
    return;
  }
  lease.Release(runtime::Context::Background(context.clock()).WithTimeout(kReleaseBudget));
}

}  // namespace nomad_harvester::scaling
