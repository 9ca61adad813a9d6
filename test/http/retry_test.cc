// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/retry.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/retry_requests.h"
#include "request_text.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"
#include "support/scripted_transport.h"
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
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Always the same fraction: 0.5, 0.25 …
class FixedRandom final : public runtime::Random {
 public:
  explicit FixedRandom(double fraction)
      : value_(static_cast<std::uint64_t>(fraction * 9007199254740992.0) << 11U) {}
  std::uint64_t Next() override { return value_; }

 private:
  const std::uint64_t value_;
};

class CountingPermit final : public runtime::WritePermit {
 public:
  explicit CountingPermit(int allowed, Duration limit = Duration::max())
      : allowed_(allowed), limit_(limit) {}
  absl::Status Check() const override {
    return checks_++ < allowed_ ? absl::OkStatus() : base::FailedPrecondition("the Lease is lost");
  }
  Duration AttemptLimit() const override { return limit_; }
  int checks() const { return checks_; }

 private:
  const int allowed_;
  const Duration limit_;
  mutable int checks_ = 0;
};

const absl::Status kNoAnswer = base::Unavailable("list nodes: cannot connect to h:1: no route");

class Retry : public testing::Test {
 protected:
  // Records the time of each attempt, in milliseconds since the start.
  absl::StatusOr<HttpResponse> Run(std::vector<ScriptedTransport::Outcome> outcomes,
                                   const Context& context, const HttpRequest& request) {
    std::size_t next = 0;
    inner_ = std::make_shared<ScriptedTransport>(
        [&, outcomes](const Context&, const HttpRequest&) -> ScriptedTransport::Outcome {
          times_.push_back(Since(start_));
          return outcomes.at(std::min(next++, outcomes.size() - 1));
        });
    return Stack()->Send(context, request);
  }
  absl::StatusOr<HttpResponse> Run(std::vector<ScriptedTransport::Outcome> outcomes) {
    return Run(std::move(outcomes), context_, HttpRequest());
  }
  std::shared_ptr<HttpTransport> Stack() {
    return WithRetry(inner_, options_, std::make_shared<FixedRandom>(fraction_), logger_);
  }
  // Never replies; the error has CurlTransport's text.
  static std::shared_ptr<ScriptedTransport> Silent() {
    return std::make_shared<ScriptedTransport>(
        [](const Context& context, const HttpRequest&) -> ScriptedTransport::Outcome {
          const Duration limit = context.Remaining();
          const absl::Status ended = context.Sleep(seconds(3600));
          return base::Annotate(TimedOut(ended, limit, "waiting for http://h:1"), "list nodes");
        });
  }
  int Since(base::MonoTime start) const {
    return static_cast<int>(std::chrono::duration_cast<milliseconds>(clock_.Now() - start).count());
  }

  FakeClock clock_;
  const Context context_ = Context::Background(clock_);
  const base::MonoTime start_ = clock_.Now();
  RetryOptions options_;
  double fraction_ = 0.5;
  std::shared_ptr<support::RecordingSink> sink_ = std::make_shared<support::RecordingSink>();
  log::Logger logger_{sink_, log::Level::kTrace};
  std::shared_ptr<ScriptedTransport> inner_;
  std::vector<int> times_;
};

TEST_F(Retry, a_reply_that_is_not_retried_is_returned_immediately) {
  const auto outcome = Run({Reply(404, {}, "nothing here")});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->body, "nothing here");
  EXPECT_THAT(times_, ElementsAre(0));
  EXPECT_THAT(sink_->records(), SizeIs(0));
}

TEST_F(Retry, a_transient_fault_is_retried) {
  const auto outcome = Run({kNoAnswer, Reply(503), Reply(200)});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 200);
  EXPECT_THAT(times_, SizeIs(3));
}

TEST_F(Retry, waits_are_the_random_part_of_a_doubling_ceiling) {
  options_.max_attempts = 5;
  EXPECT_THAT(Run({kNoAnswer}), StatusIs(StatusCode::kUnavailable));
  // Half of 200, 400, 800, 1600 ms.
  EXPECT_THAT(times_, ElementsAre(0, 100, 300, 700, 1500));
}

TEST_F(Retry, the_ceiling_stops_at_the_cap) {
  options_.max_attempts = 6;
  options_.backoff_base = seconds(1);
  options_.backoff_cap = seconds(3);
  EXPECT_THAT(Run({kNoAnswer}), StatusIs(StatusCode::kUnavailable));
  // Half of 1, 2, 3, 3, 3 s.
  EXPECT_THAT(times_, ElementsAre(0, 500, 1500, 3000, 4500, 6000));
}

TEST_F(Retry, jitter_may_be_nothing_at_all) {
  fraction_ = 0;
  EXPECT_THAT(Run({kNoAnswer}), StatusIs(StatusCode::kUnavailable));
  EXPECT_THAT(times_, ElementsAre(0, 0, 0, 0));
}

