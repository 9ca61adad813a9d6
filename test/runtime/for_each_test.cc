// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/manual_executor.h"
#include "support/status_matchers.h"

namespace nomad_harvester::runtime {
namespace {

using namespace std::chrono_literals;
using support::FakeClock;
using support::IsOk;
using support::ManualExecutor;
using support::StatusIs;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

WorkerPool::Options Threads(std::size_t threads, std::size_t queue_limit = 1024) {
  return {.threads = threads, .queue_limit = queue_limit, .on_exception = {}};
}

class ForEachTest : public testing::Test {
 protected:
  FakeClock clock_;
  const Context context_ = Context::Background(clock_);
};

TEST_F(ForEachTest, Runs_every_index_once_and_in_order_without_helpers) {
  support::InlineExecutor executor;
  std::vector<std::size_t> seen;
  const auto results = ForEachBounded(context_, executor, 5, 3, [&](std::size_t i) {
    seen.push_back(i);
    return absl::OkStatus();
  });
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(results, testing::AllOf(SizeIs(5), Each(IsOk())));
}

TEST_F(ForEachTest, Zero_indices_submit_no_helper) {
  ManualExecutor executor;
  EXPECT_THAT(
      ForEachBounded(context_, executor, 0, 8, [](std::size_t) { return absl::OkStatus(); }),
      IsEmpty());
  EXPECT_EQ(executor.pending(), 0u);
}

TEST_F(ForEachTest, Keeps_one_status_per_index_and_one_failure_stops_no_other) {
  WorkerPool pool(Threads(3));
  const auto results = ForEachBounded(context_, pool, 50, 4, [](std::size_t i) {
    return i % 7 == 0 ? base::Internal(std::to_string(i)) : absl::OkStatus();
  });
  ASSERT_THAT(results, SizeIs(50));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i % 7 == 0) {
      EXPECT_THAT(results[i], StatusIs(absl::StatusCode::kInternal, std::to_string(i)));
    } else {
      EXPECT_THAT(results[i], IsOk());
    }
  }
}

TEST_F(ForEachTest, Never_runs_more_at_a_time_than_allowed) {
  WorkerPool pool(Threads(8));
  for (const std::size_t parallelism : {0u, 1u, 2u, 5u}) {
    std::atomic<std::size_t> running = 0;
    std::atomic<std::size_t> most = 0;
    ForEachBounded(context_, pool, 200, parallelism, [&](std::size_t) {
      const std::size_t now = ++running;
      std::size_t before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      std::this_thread::yield();
      --running;
      return absl::OkStatus();
    });
    EXPECT_LE(most, std::max<std::size_t>(parallelism, 1));
  }
}

TEST_F(ForEachTest, Really_works_in_parallel_with_the_caller_as_one_of_them) {
  WorkerPool pool(Threads(2));
  std::latch together(3);  // passes only if three indices run concurrently
  base::Mutex mutex;
  std::set<std::thread::id> where;
  const auto results = ForEachBounded(context_, pool, 3, 3, [&](std::size_t) {
    together.arrive_and_wait();
    base::MutexLock lock(mutex);
    where.insert(std::this_thread::get_id());
    return absl::OkStatus();
  });
  EXPECT_THAT(results, Each(IsOk()));
  EXPECT_THAT(where, testing::AllOf(SizeIs(3), testing::Contains(std::this_thread::get_id())));
}

TEST_F(ForEachTest, Asks_for_no_more_helpers_than_there_are_indices) {
  ManualExecutor executor;
  ForEachBounded(context_, executor, 3, 10, [](std::size_t) { return absl::OkStatus(); });
  EXPECT_EQ(executor.pending(), 2u);
}

TEST_F(ForEachTest, A_helper_that_starts_too_late_does_nothing) {
  ManualExecutor executor;
  int runs = 0;
  {
    const std::function<absl::Status(std::size_t)> fn = [&runs](std::size_t) {
      ++runs;
      return absl::OkStatus();
    };
    EXPECT_THAT(ForEachBounded(context_, executor, 4, 4, fn), SizeIs(4));
  }
  // fn and the results no longer exist here.
  EXPECT_EQ(executor.RunAll(), 3u);
  EXPECT_EQ(runs, 4);
}

