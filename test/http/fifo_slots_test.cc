// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "nomad_harvester/http/retry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/retry_requests.h"
#include "support/fake_clock.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using runtime::Context;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;

// Fails the test if it is used.
class UntouchableClock final : public runtime::Clock {
 public:
  base::MonoTime Now() const override {
    ADD_FAILURE() << "the clock was read";
    return {};
  }
  base::WallTime WallNow() const override { return {}; }
  bool SleepUntil(base::MonoTime, std::stop_token) override {
    ADD_FAILURE() << "the clock was slept on";
    return true;
  }
  std::unique_ptr<runtime::PeriodicTask> Every(base::Duration, std::function<void()>) override {
    return nullptr;
  }
};

TEST(FifoSlots, a_free_slot_is_taken_without_reading_the_clock) {
  UntouchableClock clock;
  FifoSlots slots(2);
  const Context context = Context::Background(clock).WithDeadline(base::MonoTime());
  EXPECT_THAT(slots.Acquire(context), IsOk());
  EXPECT_THAT(slots.Acquire(context), IsOk());
  slots.Release();
  EXPECT_THAT(slots.Acquire(context), IsOk());
}

TEST(FifoSlots, none_at_all_would_be_a_deadlock_and_means_one) {
  UntouchableClock clock;
  FifoSlots slots(0);
  EXPECT_THAT(slots.Acquire(Context::Background(clock)), IsOk());
}

TEST(FifoSlots, waiters_are_served_in_order) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  FifoSlots slots(1);
  ASSERT_THAT(slots.Acquire(context), IsOk());
  std::vector<int> order;  // written by the holder of the slot only
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_THAT(slots.Acquire(context), IsOk());
      order.push_back(i);
      slots.Release();
    });
    AwaitWaiting(slots, static_cast<std::size_t>(i) + 1);
  }
  slots.Release();
  threads.clear();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

// The first one is mostly not awake yet when the second slot is given back.
TEST(FifoSlots, slots_that_are_given_back_at_once_serve_as_many_waiters) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  for (int round = 0; round < 100; ++round) {
    FifoSlots slots(2);
    ASSERT_THAT(slots.Acquire(context), IsOk());
    ASSERT_THAT(slots.Acquire(context), IsOk());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&] { EXPECT_THAT(slots.Acquire(context), IsOk()); });
      AwaitWaiting(slots, i + 1);
    }
    slots.Release();
    slots.Release();
  }
}

TEST(FifoSlots, a_waiter_can_be_cancelled_and_loses_no_slot) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  const runtime::CancelSource source(context);
  FifoSlots slots(1);
  ASSERT_THAT(slots.Acquire(context), IsOk());
  {
    const std::jthread waiter(
        [&] { EXPECT_THAT(slots.Acquire(source.context()), StatusIs(StatusCode::kCancelled)); });
    AwaitWaiting(slots, 1);
    source.Cancel(runtime::CancelReason::kClient);
  }
  EXPECT_EQ(slots.waiting(), 0U);
  slots.Release();
  EXPECT_THAT(slots.Acquire(context), IsOk());
}

TEST(FifoSlots, a_waiter_gives_up_at_its_deadline) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  FifoSlots slots(1);
  ASSERT_THAT(slots.Acquire(context), IsOk());
  EXPECT_THAT(slots.Acquire(context.WithTimeout(std::chrono::milliseconds(5))),
              StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_EQ(slots.waiting(), 0U);
}

TEST(FifoSlots, a_deadline_on_a_fake_clock_that_has_passed_ends_the_wait) {
  support::FakeClock clock;
  const Context context = Context::Background(clock);
  FifoSlots slots(1);
  ASSERT_THAT(slots.Acquire(context), IsOk());
  EXPECT_THAT(slots.Acquire(context.WithTimeout(base::Duration::zero())),
              StatusIs(StatusCode::kDeadlineExceeded));
}

TEST(FifoSlots, never_more_holders_than_slots) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  FifoSlots slots(3);
  std::atomic<int> holders = 0;
  std::atomic<int> most = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          ASSERT_THAT(slots.Acquire(context), IsOk());
          const int now = ++holders;
          int seen = most;
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          std::this_thread::yield();
          --holders;
          slots.Release();
        }
      });
    }
  }
  EXPECT_LE(most, 3);
  EXPECT_EQ(slots.waiting(), 0U);
}

}  // namespace
}  // namespace nomad_harvester::http