TEST_F(Retry, Retry_After_comes_before_the_jitter) {
  const auto outcome = Run({Reply(429, {{"Retry-After", "3"}}), Reply(200)});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_THAT(times_, ElementsAre(0, 3100));
}

TEST_F(Retry, the_last_error_has_the_number_of_attempts) {
  EXPECT_THAT(Run({kNoAnswer}),
              StatusIs(StatusCode::kUnavailable,
                       Eq("list nodes: cannot connect to h:1: no route (4 attempts)")));
  EXPECT_THAT(times_, SizeIs(4));
}

TEST_F(Retry, the_last_response_is_returned_as_it_is) {
  const auto outcome = Run({Reply(503, {}, "no leader")});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 503);
  EXPECT_EQ(outcome->body, "no leader");
  EXPECT_THAT(times_, SizeIs(4));
}

TEST_F(Retry, a_request_that_may_be_sent_once_is_sent_once) {
  HttpRequest request = WriteRequest();
  request.idempotency = Idempotency::kOnce;
  EXPECT_THAT(Run({kNoAnswer, Reply(200)}, context_, request),
              StatusIs(StatusCode::kUnavailable, Not(HasSubstr("attempt"))));
  EXPECT_THAT(times_, SizeIs(1));
}

TEST_F(Retry, refused_for_good_reaches_the_table) {
  options_.permanently_refused = [](const HttpResponse& r) { return r.body == "quota"; };
  const auto outcome = Run({Reply(500, {}, "quota"), Reply(200)});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 500);
}

TEST_F(Retry, an_attempt_has_a_time_limit_of_its_own) {
  EXPECT_THAT(Run({Reply(200)}), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(seconds(10)));
}

TEST_F(Retry, the_time_limit_leaves_room_for_the_servers_wait) {
  HttpRequest request;
  request.server_wait = seconds(30);
  EXPECT_THAT(Run({Reply(200)}, context_, request), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(seconds(40)));
}

TEST_F(Retry, no_time_limit_is_no_time_limit) {
  options_.attempt_timeout = Duration::max();
  HttpRequest request;
  request.server_wait = seconds(30);
  EXPECT_THAT(Run({Reply(200)}, context_, request), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(Duration::max()));
}

TEST_F(Retry, an_attempt_never_outlives_the_context) {
  EXPECT_THAT(Run({Reply(200)}, context_.WithTimeout(seconds(2)), HttpRequest()), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(seconds(2)));
}

TEST_F(Retry, an_attempt_that_timed_out_counts_as_no_reply) {
  inner_ = Silent();
  EXPECT_THAT(Stack()->Send(context_, HttpRequest()),
              StatusIs(StatusCode::kUnavailable,
                       Eq("list nodes: timed out after 10s waiting for http://h:1 (4 attempts)")));
  EXPECT_THAT(inner_->requests(), SizeIs(4));
}

TEST_F(Retry, L1_a_write_without_a_reply_in_time_is_not_repeated_and_one_that_was_not_sent_is) {
  inner_ = Silent();
  EXPECT_THAT(Stack()->Send(context_, WriteRequest()),
              StatusIs(StatusCode::kUnavailable, HasSubstr("timed out after 10s")));
  EXPECT_THAT(inner_->requests(), SizeIs(1));
  EXPECT_THAT(Run({kNoAnswer, Reply(200)}, context_, WriteRequest()), IsOk());
  EXPECT_THAT(inner_->requests(), SizeIs(2));
}

TEST_F(Retry, an_attempt_that_the_context_cuts_short_reports_the_one_before_it) {
  inner_ = Silent();
  EXPECT_THAT(Stack()->Send(context_.WithTimeout(seconds(15)), HttpRequest()),
              StatusIs(StatusCode::kDeadlineExceeded,
                       Eq("list nodes: timed out after 10s waiting for http://h:1 (2 attempts)")));
  EXPECT_THAT(inner_->remaining(), SizeIs(2));
}

TEST_F(Retry, an_attempt_that_the_context_cuts_short_after_a_reply_reports_its_own_limit) {
  const auto silent = Silent();
  bool replied = false;
  inner_ = std::make_shared<ScriptedTransport>(
      [&](const Context& context, const HttpRequest& request) -> ScriptedTransport::Outcome {
        return std::exchange(replied, true) ? silent->Send(context, request) : Reply(503);
      });
  EXPECT_THAT(Stack()->Send(context_.WithTimeout(seconds(5)), HttpRequest()),
              StatusIs(StatusCode::kDeadlineExceeded,
                       Eq("list nodes: timed out after 4.9s waiting for http://h:1")));
}

TEST_F(Retry, the_contexts_own_deadline_stays_a_deadline) {
  inner_ = Silent();
  EXPECT_THAT(Stack()->Send(context_.WithTimeout(seconds(5)), HttpRequest()),
              StatusIs(StatusCode::kDeadlineExceeded,
                       Eq("list nodes: timed out after 5s waiting for http://h:1")));
  EXPECT_THAT(inner_->requests(), SizeIs(1));
}

