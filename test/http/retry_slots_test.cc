// SPDX-License-Identifier: Apache-2.0
// What an attempt waits for before it is sent, and what its permits hear of it.
#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/retry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/retry_requests.h"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using base::Duration;
using runtime::Context;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::FakeClock;
using support::IsOk;
using support::Reply;
using support::ScriptedTransport;
using support::StatusIs;
using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

// Can be revoked while a write waits, and counts what it is told of writes.
class Permit final : public runtime::WritePermit {
 public:
  absl::Status Check() const override {
    return revoked_ ? base::Unavailable("the Lease is lost") : absl::OkStatus();
  }
  Duration AttemptLimit() const override { return seconds(10); }
  void WriteBegan() const override { ++open_; }
  void WriteEnded(bool abandoned) const override {
    --open_;
    ended_.emplace_back(abandoned ? "abandoned" : "ended");
  }
  void Revoke() { revoked_ = true; }
  int open() const { return open_; }
  // How the writes ended; for tests of one thread.
  const std::vector<std::string>& ended() const { return ended_; }

 private:
  std::atomic<bool> revoked_ = false;
  mutable std::atomic<int> open_ = 0;
  mutable std::vector<std::string> ended_;
};

class RetrySlots : public testing::Test {
 protected:
  RetrySlots() { options_.slots = {slots_}; }

  std::shared_ptr<HttpTransport> Stack() {
    return WithRetry(inner_, options_, std::shared_ptr(support::MakeSeededRandom(1)),
                     log::Logger());
  }
  static HttpRequest Read(std::string purpose = "list nodes") {
    HttpRequest request;
    request.purpose = std::move(purpose);
    return request;
  }

  FakeClock clock_;
  const Context context_ = Context::Background(clock_);
  const std::shared_ptr<FifoSlots> slots_ = std::make_shared<FifoSlots>(1);
  RetryOptions options_;
  std::shared_ptr<ScriptedTransport> inner_ = std::make_shared<ScriptedTransport>(
      std::initializer_list<ScriptedTransport::Outcome>{Reply(200)});
  const std::shared_ptr<Permit> permit_ = std::make_shared<Permit>();
};

TEST_F(RetrySlots, L8_waiting_for_a_slot_does_not_use_up_the_time_limit_of_a_request) {
  const auto stack = Stack();
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  std::jthread waiter([&] { EXPECT_THAT(stack->Send(context_, Read()), IsOk()); });
  AwaitWaiting(*slots_, 1);
  clock_.Advance(2 * options_.attempt_timeout);
  slots_->Release();
  waiter.join();
  EXPECT_THAT(inner_->remaining(), ElementsAre(options_.attempt_timeout));
}

TEST_F(RetrySlots, L8_a_permit_that_is_lost_while_a_write_waits_sends_nothing) {
  const auto stack = Stack();
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  std::jthread waiter([&] {
    EXPECT_THAT(stack->Send(context_.WithWritePermit(permit_), WriteRequest()),
                StatusIs(StatusCode::kUnavailable, Eq("the Lease is lost")));
  });
  AwaitWaiting(*slots_, 1);
  permit_->Revoke();
  slots_->Release();
  waiter.join();
  EXPECT_THAT(inner_->requests(), IsEmpty());
  EXPECT_THAT(stack->Send(context_, Read()), IsOk()) << "the slot is free again";
}

TEST_F(RetrySlots, L8_requests_get_their_slots_in_order) {
  const auto stack = Stack();
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  std::vector<std::jthread> waiters;
  for (std::size_t i = 0; i < 4; ++i) {
    waiters.emplace_back(
        [&, i] { EXPECT_THAT(stack->Send(context_, Read(std::to_string(i))), IsOk()); });
    AwaitWaiting(*slots_, i + 1);
  }
  slots_->Release();
  waiters.clear();
  std::vector<std::string> order;
  for (const HttpRequest& request : inner_->requests()) order.push_back(request.purpose);
  EXPECT_THAT(order, ElementsAre("0", "1", "2", "3"));
}

