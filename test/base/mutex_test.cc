// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/mutex.h"

#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace nomad_harvester::base {
namespace {

TEST(Mutex, Excludes_other_threads) {
  Mutex mutex;
  int counter = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10000; ++i) {
          MutexLock lock(mutex);
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 40000);
}

TEST(CondVar, Wait_returns_when_the_condition_holds) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  const std::jthread setter([&] {
    MutexLock lock(mutex);
    ready = true;
    changed.NotifyAll();
  });
  MutexLock lock(mutex);
  changed.Wait(mutex, [&] { return ready; });
  EXPECT_TRUE(ready);
}

TEST(CondVar, Wait_with_a_stop_token_returns_on_a_stop_request) {
  Mutex mutex;
  CondVar never;
  std::stop_source source;
  const std::jthread stopper([&] { source.request_stop(); });
  MutexLock lock(mutex);
  EXPECT_FALSE(never.Wait(mutex, source.get_token(), [] { return false; }));
  EXPECT_TRUE(never.Wait(mutex, source.get_token(), [] { return true; }));
}

TEST(CondVar, WaitUntil_returns_on_a_stop_request_long_before_its_time) {
  Mutex mutex;
  CondVar never;
  std::stop_source source;
  const std::jthread stopper([&] { source.request_stop(); });
  MutexLock lock(mutex);
  EXPECT_FALSE(never.WaitUntil(mutex, source.get_token(),
                               std::chrono::steady_clock::now() + std::chrono::hours(24),
                               [] { return false; }));
}

TEST(CondVar, WaitUntil_returns_at_its_time) {
  Mutex mutex;
  CondVar never;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  MutexLock lock(mutex);
  EXPECT_FALSE(never.WaitUntil(mutex, std::stop_token(), until, [] { return false; }));
  EXPECT_GE(std::chrono::steady_clock::now(), until);
}

}  // namespace
}  // namespace nomad_harvester::base
