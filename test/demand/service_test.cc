// SPDX-License-Identifier: Apache-2.0
// The service on the simulated Nomad.
#include "nomad_harvester/demand/service.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demand/apm_fixture.h"
#include "nlohmann/json.hpp"

namespace nomad_harvester::demand {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kQuery[] = "nodes-needed node_class=batch node=(cpu=4000,memory=4096,disk=20000)";

// Nomad Enterprise, whose blocked evaluations name the quota that is reached; empty: none.
class WithQuota final : public http::HttpTransport {
 public:
  WithQuota(std::shared_ptr<http::HttpTransport> inner, const std::string& quota)
      : inner_(std::move(inner)), quota_(quota) {}
  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    auto reply = inner_->Send(context, request);
    if (quota_.empty() || !reply.ok() || !request.target.starts_with("/v1/evaluations")) {
      return reply;
    }
    auto evaluations = nlohmann::json::parse(reply->body);
    for (auto& evaluation : evaluations) evaluation["QuotaLimitReached"] = quota_;
    reply->body = evaluations.dump();
    return reply;
  }

 private:
  const std::shared_ptr<http::HttpTransport> inner_;
  const std::string& quota_;
};

class ServiceTest : public ApmFixture {
 protected:
  ServiceTest() { Start(); }

  std::shared_ptr<http::HttpTransport> Nomad() override {
    return std::make_shared<WithQuota>(ApmFixture::Nomad(), quota_);
  }
  static simulator::JobSpec Job(const std::string& id, int count) {
    return ApmFixture::Job(id, count, "batch");
  }
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) {
      simulator::NodeSpec node;
      node.name = "batch-" + std::to_string(++nodes_);
      node.node_class = "batch";
      cluster_.AddForeignNode(node);
    }
    Wait(seconds(2));
  }
  absl::StatusOr<Answer> Ask(const std::string& query = kQuery) { return ApmFixture::Ask(query); }
  std::int64_t Count(const std::string& query = kQuery) { return ApmFixture::Count(query); }
  int Lists(const std::string& resource) {
    return cluster_.RequestCount(simulator::System::kNomad, "list", resource);
  }

  int nodes_ = 0;
  std::string quota_;
};

TEST_F(ServiceTest, NothingNeedsNothing) { EXPECT_EQ(Count(), 0); }

TEST_F(ServiceTest, D1_FromZeroABurstOrdersWhatItNeedsOnceAndForAll) {
  cluster_.RunJob(Job("burst", 40));
  EXPECT_EQ(Count(), 10);
  EXPECT_EQ(Count(), 10) << "asked twice, ordered once";
  AddNodes(4);
  EXPECT_EQ(Count(), 10) << "some have come and are full";
  AddNodes(6);
  EXPECT_EQ(Count(), 10) << "all have come";
  EXPECT_EQ(log_->Count("Nodes needed"), 1U) << log_->Text();
  EXPECT_EQ(log_->Count("default/burst.group (40 pending, 10 nodes)"), 1U) << log_->Text();
  EXPECT_EQ(log_->Count("count=10 now=10 busy=0"), 1U)
      << "nothing was answered before, and idle_for holds nothing: " << log_->Text();
}

TEST_F(ServiceTest, APoolThatNeverHadANodeGetsOneAsAProbe) {
  cluster_.RunJob(Job("burst", 40));
  EXPECT_EQ(Count("nodes-needed node_class=batch"), 1);
  AddNodes(1);
  EXPECT_EQ(Count("nodes-needed node_class=batch"), 10);
}

TEST_F(ServiceTest, AnEmptyPoolRemembersWhatItsNodesHeld) {
  AddNodes(1);
  Count("nodes-needed node_class=batch idle_for=0s");
  ASSERT_TRUE(cluster_.KillNode("batch-1"));
  ASSERT_TRUE(cluster_.PurgeNode("batch-1"));
  Wait(minutes(1));
  cluster_.RunJob(Job("burst", 40));
  EXPECT_EQ(Count("nodes-needed node_class=batch idle_for=0s"), 10);
}

