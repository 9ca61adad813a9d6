// SPDX-License-Identifier: Apache-2.0
//
// Steps that the loop does not wait for, on real threads.

#include "execution/deferred_tasks.h"

#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/manual_executor.h"

namespace nomad_harvester::scaling {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class DeferredTasksTest : public ::testing::Test {
 protected:
  static DeferredTasks::Ended Done(const std::string& vm) {
    return {{"publish-host", vm}, vm, {}, {.verdict = Verdict::kDone}};
  }
  // Like a client that hangs: ends when its context does.
  static DeferredTasks::Task Hangs(const std::string& vm, std::atomic<bool>* begun) {
    return [vm, begun](const runtime::Context& context) {
      *begun = true;
      begun->notify_all();
      DeferredTasks::Ended ended = Done(vm);
      ended.effect = EffectOf(context.Sleep(std::chrono::hours(1)));
      return ended;
    };
  }
  static std::vector<std::string> Names(const std::vector<DeferredTasks::Ended>& all) {
    std::vector<std::string> names;
    for (const DeferredTasks::Ended& ended : all) names.push_back(ended.vm);
    return names;
  }

  std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  runtime::Context context_ = runtime::Context::Background(*clock_);
  runtime::WorkerPool pool_{{.threads = 4, .queue_limit = 16, .on_exception = {}}};
};

TEST_F(DeferredTasksTest, L1_one_that_hangs_does_not_hold_up_who_started_it) {
  std::atomic<bool> begun = false;
  {
    DeferredTasks tasks;
    tasks.Start(context_, pool_, Hangs("a", &begun));
    begun.wait(false);
    EXPECT_TRUE(tasks.any());
    EXPECT_THAT(tasks.TakeEnded(), IsEmpty());
  }  // cancels it: else this would take an hour
  EXPECT_TRUE(begun);
}

TEST_F(DeferredTasksTest, L9_the_end_cancels_what_runs_and_drops_what_has_not_begun) {
  support::ManualExecutor later;
  std::atomic<bool> begun = false;
  DeferredTasks tasks;
  tasks.Start(context_, later, Hangs("never", &begun));
  tasks.End();
  later.RunAll();
  EXPECT_FALSE(begun);
  EXPECT_FALSE(tasks.any());
}

TEST_F(DeferredTasksTest, the_executor_may_call_after_the_tasks_are_gone) {
  support::ManualExecutor later;
  std::atomic<bool> begun = false;
  {
    DeferredTasks tasks;
    tasks.Start(context_, later, Hangs("never", &begun));
  }
  EXPECT_EQ(later.RunAll(), 1U);
  EXPECT_FALSE(begun);
}

TEST_F(DeferredTasksTest, who_awaits_them_has_them_all_once) {
  DeferredTasks tasks;
  for (const char* vm : {"a", "b", "c"}) {
    tasks.Start(context_, pool_, [vm](const runtime::Context&) { return Done(vm); });
  }
  tasks.Await();
  EXPECT_FALSE(tasks.any());
  EXPECT_THAT(Names(tasks.TakeEnded()), UnorderedElementsAre("a", "b", "c"));
  EXPECT_THAT(tasks.TakeEnded(), IsEmpty());
}

TEST_F(DeferredTasksTest, L1_one_for_which_the_executor_has_no_room_is_gone_and_holds_nothing) {
  support::ManualExecutor executor;
  const auto turn = std::make_shared<int>(1);
  const auto holds = [turn](const std::string& vm) {
    return [turn, vm](const runtime::Context&) { return Done(vm); };
  };
  DeferredTasks tasks;
  EXPECT_TRUE(tasks.Start(context_, executor, holds("first")));
  executor.set_refusal(absl::ResourceExhaustedError("full"));
  EXPECT_FALSE(tasks.Start(context_, executor, holds("second")));
  executor.RunAll();
  EXPECT_FALSE(tasks.any());
  EXPECT_THAT(Names(tasks.TakeEnded()), UnorderedElementsAre("first"));
  EXPECT_EQ(turn.use_count(), 2) << "this one and the test's own";
}

TEST_F(DeferredTasksTest, who_awaits_them_runs_those_that_have_not_begun) {
  support::ManualExecutor later;
  DeferredTasks tasks;
  EXPECT_TRUE(tasks.Start(context_, later, [](const runtime::Context&) { return Done("a"); }));
  EXPECT_TRUE(tasks.any());
  tasks.Await();
  EXPECT_THAT(tasks.TakeEnded(), SizeIs(1));
}

TEST_F(DeferredTasksTest, L9_a_context_that_ends_ends_them) {
  const runtime::CancelSource call(context_);
  std::atomic<bool> begun = false;
  DeferredTasks tasks;
  tasks.Start(call.context(), pool_, Hangs("a", &begun));
  begun.wait(false);
  call.Cancel(runtime::CancelReason::kClient);
  tasks.Await();
  const auto ended = tasks.TakeEnded();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].effect.verdict, Verdict::kCancelled);
}

}  // namespace
}  // namespace nomad_harvester::scaling
