// SPDX-License-Identifier: Apache-2.0
//
// The entry point: passes arguments and environment to module cli. The only file that no test
// links.

#include <malloc.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "nomad_harvester/cli/commands.h"

#include "absl/synchronization/mutex.h"

int main(int argc, char** argv) {
  // One arena for all threads: otherwise each of the many threads would have its own, and keep in
  // it the memory that one large list needed. No other thread runs yet.
  mallopt(M_ARENA_MAX, 1);  // NOLINT(concurrency-mt-unsafe)
  // Disables the lists of small chunks, which every larger request would merge into the heap.
  mallopt(M_MXFAST, 0);  // NOLINT(concurrency-mt-unsafe)
  // Keeps memory that each request briefly needs: otherwise each one would take its receive buffer,
  // zeroed, from the kernel and return it. Larger blocks, such as long lists, are still returned.
  mallopt(M_TRIM_THRESHOLD, 2 * 1024 * 1024);  // NOLINT(concurrency-mt-unsafe)
  mallopt(M_MMAP_THRESHOLD, 1024 * 1024);      // NOLINT(concurrency-mt-unsafe)
  // Debian's Abseil checks for cycles at each lock that gRPC takes, and would abort the process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  nomad_harvester::config::StringMap environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos) {
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
    }
  }
  const std::string called = argc > 0 ? argv[0] : "";
  return nomad_harvester::cli::Main(arguments, environment, called.substr(called.rfind('/') + 1));
}
