// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/runtime/context.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/status_matchers.h"

namespace nomad_harvester::runtime {
namespace {

using namespace std::chrono_literals;
using support::FakeClock;
using support::IsOk;
using support::StatusIs;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::StatusCode kCancelled = absl::StatusCode::kCancelled;
constexpr absl::StatusCode kDeadline = absl::StatusCode::kDeadlineExceeded;

class ContextTest : public testing::Test {
 protected:
  FakeClock clock_;
  const Context root_ = Context::Background(clock_);
};
using CancelSourceTest = ContextTest;
using WritePermitTest = ContextTest;

TEST_F(ContextTest, Background_has_no_end) {
  EXPECT_EQ(root_.deadline(), std::nullopt);
  EXPECT_EQ(root_.Remaining(), base::Duration::max());
  EXPECT_EQ(root_.cancel_reason(), CancelReason::kNone);
  EXPECT_FALSE(root_.stop_token().stop_possible());
  EXPECT_EQ(root_.WriteAttemptLimit(), base::Duration::max());
  clock_.Advance(24h);
  EXPECT_THAT(root_.Check(), IsOk());
  EXPECT_THAT(root_.CheckWrite(), IsOk());
  EXPECT_FALSE(root_.Done());
  EXPECT_EQ(&root_.clock(), &clock_);
}

TEST_F(ContextTest, A_deadline_passes) {
  const Context context = root_.WithTimeout(10s);
  EXPECT_EQ(context.deadline(), clock_.Now() + 10s);
  clock_.Advance(4s);
  EXPECT_EQ(context.Remaining(), 6s);
  clock_.Advance(6s - 1ns);
  EXPECT_THAT(context.Check(), IsOk());
  clock_.Advance(1ns);
  EXPECT_THAT(context.Check(), StatusIs(kDeadline));
  EXPECT_TRUE(context.Done());
  clock_.Advance(1s);
  EXPECT_EQ(context.Remaining(), 0s);
}

TEST_F(ContextTest, Children_only_shorten_a_deadline) {
  const Context parent = root_.WithTimeout(10s);
  EXPECT_EQ(parent.WithTimeout(3s).Remaining(), 3s);
  EXPECT_EQ(parent.WithTimeout(30s).Remaining(), 10s);
  EXPECT_EQ(parent.WithDeadline(clock_.Now() + 1s).Remaining(), 1s);
  EXPECT_EQ(parent.WithDeadline(base::MonoTime::max()).Remaining(), 10s);
  EXPECT_EQ(parent.Remaining(), 10s);
}

TEST_F(ContextTest, A_timeout_beyond_the_end_of_time_does_not_overflow) {
  EXPECT_EQ(root_.WithTimeout(base::Duration::max()).deadline(), std::nullopt);
  EXPECT_EQ(root_.WithTimeout(base::Duration::max() - 1s).deadline(), base::MonoTime::max());
  EXPECT_EQ(root_.WithTimeout(10s).WithTimeout(base::Duration::max()).Remaining(), 10s);
  EXPECT_THAT(root_.WithTimeout(-1s).Check(), StatusIs(kDeadline));
  EXPECT_THAT(root_.WithTimeout(0s).Check(), StatusIs(kDeadline));
}

TEST_F(CancelSourceTest, Cancels_its_context_and_names_the_reason) {
  const std::vector<std::pair<CancelReason, std::string>> reasons = {
      {CancelReason::kClient, "the caller cancelled the call or disconnected"},
      {CancelReason::kShutdown, "the process is ending"},
      {CancelReason::kTakenOver, "another action took over"},
      {CancelReason::kLeaseLost, "the pool's Lease was lost"},
  };
  for (const auto& [reason, text] : reasons) {
    const CancelSource source(root_);
    EXPECT_THAT(source.context().Check(), IsOk());
    source.Cancel(reason);
    EXPECT_EQ(source.context().cancel_reason(), reason);
    EXPECT_THAT(source.context().Check(), StatusIs(kCancelled, HasSubstr(text)));
    EXPECT_TRUE(source.context().stop_token().stop_requested());
  }
}

TEST_F(CancelSourceTest, The_first_reason_stays) {
  const CancelSource source(root_);
  source.Cancel(CancelReason::kClient);
  source.Cancel(CancelReason::kShutdown);
  EXPECT_EQ(source.context().cancel_reason(), CancelReason::kClient);
}

TEST_F(CancelSourceTest, Cancelling_without_a_reason_cancels_all_the_same) {
  const CancelSource source(root_);
  source.Cancel(CancelReason::kNone);
  EXPECT_THAT(source.context().Check(), StatusIs(kCancelled));
}

TEST_F(CancelSourceTest, Children_are_cancelled_with_the_parent_and_inherit_the_reason) {
  const CancelSource parent(root_);
  const CancelSource child(parent.context());
  const CancelSource grandchild(child.context().WithTimeout(1h));
  parent.Cancel(CancelReason::kLeaseLost);
  EXPECT_EQ(child.context().cancel_reason(), CancelReason::kLeaseLost);
  EXPECT_EQ(grandchild.context().cancel_reason(), CancelReason::kLeaseLost);
  EXPECT_TRUE(grandchild.context().stop_token().stop_requested());
}

TEST_F(CancelSourceTest, A_child_keeps_its_own_earlier_reason) {
  const CancelSource parent(root_);
  const CancelSource child(parent.context());
  child.Cancel(CancelReason::kTakenOver);
  parent.Cancel(CancelReason::kShutdown);
  EXPECT_EQ(child.context().cancel_reason(), CancelReason::kTakenOver);
}

TEST_F(CancelSourceTest, A_child_does_not_cancel_parent_or_siblings) {
  const CancelSource parent(root_);
  const CancelSource first(parent.context());
  const CancelSource second(parent.context());
  first.Cancel(CancelReason::kClient);
  EXPECT_THAT(parent.context().Check(), IsOk());
  EXPECT_THAT(second.context().Check(), IsOk());
}

TEST_F(CancelSourceTest, The_child_of_a_cancelled_parent_is_cancelled_from_the_start) {
  const CancelSource parent(root_);
  parent.Cancel(CancelReason::kShutdown);
  const CancelSource child(parent.context());
  EXPECT_EQ(child.context().cancel_reason(), CancelReason::kShutdown);
  EXPECT_TRUE(child.context().stop_token().stop_requested());
}

TEST_F(CancelSourceTest, Destroying_a_source_does_not_cancel_and_children_outlive_it) {
  const CancelSource root(root_);
  std::optional<CancelSource> middle(root.context());
  const CancelSource leaf(middle->context());
  const Context copy = middle->context();
  middle.reset();
  EXPECT_THAT(copy.Check(), IsOk());
  root.Cancel(CancelReason::kShutdown);
  EXPECT_EQ(copy.cancel_reason(), CancelReason::kShutdown);
  EXPECT_EQ(leaf.context().cancel_reason(), CancelReason::kShutdown);
}

TEST_F(CancelSourceTest, A_callback_of_a_cancellation_may_drop_the_child) {
  const CancelSource parent(root_);
  auto child = std::make_unique<CancelSource>(parent.context());
  bool called = false;
  std::optional<std::stop_callback<std::function<void()>>> callback;
  callback.emplace(child->context().stop_token(), [&] {
    called = true;
    child.reset();
  });
  parent.Cancel(CancelReason::kClient);
  EXPECT_TRUE(called);
  EXPECT_EQ(child, nullptr);
}

TEST_F(ContextTest, Cancellation_is_reported_before_the_deadline) {
  const CancelSource source(root_.WithTimeout(1s));
  clock_.Advance(2s);
  EXPECT_THAT(source.context().Check(), StatusIs(kDeadline));
  source.Cancel(CancelReason::kClient);
  EXPECT_THAT(source.context().Check(), StatusIs(kCancelled));
}

TEST_F(ContextTest, Sleep_sleeps_so_long) {
  const base::MonoTime start = clock_.Now();
  EXPECT_THAT(root_.Sleep(7s), IsOk());
  EXPECT_EQ(clock_.Now() - start, 7s);
  EXPECT_THAT(root_.Sleep(-7s), IsOk());
  EXPECT_EQ(clock_.Now() - start, 7s);
}

TEST_F(ContextTest, Sleep_ends_at_the_deadline) {
  const base::MonoTime start = clock_.Now();
  EXPECT_THAT(root_.WithTimeout(3s).Sleep(7s), StatusIs(kDeadline));
  EXPECT_EQ(clock_.Now() - start, 3s);
  EXPECT_THAT(root_.WithTimeout(3s).Sleep(base::Duration::max()), StatusIs(kDeadline));
  EXPECT_EQ(clock_.Now() - start, 6s);
}

TEST_F(ContextTest, Sleep_ends_at_the_cancellation) {
  const base::MonoTime start = clock_.Now();
  const CancelSource source(root_);
  clock_.After(2s, [&] { source.Cancel(CancelReason::kShutdown); });
  EXPECT_THAT(source.context().Sleep(7s), StatusIs(kCancelled));
  EXPECT_EQ(clock_.Now() - start, 2s);
  EXPECT_THAT(source.context().Sleep(7s), StatusIs(kCancelled));
  EXPECT_EQ(clock_.Now() - start, 2s);
}

class FakePermit final : public WritePermit {
 public:
  FakePermit(std::string name, std::vector<std::string>* asked, base::Duration limit = 10s)
      : name_(std::move(name)), asked_(asked), limit_(limit) {}
  absl::Status Check() const override {
    asked_->push_back(name_);
    return answer;
  }
  base::Duration AttemptLimit() const override { return limit_; }
  void WriteBegan() const override { writes.emplace_back("began"); }
  void WriteEnded(bool abandoned) const override {
    writes.emplace_back(abandoned ? "abandoned" : "ended");
  }