TEST_F(Retry, a_wait_that_the_context_does_not_outlive_is_not_begun) {
  const auto outcome = Run({Reply(429, {{"Retry-After", "30"}}), Reply(200)},
                           context_.WithTimeout(seconds(20)), HttpRequest());
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 429);
  EXPECT_THAT(times_, ElementsAre(0));
  EXPECT_EQ(Since(start_), 0);
}

TEST_F(Retry, L1_a_wait_of_more_than_three_seconds_is_left_to_the_caller) {
  for (const int status : {429, 503}) {
    times_.clear();
    const auto outcome = Run({Reply(status, {{"Retry-After", "4"}}, "too many"), Reply(200)});
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->status, status);
    EXPECT_EQ(outcome->body, "too many");
    EXPECT_THAT(times_, ElementsAre(0));
    EXPECT_EQ(Since(start_), 0);
  }
}

TEST_F(Retry, L1_the_waits_that_a_server_asks_for_hold_up_its_caller_for_no_longer_than_a_write) {
  EXPECT_EQ(Run({Reply(429, {{"Retry-After", "3"}})}, context_, WriteRequest())->status, 429);
  EXPECT_THAT(times_, SizeIs(4));
  EXPECT_LE(Since(start_), 10'000);
}

TEST_F(Retry, nothing_is_sent_for_a_context_that_has_ended) {
  const runtime::CancelSource source(context_);
  source.Cancel(runtime::CancelReason::kShutdown);
  EXPECT_THAT(Run({Reply(200)}, source.context(), HttpRequest()), StatusIs(StatusCode::kCancelled));
  EXPECT_THAT(times_, SizeIs(0));
}

TEST_F(Retry, cancellation_ends_the_wait_and_names_the_last_fault) {
  const runtime::CancelSource source(context_);
  clock_.After(milliseconds(50), [&] { source.Cancel(runtime::CancelReason::kClient); });
  EXPECT_THAT(Run({kNoAnswer, Reply(200)}, source.context(), HttpRequest()),
              StatusIs(StatusCode::kCancelled, HasSubstr("no route")));
  EXPECT_THAT(times_, SizeIs(1));
}

TEST_F(Retry, the_write_permit_is_checked_before_each_attempt) {
  const auto permit = std::make_shared<CountingPermit>(2);
  EXPECT_THAT(Run({kNoAnswer}, context_.WithWritePermit(permit), WriteRequest()),
              StatusIs(StatusCode::kFailedPrecondition, Eq("the Lease is lost")));
  EXPECT_THAT(times_, SizeIs(2));
  EXPECT_EQ(permit->checks(), 3);
}

TEST_F(Retry, a_refused_permit_sends_nothing_and_its_status_is_unchanged) {
  const auto permit = std::make_shared<CountingPermit>(0);
  EXPECT_THAT(Run({Reply(200)}, context_.WithWritePermit(permit), WriteRequest()),
              StatusIs(StatusCode::kFailedPrecondition, Eq("the Lease is lost")));
  EXPECT_THAT(times_, SizeIs(0));
}

TEST_F(Retry, a_read_never_checks_the_permit_regardless_of_its_method) {
  const auto permit = std::make_shared<CountingPermit>(0, seconds(1));
  HttpRequest request;
  request.method = Method::kPost;
  EXPECT_THAT(Run({Reply(503), Reply(201)}, context_.WithWritePermit(permit), request), IsOk());
  EXPECT_EQ(permit->checks(), 0);
  // The limit for write attempts does not apply either.
  EXPECT_THAT(inner_->remaining(), Each(seconds(10)));
}

TEST_F(Retry, a_write_attempt_ends_at_the_permits_limit) {
  const auto permit = std::make_shared<CountingPermit>(9, seconds(4));
  EXPECT_THAT(Run({Reply(200)}, context_.WithWritePermit(permit), WriteRequest()), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(seconds(4)));
}

TEST_F(Retry, a_longer_limit_of_the_permit_changes_nothing) {
  const auto permit = std::make_shared<CountingPermit>(9, seconds(40));
  EXPECT_THAT(Run({Reply(200)}, context_.WithWritePermit(permit), WriteRequest()), IsOk());
  EXPECT_THAT(inner_->remaining(), ElementsAre(seconds(10)));
}

TEST_F(Retry, each_repetition_is_one_debug_line_with_its_cause) {
  EXPECT_THAT(Run({Reply(502), kNoAnswer, Reply(200)}), IsOk());
  ASSERT_THAT(sink_->records(), SizeIs(2));
  EXPECT_EQ(sink_->records()[0].level, log::Level::kDebug);
  EXPECT_THAT(sink_->Text(), AllOf(HasSubstr("HTTP 502"), HasSubstr("no route"),
                                   HasSubstr("attempt=1"), HasSubstr("attempt=2")));
}

}  // namespace
}  // namespace nomad_harvester::http
