// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using base::Secret;
using runtime::Context;
using support::IsOk;
using support::Reply;
using support::ScriptedTransport;
using support::StatusIs;
using testing::ElementsAre;
using testing::Eq;
using testing::SizeIs;

// Returns the tokens of a list; Refresh moves to the next one.
class ListedTokens final : public TokenSource {
 public:
  explicit ListedTokens(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}
  absl::StatusOr<Secret> Token() override { return Secret(tokens_.at(at_)); }
  void Refresh() override {
    ++refreshes_;
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  int refreshes() const { return refreshes_; }

 private:
  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  int refreshes_ = 0;
};

class BrokenSource final : public TokenSource {
 public:
  absl::StatusOr<Secret> Token() override { return base::FailedPrecondition("no such file"); }
  void Refresh() override {}
};

class RefusingPermit final : public runtime::WritePermit {
 public:
  absl::Status Check() const override { return base::FailedPrecondition("the Lease is lost"); }
  base::Duration AttemptLimit() const override { return base::Duration::max(); }
};

const TokenHeader kBearer = {"Authorization", "Bearer ", false};
const TokenHeader kNomad = {"X-Nomad-Token", "", true};

class WithTokenTest : public testing::Test {
 protected:
  absl::StatusOr<HttpResponse> Send(std::shared_ptr<TokenSource> source, const TokenHeader& header,
                                    const HttpRequest& request = HttpRequest()) {
    return WithToken(inner_, std::move(source), header)->Send(context_, request);
  }
  std::vector<std::string> Sent(const std::string& name) const {
    std::vector<std::string> values;
    for (const HttpRequest& request : inner_->requests()) {
      values.push_back(request.headers.Find(name).value_or("(none)"));
    }
    return values;
  }

  support::FakeClock clock_;
  Context context_ = Context::Background(clock_);
  std::shared_ptr<ScriptedTransport> inner_ = std::make_shared<ScriptedTransport>(
      std::initializer_list<ScriptedTransport::Outcome>{Reply(200)});
};

TEST_F(WithTokenTest, the_token_is_sent_with_its_prefix) {
  EXPECT_THAT(Send(MakeStaticToken(Secret("t")), kBearer), IsOk());
  EXPECT_THAT(Sent("Authorization"), ElementsAre("Bearer t"));
}

TEST_F(WithTokenTest, a_header_of_the_request_is_replaced) {
  HttpRequest request;
  request.headers.Add("x-nomad-token", "older");
  EXPECT_THAT(Send(MakeStaticToken(Secret("t")), kNomad, request), IsOk());
  EXPECT_THAT(Sent("X-Nomad-Token"), ElementsAre("t"));
  EXPECT_THAT(inner_->requests()[0].headers.fields(), SizeIs(1));
}

TEST_F(WithTokenTest, an_empty_token_is_not_sent) {
  EXPECT_THAT(Send(MakeStaticToken(Secret()), kBearer), IsOk());
  EXPECT_THAT(Sent("Authorization"), ElementsAre("(none)"));
}

TEST_F(WithTokenTest, without_a_token_nothing_is_sent) {
  EXPECT_THAT(Send(std::make_shared<BrokenSource>(), kBearer),
              StatusIs(StatusCode::kFailedPrecondition, Eq("no such file")));
  EXPECT_THAT(inner_->requests(), SizeIs(0));
}

TEST_F(WithTokenTest, a_401_causes_a_refresh_and_a_second_request) {
  inner_.reset(new ScriptedTransport{Reply(401), Reply(200)});
  const auto outcome =
      Send(std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"}), kBearer);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 200);
  EXPECT_THAT(Sent("Authorization"), ElementsAre("Bearer old", "Bearer new"));
}

TEST_F(WithTokenTest, a_401_with_an_unchanged_token_is_returned) {
  inner_.reset(new ScriptedTransport{Reply(401), Reply(200)});
  const auto outcome = Send(MakeStaticToken(Secret("t")), kBearer);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 401);
  EXPECT_THAT(inner_->requests(), SizeIs(1));
}

TEST_F(WithTokenTest, there_is_no_third_request) {
  inner_.reset(new ScriptedTransport{Reply(401)});
  const auto outcome =
      Send(std::make_shared<ListedTokens>(std::vector<std::string>{"a", "b", "c"}), kBearer);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 401);
  EXPECT_THAT(Sent("Authorization"), ElementsAre("Bearer a", "Bearer b"));
}

TEST_F(WithTokenTest, a_403_refreshes_only_where_it_can_mean_an_expired_token) {
  inner_.reset(new ScriptedTransport{Reply(403), Reply(200)});
  const auto source = std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"});
  const auto kubernetes = Send(source, kBearer);
  ASSERT_THAT(kubernetes, IsOk());
  EXPECT_EQ(kubernetes->status, 403);
  EXPECT_EQ(source->refreshes(), 0);

  inner_.reset(new ScriptedTransport{Reply(403), Reply(200)});
  const auto nomad = Send(source, kNomad);
  ASSERT_THAT(nomad, IsOk());
  EXPECT_EQ(nomad->status, 200);
  EXPECT_THAT(Sent("X-Nomad-Token"), ElementsAre("old", "new"));
}

TEST_F(WithTokenTest, a_token_that_another_thread_refreshed_counts_as_new) {
  const auto source = std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"});
  inner_ = std::make_shared<ScriptedTransport>(
      [&](const Context&, const HttpRequest& request) -> ScriptedTransport::Outcome {
        if (request.headers.Find("Authorization") == "Bearer new") return Reply(200);
        source->Refresh();  // another thread refreshed first
        return Reply(401);
      });
  const auto outcome = Send(source, kBearer);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status, 200);
}

TEST_F(WithTokenTest, the_second_attempt_of_a_write_checks_the_permit) {
  inner_.reset(new ScriptedTransport{Reply(401), Reply(200)});
  context_ = context_.WithWritePermit(std::make_shared<RefusingPermit>());
  HttpRequest request;
  request.effect = Effect::kWrite;
  EXPECT_THAT(Send(std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"}), kBearer,
                   request),
              StatusIs(StatusCode::kFailedPrecondition, Eq("the Lease is lost")));
  EXPECT_THAT(inner_->requests(), SizeIs(1));
}

TEST_F(WithTokenTest, the_second_sending_of_a_read_does_not_ask_the_permit) {
  inner_.reset(new ScriptedTransport{Reply(401), Reply(200)});
  context_ = context_.WithWritePermit(std::make_shared<RefusingPermit>());
  EXPECT_THAT(Send(std::make_shared<ListedTokens>(std::vector<std::string>{"old", "new"}), kBearer),
              IsOk());
  EXPECT_THAT(inner_->requests(), SizeIs(2));
}

TEST_F(WithTokenTest, an_error_is_passed_on) {
  inner_.reset(new ScriptedTransport{base::Unavailable("gone")});
  EXPECT_THAT(Send(MakeStaticToken(Secret("t")), kBearer),
              StatusIs(StatusCode::kUnavailable, Eq("gone")));
}

}  // namespace
}  // namespace nomad_harvester::http
