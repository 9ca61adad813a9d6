// SPDX-License-Identifier: Apache-2.0
// The highest count of the last while, by which a pool shrinks late. Private to module demand.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_IDLE_WINDOW_H_
#define NOMAD_HARVESTER_SRC_DEMAND_IDLE_WINDOW_H_

#include <cstdint>
#include <deque>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::demand {

// Not thread-safe.
class IdleWindow {
 public:
  // Adds a count, and returns the highest one that is not older than `idle_for`. Times do not fall.
  std::int64_t Add(base::MonoTime now, base::Duration idle_for, std::int64_t count) {
    while (!steps_.empty() && steps_.back().count <= count) steps_.pop_back();
    steps_.push_back({now, count});
    while (now - steps_.front().at > idle_for) steps_.pop_front();
    return steps_.front().count;
  }
  bool empty() const { return steps_.empty(); }

 private:
  struct Step {
    base::MonoTime at;
    std::int64_t count;
  };
  // Counts fall strictly: one that is followed by a higher or equal one is never the answer again.
  std::deque<Step> steps_;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_IDLE_WINDOW_H_