TEST_F(ServiceTest, D3_APoolShrinksWhenItHasNeededLessForItsTime) {
  AddNodes(2);
  simulator::JobSpec batch = Job("nightly", 8);
  batch.type = "batch";
  batch.run_for = minutes(30);
  cluster_.RunJob(batch);
  EXPECT_EQ(Count(), 2);
  Wait(minutes(29));
  EXPECT_EQ(Count(), 2);
  Wait(minutes(2));
  EXPECT_EQ(Count(), 2) << "it has needed them until now";
  Wait(minutes(5));
  EXPECT_EQ(Count(), 2);
  Wait(minutes(5));
  EXPECT_EQ(Count(), 0);
}

TEST_F(ServiceTest, D3_APoolShrinksNoEarlierOnAMachineThatRunsForADay) {
  const std::string query = "nodes-needed node_class=batch idle_for=10m";
  AddNodes(1);
  Wait(std::chrono::hours(48));
  simulator::JobSpec batch = Job("nightly", 8);
  batch.type = "batch";
  batch.run_for = minutes(30);
  cluster_.RunJob(batch);
  EXPECT_EQ(Count(query), 2);
  Wait(minutes(29));
  EXPECT_EQ(Count(query), 2);
  Wait(minutes(2));
  EXPECT_EQ(Count(query), 2) << "it has needed them until now";
}

TEST_F(ServiceTest, D3_ARestartShrinksNothingEarly) {
  const std::string query = "nodes-needed node_class=batch idle_for=1m";
  AddNodes(3);
  EXPECT_EQ(Count(query), 3);
  Wait(minutes(5));
  EXPECT_EQ(Count(query), 0);
  Start();
  EXPECT_EQ(Count(query), 3) << "they may have been needed until now";
  EXPECT_EQ(log_->Count("count=3 now=0 held_by_idle_for=1m0s"), 2U) << log_->Text();
  Wait(minutes(5));
  EXPECT_EQ(Count(query), 0);
}

// A node of a VM that was removed, or that an operator took out, is not made up for by a restart.
TEST_F(ServiceTest, ARestartCountsNoNodeThatIsGone) {
  AddNodes(4);
  ASSERT_TRUE(cluster_.SetEligible("batch-1", false));
  ASSERT_TRUE(cluster_.SetNodeStatus("batch-2", "disconnected"));
  EXPECT_EQ(Count(), 2);
}

TEST_F(ServiceTest, D2_WorkThatNoNodeCouldHoldOrdersNoneAndIsNamedOnce) {
  AddNodes(1);
  simulator::JobSpec huge = Job("huge", 3);
  huge.memory_mb = 1'000'000;
  cluster_.RunJob(huge);
  cluster_.RunJob(Job("small", 1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Count(), 1);
  EXPECT_EQ(log_->Count("Work that no node of the pool can hold", log::Level::kWarn), 1U)
      << log_->Text();
  EXPECT_EQ(log_->Count("default/huge.group"), 1U);
}

// Nomad does not record a try that places nothing, so that the quota may have room by now.
TEST_F(ServiceTest, WorkThatAQuotaRefusedOrdersNoneAndIsNamedOnce) {
  AddNodes(1);
  cluster_.RunJob(Job("burst", 40));
  quota_ = "team";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Count(), 1);
  EXPECT_EQ(log_->Count("the quota team refused it, and may still", log::Level::kWarn), 1U)
      << log_->Text();
  quota_.clear();
  EXPECT_EQ(Count(), 10);
}

TEST_F(ServiceTest, D2_work_whose_trouble_comes_back_is_named_again) {
  AddNodes(1);
  cluster_.RunJob(Job("burst", 40));
  for (const char* const quota : {"team", "", "team"}) {
    quota_ = quota;
    Count();
  }
  EXPECT_EQ(log_->Count("the quota team refused it, and may still", log::Level::kWarn), 2U)
      << log_->Text();
}

