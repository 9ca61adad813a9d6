// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/random.h"

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

std::unique_ptr<Random> MakeSystemRandom() { return std::make_unique<SystemRandom>(); }

}  // namespace nomad_harvester::runtime
