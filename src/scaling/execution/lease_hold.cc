// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/lease_hold.h"

#include <chrono>
#include <utility>

#include "nomad_harvester/base/status.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::Context;

// A process has 2 s to exit (rule P1).
constexpr base::Duration kReleaseBudget = std::chrono::milliseconds(700);
// Time limit for writing the record. After that, the background closes the action.
constexpr base::Duration kRecordBudget = std::chrono::seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<LeaseHold>> LeaseHold::Acquire(PoolLease& lease,
                                                              const Context& context,
                                                              LeaseUser user) {
  const runtime::CancelSource lost(context);
  // Captured by value: the copy cancels the same context even if this object is gone.
  NH_RETURN_IF_ERROR(
      lease.Acquire(lost.context(), user, [lost] { lost.Cancel(CancelReason::kLeaseLost); }));
  return std::unique_ptr<LeaseHold>(new LeaseHold(lease, lost));
}

LeaseHold::LeaseHold(PoolLease& lease, const runtime::CancelSource& lost)
    : lease_(&lease),
      unguarded_(lost.context()),
      context_(unguarded_.WithWritePermit(lease.permit())) {}

LeaseHold::~LeaseHold() {
  if (lease_ != nullptr) lease_->StopRenewal();
}

bool LeaseHold::Release(const PoolRecord* last) {
  if (lease_ == nullptr) return last == nullptr;
  PoolLease& lease = *std::exchange(lease_, nullptr);
  if (context_.cancel_reason() == CancelReason::kClient) {
    lease.StopRenewal();
    return last == nullptr;
  }
  const bool writes = last != nullptr && !context_.Done();
  return lease.Release(writes ? unguarded_.WithTimeout(kRecordBudget)
                              : Context::Background(context_.clock()).WithTimeout(kReleaseBudget),
                       last);
}

}  // namespace nomad_harvester::scaling
