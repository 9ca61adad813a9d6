// SPDX-License-Identifier: Apache-2.0
// Injected randomness, so that tests are repeatable.
#ifndef NOMAD_HARVESTER_RUNTIME_RANDOM_H_
#define NOMAD_HARVESTER_RUNTIME_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace nomad_harvester::runtime {

// Thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  // Uniform over all 64-bit values.
  virtual std::uint64_t Next() = 0;

  // Uniform in [0, 1).
  double NextFraction();
  // `length` characters of Kubernetes' safe alphabet "bcdfghjklmnpqrstvwxz2456789", which cannot
  // form words (kubernetes/kubernetes:staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go).
  std::string NextName(std::size_t length);
};

// From the kernel (getrandom).
std::unique_ptr<Random> MakeSystemRandom();

}  // namespace nomad_harvester::runtime

#endif  // NOMAD_HARVESTER_RUNTIME_RANDOM_H_