  absl::Status answer;
  mutable std::vector<std::string> writes;

 private:
  std::string name_;
  std::vector<std::string>* asked_;
  base::Duration limit_;
};

TEST_F(WritePermitTest, Every_permit_is_checked_the_outermost_first) {
  std::vector<std::string> asked;
  const auto outer = std::make_shared<FakePermit>("outer", &asked, 8s);
  const auto inner = std::make_shared<FakePermit>("inner", &asked, 5s);
  const Context context = root_.WithWritePermit(outer).WithWritePermit(inner);
  EXPECT_THAT(context.CheckWrite(), IsOk());
  EXPECT_THAT(asked, ElementsAre("outer", "inner"));
  EXPECT_EQ(context.WriteAttemptLimit(), 5s);

  asked.clear();
  outer->answer = base::Unavailable("no lease");
  EXPECT_THAT(context.CheckWrite(), StatusIs(absl::StatusCode::kUnavailable, "no lease"));
  EXPECT_THAT(asked, ElementsAre("outer"));
}

TEST_F(WritePermitTest, The_permit_of_a_child_does_not_bind_its_parent) {
  std::vector<std::string> asked;
  const auto permit = std::make_shared<FakePermit>("inner", &asked);
  permit->answer = base::Unavailable("no");
  const Context child = root_.WithWritePermit(permit).WithTimeout(1h);
  const CancelSource grandchild(child);
  EXPECT_THAT(root_.CheckWrite(), IsOk());
  EXPECT_THAT(child.CheckWrite(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(grandchild.context().CheckWrite(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(child.Check(), IsOk());
}

TEST_F(WritePermitTest, L9_every_permit_knows_of_a_pending_write_and_how_it_ended) {
  std::vector<std::string> asked;
  const auto outer = std::make_shared<FakePermit>("outer", &asked);
  const auto inner = std::make_shared<FakePermit>("inner", &asked);
  std::optional<Context> context = root_.WithWritePermit(outer).WithWritePermit(inner);
  {
    PendingWrite write(*context);
    context.reset();
    EXPECT_THAT(inner->writes, ElementsAre("began"));
    write.SetAbandoned(true);
  }
  context = root_.WithWritePermit(inner);
  { const PendingWrite write(*context); }
  const PendingWrite without_permits(root_);
  EXPECT_THAT(outer->writes, ElementsAre("began", "abandoned"));
  EXPECT_THAT(inner->writes, ElementsAre("began", "abandoned", "began", "ended"));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(WritePermitTest, Cancellation_and_deadline_come_before_the_permits) {
  std::vector<std::string> asked;
  const CancelSource source(root_.WithWritePermit(std::make_shared<FakePermit>("p", &asked)));
  source.Cancel(CancelReason::kTakenOver);
  EXPECT_THAT(source.context().CheckWrite(), StatusIs(kCancelled));
  EXPECT_THAT(asked, IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::runtime
