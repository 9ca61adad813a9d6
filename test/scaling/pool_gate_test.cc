// SPDX-License-Identifier: Apache-2.0
//
// Serialization of the work on a pool within this process, with real threads.

#include "nomad_harvester/scaling/pool_gate.h"

#include <atomic>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/status_matchers.h"

namespace nomad_harvester::scaling {
namespace {

using runtime::CancelReason;
using runtime::CancelSource;
using runtime::Context;
using support::IsOk;
using support::StatusIs;

class PoolGateTest : public testing::Test {
 protected:
  using Guard = std::unique_ptr<PoolGate::Guard>;

  // Enters for a Scale in another thread, because it may have to wait.
  std::future<absl::StatusOr<Guard>> ScaleInBackground(const Context& context) {
    return std::async(std::launch::async, [this, context] { return gate_.EnterForScale(context); });
  }
  // Returns once the guard is cancelled.
  static CancelReason WhyCancelled(const PoolGate::Guard& guard) {
    (void)guard.context().Sleep(std::chrono::hours(1));
    return guard.context().cancel_reason();
  }

  const std::unique_ptr<runtime::Clock> clock_ = runtime::MakeSystemClock();
  const Context context_ = Context::Background(*clock_);
  PoolGate gate_;
};

TEST_F(PoolGateTest, is_idle_at_first) {
  EXPECT_FALSE(gate_.Busy());
  EXPECT_FALSE(gate_.ScaleIsOpen());
  EXPECT_TRUE(gate_.WaitUntilIdle(context_));
  gate_.Cancel(CancelReason::kShutdown);
}

TEST_F(PoolGateTest, C11_a_second_scale_is_aborted_while_one_is_open_and_enters_after_it) {
  auto first = gate_.EnterForScale(context_);
  ASSERT_THAT(first, IsOk());
  EXPECT_TRUE(gate_.ScaleIsOpen());
  EXPECT_TRUE(gate_.Busy());
  EXPECT_THAT(gate_.EnterForScale(context_), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ((*first)->context().cancel_reason(), CancelReason::kNone);
  first->reset();
  EXPECT_FALSE(gate_.Busy());
  EXPECT_THAT(gate_.EnterForScale(context_), IsOk());
}

TEST_F(PoolGateTest, S5_a_resumption_is_refused_while_another_one_or_a_scale_is_open) {
  Guard resumption = gate_.EnterForResumption(context_);
  ASSERT_NE(resumption, nullptr);
  EXPECT_TRUE(gate_.Busy());
  EXPECT_FALSE(gate_.ScaleIsOpen()) << "background work is not busy to the agent";
  EXPECT_EQ(gate_.EnterForResumption(context_), nullptr);
  resumption.reset();
  auto scale = gate_.EnterForScale(context_);
  ASSERT_THAT(scale, IsOk());
  EXPECT_EQ(gate_.EnterForResumption(context_), nullptr);
}

TEST_F(PoolGateTest, C11_a_scale_takes_over_from_a_resumption_and_waits_for_its_end) {
  Guard resumption = gate_.EnterForResumption(context_);
  auto scale = ScaleInBackground(context_);
  EXPECT_EQ(WhyCancelled(*resumption), CancelReason::kTakenOver);
  // The Scale is waiting, and already counts as open.
  EXPECT_TRUE(gate_.ScaleIsOpen());
  EXPECT_EQ(gate_.EnterForResumption(context_), nullptr);
  EXPECT_THAT(gate_.EnterForScale(context_), StatusIs(absl::StatusCode::kAborted));
  EXPECT_NE(scale.wait_for(std::chrono::seconds(0)), std::future_status::ready)
      << "the Scale does not begin before the resumption has ended";
  resumption.reset();
  auto guard = scale.get();
  ASSERT_THAT(guard, IsOk());
  EXPECT_TRUE((*guard)->has_interrupted()) << "a refused Scale continues it (S5)";
  EXPECT_TRUE(gate_.ScaleIsOpen());
  EXPECT_EQ((*guard)->context().cancel_reason(), CancelReason::kNone);
  EXPECT_EQ(gate_.EnterForResumption(context_), nullptr);
  guard->reset();
  EXPECT_FALSE(gate_.Busy());
}

TEST_F(PoolGateTest, C11_no_resumption_enters_before_a_waiting_scale) {
  // The race window is the time that the Scale's thread takes to wake up; many rounds hit it.
  for (int round = 0; round < 100; ++round) {
    Guard resumption = gate_.EnterForResumption(context_);
    ASSERT_NE(resumption, nullptr);
    auto scale = ScaleInBackground(context_);
    ASSERT_EQ(WhyCancelled(*resumption), CancelReason::kTakenOver);
    resumption.reset();
    EXPECT_EQ(gate_.EnterForResumption(context_), nullptr);
    EXPECT_THAT(scale.get(), IsOk());
  }
}

TEST_F(PoolGateTest, a_scale_that_its_client_cancels_while_it_waits_leaves_the_gate_usable) {
  Guard resumption = gate_.EnterForResumption(context_);
  const CancelSource client(context_);
  auto scale = ScaleInBackground(client.context());
  EXPECT_EQ(WhyCancelled(*resumption), CancelReason::kTakenOver);
  client.Cancel(CancelReason::kClient);
  EXPECT_THAT(scale.get(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(gate_.ScaleIsOpen());
  EXPECT_TRUE(gate_.Busy());
  resumption.reset();
  EXPECT_NE(gate_.EnterForResumption(context_), nullptr);
}

TEST_F(PoolGateTest, a_scale_waits_for_a_resumption_no_longer_than_its_own_deadline) {
  const Guard resumption = gate_.EnterForResumption(context_);
  EXPECT_THAT(gate_.EnterForScale(context_.WithTimeout(std::chrono::milliseconds(1))),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_FALSE(gate_.ScaleIsOpen());
}

TEST_F(PoolGateTest, a_guard_ends_with_its_parent) {
  const CancelSource root(context_);
  const auto guard = gate_.EnterForScale(root.context());
  ASSERT_THAT(guard, IsOk());
  root.Cancel(CancelReason::kShutdown);
  EXPECT_EQ((*guard)->context().cancel_reason(), CancelReason::kShutdown);
}

TEST_F(PoolGateTest, a_guard_can_be_cancelled_by_itself_and_through_the_gate) {
  auto scale = gate_.EnterForScale(context_);
  ASSERT_THAT(scale, IsOk());
  gate_.Cancel(CancelReason::kShutdown);
  EXPECT_EQ((*scale)->context().cancel_reason(), CancelReason::kShutdown);
  EXPECT_TRUE(gate_.Busy()) << "cancelled is not ended";
  scale->reset();
  const Guard resumption = gate_.EnterForResumption(context_);
  ASSERT_NE(resumption, nullptr);
  EXPECT_EQ(resumption->context().cancel_reason(), CancelReason::kNone)
      << "the next one is not cancelled by what was meant for the last";
  resumption->Cancel(CancelReason::kLeaseLost);
  EXPECT_EQ(resumption->context().cancel_reason(), CancelReason::kLeaseLost);
}

TEST_F(PoolGateTest, S5_a_resumption_can_be_ended_and_a_scale_goes_on) {
  Guard resumption = gate_.EnterForResumption(context_);
  gate_.CancelResumption();
  EXPECT_EQ(resumption->context().cancel_reason(), CancelReason::kTakenOver);
  resumption.reset();
  const auto scale = gate_.EnterForScale(context_);
  ASSERT_THAT(scale, IsOk());
  gate_.CancelResumption();
  EXPECT_EQ((*scale)->context().cancel_reason(), CancelReason::kNone);
}

TEST_F(PoolGateTest, P1_waiting_until_idle_ends_with_the_last_guard) {
  Guard resumption = gate_.EnterForResumption(context_);
  auto idle = std::async(std::launch::async, [&] { return gate_.WaitUntilIdle(context_); });
  EXPECT_NE(idle.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  resumption.reset();
  EXPECT_TRUE(idle.get());
}

TEST_F(PoolGateTest, P1_waiting_until_idle_ends_with_its_context) {
  const Guard resumption = gate_.EnterForResumption(context_);
  EXPECT_FALSE(gate_.WaitUntilIdle(context_.WithTimeout(std::chrono::milliseconds(1))));
  const CancelSource source(context_);
  auto idle = std::async(std::launch::async, [&] { return gate_.WaitUntilIdle(source.context()); });
  source.Cancel(CancelReason::kShutdown);
  EXPECT_FALSE(idle.get());
}

TEST_F(PoolGateTest, C11_of_many_scales_at_once_exactly_one_acts_at_a_time) {
  constexpr int kThreads = 8;
  std::atomic<int> inside = 0;
  std::atomic<int> entered = 0;
  std::atomic<bool> overlapped = false;
  std::vector<std::future<void>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, [&, i] {
      for (int round = 0; round < 200; ++round) {
        Guard guard;
        if (i % 2 == 0) {
          auto scale = gate_.EnterForScale(context_);
          if (scale.ok()) guard = *std::move(scale);
        } else {
          guard = gate_.EnterForResumption(context_);
        }
        if (guard == nullptr) continue;
        ++entered;
        if (++inside > 1) overlapped = true;
        --inside;
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_FALSE(overlapped);
  EXPECT_GT(entered, 0);
  EXPECT_FALSE(gate_.Busy());
}

}  // namespace
}  // namespace nomad_harvester::scaling
