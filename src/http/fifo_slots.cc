// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/fifo_slots.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace nomad_harvester::http {
namespace {

// Limits of a single wait. The longest keeps its end within the clock's range when there is no
// deadline. The shortest prevents a busy loop when a fake clock stops just before the deadline.
constexpr base::Duration kMaxWait = std::chrono::hours(1);
constexpr base::Duration kMinWait = std::chrono::milliseconds(1);

}  // namespace

FifoSlots::FifoSlots(std::size_t count) : free_(std::max<std::size_t>(count, 1)) {}

absl::Status FifoSlots::Acquire(const runtime::Context& context) {
  const base::MutexLock lock(mutex_);
  // Release() hands a slot to the first waiter directly, so a free slot means that no caller waits.
  if (free_ > 0) {
    --free_;
    return absl::OkStatus();
  }
  waiters_.emplace_back();
  const auto self = std::prev(waiters_.end());
  absl::Status status = WaitFor(*self, context);
  // If a slot was assigned at the moment of cancellation, it is kept: the caller's next check
  // detects the cancellation.
  if (self->served) status = absl::OkStatus();
  waiters_.erase(self);
  return status;
}

absl::Status FifoSlots::WaitFor(Waiter& waiter, const runtime::Context& context) {
  for (;;) {
    const base::Duration left = std::clamp(context.Remaining(), kMinWait, kMaxWait);
    if (waiter.changed.WaitUntil(mutex_, context.stop_token(),
                                 std::chrono::steady_clock::now() + left,
                                 [&waiter] { return waiter.served; })) {
      return absl::OkStatus();
    }
    if (absl::Status status = context.Check(); !status.ok()) return status;
  }
}

void FifoSlots::Release() {
  const base::MutexLock lock(mutex_);
  for (Waiter& waiter : waiters_) {
    if (waiter.served) continue;
    waiter.served = true;
    waiter.changed.NotifyOne();
    return;
  }
  ++free_;
}

std::size_t FifoSlots::waiting() const {
  const base::MutexLock lock(mutex_);
  return waiters_.size();
}

}  // namespace nomad_harvester::http
