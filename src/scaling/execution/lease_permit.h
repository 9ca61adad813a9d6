// SPDX-License-Identifier: Apache-2.0
// The write permit of one pool's Lease. Private to module scaling.
#ifndef NOMAD_HARVESTER_SRC_SCALING_LEASE_PERMIT_H_
#define NOMAD_HARVESTER_SRC_SCALING_LEASE_PERMIT_H_

#include <optional>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/scaling/pool_lease.h"

namespace nomad_harvester::scaling {

// Thread-safe; never blocks. Outlives its PoolLease while a request that uses it is in flight.
class LeasePermit final : public runtime::WritePermit {
 public:
  // `limit`: the time limit of one attempt.
  LeasePermit(runtime::Clock& clock, base::Duration limit) : clock_(clock), limit_(limit) {}

  // UNAVAILABLE unless the last renewal was sent recently enough for an attempt to end before the
  // Lease expires.
  absl::Status Check() const override {
    const base::MonoTime now = clock_.Now();
    base::MutexLock lock(mutex_);
    if (!renewed_.has_value()) {
      return base::Unavailable("the pool's Lease is not ours: nothing is written without it");
    }
    if (now - *renewed_ + limit_ < kLeaseDuration) return absl::OkStatus();
    return base::Unavailable("the pool's Lease could not be renewed for " +
                             base::FormatGoDuration(now - *renewed_) +
                             ": nothing is written without it");
  }
  base::Duration AttemptLimit() const override { return limit_; }
  void WriteBegan() const override {
    base::MutexLock lock(mutex_);
    ++open_writes_;
  }
  void WriteEnded(bool abandoned) const override {
    const base::MonoTime now = clock_.Now();
    base::MutexLock lock(mutex_);
    --open_writes_;
    if (abandoned) abandoned_at_ = now;
  }

  // Starts a hold. Abandoned writes of earlier holds no longer count.
  void Acquired(base::MonoTime sent) {
    base::MutexLock lock(mutex_);
    renewed_ = sent;
    abandoned_at_.reset();
  }
  void Renewed(base::MonoTime sent) {
    base::MutexLock lock(mutex_);
    renewed_ = sent;
  }
  void Revoke() {
    base::MutexLock lock(mutex_);
    renewed_.reset();
  }
  // True if the Lease has expired: the last renewal is too old for another one to keep it.
  bool HasRunOut() const {
    const base::MonoTime now = clock_.Now();
    base::MutexLock lock(mutex_);
    return !renewed_.has_value() || now - *renewed_ >= kLeaseDuration;
  }
  // True if a write of this hold may still take effect: it is in flight, or was abandoned less than
  // kLeaseDuration ago. Call it after Revoke(), which stops further writes.
  bool MayTakeEffect() const {
    const base::MonoTime now = clock_.Now();
    base::MutexLock lock(mutex_);
    return open_writes_ > 0 || (abandoned_at_.has_value() && now - *abandoned_at_ < kLeaseDuration);
  }

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
