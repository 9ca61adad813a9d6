// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/random.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <sys/random.h>

namespace nomad_harvester::runtime {
namespace {

class SystemRandom final : public Random {
 public:
  std::uint64_t Next() override {
    std::uint64_t value = 0;
    // Once the kernel's pool is initialised, up to 256 bytes are returned completely and without
    // EINTR (getrandom(2)); a sandbox may still forbid the call.
    if (getrandom(&value, sizeof value, 0) == static_cast<ssize_t>(sizeof value)) return value;
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }
};

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"): its state is a
// counter, which threads can share without a lock.
class SeededRandom final : public Random {
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

}  // namespace

double Random::NextFraction() {
  // 53 bits: as many as a double holds exactly.
  return static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

std::string Random::NextName(std::size_t length) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string name;
  for (std::size_t i = 0; i < length; ++i) name += kAlphabet[Next() % kAlphabet.size()];
  return name;
}

std::string Random::NextUuid() {
  constexpr std::string_view kHex = "0123456789abcdef";
  // RFC 9562, 5.4: the version in the third group, the variant in the fourth.
  const std::uint64_t high = (Next() & ~std::uint64_t{0xf000}) | 0x4000;
  const std::uint64_t low = (Next() & ~(std::uint64_t{0b11} << 62)) | std::uint64_t{0b10} << 62;
  std::string uuid;
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) uuid += kHex[half >> shift & 0xf];
  }
  for (const std::size_t position : {8u, 13u, 18u, 23u}) uuid.insert(position, 1, '-');
  return uuid;
}

std::unique_ptr<Random> MakeSystemRandom() { return std::make_unique<SystemRandom>(); }

std::unique_ptr<Random> MakeSeededRandom(std::uint64_t seed) {
  return std::make_unique<SeededRandom>(seed);
}

}  // namespace nomad_harvester::runtime
