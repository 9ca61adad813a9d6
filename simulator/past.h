// SPDX-License-Identifier: Apache-2.0
// Earlier states, for reads that a server may answer with what it knew some time ago.
#ifndef NOMAD_HARVESTER_SIMULATOR_PAST_H_
#define NOMAD_HARVESTER_SIMULATOR_PAST_H_

#include <deque>
#include <utility>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::simulator {

template <typename State>
class Past {
 public:
  // From now on At returns the state of that long ago; zero ends it.
  void SetLag(base::Duration lag) {
    lag_ = lag;
    states_.clear();
  }
  bool on() const { return lag_ > base::Duration::zero(); }
  base::Duration lag() const { return lag_; }

  // The state after a change, and, after SetLag, the present one.
  void Record(base::MonoTime now, State state) {
    if (!on()) return;
    states_.push_back({now, std::move(state)});
    while (states_.size() > 1 && states_[1].since <= now - lag_) states_.pop_front();
  }
  // Null: there is no lag. The oldest state, if there was none yet that long ago.
  const State* At(base::MonoTime now) const {
    const State* seen = nullptr;
    for (const Entry& entry : states_) {
      if (seen != nullptr && entry.since > now - lag_) break;
      seen = &entry.state;
    }
    return seen;
  }

 private:
  struct Entry {
    base::MonoTime since;
    State state;
  };
  base::Duration lag_{};
  std::deque<Entry> states_;  // in order of time
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_PAST_H_
