// SPDX-License-Identifier: Apache-2.0
// A limit on requests in flight: a counting semaphore that serves its waiters in order.
#ifndef NOMAD_HARVESTER_HTTP_FIFO_SLOTS_H_
#define NOMAD_HARVESTER_HTTP_FIFO_SLOTS_H_

#include <cstddef>
#include <list>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"

namespace nomad_harvester::http {

// Thread-safe. Taking a free slot does not read the clock. Waiting uses the system's steady clock:
// with a fake clock, a context still wakes on cancellation, and times out after its remaining time
// in real time.
class FifoSlots {
 public:
  // At least one slot.
  explicit FifoSlots(std::size_t count);

  // Blocks until a slot is free. OK, or the context's own status.
  absl::Status Acquire(const runtime::Context& context);
  void Release();
  // The number of waiting callers; for tests.
  std::size_t waiting() const;

 private:
  struct Waiter {
    bool served = false;
    base::CondVar changed;
  };
  absl::Status WaitFor(Waiter& waiter, const runtime::Context& context) NH_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::size_t free_ NH_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ NH_GUARDED_BY(mutex_);
};

}  // namespace nomad_harvester::http

#endif  // NOMAD_HARVESTER_HTTP_FIFO_SLOTS_H_
