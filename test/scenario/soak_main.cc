// SPDX-License-Identifier: Apache-2.0
//
// harvester_soak: a soak of any length, with any seed. See scripts/soak.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "nomad_harvester/base/parse.h"

#include "memory.h"
#include "soak.h"

namespace nomad_harvester::scenario {
namespace {

int Usage() {
  std::fputs(
      "usage: harvester_soak [--actions N] [--seed N] [--faults PERCENT]\n"
      "       harvester_soak --memory N\n",
      stderr);
  return 2;
}

// Whether a process holds as much after so many actions as after 100 (rule I7).
int CompareMemory(int actions) {
  UseMemory(1, 1);  // what a first use keeps for ever
  const MemoryUse few = UseMemory(100, 1);
  const MemoryUse many = UseMemory(actions, 1);
  const auto print = [](int number, const MemoryUse& use) {
    std::printf("%6d actions, %6d VMs, %8d requests: %8lld bytes held, %lld without an owner\n",
                number, use.vms, use.requests, static_cast<long long>(use.held),
                static_cast<long long>(use.leaked));
  };
  print(100, few);
  print(actions, many);
  const bool ok =
      many.held <= few.held + kMemoryGrowth && many.leaked <= few.leaked + kMemoryGrowth;
  std::printf("soak: memory: %s\n", ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}

int Main(int argc, char** argv) {
  SoakOptions options;
  options.actions = 10000;
  options.seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                            std::chrono::seconds(1));
  for (int i = 1; i < argc; i += 2) {
    const auto value = i + 1 < argc ? base::ParseInt(argv[i + 1]) : base::ParseInt("");
    if (!value.ok() || *value < 0) return Usage();
    if (std::strcmp(argv[i], "--actions") == 0) {
      options.actions = static_cast<int>(*value);
    } else if (std::strcmp(argv[i], "--seed") == 0) {
      options.seed = static_cast<std::uint64_t>(*value);
    } else if (std::strcmp(argv[i], "--faults") == 0) {
      options.faulty_percent = static_cast<double>(*value);
    } else if (std::strcmp(argv[i], "--memory") == 0) {
      return CompareMemory(static_cast<int>(*value));
    } else {
      return Usage();
    }
  }
  std::printf("soak: %d actions, seed %llu\n", options.actions,
              static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const SoakResult result = RunSoak(options);
  for (const auto& [what, count] : result.counts) std::printf("%8d  %s\n", count, what.c_str());
  if (!result.problems.empty()) std::printf("%s", result.transcript.c_str());
  for (const std::string& problem : result.problems) std::printf("VIOLATED %s\n", problem.c_str());
  std::printf("soak: %s\n", DescribeCosts(result).c_str());
  std::printf("soak: seed %llu, %d requests, %d changes, %s of the cluster's time: %s\n",
              static_cast<unsigned long long>(options.seed), result.requests, result.checks,
              base::FormatGoDuration(result.lasted).c_str(),
              result.problems.empty() ? "ok" : "FAILED");
  return result.problems.empty() ? 0 : 1;
}

}  // namespace
}  // namespace nomad_harvester::scenario

int main(int argc, char** argv) { return nomad_harvester::scenario::Main(argc, argv); }
