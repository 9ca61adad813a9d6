// SPDX-License-Identifier: Apache-2.0
// A pool's Lease, held for a scope.
#ifndef NOMAD_HARVESTER_SCALING_LEASE_HOLD_H_
#define NOMAD_HARVESTER_SCALING_LEASE_HOLD_H_

#include <memory>

#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/pool_lease.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

// Stops the renewal on every path that leaves the scope, including exceptions. `lease` must outlive
// the hold. Use the hold from one thread; its context may be used by any.
class LeaseHold {
 public:
  // Calls PoolLease::Acquire and returns its errors.
  static absl::StatusOr<std::unique_ptr<LeaseHold>> Acquire(PoolLease& lease,
                                                            const runtime::Context& context,
                                                            LeaseUser user);
  // Calls PoolLease::StopRenewal unless Release was called; takes at most a millisecond and sends
  // no request.
  ~LeaseHold();
  LeaseHold(const LeaseHold&) = delete;
  LeaseHold& operator=(const LeaseHold&) = delete;

  // A child of Acquire's context. It is cancelled with kLeaseLost when the Lease is lost; writes
  // made with it need the Lease's permit.
  const runtime::Context& context() const { return context_; }

  // Ends the hold after its last write: calls PoolLease::Release and returns its result. Tries for
  // at most 10 s if there is a record `last` to write, and for 700 ms if there is none or the
  // context has ended. If `last` cannot be written, releasing without it may take another 700 ms.
  // If the caller disconnected (kClient), the call must have no further effect, and the hold ends
  // as in the destructor.
  bool Release(const PoolRecord* last = nullptr);

 private:
  LeaseHold(PoolLease& lease, const runtime::CancelSource& lost);

  PoolLease* lease_;  // null after Release
  const runtime::Context unguarded_;
  const runtime::Context context_;
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_LEASE_HOLD_H_
