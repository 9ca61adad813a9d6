// SPDX-License-Identifier: Apache-2.0
// What the tokens may do, as far as the servers tell.
#include "nomad_harvester/kube/access.h"

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

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
