// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/runtime/workers.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/inline_executor.h"
#include "support/status_matchers.h"

namespace nomad_harvester::runtime {
namespace {

using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(WorkerPool, Runs_every_task_once) {
  std::vector<std::atomic<int>> runs(500);
  WorkerPool pool({.threads = 4, .queue_limit = runs.size(), .on_exception = {}});
  std::latch done(static_cast<std::ptrdiff_t>(runs.size()));
  for (auto& count : runs) {
    ASSERT_THAT(pool.Submit([&] {
      ++count;
      done.count_down();
    }),
                IsOk());
  }
  done.wait();
  for (const auto& count : runs) EXPECT_EQ(count, 1);
}

TEST(WorkerPool, Uses_all_of_its_threads_at_once) {
  WorkerPool pool({.threads = 3, .queue_limit = 8, .on_exception = {}});
  std::latch together(3);  // passes only if three tasks run concurrently
  std::latch done(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(pool.Submit([&] {
      together.arrive_and_wait();
      done.count_down();
    }),
                IsOk());
  }
  done.wait();
}

TEST(WorkerPool, Refuses_tasks_beyond_the_limit_of_its_queue) {
  std::latch running(1);
  std::latch release(1);
  std::atomic<int> runs = 0;
  WorkerPool pool({.threads = 1, .queue_limit = 2, .on_exception = {}});
  ASSERT_THAT(pool.Submit([&] {
    running.count_down();
    release.wait();
  }),
              IsOk());
  running.wait();
  std::latch done(2);
  const auto task = [&] {
    ++runs;
    done.count_down();
  };
  EXPECT_THAT(pool.Submit(task), IsOk());
  EXPECT_THAT(pool.Submit(task), IsOk());
  EXPECT_THAT(pool.Submit(task), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  release.count_down();
  done.wait();
  EXPECT_THAT(pool.Submit([] {}), IsOk());
  pool.Stop();
  EXPECT_EQ(runs, 2);
}

TEST(WorkerPool, L8_as_many_tasks_as_threads_never_wait_in_the_queue_however_fast_they_come) {
  constexpr int kThreads = 64;
  std::latch release(1);
  WorkerPool pool({.threads = kThreads, .queue_limit = 1, .on_exception = {}});
  // None of the threads has begun yet, or some, or all.
  int accepted = 0;
  for (int i = 0; i < kThreads; ++i) accepted += pool.Submit([&] { release.wait(); }).ok() ? 1 : 0;
  EXPECT_EQ(accepted, kThreads);
  EXPECT_THAT(pool.Submit([] {}), IsOk());
  EXPECT_THAT(pool.Submit([] {}), StatusIs(absl::StatusCode::kResourceExhausted));
  release.count_down();
}

TEST(WorkerPool, Stop_waits_for_what_runs_and_drops_what_is_queued) {
  std::latch running(1);
  std::latch release(1);
  bool finished = false;
  bool queued_ran = false;
  const auto held = std::make_shared<int>(0);
  WorkerPool pool({.threads = 1, .queue_limit = 8, .on_exception = {}});
  ASSERT_THAT(pool.Submit([&] {
    running.count_down();
    release.wait();
    finished = true;
  }),
              IsOk());
  running.wait();
  ASSERT_THAT(pool.Submit([&queued_ran, held] { queued_ran = true; }), IsOk());
  const std::jthread releaser([&] {
    // Once Stop has begun: before, what is queued may run.
    while (!absl::IsCancelled(pool.Submit([] {}))) std::this_thread::yield();
    release.count_down();
  });
  pool.Stop();
  EXPECT_TRUE(finished);
  EXPECT_FALSE(queued_ran);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_THAT(pool.Submit([] { FAIL(); }), StatusIs(absl::StatusCode::kCancelled));
  pool.Stop();
}

TEST(WorkerPool, Several_threads_may_stop_it_and_all_of_them_wait) {
  std::latch running(1);
  std::latch release(1);
  std::atomic<bool> finished = false;
  std::atomic<int> too_early = 0;
  WorkerPool pool({.threads = 2, .queue_limit = 8, .on_exception = {}});
  ASSERT_THAT(pool.Submit([&] {
    running.count_down();
    release.wait();
    finished = true;
  }),
              IsOk());
  running.wait();
  std::vector<std::jthread> stoppers;
  for (int i = 0; i < 3; ++i) {
    stoppers.emplace_back([&] {
      pool.Stop();
      if (!finished) ++too_early;
    });
  }
  release.count_down();
  stoppers.clear();
  EXPECT_EQ(too_early, 0);
}

TEST(WorkerPool, P2_an_exception_is_reported_and_the_thread_continues) {
  base::Mutex mutex;
  std::vector<std::string> seen;
  WorkerPool pool({.threads = 1, .queue_limit = 8, .on_exception = [&](const std::string& text) {
                     base::MutexLock lock(mutex);
                     seen.push_back(text);
                   }});
  std::latch done(1);
  ASSERT_THAT(pool.Submit([] { throw std::runtime_error("first"); }), IsOk());
  ASSERT_THAT(pool.Submit([] { throw 2; }), IsOk());
  ASSERT_THAT(pool.Submit([&] { done.count_down(); }), IsOk());
  done.wait();
  pool.Stop();
  EXPECT_THAT(seen, ElementsAre("first", HasSubstr("unknown")));
}

TEST(WorkerPool, P2_an_exception_without_a_handler_is_ignored) {
  WorkerPool pool({.threads = 1, .queue_limit = 8, .on_exception = {}});
  std::latch done(1);
  ASSERT_THAT(pool.Submit([] { throw std::runtime_error("unheard"); }), IsOk());
  ASSERT_THAT(pool.Submit([&] { done.count_down(); }), IsOk());
  done.wait();
}

TEST(WorkerPool, A_task_releases_what_it_holds_before_the_next_one_runs) {
  WorkerPool pool({.threads = 1, .queue_limit = 8, .on_exception = {}});
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = held;
  std::latch done(1);
  bool released = false;
  ASSERT_THAT(pool.Submit([held] {}), IsOk());
  held.reset();
  ASSERT_THAT(pool.Submit([&] {
    released = watch.expired();
    done.count_down();
  }),
              IsOk());
  done.wait();
  EXPECT_TRUE(released);
}

TEST(WorkerPool, A_task_may_submit_more_tasks) {
  WorkerPool pool({.threads = 2, .queue_limit = 64, .on_exception = {}});
  std::latch done(1);
  std::function<void(int)> descend = [&](int depth) {
    if (depth == 0) {
      done.count_down();
      return;
    }
    EXPECT_THAT(pool.Submit([&descend, depth] { descend(depth - 1); }), IsOk());
  };
  descend(50);
  done.wait();
  pool.Stop();
}

TEST(WorkerPool, A_task_may_drop_the_last_reference_to_its_own_pool) {
  auto pool = std::make_shared<WorkerPool>(
      WorkerPool::Options{.threads = 2, .queue_limit = 8, .on_exception = {}});
  std::latch mine_dropped(1);
  std::latch done(1);
  WorkerPool& reference = *pool;
  ASSERT_THAT(reference.Submit([owner = pool, &mine_dropped, &done]() mutable {
    mine_dropped.wait();
    owner.reset();
    done.count_down();
  }),
              IsOk());
  pool.reset();
  mine_dropped.count_down();
  done.wait();
}

TEST(WorkerPool, Without_threads_it_refuses_instead_of_keeping_tasks_for_ever) {
  WorkerPool pool({.threads = 0, .queue_limit = 8, .on_exception = {}});
  EXPECT_THAT(pool.Submit([] {}), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(InlineExecutor, Runs_the_task_before_submit_returns) {
  support::InlineExecutor executor;
  std::thread::id where;
  EXPECT_THAT(executor.Submit([&] { where = std::this_thread::get_id(); }), IsOk());
  EXPECT_EQ(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace nomad_harvester::runtime
