// SPDX-License-Identifier: Apache-2.0
// What KubeVirt adds to a guest in its pod, virt-launcher's.
#ifndef NOMAD_HARVESTER_HARVESTER_LAUNCHER_H_
#define NOMAD_HARVESTER_HARVESTER_LAUNCHER_H_

#include <cstdint>

namespace nomad_harvester::harvester {

inline constexpr std::int64_t kMi = std::int64_t{1} << 20;

// For a device that is passed through, of any number.
inline constexpr std::int64_t kOverheadOfVfio = 1024 * kMi;

// The container that keeps the log of the serial console
// (kubevirt/kubevirt:pkg/virt-controller/services/serialconsolelog.go).
inline constexpr std::int64_t kConsoleLogLimit = 60'000'000;
inline constexpr std::int64_t kConsoleLogLimitThousandths = 15;
inline constexpr std::int64_t kConsoleLogRequest = 35'000'000;
inline constexpr std::int64_t kConsoleLogRequestThousandths = 5;

// Memory in bytes for a guest that requests so much memory
// (kubevirt/kubevirt:pkg/virt-controller/services/renderresources.go, GetMemoryOverhead):
// KubeVirt's own processes, a page table with one bit for each 512 bits, `more`. Harvester
// multiplies all by its setting additional-guest-memory-overhead-ratio, whose default is used here.
// Observed with Harvester 1.8.0: a guest of 1 GiB has a pod with a limit of 1557364928 bytes.
constexpr std::int64_t LauncherOverhead(std::int64_t requested, std::int64_t cpus,
                                        std::int64_t more) {
  const auto thousands = [](std::int64_t bytes) {
    return bytes / 1000 + (bytes % 1000 == 0 ? 0 : 1);
  };
  const std::int64_t overhead =
      260 * kMi + cpus * 8 * kMi + thousands(requested) * 1000 / 512 + more;
  return overhead + thousands(overhead) / 2 * 1000;
}

}  // namespace nomad_harvester::harvester

#endif  // NOMAD_HARVESTER_HARVESTER_LAUNCHER_H_
