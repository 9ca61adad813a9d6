// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/lease_hold.h"

#include <chrono>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::Context;

// A process has 2 s to end (rule P1).
constexpr base::Duration kReleaseBudget = std::chrono::milliseconds(700);

}  // namespace

absl::StatusOr<std::unique_ptr<LeaseHold>> LeaseHold::Acquire(PoolLease& lease,
                                                              const Context& context,
                                                              LeaseUser user) {
  const runtime::CancelSource lost(context);
  // By value: the copy cancels the same context, whatever has become of this object.
  NH_RETURN_IF_ERROR(
      lease.Acquire(lost.context(), user, [lost] { lost.Cancel(CancelReason::kLeaseLost); }));
  return std::unique_ptr<LeaseHold>(new LeaseHold(lease, lost));
}

LeaseHold::LeaseHold(PoolLease& lease, const runtime::CancelSource& lost)
    : lease_(&lease), context_(lost.context().WithWritePermit(lease.permit())) {}

LeaseHold::~LeaseHold() {
  if (lease_ != nullptr) lease_->StopRenewal();
}

void LeaseHold::Release() {
  if (lease_ == nullptr) return;
  PoolLease& lease = *std::exchange(lease_, nullptr);
  if (context_.cancel_reason() == CancelReason::kClient) {
    lease.StopRenewal();
    return;
  }
  lease.Release(Context::Background(context_.clock()).WithTimeout(kReleaseBudget));
}

}  // namespace nomad_harvester::scaling
