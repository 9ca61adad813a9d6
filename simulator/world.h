// SPDX-License-Identifier: Apache-2.0
// Shared by all parts of the simulated cluster: time, random numbers and events. Guarded by the
// cluster's mutex.
#ifndef NOMAD_HARVESTER_SIMULATOR_WORLD_H_
#define NOMAD_HARVESTER_SIMULATOR_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/random.h"
#include "nomad_harvester/simulator/event.h"
#include "nomad_harvester/simulator/options.h"

namespace nomad_harvester::simulator {

class World {
 public:
  using Action = std::function<void()>;

  World(runtime::Clock& clock, runtime::Random& random, Options the_options);

  // Every change happens in a step: a request, an operator's action, or an action that is due.
  void BeginStep(base::MonoTime when, Actor actor);
  // Runs the next due action as a separate step; false if none is due.
  bool RunDue(base::MonoTime now);
  std::optional<base::MonoTime> NextDue() const;

  base::MonoTime now() const { return now_; }
  base::WallTime wall() const { return wall_; }
  // The time of the API server that handles this step, whose clock may be off; it is what it writes
  // into replies and objects.
  base::WallTime server_time() const { return wall_ + skew_; }
  void SetSkew(base::Duration skew) { skew_ = skew; }  // until the step ends
  void After(base::Duration delay, Action action);

  // A version 4 UUID in lower case.
  std::string NextUuid();

  void Emit(Event event);
  std::vector<Event> TakeEvents() { return std::exchange(events_, {}); }
  const std::vector<std::string>& journal() const { return journal_; }

  Options options;
  runtime::Clock& clock;
  runtime::Random& random;

 private:
  base::MonoTime now_{};
  base::WallTime wall_{};
  base::Duration skew_{};
  Actor actor_ = Actor::kController;
  std::uint64_t order_ = 0;  // orders actions that are due at the same time
  std::map<std::pair<base::MonoTime, std::uint64_t>, Action> due_;
  std::vector<Event> events_;
  std::vector<std::string> journal_;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_WORLD_H_