TEST_F(RetrySlots, L9_a_cancelled_request_does_not_wait_for_its_slot) {
  const auto stack = Stack();
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  const runtime::CancelSource source(context_);
  std::jthread waiter([&] {
    EXPECT_THAT(stack->Send(source.context(), Read()), StatusIs(StatusCode::kCancelled));
  });
  AwaitWaiting(*slots_, 1);
  source.Cancel(runtime::CancelReason::kClient);
  waiter.join();
  EXPECT_THAT(inner_->requests(), IsEmpty());
  EXPECT_EQ(slots_->waiting(), 0U);
}

TEST_F(RetrySlots, a_request_waits_for_its_slot_until_its_deadline_and_says_so) {
  const auto clock = runtime::MakeSystemClock();
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  EXPECT_THAT(Stack()->Send(Context::Background(*clock).WithTimeout(milliseconds(5)), Read()),
              StatusIs(StatusCode::kDeadlineExceeded,
                       MatchesRegex("list nodes: timed out after .*s waiting for other requests")));
}

TEST_F(RetrySlots, no_slot_is_kept_while_a_request_waits_to_be_repeated) {
  inner_ = std::make_shared<ScriptedTransport>(std::initializer_list<ScriptedTransport::Outcome>{
      Reply(429, {{"Retry-After", "3"}}), Reply(200)});
  bool free = false;
  clock_.After(seconds(1), [&] {
    free = slots_->Acquire(context_.WithTimeout(Duration::zero())).ok();
    if (free) slots_->Release();
  });
  EXPECT_THAT(Stack()->Send(context_, Read()), IsOk());
  EXPECT_TRUE(free);
  EXPECT_THAT(inner_->requests(), SizeIs(2));
}

TEST_F(RetrySlots, a_request_that_fails_gives_its_slot_back) {
  inner_ = std::make_shared<ScriptedTransport>(
      std::initializer_list<ScriptedTransport::Outcome>{base::Unavailable("gone")});
  const auto stack = Stack();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(stack->Send(context_, Read()), StatusIs(StatusCode::kUnavailable));
  }
}

TEST_F(RetrySlots, a_request_needs_a_slot_of_every_limit) {
  const auto other = std::make_shared<FifoSlots>(1);
  options_.slots = {slots_, other};
  const auto stack = Stack();
  ASSERT_THAT(other->Acquire(context_), IsOk());
  std::jthread waiter([&] { EXPECT_THAT(stack->Send(context_, Read()), IsOk()); });
  AwaitWaiting(*other, 1);
  EXPECT_THAT(inner_->requests(), IsEmpty());
  other->Release();
  waiter.join();
  EXPECT_THAT(inner_->requests(), SizeIs(1));
}

TEST_F(RetrySlots, L8_what_waits_for_the_limit_of_its_pool_keeps_no_slot_from_others) {
  const auto clock = runtime::MakeSystemClock();
  const Context context = Context::Background(*clock);
  std::binary_semaphore begun{0};
  std::latch end{1};
  const auto inner = std::make_shared<ScriptedTransport>(
      [&](const Context&, const HttpRequest&) -> ScriptedTransport::Outcome {
        begun.release();
        end.wait();
        return Reply(200);
      });
  const System system = MakeSystem("harvester", inner, {}, /*slots=*/2,
                                   std::shared_ptr(support::MakeSeededRandom(1)), {}, nullptr);
  const auto pool = system.Limited(1);
  std::jthread first([&] { EXPECT_THAT(pool->Send(context, Read()), IsOk()); });
  begun.acquire();
  std::atomic<bool> ended = false;
  std::jthread second([&] {
    EXPECT_THAT(pool->Send(context.WithTimeout(milliseconds(50)), Read()),
                StatusIs(StatusCode::kDeadlineExceeded));
    ended = true;
  });
  while (!ended) {
    const bool is_free = system.slots->Acquire(context.WithTimeout(Duration::zero())).ok();
    EXPECT_TRUE(is_free);
    if (!is_free) break;
    system.slots->Release();
  }
  end.count_down();
}

TEST_F(RetrySlots, L8_a_blocking_query_takes_no_slot) {
  ASSERT_THAT(slots_->Acquire(context_), IsOk());
  HttpRequest request = Read();
  request.server_wait = seconds(30);
  EXPECT_THAT(Stack()->Send(context_, request), IsOk());
  EXPECT_EQ(slots_->waiting(), 0U);
}

