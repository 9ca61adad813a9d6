// SPDX-License-Identifier: Apache-2.0
// The mode in which sleepers block until another thread moves the clock.
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "support/fake_clock.h"

namespace nomad_harvester::support {
namespace {

using namespace std::chrono_literals;

TEST(FakeClockThreads, A_sleeper_blocks_until_another_thread_advances) {
  FakeClock clock;
  clock.set_auto_advance(false);
  const base::MonoTime until = clock.Now() + 10s;
  std::atomic<bool> awake = false;
  std::jthread sleeper([&] {
    EXPECT_TRUE(clock.SleepUntil(until, {}));
    awake = true;
  });
  clock.WaitForSleepers(1);
  clock.Advance(9s);
  clock.WaitForSleepers(1);  // it still sleeps
  EXPECT_FALSE(awake);
  clock.Advance(1s);
  sleeper.join();
  EXPECT_TRUE(awake);
  EXPECT_EQ(clock.Now(), until);
}

TEST(FakeClockThreads, Sleepers_whose_time_has_come_are_not_waited_for) {
  FakeClock clock;
  clock.set_auto_advance(false);
  std::vector<std::jthread> threads;
  std::latch first_round(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      clock.SleepUntil(clock.Now() + 1s, {});
      first_round.arrive_and_wait();
      clock.SleepUntil(clock.Now() + 1s, {});
    });
  }
  clock.WaitForSleepers(2);
  clock.Advance(1s);
  clock.WaitForSleepers(2);  // both of them in their second sleep
  EXPECT_TRUE(first_round.try_wait());
  clock.Advance(1s);
}

TEST(FakeClockThreads, A_stop_request_wakes_a_sleeper) {
  FakeClock clock;
  clock.set_auto_advance(false);
  std::stop_source source;
  const std::jthread stopper([&] {
    clock.WaitForSleepers(1);
    source.request_stop();
  });
  EXPECT_FALSE(clock.SleepUntil(base::MonoTime::max(), source.get_token()));
}

TEST(FakeClockThreads, Removing_a_task_waits_for_its_call_in_another_thread) {
  FakeClock clock;
  clock.set_auto_advance(false);
  std::latch entered(1);
  std::latch leave(1);
  std::atomic<bool> finished = false;
  auto task = clock.Every(1s, [&] {
    entered.count_down();
    leave.wait();
    finished = true;
  });
  std::jthread advancer([&] { clock.Advance(1s); });
  entered.wait();
  const std::jthread releaser([&] { leave.count_down(); });
  task.reset();
  EXPECT_TRUE(finished);
}

TEST(FakeClockThreads, Callbacks_run_in_the_thread_that_advances) {
  FakeClock clock;
  clock.set_auto_advance(false);
  std::thread::id where;
  clock.After(1s, [&] { where = std::this_thread::get_id(); });
  std::jthread sleeper([&] { clock.SleepUntil(clock.Now() + 5s, {}); });
  clock.WaitForSleepers(1);
  clock.Advance(5s);
  EXPECT_EQ(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace nomad_harvester::support
