// SPDX-License-Identifier: Apache-2.0
// What the tokens may do, as far as the servers tell.
#include "nomad_harvester/kube/access.h"

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;
using testing::StartsWith;

TEST_F(SimulatorTest, Rules_can_be_incomplete_while_each_single_right_is_granted) {
  cluster().SetRulesIncomplete(true);
  const auto rules = kube::FetchAccessRules(context_, kube(), "nomad");
  ASSERT_THAT(rules, IsOk());
  EXPECT_TRUE(rules->incomplete);
  EXPECT_FALSE(rules->Allows("get", "", "secrets"));
  kube::ResourceAttributes secrets;
  secrets.verb = "get";
  secrets.resource = "secrets";
  secrets.ns = "nomad";
  EXPECT_TRUE(*kube::ReviewAccess(context_, kube(), secrets));
  cluster().SetRulesIncomplete(false);
  EXPECT_FALSE(kube::FetchAccessRules(context_, kube(), "nomad")->incomplete);
}

TEST_F(SimulatorTest, A_wrong_token_is_refused_where_none_is_needed) {
  options_.kube_token = "of-harvester";
  options_.nomad_token = "of-nomad";
  options_.admits_anonymous = true;
  const auto status = [this](http::HttpTransport& system, const std::string& path,
                             const std::string& header, const std::string& value) {
    http::HttpRequest request;
    request.target = path;
    if (!header.empty()) request.headers.Set(header, value);
    const auto reply = system.Send(context_, request);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? std::to_string(reply->status) + " " + reply->body : "";
  };
  const auto harvester = cluster().HarvesterTransport();
  const auto nomad = cluster().NomadTransport();
  const std::string nodes = "/api/v1/nodes";
  EXPECT_THAT(status(*harvester, nodes, "", ""), StartsWith("200 "));
  EXPECT_THAT(status(*harvester, nodes, "Authorization", "Bearer of-harvester"),
              StartsWith("200 "));
  EXPECT_THAT(status(*harvester, nodes, "Authorization", "Bearer of-nomad"),
              testing::AllOf(StartsWith("401 "), HasSubstr(R"("reason":"Unauthorized")"),
                             HasSubstr(R"("kind":"Status")")));
  EXPECT_THAT(status(*nomad, "/v1/nodes", "", ""), StartsWith("200 "));
  EXPECT_THAT(status(*nomad, "/v1/nodes", "X-Nomad-Token", "of-nomad"), StartsWith("200 "));
  EXPECT_THAT(status(*nomad, "/v1/nodes", "Authorization", "Bearer of-nomad"), StartsWith("200 "));
  EXPECT_EQ(status(*nomad, "/v1/nodes", "X-Nomad-Token", "of-harvester"), "403 Permission denied");
}

TEST_F(SimulatorTest, An_allocation_that_the_token_may_not_read_is_unknown_and_not_missing) {
  AddNode("a");
  JobSpec job;
  job.id = "web";
  cluster().RunJob(job);
  const std::string id = cluster().Allocations().at(0)["ID"];
  cluster().DenyReadJob(true);
  const auto unreadable = Ask(System::kNomad, http::Method::kGet, "/v1/allocation/" + id);
  EXPECT_EQ(unreadable.status, 500);
  EXPECT_EQ(unreadable.body, "Unknown allocation \"" + id + "\"");
  EXPECT_THAT(nomad().NodeOfAllocation(context_, "none"), StatusIs(StatusCode::kNotFound));
}

TEST_F(SimulatorTest, A_blind_token_still_hears_that_work_has_changed) {
  const std::string id = AddNode("a");
  cluster().DenyReadJob(true);
  JobSpec job;
  job.id = "web";
  cluster().RunJob(job);
  const auto list = nomad().NodeAllocations(context_, id);
  ASSERT_THAT(list, IsOk());
  EXPECT_THAT(list->value, IsEmpty());
  EXPECT_EQ(list->index, cluster().Allocations().at(0)["ModifyIndex"]);
}

}  // namespace
}  // namespace nomad_harvester::simulator
