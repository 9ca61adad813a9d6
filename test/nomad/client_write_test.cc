// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nomad/error.h"

#include "nomad/client_fixture.h"

namespace nomad_harvester::nomad {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class NomadWrites : public ClientFixture {
 protected:
  void ExpectPost(const std::string& target, http::Idempotency idempotency) const {
    EXPECT_EQ(OnlyRequest().method, http::Method::kPost);
    EXPECT_EQ(OnlyRequest().target, target);
    EXPECT_EQ(OnlyRequest().effect, http::Effect::kWrite);
    EXPECT_EQ(OnlyRequest().idempotency, idempotency);
    EXPECT_EQ(OnlyRequest().server_wait, base::Duration::zero());
  }
};

TEST_F(NomadWrites, a_drain_is_posted_with_deadline_meta_and_without_mark_eligible) {
  transport_->Reply(200, R"({"NodeModifyIndex":5,"EvalIDs":null,"Index":5})");
  DrainSpec spec;
  spec.deadline = std::chrono::minutes(15);
  spec.ignore_system_jobs = true;
  spec.meta = {{"drained_by", "nomad-autoscaler"}, {"vm", "web-1"}};
  ASSERT_TRUE(client_.Drain(context_, "n1", spec).ok());
  EXPECT_EQ(Body(), json::parse(R"({
      "NodeID": "n1", "DrainSpec": {"Deadline": 900000000000, "IgnoreSystemJobs": true},
      "MarkEligible": false, "Meta": {"drained_by": "nomad-autoscaler", "vm": "web-1"}})"));
  EXPECT_EQ(OnlyRequest().headers.Find("content-type"), "application/json");
  EXPECT_EQ(OnlyRequest().purpose, "drain Nomad node n1");
}

TEST_F(NomadWrites, C9_a_drain_is_sent_once_since_a_repeated_post_restarts_the_deadline) {
  transport_->Fail(base::Unavailable("reply cut short"));
  EXPECT_EQ(client_.Drain(context_, "n1", {}).code(), absl::StatusCode::kUnavailable);
  ExpectPost("/v1/node/n1/drain", http::Idempotency::kOnce);
}

TEST_F(NomadWrites, a_drain_without_meta_has_an_empty_object) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.Drain(context_, "n1", {base::Duration(-1), false, {}}).ok());
  EXPECT_EQ(Body()["DrainSpec"]["Deadline"], -1);
  EXPECT_EQ(Body()["Meta"], json::object());
}

TEST_F(NomadWrites, meta_that_is_not_utf8_is_sent_all_the_same) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.Drain(context_, "n1", {{}, false, {{"vm", "a\xFF"}}}).ok());
  EXPECT_EQ(Body()["Meta"]["vm"], "a\xEF\xBF\xBD");
}

TEST_F(NomadWrites, cancelling_a_drain_posts_a_null_spec_and_leaves_the_meta_alone) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.CancelDrain(context_, "n1", true).ok());
  EXPECT_EQ(Body(), json::parse(R"({"NodeID":"n1","DrainSpec":null,"MarkEligible":true})"));
  ExpectPost("/v1/node/n1/drain", http::Idempotency::kIdempotent);
}

TEST_F(NomadWrites, cancelling_a_drain_can_leave_the_node_ineligible) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.CancelDrain(context_, "n1", false).ok());
  EXPECT_EQ(Body()["MarkEligible"], false);
}

TEST_F(NomadWrites, eligibility_is_posted_as_a_string) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.SetEligible(context_, "n1", true).ok());
  EXPECT_EQ(Body(), json::parse(R"({"NodeID":"n1","Eligibility":"eligible"})"));
  ExpectPost("/v1/node/n1/eligibility", http::Idempotency::kIdempotent);
}

TEST_F(NomadWrites, ineligibility_is_posted_as_a_string) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.SetEligible(context_, "n1", false).ok());
  EXPECT_EQ(Body()["Eligibility"], "ineligible");
}