TEST_F(ForEachTest, An_executor_that_refuses_leaves_the_work_to_the_caller) {
  ManualExecutor executor;
  executor.set_refusal(absl::ResourceExhaustedError("full"));
  int runs = 0;
  EXPECT_THAT(ForEachBounded(context_, executor, 6, 4,
                             [&](std::size_t) {
                               ++runs;
                               return absl::OkStatus();
                             }),
              testing::AllOf(SizeIs(6), Each(IsOk())));
  EXPECT_EQ(runs, 6);
}

TEST_F(ForEachTest, Does_not_deadlock_when_all_threads_of_the_pool_use_it_on_the_same_pool) {
  WorkerPool pool(Threads(2, 4));
  std::atomic<int> runs = 0;
  // Two levels inside tasks that occupy the whole pool, with a queue that is soon full.
  const auto results = ForEachBounded(context_, pool, 6, 3, [&](std::size_t) {
    const auto inner = ForEachBounded(context_, pool, 6, 3, [&](std::size_t) {
      ++runs;
      return absl::OkStatus();
    });
    return inner.size() == 6 ? absl::OkStatus() : base::Internal("lost");
  });
  EXPECT_THAT(results, Each(IsOk()));
  EXPECT_EQ(runs, 36);
}

TEST_F(ForEachTest, A_pool_that_stops_in_between_loses_no_index) {
  for (int round = 0; round < 50; ++round) {
    WorkerPool pool(Threads(2));
    std::optional<std::jthread> stopper;
    std::atomic<int> runs = 0;
    const auto results = ForEachBounded(context_, pool, 40, 3, [&](std::size_t) {
      if (++runs == 5) stopper.emplace([&] { pool.Stop(); });
      return absl::OkStatus();
    });
    stopper.reset();
    ASSERT_THAT(results, testing::AllOf(SizeIs(40), Each(IsOk())));
    ASSERT_EQ(runs, 40);
  }
}

TEST_F(ForEachTest, A_cancelled_context_gives_its_status_to_what_has_not_begun) {
  support::InlineExecutor executor;
  const CancelSource source(context_);
  int runs = 0;
  const auto results = ForEachBounded(source.context(), executor, 5, 1, [&](std::size_t i) {
    ++runs;
    if (i == 2) source.Cancel(CancelReason::kClient);
    return absl::OkStatus();
  });
  EXPECT_EQ(runs, 3);
  EXPECT_THAT(results, ElementsAre(IsOk(), IsOk(), IsOk(), StatusIs(absl::StatusCode::kCancelled),
                                   StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(ForEachTest, A_deadline_gives_its_status_to_what_has_not_begun) {
  support::InlineExecutor executor;
  const Context context = context_.WithTimeout(25s);
  const auto results =
      ForEachBounded(context, executor, 4, 2, [&](std::size_t) { return context_.Sleep(10s); });
  EXPECT_THAT(results,
              ElementsAre(IsOk(), IsOk(), IsOk(), StatusIs(absl::StatusCode::kDeadlineExceeded)));
}

TEST_F(ForEachTest, An_exception_reaches_the_caller_and_nothing_begins_after_it) {
  support::InlineExecutor executor;
  int runs = 0;
  EXPECT_THROW(ForEachBounded(context_, executor, 5, 3,
                              [&](std::size_t i) -> absl::Status {
                                ++runs;
                                if (i == 1) throw std::runtime_error("killed");
                                return absl::OkStatus();
                              }),
               std::runtime_error);
  EXPECT_EQ(runs, 2);
}

TEST_F(ForEachTest, An_exception_in_a_helper_waits_for_the_others_before_it_leaves) {
  WorkerPool pool(Threads(3));
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> running = 0;
    std::latch together(3);
    EXPECT_THROW(ForEachBounded(context_, pool, 3, 3,
                                [&](std::size_t i) -> absl::Status {
                                  ++running;
                                  together.arrive_and_wait();
                                  --running;
                                  if (i == 1) throw std::runtime_error("killed");
                                  return absl::OkStatus();
                                }),
                 std::runtime_error);
    ASSERT_EQ(running, 0);
  }
}

}  // namespace
}  // namespace nomad_harvester::runtime
