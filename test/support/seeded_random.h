// SPDX-License-Identifier: Apache-2.0
// Repeatable randomness: the same seed gives the same sequence on every platform.
#ifndef NOMAD_HARVESTER_TEST_SUPPORT_SEEDED_RANDOM_H_
#define NOMAD_HARVESTER_TEST_SUPPORT_SEEDED_RANDOM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "nomad_harvester/runtime/random.h"

namespace nomad_harvester::support {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"): its state is a
// counter, which threads can share without a lock.
class SeededRandom final : public runtime::Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() override {
    constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;
    std::uint64_t z = state_.fetch_add(kGamma) + kGamma;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::atomic<std::uint64_t> state_;
};

inline std::unique_ptr<runtime::Random> MakeSeededRandom(std::uint64_t seed) {
  return std::make_unique<SeededRandom>(seed);
}

}  // namespace nomad_harvester::support

#endif  // NOMAD_HARVESTER_TEST_SUPPORT_SEEDED_RANDOM_H_