TEST_F(NomadWrites, L2_a_success_without_an_object_is_a_proxys_and_no_acceptance) {
  for (const char* body : {"<html><title>Sign in</title></html>", "", "[]", "{\"Index\":"}) {
    SCOPED_TRACE(body);
    const auto sent = [&](auto send) {
      transport_->Reply(200, body);
      return send();
    };
    for (const absl::Status& status :
         {sent([&] { return client_.Drain(context_, "n1", {}); }),
          sent([&] { return client_.CancelDrain(context_, "n1", true); }),
          sent([&] { return client_.SetEligible(context_, "n1", true); }),
          sent([&] { return client_.Purge(context_, "n1"); })}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(base::Message(status),
                  HasSubstr("; check that nomad_address is the address of the API"));
      EXPECT_FALSE(IsRefused(status));
    }
  }
  transport_->Reply(200, "<html><title>Sign in</title></html>");
  EXPECT_THAT(base::Message(client_.Drain(context_, "n1", {})),
              HasSubstr("drain Nomad node n1: the reply is an HTML page"));
}

TEST_F(NomadWrites, enabling_a_node_that_drains_is_a_failed_precondition) {
  transport_->Reply(500,
                    "can not set node's scheduling eligibility to eligible while it is draining");
  EXPECT_EQ(client_.SetEligible(context_, "n1", true).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(NomadWrites, a_purge_has_no_body) {
  transport_->Reply(200, R"({"EvalIDs":["e"]})");
  ASSERT_TRUE(client_.Purge(context_, "n1").ok());
  ExpectPost("/v1/node/n1/purge", http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().body, "");
  EXPECT_EQ(OnlyRequest().headers.Find("Content-Type"), std::nullopt);
}

TEST_F(NomadWrites, purging_a_missing_node_is_not_found) {
  transport_->Reply(500, "node not found");
  EXPECT_EQ(client_.Purge(context_, "n1").code(), absl::StatusCode::kNotFound);
}

TEST_F(NomadWrites, metadata_is_posted_once_with_its_node_and_null_for_what_is_unset) {
  transport_->Fail(base::Unavailable("reply cut short"));
  const std::map<std::string, std::optional<std::string>> meta = {{"harvester_host", "rack1-a"},
                                                                  {"harvester_zone", std::nullopt}};
  EXPECT_EQ(client_.SetNodeMeta(context_, "n 1", meta).code(), absl::StatusCode::kUnavailable);
  ExpectPost("/v1/client/metadata?node_id=n%201", http::Idempotency::kOnce);
  EXPECT_EQ(Body(), json::parse(R"({
      "NodeID": "n 1", "Meta": {"harvester_host": "rack1-a", "harvester_zone": null}})"));
  EXPECT_TRUE(OnlyRequest().late_is_harmless);
}

TEST_F(NomadWrites, metadata_of_a_client_that_is_not_connected_is_unavailable) {
  transport_->Reply(404, "No path to node");
  EXPECT_EQ(client_.SetNodeMeta(context_, "n1", {{"a", "b"}}).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(NomadWrites, metadata_without_a_node_would_be_that_of_the_agent_and_is_never_sent) {
  EXPECT_EQ(client_.SetNodeMeta(context_, "", {{"a", "b"}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(NomadWrites, a_write_whose_late_arrival_matters_says_so) {
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client_.SetEligible(context_, "n1", true).ok());
  EXPECT_FALSE(OnlyRequest().late_is_harmless);
}

TEST_F(NomadWrites, writes_travel_to_the_configured_region) {
  const NomadClient client(transport_, {"eu", "ops"});
  transport_->Reply(200, "{}");
  ASSERT_TRUE(client.Purge(context_, "n1").ok());
  EXPECT_EQ(OnlyRequest().target, "/v1/node/n1/purge?region=eu&namespace=ops");
}

TEST_F(NomadWrites, ids_that_would_name_another_path_are_never_sent) {
  for (const char* id : {"", ".", ".."}) {
    EXPECT_EQ(client_.Drain(context_, id, {}).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_.CancelDrain(context_, id, true).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_.SetEligible(context_, id, true).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_.Purge(context_, id).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(NomadWrites, a_denial_names_the_rule_that_is_missing) {
  transport_->Reply(403, "Permission denied");
  const absl::Status status = client_.Drain(context_, "n1", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(base::Message(status), HasSubstr(R"(node { policy = "write" })"));
}

// The claims of a token that Nomad 1.11.0 signed for ten minutes, with another signature.
constexpr char kJwt[] =
    "eyJhbGciOiJSUzI1NiJ9."
    "eyJhdWQiOiJub21hZHByb2plY3QuaW8iLCJleHAiOjE3MDAwMDA2MDAsImlhdCI6MTcwMDAwMDAwMH0."
    "c2ln";

class Introductions : public NomadWrites {
 protected:
  absl::StatusOr<IntroductionToken> Introduce() {
    return client_.Introduce(
        context_, {.node_name = "web-1", .node_pool = "gpu", .ttl = std::chrono::minutes(30)});
  }
};

TEST_F(Introductions, name_the_client_its_pool_and_the_time) {
  transport_->Reply(200, std::string(R"({"JWT":")") + kJwt + "\"}");
  const auto token = Introduce();
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->jwt.Reveal(), kJwt);
  EXPECT_EQ(token->lifetime, std::chrono::minutes(10));
  ExpectPost("/v1/acl/identity/client-introduction-token", http::Idempotency::kIdempotent);
  EXPECT_EQ(Body(), json::parse(R"({"TTL": "30m0s", "NodeName": "web-1", "NodePool": "gpu"})"));
}

TEST_F(Introductions, are_unimplemented_before_nomad_1_11) {
  transport_->Reply(404, "");
  const absl::Status status = Introduce().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("1.11 and newer"));
}

TEST_F(Introductions, are_not_unimplemented_because_a_proxy_says_404) {
  transport_->Reply(404, "<html>no backend</html>");
  EXPECT_EQ(Introduce().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Introductions, without_the_right_name_it) {
  transport_->Reply(403, "Permission denied");
  const absl::Status status = Introduce().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(IsRefused(status));
  EXPECT_THAT(status.message(), HasSubstr("node { policy = \"write\" }"));
}

TEST_F(Introductions, of_a_server_that_was_just_elected_fail_for_a_moment) {
  transport_->Reply(500, "failed to sign: keyring has not been initialized yet");
  EXPECT_FALSE(IsRefused(Introduce().status()));
}

TEST_F(Introductions, that_cannot_be_read_are_errors_which_do_not_quote_them) {
  for (const std::string& jwt :
       std::vector<std::string>{"", "garbage-token", "a.!!!.c", "a.e30.c",
                                "a.eyJleHAiOjEsImlhdCI6MX0.c", "a.eyJleHAiOiIyIiwiaWF0IjoxfQ.c",
                                // What would become a line of the user data.
                                std::string(kJwt) + "\\nruncmd: [reboot]",
                                std::string(kJwt) + "\\\"", std::string(kJwt) + " "}) {
    SCOPED_TRACE(jwt);
    transport_->Reply(200, R"({"JWT":")" + jwt + "\"}");
    const absl::Status status = Introduce().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("make an introduction token for Nomad client web-1"));
    if (!jwt.empty()) {
      EXPECT_THAT(status.message(), ::testing::Not(HasSubstr(jwt)));
    }
  }
}

TEST_F(Introductions, are_not_unimplemented_because_a_server_fails_without_a_word) {
  for (const int status : {403, 500, 502}) {
    transport_->Reply(status, "");
    EXPECT_NE(Introduce().status().code(), absl::StatusCode::kUnimplemented) << status;
  }
}

TEST_F(Introductions, are_believed_for_a_day_at_most) {
  // {"exp":9223372036854775807,"iat":1}
  transport_->Reply(200, R"({"JWT":"a.eyJleHAiOjkyMjMzNzIwMzY4NTQ3NzU4MDcsImlhdCI6MX0.c"})");
  const auto token = Introduce();
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->lifetime, std::chrono::hours(24));
}

TEST_F(Introductions, are_read_in_the_alphabet_of_urls) {
  // {"aud":"~~~???>>>","exp":700,"iat":100}
  transport_->Reply(200, R"({"JWT":"a.eyJhdWQiOiJ-fn4_Pz8-Pj4iLCJleHAiOjcwMCwiaWF0IjoxMDB9.c"})");
  const auto token = Introduce();
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->lifetime, std::chrono::minutes(10));
}

}  // namespace
}  // namespace nomad_harvester::nomad
