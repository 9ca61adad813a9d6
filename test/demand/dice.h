// SPDX-License-Identifier: Apache-2.0
// Random choices of a property test, which a seed repeats.
#ifndef NOMAD_HARVESTER_TEST_DEMAND_DICE_H_
#define NOMAD_HARVESTER_TEST_DEMAND_DICE_H_

#include <cstdint>
#include <random>

namespace nomad_harvester::demand {

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  bool OneIn(std::int64_t n) { return Below(n) == 0; }
  std::mt19937& engine() { return engine_; }

 private:
  std::mt19937 engine_;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_TEST_DEMAND_DICE_H_
