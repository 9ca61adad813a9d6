// SPDX-License-Identifier: Apache-2.0
// Cancellation while other threads sleep, create and drop contexts. Meant for runs under
// ThreadSanitizer and AddressSanitizer.
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/clock.h"
#include "nomad_harvester/runtime/context.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/status_matchers.h"

namespace nomad_harvester::runtime {
namespace {

using namespace std::chrono_literals;
using support::FakeClock;
using support::StatusIs;

TEST(ContextThreads, Cancel_wakes_every_sleeper_of_parent_and_children) {
  const auto clock = MakeSystemClock();
  const CancelSource parent(Context::Background(*clock));
  std::vector<std::jthread> sleepers;
  std::atomic<int> woken = 0;
  for (int i = 0; i < 8; ++i) {
    sleepers.emplace_back([&, i] {
      std::optional<CancelSource> child;
      if (i % 2 == 0) child.emplace(parent.context());
      const Context context = child ? child->context() : parent.context();
      if (context.Sleep(24h).code() == absl::StatusCode::kCancelled &&
          context.cancel_reason() == CancelReason::kShutdown) {
        ++woken;
      }
    });
  }
  parent.Cancel(CancelReason::kShutdown);
  sleepers.clear();
  EXPECT_EQ(woken, 8);
}

TEST(ContextThreads, Children_are_created_and_destroyed_while_the_parent_is_cancelled) {
  FakeClock clock;
  for (int round = 0; round < 300; ++round) {
    auto parent = std::make_optional<CancelSource>(Context::Background(clock));
    const Context context = parent->context();
    std::latch start(4);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        for (int i = 0; i < 20; ++i) {
          const CancelSource child(context);
          const CancelSource grandchild(child.context());
          const bool was = child.context().Done();
          // A context that was created cancelled has a reason and keeps it.
          if (was) {
            EXPECT_NE(child.context().cancel_reason(), CancelReason::kNone);
          }
        }
      });
    }
    start.arrive_and_wait();
    parent->Cancel(CancelReason::kClient);
    parent.reset();
    threads.clear();
    EXPECT_THAT(CancelSource(context).context().Check(), StatusIs(absl::StatusCode::kCancelled));
  }
}

TEST(ContextThreads, The_reason_is_set_before_any_sleeper_is_woken) {
  const auto clock = MakeSystemClock();
  for (int round = 0; round < 200; ++round) {
    const CancelSource parent(Context::Background(*clock));
    const CancelSource child(parent.context());
    CancelReason seen = CancelReason::kNone;
    std::jthread sleeper([&] {
      clock->SleepUntil(base::MonoTime::max(), child.context().stop_token());
      seen = child.context().cancel_reason();
    });
    parent.Cancel(CancelReason::kLeaseLost);
    sleeper.join();
    ASSERT_EQ(seen, CancelReason::kLeaseLost);
  }
}

TEST(ContextThreads, One_reason_wins_when_several_threads_cancel) {
  FakeClock clock;
  for (int round = 0; round < 200; ++round) {
    const CancelSource source(Context::Background(clock));
    const CancelSource child(source.context());
    {
      std::jthread first([&] { source.Cancel(CancelReason::kClient); });
      std::jthread second([&] { source.Cancel(CancelReason::kShutdown); });
    }
    const CancelReason reason = source.context().cancel_reason();
    ASSERT_NE(reason, CancelReason::kNone);
    ASSERT_EQ(child.context().cancel_reason(), reason);
  }
}

// A thread drops the last child while it holds a lock that a callback of the cancellation takes. If
// the child's destructor waited for that callback, this would deadlock.
TEST(ContextThreads, Dropping_a_child_under_a_lock_does_not_deadlock_with_a_cancellation) {
  FakeClock clock;
  for (int round = 0; round < 300; ++round) {
    const CancelSource parent(Context::Background(clock));
    auto child = std::make_unique<CancelSource>(parent.context());
    base::Mutex mutex;
    int calls = 0;
    const auto on_stop = [&] {
      base::MutexLock lock(mutex);
      ++calls;
    };
    const std::stop_callback callback(child->context().stop_token(), on_stop);
    std::jthread dropper([&] {
      base::MutexLock lock(mutex);
      child.reset();
    });
    parent.Cancel(CancelReason::kShutdown);
    dropper.join();
    ASSERT_LE(calls, 1);
  }
}

TEST(ContextThreads, A_blocking_fake_clock_wakes_a_context_at_its_deadline) {
  FakeClock clock;
  clock.set_auto_advance(false);
  const Context context = Context::Background(clock).WithTimeout(5s);
  absl::Status status;
  std::jthread sleeper([&] { status = context.Sleep(1h); });
  clock.WaitForSleepers(1);
  clock.Advance(5s);
  sleeper.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace nomad_harvester::runtime
