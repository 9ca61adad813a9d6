// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <algorithm>

namespace nomad_harvester::simulator {

World::World(runtime::Clock& the_clock, runtime::Random& the_random, Options the_options)
    : options(std::move(the_options)), clock(the_clock), random(the_random) {
  BeginStep(clock.Now(), Actor::kController);
}

void World::BeginStep(base::MonoTime when, Actor actor) {
  now_ = when;
  wall_ = clock.WallNow() - (clock.Now() - when);
  skew_ = base::Duration::zero();
  actor_ = actor;
}

bool World::RunDue(base::MonoTime now) {
  if (due_.empty() || due_.begin()->first.first > now) return false;
  auto entry = due_.extract(due_.begin());
  BeginStep(entry.key().first, Actor::kController);
  entry.mapped()();
  return true;
}

std::optional<base::MonoTime> World::NextDue() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first.first;
}

void World::After(base::Duration delay, Action action) {
  due_.emplace(std::pair(now_ + std::max(base::Duration::zero(), delay), order_++),
               std::move(action));
}

void World::Emit(Event event) {
  event.time = wall_;
  event.actor = actor_;
  journal_.push_back(Describe(event));
  events_.push_back(std::move(event));
}

}  // namespace nomad_harvester::simulator
