// SPDX-License-Identifier: Apache-2.0
#include "support/threaded_clock.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace nomad_harvester::support {
namespace {

using namespace std::chrono_literals;

TEST(ThreadedClock, Time_passes_only_while_every_thread_waits) {
  ThreadedClock clock;
  const PassingTime passing(clock, 1s);
  const base::MonoTime begun = clock.Now();
  std::atomic<bool> worked = false;
  std::jthread worker([&] {
    // Longer than it takes to look at two threads, many times over.
    std::size_t sum = 0;
    for (std::size_t i = 0; i < 30'000'000; ++i) sum += i * i;
    EXPECT_EQ(clock.Now(), begun) << sum;
    worked = true;
  });
  EXPECT_TRUE(clock.SleepUntil(begun + 5s, {}));
  EXPECT_TRUE(worked);
  EXPECT_EQ(clock.Now(), begun + 5s);
}

TEST(ThreadedClock, Time_passes_for_all_threads_together) {
  ThreadedClock clock;
  const PassingTime passing(clock, 1s);
  const base::MonoTime begun = clock.Now();
  std::vector<std::jthread> threads;
  for (int i = 1; i <= 8; ++i) {
    threads.emplace_back([&clock, begun, i] {
      const base::MonoTime until = begun + i * 10s;
      EXPECT_TRUE(clock.SleepUntil(until, {}));
      EXPECT_EQ(clock.Now(), until);
    });
  }
}

}  // namespace
}  // namespace nomad_harvester::support