class WritesUnderAPermit : public RetrySlots {
 protected:
  void Send(const std::vector<ScriptedTransport::Outcome>& outcomes, const HttpRequest& request) {
    std::size_t next = 0;
    inner_ = std::make_shared<ScriptedTransport>(
        [&, outcomes](const Context&, const HttpRequest&) -> ScriptedTransport::Outcome {
          open_during_attempt_.push_back(permit_->open());
          return outcomes.at(std::min(next++, outcomes.size() - 1));
        });
    static_cast<void>(Stack()->Send(context_.WithWritePermit(permit_), request));
  }
  // Never replies.
  static ScriptedTransport::Outcome Silence(const Context& context, const HttpRequest&) {
    return context.Sleep(std::chrono::hours(1));
  }
  std::vector<int> open_during_attempt_;
};

TEST_F(WritesUnderAPermit, L9_a_permit_knows_of_a_write_while_it_is_under_way) {
  Send({Reply(503), Reply(200)}, WriteRequest());
  EXPECT_THAT(open_during_attempt_, ElementsAre(1, 1));
  EXPECT_EQ(permit_->open(), 0);
  EXPECT_THAT(permit_->ended(), ElementsAre("ended"));
}

TEST_F(WritesUnderAPermit, L9_a_write_that_is_cancelled_before_its_reply_is_abandoned) {
  inner_ = std::make_shared<ScriptedTransport>(Silence);
  const runtime::CancelSource source(context_);
  clock_.After(seconds(1), [&] { source.Cancel(runtime::CancelReason::kShutdown); });
  EXPECT_THAT(Stack()->Send(source.context().WithWritePermit(permit_), WriteRequest()),
              StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(permit_->ended(), ElementsAre("abandoned"));
}

TEST_F(WritesUnderAPermit, L9_a_write_that_its_contexts_deadline_ends_is_abandoned) {
  inner_ = std::make_shared<ScriptedTransport>(Silence);
  EXPECT_THAT(
      Stack()->Send(context_.WithTimeout(seconds(1)).WithWritePermit(permit_), WriteRequest()),
      StatusIs(StatusCode::kDeadlineExceeded));
  EXPECT_THAT(permit_->ended(), ElementsAre("abandoned"));
}

TEST_F(WritesUnderAPermit, L9_a_write_whose_last_attempt_got_no_reply_is_abandoned) {
  inner_ = std::make_shared<ScriptedTransport>(Silence);
  EXPECT_THAT(Stack()->Send(context_.WithWritePermit(permit_), WriteRequest()),
              StatusIs(StatusCode::kUnavailable));
  Send({base::Unavailable("the connection broke")}, WriteRequest());
  EXPECT_THAT(permit_->ended(), ElementsAre("abandoned", "abandoned"));
}

TEST_F(WritesUnderAPermit, L9_a_write_that_was_answered_or_never_sent_is_not_abandoned) {
  Send({base::Unavailable("the connection broke"), Reply(200)}, WriteRequest());
  Send({Reply(422)}, WriteRequest());
  permit_->Revoke();
  Send({Reply(200)}, WriteRequest());
  EXPECT_THAT(permit_->ended(), ElementsAre("ended", "ended", "ended"));
}

TEST_F(WritesUnderAPermit, L9_a_write_that_is_cancelled_before_it_is_sent_is_not_abandoned) {
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_THAT(Stack()->Send(source.context().WithWritePermit(permit_), WriteRequest()),
              StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(permit_->ended(), ElementsAre("ended"));
}

TEST_F(WritesUnderAPermit, one_whose_late_arrival_is_harmless_is_checked_but_not_counted) {
  HttpRequest harmless = WriteRequest();
  harmless.late_is_harmless = true;
  Send({base::Unavailable("the connection broke")}, harmless);
  EXPECT_THAT(open_during_attempt_, testing::Each(0));
  EXPECT_THAT(permit_->ended(), IsEmpty());
  permit_->Revoke();
  open_during_attempt_.clear();
  Send({Reply(200)}, harmless);
  EXPECT_THAT(open_during_attempt_, IsEmpty()) << "it was sent without a permit";
}

TEST_F(WritesUnderAPermit, a_read_is_no_write) {
  Send({base::Unavailable("the connection broke")}, Read());
  EXPECT_THAT(permit_->ended(), IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::http
