// SPDX-License-Identifier: Apache-2.0
// Waits for a condition variable as long as a context lasts.
#ifndef NOMAD_HARVESTER_RUNTIME_WAIT_H_
#define NOMAD_HARVESTER_RUNTIME_WAIT_H_

#include <algorithm>
#include <chrono>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/runtime/context.h"

namespace nomad_harvester::runtime {

// Blocks until `done`; false: the context ended first. A condition variable knows only the real
// clock, the context's may be a fake one.
template <typename Predicate>
bool WaitFor(const Context& context, base::CondVar& changed, base::Mutex& mutex, Predicate done)
    NH_REQUIRES(mutex) {
  // The longest single wait keeps its end within the clock's range when there is no deadline. The
  // shortest prevents a busy loop when a fake clock stops just before the deadline.
  constexpr base::Duration kShortest = std::chrono::milliseconds(1);
  constexpr base::Duration kLongest = std::chrono::hours(1);
  for (;;) {
    const base::Duration left = std::clamp(context.Remaining(), kShortest, kLongest);
    if (changed.WaitUntil(mutex, context.stop_token(), std::chrono::steady_clock::now() + left,
                          done)) {
      return true;
    }
    if (context.Done()) return false;
  }
}

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_WAIT_H_
