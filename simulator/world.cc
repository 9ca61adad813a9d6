// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

std::string World::NextUuid() {
  constexpr std::string_view kHex = "0123456789abcdef";
  // RFC 9562, 5.4: the version in the third group, the variant in the fourth.
  const std::uint64_t high = (random.Next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t low = (random.Next() & ~(std::uint64_t{0b11} << 62)) | std::uint64_t{0b10}
                                                                                 << 62;
  std::string uuid;
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) uuid += kHex[half >> shift & 0xf];
  }
  for (const std::size_t position : {8u, 13u, 18u, 23u}) uuid.insert(position, 1, '-');
  return uuid;
}

void World::Emit(Event event) {
  event.time = wall_;
  event.actor = actor_;
  journal_.push_back(Describe(event));
  events_.push_back(std::move(event));
}

}  // namespace nomad_harvester::simulator
