// SPDX-License-Identifier: Apache-2.0
// The client with all its decorators: which requests are repeated, and with which token.
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/http/decorators.h"
#include "nomad_harvester/http/retry.h"
#include "nomad_harvester/nomad/connection.h"
#include "nomad_harvester/nomad/error.h"

#include "nomad/client_fixture.h"
#include "support/scoped_temp_dir.h"
#include "support/seeded_random.h"

namespace nomad_harvester::nomad {
namespace {

class NomadStack : public ClientFixture {
 protected:
  void SetUp() override {
    const std::string path = dir_.WriteFile("token", "first");
    http::RetryOptions retry;
    retry.permanently_refused = IsPermanentRefusal;
    auto with_token = http::WithToken(transport_, http::MakeFileToken(path), NomadTokenHeader());
    stack_ = std::make_unique<NomadClient>(
        http::WithRetry(std::move(with_token), retry,
                        std::shared_ptr<runtime::Random>(support::MakeSeededRandom(1)), {}),
        NomadClient::Options{});
  }

  const support::ScopedTempDir dir_;
  std::unique_ptr<NomadClient> stack_;
};

TEST_F(NomadStack, a_403_of_an_expired_identity_takes_the_new_one_and_asks_again) {
  // The file changes while the request is under way.
  transport_->Reply(403, "Permission denied");
  transport_->Reply(200, "[]", {{"X-Nomad-Index", "1"}});
  transport_->OnSend([this] { dir_.WriteFile("token", "second-and-longer"); });
  EXPECT_TRUE(stack_->ListNodes(context_).ok());
  std::vector<std::string> tokens;
  for (const auto& request : transport_->requests()) {
    tokens.push_back(request.headers.Find("X-Nomad-Token").value_or("none"));
  }
  EXPECT_THAT(tokens, testing::ElementsAre("first", "second-and-longer"));
}

TEST_F(NomadStack, C9_reads_survive_a_leader_election_and_a_lost_connection) {
  transport_->Reply(500, "No cluster leader");
  transport_->Fail(base::Unavailable("connection broken"));
  transport_->Reply(504, "");
  transport_->Reply(200, R"({"ID":"n1"})");
  EXPECT_TRUE(stack_->GetNode(context_, "n1").ok());
}

TEST_F(NomadStack, C9_a_drain_whose_reply_is_lost_is_not_sent_again) {
  transport_->Fail(base::Unavailable("connection broken"));
  EXPECT_EQ(stack_->Drain(context_, "n1", {}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(transport_->requests().size(), 1U);
}

TEST_F(NomadStack, C9_a_drain_that_a_500_answers_is_not_sent_again) {
  transport_->Reply(500, "rpc error");
  EXPECT_EQ(stack_->Drain(context_, "n1", {}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(transport_->requests().size(), 1U);
}

TEST_F(NomadStack, a_drain_that_was_turned_away_by_the_rate_limit_is_sent_again) {
  transport_->Reply(429, "Too many requests");
  transport_->Reply(200, "{}");
  EXPECT_TRUE(stack_->Drain(context_, "n1", {}).ok());
}

TEST_F(NomadStack, cancelling_a_drain_is_repeated) {
  transport_->Fail(base::Unavailable("connection broken"));
  transport_->Reply(200, "{}");
  EXPECT_TRUE(stack_->CancelDrain(context_, "n1", true).ok());
  EXPECT_EQ(transport_->requests()[0].body, transport_->requests()[1].body);
}

TEST_F(NomadStack, a_permanent_refusal_sent_as_500_is_not_retried) {
  transport_->Reply(500, "node not found");
  EXPECT_EQ(stack_->Purge(context_, "n1").code(), absl::StatusCode::kNotFound);
  transport_->Reply(500,
                    "can not set node's scheduling eligibility to eligible while it is draining");
  EXPECT_EQ(stack_->SetEligible(context_, "n1", true).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(transport_->requests().size(), 2U);
}

}  // namespace
}  // namespace nomad_harvester::nomad
