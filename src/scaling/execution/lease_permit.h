// SPDX-License-Identifier: Apache-2.0
// The write permit of one pool's Lease. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_LEASE_PERMIT_H_
#define NOMAD_HARVESTER_SRC_SCALING_LEASE_PERMIT_H_

#include <optional>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::scaling {

// Thread-safe; never blocks. Outlives its PoolLease while a request that uses it is in flight.
class LeasePermit final : public runtime::WritePermit {
 public:
  // `limit`: the time limit of one attempt.
  LeasePermit(runtime::Clock& clock, base::Duration limit) : clock_(clock), limit_(limit) {}

  // UNAVAILABLE unless the last renewal was sent recently enough for an attempt to end before the
  // Lease expires.
  absl::Status Check() const override;
  base::Duration AttemptLimit() const override { return limit_; }
  void WriteBegan() const override;
  void WriteEnded(bool abandoned) const override;

  // Starts a hold. Abandoned writes of earlier holds no longer count.
  void Acquired(base::MonoTime sent);
  void Renewed(base::MonoTime sent);
  void Revoke();
  // True if the Lease has expired: the last renewal is too old for another one to keep it.
  bool HasRunOut() const;
  // True if a write of this hold may still take effect: it is in flight, or was abandoned less than
  // kLeaseDuration ago. Call it after Revoke(), which stops further writes.
  bool MayTakeEffect() const;

 private:
  runtime::Clock& clock_;
  const base::Duration limit_;
  mutable base::Mutex mutex_;
  std::optional<base::MonoTime> renewed_ NH_GUARDED_BY(mutex_);
  // Mutable, because callers that may only check the permit change the count.
  mutable int open_writes_ NH_GUARDED_BY(mutex_) = 0;
  mutable std::optional<base::MonoTime> abandoned_at_ NH_GUARDED_BY(mutex_);  // the latest
};

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SRC_SCALING_LEASE_PERMIT_H_
