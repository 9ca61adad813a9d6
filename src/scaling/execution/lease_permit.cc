// SPDX-License-Identifier: Apache-2.0
#include "execution/lease_permit.h"

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/pool_lease.h"

namespace nomad_harvester::scaling {

absl::Status LeasePermit::Check() const {
  const base::MonoTime now = clock_.Now();
  base::MutexLock lock(mutex_);
  if (!renewed_.has_value()) {
    return base::Unavailable("the pool's Lease is not ours: nothing is written without it");
  }
  if (now - *renewed_ + limit_ >= kLeaseDuration) {
    return base::Unavailable("the pool's Lease could not be renewed for " +
                             base::FormatGoDuration(now - *renewed_) +
                             ": nothing is written without it");
  }
  return absl::OkStatus();
}

void LeasePermit::WriteBegan() const {
  base::MutexLock lock(mutex_);
  ++open_writes_;
}

void LeasePermit::WriteEnded(bool abandoned) const {
  const base::MonoTime now = clock_.Now();
  base::MutexLock lock(mutex_);
  --open_writes_;
  if (abandoned) abandoned_at_ = now;
}

void LeasePermit::Acquired(base::MonoTime sent) {
  base::MutexLock lock(mutex_);
  renewed_ = sent;
  abandoned_at_.reset();
}

void LeasePermit::Renewed(base::MonoTime sent) {
  base::MutexLock lock(mutex_);
  renewed_ = sent;
}

void LeasePermit::Revoke() {
  base::MutexLock lock(mutex_);
  renewed_.reset();
}

bool LeasePermit::HasRunOut() const {
  const base::MonoTime now = clock_.Now();
  base::MutexLock lock(mutex_);
  return !renewed_.has_value() || now - *renewed_ >= kLeaseDuration;
}

bool LeasePermit::MayTakeEffect() const {
  const base::MonoTime now = clock_.Now();
  base::MutexLock lock(mutex_);
  return open_writes_ > 0 || (abandoned_at_.has_value() && now - *abandoned_at_ < kLeaseDuration);
}

}  // namespace nomad_harvester::scaling
