// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/clock.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "nomad_harvester/base/mutex.h"

#include "gtest/gtest.h"

namespace nomad_harvester::runtime {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, Sleeps_until_the_time_has_come) {
  const auto clock = MakeSystemClock();
  const base::MonoTime until = clock->Now() + 3ms;
  EXPECT_TRUE(clock->SleepUntil(until, std::stop_token()));
  EXPECT_GE(clock->Now(), until);
  EXPECT_TRUE(clock->SleepUntil(until, std::stop_token()));  // in the past: returns immediately
}

TEST(SystemClock, A_stop_request_ends_a_sleep_that_would_last_for_ever) {
  const auto clock = MakeSystemClock();
  std::stop_source source;
  std::latch begun(1);
  const std::jthread stopper([&] {
    begun.wait();
    source.request_stop();
  });
  begun.count_down();
  EXPECT_FALSE(clock->SleepUntil(base::MonoTime::max(), source.get_token()));
}

TEST(SystemClock, A_stop_that_was_requested_before_prevents_the_sleep) {
  const auto clock = MakeSystemClock();
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(clock->SleepUntil(base::MonoTime::max(), source.get_token()));
  EXPECT_FALSE(clock->SleepUntil(clock->Now() - 1s, source.get_token()));
}

TEST(SystemClock, Time_does_not_go_backwards_and_the_wall_clock_is_of_this_century) {
  const auto clock = MakeSystemClock();
  const base::MonoTime first = clock->Now();
  EXPECT_LE(first, clock->Now());
  EXPECT_GT(clock->WallNow(),
            base::WallTime(std::chrono::sys_days(std::chrono::year(2024) / 1 / 1)));
}

// Counts calls; a test can wait for a number of them.
class Counter {
 public:
  void Add() {
    base::MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  void WaitFor(int count) {
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() NH_REQUIRES(mutex_) { return count_ >= count; });
  }
  int count() {
    base::MutexLock lock(mutex_);
    return count_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  int count_ NH_GUARDED_BY(mutex_) = 0;
};

TEST(SystemClock, Every_calls_again_and_again_until_the_task_is_destroyed) {
  const auto clock = MakeSystemClock();
  Counter counter;
  auto task = clock->Every(1ms, [&] { counter.Add(); });
  counter.WaitFor(3);
  task.reset();
  const int after = counter.count();
  // A thread that still ran would increase the count during this sleep.
  clock->SleepUntil(clock->Now() + 5ms, std::stop_token());
  EXPECT_EQ(counter.count(), after);
}

TEST(SystemClock, Every_waits_one_interval_before_its_first_call) {
  const auto clock = MakeSystemClock();
  Counter counter;
  const base::MonoTime start = clock->Now();
  std::atomic<base::MonoTime> first{};
  const auto task = clock->Every(5ms, [&] {
    if (counter.count() == 0) first = clock->Now();
    counter.Add();
  });
  counter.WaitFor(1);
  EXPECT_GE(first.load(), start + 5ms);
}

TEST(SystemClock, Destroying_a_task_waits_for_its_call_under_way) {
  const auto clock = MakeSystemClock();
  std::latch entered(1);
  std::latch leave(1);
  std::atomic<bool> finished = false;
  std::atomic<bool> once = false;
  auto task = clock->Every(1ms, [&] {
    if (once.exchange(true)) return;
    entered.count_down();
    leave.wait();
    finished = true;
  });
  entered.wait();
  const std::jthread releaser([&] { leave.count_down(); });
  task.reset();
  EXPECT_TRUE(finished);
}

TEST(SystemClock, Destroying_a_task_does_not_wait_for_its_next_call) {
  const auto clock = MakeSystemClock();
  clock->Every(24h, [] { FAIL(); }).reset();
}

TEST(SystemClock, P2_an_exception_does_not_end_the_period_or_the_process) {
  const auto clock = MakeSystemClock();
  Counter counter;
  const auto task = clock->Every(1ms, [&] {
    counter.Add();
    throw std::runtime_error("in a callback");
  });
  counter.WaitFor(2);
}

TEST(SystemClock, An_interval_of_zero_does_not_spin) {
  const auto clock = MakeSystemClock();
  Counter counter;
  const base::MonoTime start = clock->Now();
  const auto task = clock->Every(base::Duration::zero(), [&] { counter.Add(); });
  counter.WaitFor(5);
  EXPECT_GE(clock->Now(), start + 5ms);
}

}  // namespace
}  // namespace nomad_harvester::runtime
