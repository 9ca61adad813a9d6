// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/status.h"

#include "nomad/client_fixture.h"

namespace nomad_harvester::nomad {
namespace {

using testing::ElementsAre;

constexpr const char* kSelf =
    R"({"AccessorID":"x","Type":"client","Policies":["scaler"],"Roles":[]})";
constexpr const char* kReadsAll =
    R"({"Name":"scaler","RulesJSON":{"Namespaces":[{"Name":"*","Capabilities":["read-job"]}]}})";
constexpr const char* kReadsOne =
    R"({"Name":"scaler","RulesJSON":{"Namespaces":[{"Name":"default","Capabilities":["read-job"]}]}})";

class VerifyReadJob : public ClientFixture {
 protected:
  void Script(std::initializer_list<std::pair<int, const char*>> replies) {
    for (const auto& [status, body] : replies) transport_->Reply(status, body);
  }
  void Expect(ReadJob wanted) {
    const auto answer = client_.VerifyReadJob(context_);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, wanted);
  }
};

TEST_F(VerifyReadJob, acls_that_are_off_let_everything_be_seen) {
  Script({{400, "ACL support disabled"}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, the_token_of_newer_servers_without_acls_reads_jobs_everywhere) {
  Script({{200, R"({"AccessorID":"acls-disabled","Name":"ACLs disabled token","Type":"client"})"}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, a_management_token_sees_everything) {
  Script({{200, R"({"Type":"management","Policies":null,"Roles":null})"}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, read_job_for_all_namespaces_sees_everything) {
  Script({{200, kSelf}, {200, kReadsAll}});
  Expect(ReadJob::kEverywhere);
  EXPECT_THAT(transport_->targets(), ElementsAre("/v1/acl/token/self", "/v1/acl/policy/scaler"));
}

TEST_F(VerifyReadJob, a_token_whose_policies_name_one_namespace_does_not) {
  Script({{200, kSelf}, {200, kReadsOne}});
  Expect(ReadJob::kDenied);
}

TEST_F(VerifyReadJob, C9_the_shorthand_scale_is_read_job_only_where_the_server_says_so) {
  Script({{200, kSelf}, {200, R"({"RulesJSON":{"Namespaces":[{"Name":"*","Policy":"scale",
                                                "Capabilities":["scale-job"]}]}})"}});
  Expect(ReadJob::kDenied);
}

TEST_F(VerifyReadJob, policies_add_up) {
  Script(
      {{200, R"({"Type":"client","Policies":["one","all"]})"}, {200, kReadsOne}, {200, kReadsAll}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, a_policy_that_does_not_exist_grants_nothing) {
  Script({{200, kSelf}, {404, "ACL policy not found"}});
  Expect(ReadJob::kDenied);
}

TEST_F(VerifyReadJob, a_policy_that_cannot_be_read_leaves_it_unverified) {
  Script({{200, kSelf}, {403, "Permission denied"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, a_server_without_parsed_rules_leaves_it_unverified) {
  Script({{200, kSelf}, {200, R"({"Name":"scaler","Rules":"namespace ..."})"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, a_token_that_may_not_read_itself_is_unverified) {
  Script({{403, "Permission denied"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, the_policies_of_roles_come_from_the_tokens_own_list) {
  Script({{200, R"({"Type":"client","Policies":["one"],"Roles":[{"ID":"r","Name":"scaling"}]})"},
          {200, R"([{"Name":"one"},{"Name":"by role"}])"},
          {200, kReadsOne},
          {200, kReadsAll}});
  Expect(ReadJob::kEverywhere);
  EXPECT_EQ(transport_->targets().at(1), "/v1/acl/policies");
  EXPECT_EQ(transport_->targets().at(3), "/v1/acl/policy/by%20role");
}

TEST_F(VerifyReadJob, a_workload_identity_is_judged_by_its_list_of_policies) {
  Script({{404, "ACL token not found"}, {200, R"([{"Name":"wi"}])"}, {200, kReadsAll}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, a_workload_identity_on_a_server_that_does_not_list_is_unverified) {
  Script({{404, "ACL token not found"}, {403, "ACL token not found"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, a_list_of_policies_that_is_none_leaves_it_unverified) {
  Script({{404, "ACL token not found"}, {200, "{}"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, a_nameless_policy_leaves_it_unverified) {
  Script({{404, "ACL token not found"}, {200, R"([{"Name":""}])"}});
  Expect(ReadJob::kUnverified);
}

TEST_F(VerifyReadJob, acls_that_are_off_are_noticed_at_each_step) {
  Script({{404, "ACL token not found"}, {400, "ACL support disabled"}});
  Expect(ReadJob::kEverywhere);
  Script({{200, kSelf}, {400, "ACL support disabled"}});
  Expect(ReadJob::kEverywhere);
}

TEST_F(VerifyReadJob, a_server_out_of_reach_is_an_error_and_no_answer) {
  const std::initializer_list<std::initializer_list<std::pair<int, const char*>>> scripts = {
      {{500, "No cluster leader"}}, {{404, ""}, {502, ""}}, {{200, kSelf}, {504, ""}}};
  for (const auto& script : scripts) {
    Script(script);
    EXPECT_EQ(client_.VerifyReadJob(context_).status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(VerifyReadJob, a_page_in_place_of_json_is_an_error) {
  Script({{200, "<html>"}});
  EXPECT_FALSE(client_.VerifyReadJob(context_).ok());
}

TEST_F(VerifyReadJob, asks_the_configured_region) {
  const NomadClient client(transport_, {"eu", "ops"});
  Script({{200, R"({"Type":"management"})"}});
  ASSERT_TRUE(client.VerifyReadJob(context_).ok());
  EXPECT_THAT(transport_->targets(), ElementsAre("/v1/acl/token/self?region=eu&namespace=ops"));
}

}  // namespace
}  // namespace nomad_harvester::nomad