TEST_F(ServiceTest, WorkOfAnotherPoolOrdersNoneHere) {
  AddNodes(1);
  simulator::JobSpec other = Job("other", 12);
  other.node_class = "gpu";
  cluster_.RunJob(other);
  const std::string query = "nodes-needed node_class=batch idle_for=0s";
  Count(query);
  EXPECT_EQ(Count(query), 0);
}

TEST_F(ServiceTest, C9_without_read_job_everywhere_there_is_no_number) {
  AddNodes(1);
  cluster_.DenyReadJob(true);
  EXPECT_THAT(Ask().status(), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("read-job")));
  cluster_.DenyReadJob(false);
  EXPECT_THAT(Ask(), IsOk());
}

TEST_F(ServiceTest, D4_AListThatCannotBeReadIsAnErrorAndNoSmallerNumber) {
  AddNodes(1);
  cluster_.RunJob(Job("burst", 40));
  ASSERT_EQ(Count(), 10);
  for (const char* const resource : {"evaluations", "jobs", "allocations", "nodes"}) {
    simulator::RefusalRule rule;
    rule.system = simulator::System::kNomad;
    rule.verb = "list";
    rule.resource = resource;
    const int id = cluster_.Refuse(rule);
    EXPECT_FALSE(Ask().ok()) << resource;
    cluster_.StopRefusing(id);
  }
  EXPECT_EQ(Count(), 10);
}

TEST_F(ServiceTest, ANomadThatDoesNotAnswerIsAnErrorUntilItDoes) {
  AddNodes(1);
  cluster_.SetNomadReachable(false);
  EXPECT_THAT(Ask().status(), StatusIs(absl::StatusCode::kUnavailable));
  cluster_.SetNomadReachable(true);
  EXPECT_THAT(Ask(), IsOk());
}

TEST_F(ServiceTest, D5_QueriesWithinAnIntervalShareOneReading) {
  AddNodes(3);
  cluster_.RunJob(Job("burst", 40));
  Count();
  Wait(seconds(10));
  cluster_.ResetCounters();
  const runtime::Context context = runtime::Context::Background(clock_);
  for (const char* const query :
       {kQuery, "nodes-needed node_class=batch", "nodes-needed datacenter=dc1"}) {
    EXPECT_THAT(service_->Query(context, query), IsOk());
  }
  EXPECT_EQ(Lists("nodes"), 1);
  EXPECT_EQ(Lists("allocations"), 1);
  EXPECT_EQ(Lists("jobs"), 1);
  EXPECT_EQ(Lists("evaluations"), 2) << "before and after the allocations";
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kNomad, "get", "job"), 0) << "unchanged";
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kNomad, "get", "node"), 0) << "unchanged";
}

TEST_F(ServiceTest, AMistakeInAQueryIsTheQuerys) {
  EXPECT_THAT(Ask("nodes-needed node_clas=batch").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node_class")));
}

TEST_F(ServiceTest, AKeyOfTheTargetIsRefusedWithItsPlace) {
  EXPECT_THAT(service_->SetConfig({{"events", "true"}, {"nomad_adress", "x"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("events: not a key of an apm block"),
                             HasSubstr("nomad_adress: unknown key; did you mean nomad_address?"))));
}

TEST_F(ServiceTest, T2_the_metrics_have_the_answer_the_work_and_the_queries) {
  AddNodes(1);
  cluster_.RunJob(Job("burst", 40));
  Count();
  EXPECT_FALSE(Ask("nodes").ok());
  const std::string text = metrics_->Text();
  EXPECT_THAT(text, HasSubstr("nomad_harvester_nodes_needed{pool=\"node_class=batch\"} 10"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_pending_allocations{pool=\"node_class=batch\","
                              "verdict=\"needs-nodes\"} 36"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_queries_total{outcome=\"answered\"} 1"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_queries_total{outcome=\"refused\"} 1"));
  EXPECT_THAT(text, HasSubstr("nomad_harvester_demand_read_timestamp_seconds"));
}

TEST_F(ServiceTest, AfterTheStopThereIsNoAnswer) {
  service_->Stop();
  EXPECT_THAT(Ask().status(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace nomad_harvester::demand
