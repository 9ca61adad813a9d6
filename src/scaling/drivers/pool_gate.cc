// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/pool_gate.h"

#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/wait.h"

namespace nomad_harvester::scaling {

PoolGate::Guard::~Guard() { gate_.Leave(); }

void PoolGate::Leave() {
  {
    base::MutexLock lock(mutex_);
    user_ = User::kNobody;
    guard_ = nullptr;
  }
  changed_.NotifyAll();
}

absl::StatusOr<std::unique_ptr<PoolGate::Guard>> PoolGate::EnterForScale(
    const runtime::Context& context) {
  base::MutexLock lock(mutex_);
  if (user_ == User::kScale || scale_waits_) {
    return absl::Status(absl::StatusCode::kAborted, "a Scale is open on this pool");
  }
  const bool interrupts = user_ == User::kResumption;
  if (interrupts) {
    scale_waits_ = true;
    guard_->Cancel(runtime::CancelReason::kTakenOver);
    const bool entered = WaitForNobody(context);
    scale_waits_ = false;
    if (!entered) {
      const absl::Status why = context.Check();
      return why.ok() ? base::MakeStatus(absl::StatusCode::kDeadlineExceeded,
                                         "background work on the pool did not end in time")
                      : why;
    }
  }
  auto guard = std::make_unique<Guard>(*this, context);
  guard->has_interrupted_ = interrupts;
  user_ = User::kScale;
  guard_ = guard.get();
  return guard;
}

std::unique_ptr<PoolGate::Guard> PoolGate::EnterForResumption(const runtime::Context& context) {
  base::MutexLock lock(mutex_);
  if (user_ != User::kNobody || scale_waits_) return nullptr;
  auto guard = std::make_unique<Guard>(*this, context);
  user_ = User::kResumption;
  guard_ = guard.get();
  return guard;
}

bool PoolGate::ScaleIsOpen() const {
  base::MutexLock lock(mutex_);
  return user_ == User::kScale || scale_waits_;
}

bool PoolGate::Busy() const {
  base::MutexLock lock(mutex_);
  return user_ != User::kNobody || scale_waits_;
}

void PoolGate::Cancel(runtime::CancelReason reason) {
  base::MutexLock lock(mutex_);
  if (guard_ != nullptr) guard_->Cancel(reason);
}

void PoolGate::CancelResumption() {
  base::MutexLock lock(mutex_);
  if (user_ == User::kResumption) guard_->Cancel(runtime::CancelReason::kTakenOver);
}

bool PoolGate::WaitUntilIdle(const runtime::Context& context) {
  base::MutexLock lock(mutex_);
  return WaitForNobody(context);
}

bool PoolGate::WaitForNobody(const runtime::Context& context) {
  return runtime::WaitFor(context, changed_, mutex_,
                          [this]() NH_REQUIRES(mutex_) { return user_ == User::kNobody; });
}

}  // namespace nomad_harvester::scaling
