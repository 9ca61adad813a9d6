// SPDX-License-Identifier: Apache-2.0
// What a reading makes of lists that change while they are read, or lack something.
#include "nomad_harvester/demand/reader.h"

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/simulator/cluster.h"

#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::demand {
namespace {

using std::chrono::seconds;
using support::IsOk;
using support::StatusIs;
using ::testing::HasSubstr;

// Hands each request to a function first, and each reply to another one.
class Between final : public http::HttpTransport {
 public:
  explicit Between(std::shared_ptr<http::HttpTransport> inner) : inner_(std::move(inner)) {}
  absl::StatusOr<http::HttpResponse> Send(const runtime::Context& context,
                                          const http::HttpRequest& request) override {
    before(request);
    auto reply = inner_->Send(context, request);
    if (reply.ok()) after(request, &*reply);
    return reply;
  }

  std::function<void(const http::HttpRequest&)> before = [](const auto&) {};
  std::function<void(const http::HttpRequest&, http::HttpResponse*)> after = [](const auto&,
                                                                                auto*) {};

 private:
  const std::shared_ptr<http::HttpTransport> inner_;
};

class ReaderTest : public ::testing::Test {
 protected:
  void AddNode(const std::string& name) {
    simulator::NodeSpec node;
    node.name = name;
    node.node_class = "batch";
    cluster_.AddForeignNode(node);
  }
  void RunJob(const std::string& type, int count) {
    simulator::JobSpec job;
    job.id = type;
    job.type = type;
    job.count = count;
    cluster_.RunJob(job);
  }
  absl::StatusOr<std::shared_ptr<const Reading>> Read() { return reader_.Read(context_); }
  // Must succeed.
  Reading ReadAll() {
    const auto reading = Read();
    EXPECT_THAT(reading, IsOk());
    return reading.ok() ? **reading : Reading();
  }
  World WorldOf(const Reading& reading, const std::set<std::string>& emptied = {}) {
    auto world = reader_.WorldOf(context_, reading, {.node_class = "batch"}, emptied);
    EXPECT_THAT(world, IsOk());
    return world.ok() ? *std::move(world) : World();
  }
  // Changes what Nomad replies to such a request.
  void Edit(const std::string& target, const std::function<void(nlohmann::json& reply)>& edit) {
    between_->after = [=](const http::HttpRequest& request, http::HttpResponse* reply) {
      if (!request.target.starts_with(target)) return;
      auto json = nlohmann::json::parse(reply->body);
      edit(json);
      reply->body = json.dump();
    };
  }
  // Replies that instead.
  void Reply(const std::string& target, int status, const std::string& body) {
    between_->after = [=](const http::HttpRequest& request, http::HttpResponse* reply) {
      if (!request.target.starts_with(target)) return;
      reply->status = status;
      reply->body = body;
    };
  }
  // How many times work is in a reading: placed on some node, and pending.
  static std::int64_t Placed(const Reading& reading) {
    std::int64_t count = 0;
    for (const auto& [node, work] : reading.work) count += static_cast<std::int64_t>(work.size());
    return count;
  }
  static std::int64_t Pending(const Reading& reading) {
    std::int64_t count = 0;
    for (const demand::Pending& each : reading.pending) count += each.count;
    return count;
  }

  support::FakeClock clock_;
  const runtime::Context context_ = runtime::Context::Background(clock_);
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  simulator::Cluster cluster_{clock_, *random_};
  support::InlineExecutor executor_;
  const std::shared_ptr<Between> between_ =
      std::make_shared<Between>(cluster_.NomadTransport("apm"));
  Reader reader_{
      std::make_shared<const nomad::NomadClient>(between_, nomad::NomadClient::Options()),
      executor_};
};

TEST_F(ReaderTest, WorkThatIsPlacedWhileTheListsAreReadIsInOneOfThem) {
  RunJob("service", 3);
  bool added = false;
  between_->after = [&](const http::HttpRequest& request, http::HttpResponse*) {
    if (added || !request.target.starts_with("/v1/allocations")) return;
    added = true;  // the allocations were listed without this node's
    AddNode("a");
  };
  const Reading reading = ReadAll();
  EXPECT_EQ(Placed(reading), 3);
  EXPECT_EQ(Pending(reading), 0);
  EXPECT_EQ(reading.nodes.size(), 1U);
}

TEST_F(ReaderTest, WorkThatIsPlacedInEveryRoundIsNotLost) {
  for (const char* const id : {"a", "b", "c", "d"}) {
    simulator::JobSpec job;
    job.id = id;
    job.node_class = id;
    cluster_.RunJob(job);
  }
  char next = 'a';
  between_->after = [&](const http::HttpRequest& request, http::HttpResponse*) {
    if (!request.target.starts_with("/v1/allocations")) return;
    simulator::NodeSpec node;
    node.name = node.node_class = std::string(1, next++);
    cluster_.AddForeignNode(node);
  };
  const Reading reading = ReadAll();
  EXPECT_EQ(Placed(reading) + Pending(reading), 4);
}

TEST_F(ReaderTest, ListsThatChangeAtEachReadingEndToo) {
  RunJob("service", 3);
  int jobs = 0;
  between_->before = [&](const http::HttpRequest& request) {
    if (!request.target.starts_with("/v1/jobs")) return;
    simulator::JobSpec job;
    job.id = "job-" + std::to_string(++jobs);
    cluster_.RunJob(job);
  };
  const Reading reading = ReadAll();
  EXPECT_EQ(Pending(reading), 3 + jobs - 1) << "the last one came after its evaluations";
}

TEST_F(ReaderTest, C9_a_token_that_does_not_see_every_job_is_an_error) {
  RunJob("service", 1);
  cluster_.DenyListJobs(true);
  EXPECT_THAT(Read().status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("lacks the capability list-jobs in some namespaces")));
  cluster_.DenyListJobs(false);
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(ReaderTest, OfAListThatIsDeniedTheErrorNamesTheMissingCapability) {
  cluster_.DenyListJobs(true);
  Reply("/v1/jobs", 403, "Permission denied");
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kPermissionDenied,
                                        HasSubstr("lacks the capability list-jobs")));
}

TEST_F(ReaderTest, OfATokenThatNomadDoesNotAcceptTheErrorSaysThat) {
  Reply("", 403, "ACL token not found");
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kUnauthenticated,
                                        HasSubstr("ACL token not found (HTTP 403); the token is "
                                                  "unknown to it, or has expired: check "
                                                  "nomad_token, nomad_token_file")));
}

// As Nomad 1.6.3 answers to a token that it does not know.
TEST_F(ReaderTest, OfATokenThatNothingAcceptsTheErrorSaysThatItMayBeUnknown) {
  between_->after = [](const http::HttpRequest& request, http::HttpResponse* reply) {
    const bool reads_itself = request.target.starts_with("/v1/acl/token/self");
    reply->status = reads_itself ? 404 : 403;
    reply->body = reads_itself ? "ACL token not found" : "Permission denied";
  };
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kPermissionDenied,
                                        HasSubstr("it is unknown to Nomad, or has expired")));
}

// As Nomad 1.6.3 answers if no token is given.
TEST_F(ReaderTest, WithoutATokenTheErrorSaysWhatWasDenied) {
  between_->after = [](const http::HttpRequest& request, http::HttpResponse* reply) {
    const bool reads_itself = request.target.starts_with("/v1/acl/token/self");
    reply->status = reads_itself ? 500 : 403;
    reply->body = reads_itself ? "acl token lookup failed: missing secret id" : "Permission denied";
  };
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kPermissionDenied,
                                        HasSubstr("Permission denied (HTTP 403)")));
}

TEST_F(ReaderTest, OfAServerThatIsNoNomadTheErrorSpeaksOfNoRights) {
  Reply("", 404, "no such page");
  const absl::Status failed = Read().status();
  EXPECT_FALSE(absl::IsPermissionDenied(failed));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("no such page"));
}

TEST_F(ReaderTest, D4_ACutListIsAnError) {
  AddNode("a");
  RunJob("service", 3);
  for (const char* const list : {"/v1/evaluations", "/v1/allocations", "/v1/jobs", "/v1/nodes"}) {
    Reply(list, 200, "[{\"ID\": ");
    clock_.Advance(seconds(10));
    EXPECT_FALSE(Read().ok()) << list;
  }
}

TEST_F(ReaderTest, AReadingIsKeptForItsTime) {
  const auto first = Read();
  ASSERT_THAT(first, IsOk());
  clock_.Advance(kReadingIsKept);
  EXPECT_EQ(*Read(), *first);
  clock_.Advance(seconds(1));
  EXPECT_NE(*Read(), *first);
}

TEST_F(ReaderTest, WorkThatWaitsForLongIsOverdue) {
  RunJob("service", 3);
  Reading reading = ReadAll();
  ASSERT_EQ(reading.pending.size(), 1U);
  EXPECT_FALSE(reading.pending[0].overdue);
  clock_.Advance(kOverdueAfter);
  reading = ReadAll();
  EXPECT_TRUE(reading.pending[0].overdue);
}

// Nomad makes a new evaluation whenever the job or an allocation changes.
TEST_F(ReaderTest, WorkThatWaitsStaysOverdueWithANewEvaluation) {
  RunJob("service", 3);
  ASSERT_THAT(Read(), IsOk());
  clock_.Advance(kOverdueAfter);
  Edit("/v1/evaluations",
       [](nlohmann::json& reply) { reply[0]["ID"] = "5b0ff4e1-0000-4000-8000-000000000001"; });
  const Reading reading = ReadAll();
  ASSERT_EQ(reading.pending.size(), 1U);
  EXPECT_TRUE(reading.pending[0].overdue);
}

// Another one, blocked before, knew of one allocation, and is overdue.
TEST_F(ReaderTest, C19_what_nomad_placed_in_a_plan_that_it_refused_is_pending_and_not_overdue) {
  RunJob("service", 3);
  ASSERT_THAT(Read(), IsOk());
  clock_.Advance(10 * kOverdueAfter);
  Edit("/v1/evaluations", [](nlohmann::json& reply) {
    nlohmann::json older = reply[0];
    older["ID"] = "5b0ff4e1-0000-4000-8000-000000000001";
    older["CreateIndex"] = 1;
    older["FailedTGAllocs"].begin().value()["CoalescedFailures"] = 0;
    reply[0]["TriggeredBy"] = "max-plan-attempts";
    reply[0]["FailedTGAllocs"] = nullptr;
    reply.push_back(older);
  });
  Reading reading = ReadAll();
  ASSERT_EQ(reading.pending.size(), 1U);
  EXPECT_EQ(reading.pending[0].count, 3);
  EXPECT_EQ(reading.blocked[0].failures.begin()->second.unplaced, 3);
  EXPECT_FALSE(reading.pending[0].overdue);
  for (const bool overdue : {false, true}) {
    clock_.Advance(seconds(45));
    reading = ReadAll();
    ASSERT_EQ(reading.pending.size(), 1U);
    EXPECT_EQ(reading.pending[0].overdue, overdue) << "Nomad tries it again within a minute";
  }
}

// Until Nomad cancels the older one, a job may have two blocked evaluations.
TEST_F(ReaderTest, OfTwoEvaluationsOfAJobTheNewerCounts) {
  RunJob("service", 3);
  Edit("/v1/evaluations", [](nlohmann::json& reply) {
    nlohmann::json older = reply[0];
    older["ID"] = "5b0ff4e1-0000-4000-8000-000000000001";
    older["CreateIndex"] = 1;
    older["ModifyIndex"] = 1;
    older["FailedTGAllocs"].begin().value()["CoalescedFailures"] = 0;
    for (const bool first : {true, false}) {
      reply.insert(first ? reply.begin() : reply.end(), older);
      older["ID"] = "fb0ff4e1-0000-4000-8000-000000000001";
    }
  });
  const Reading reading = ReadAll();
  ASSERT_EQ(reading.pending.size(), 1U);
  EXPECT_EQ(reading.pending[0].count, 3);
  EXPECT_GT(reading.pending[0].create_index, 1U);
}

// Nomad writes what is left into the same evaluation.
TEST_F(ReaderTest, AnEvaluationThatChangesWhileTheListsAreReadIsReadAgain) {
  RunJob("service", 3);
  int times = 0;
  between_->after = [&](const http::HttpRequest& request, http::HttpResponse* reply) {
    if (!request.target.starts_with("/v1/evaluations") || ++times == 1) return;
    auto evaluations = nlohmann::json::parse(reply->body);
    evaluations[0]["ModifyIndex"] = 1000000;
    evaluations[0]["FailedTGAllocs"].begin().value()["CoalescedFailures"] = 0;
    reply->body = evaluations.dump();
  };
  const Reading reading = ReadAll();
  EXPECT_EQ(Pending(reading), 1);
}

TEST_F(ReaderTest, D2_a_system_job_that_is_stopped_needs_no_room) {
  RunJob("system", 1);
  const auto first = Read();
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ((*first)->system.size(), 1U);
  clock_.Advance(seconds(10));
  Edit("/v1/jobs", [](nlohmann::json& reply) { reply[0]["Stop"] = true; });
  const Reading reading = ReadAll();
  EXPECT_EQ(reading.system.size(), 0U);
}

TEST_F(ReaderTest, D5_a_job_is_read_once_for_each_of_its_versions_while_it_waits) {
  simulator::JobSpec job;
  job.id = "a";
  job.node_class = "batch";
  const auto need = [&] {
    clock_.Advance(seconds(10));
    const Reading reading = ReadAll();
    return reading.pending.empty() ? 0 : reading.pending[0].group->need.cpu;
  };
  const auto count = [&] { return cluster_.RequestCount(simulator::System::kNomad, "get", "job"); };
  cluster_.RunJob(job);
  EXPECT_EQ(need(), 100);
  EXPECT_EQ(need(), 100);
  EXPECT_EQ(count(), 1);
  job.cpu = 200;
  cluster_.RunJob(job);
  EXPECT_EQ(need(), 200);
  EXPECT_EQ(count(), 2);
}

TEST_F(ReaderTest, AJobThatIsPurgedAfterTheListIsLeftOut) {
  RunJob("service", 3);
  Reply("/v1/job/", 404, "job not found");
  const Reading reading = ReadAll();
  EXPECT_EQ(Pending(reading), 0);
}

TEST_F(ReaderTest, WhatIsNotQueuedAnyMoreIsNotPending) {
  RunJob("service", 3);
  Edit("/v1/jobs", [](nlohmann::json& reply) {
    reply[0]["JobSummary"]["Summary"].begin().value()["Queued"] = 0;
  });
  const Reading reading = ReadAll();
  EXPECT_TRUE(reading.pending.empty());
}

TEST_F(ReaderTest, WhatWasReadIsKnownAlthoughTheReadingFailed) {
  for (const char* const id : {"a", "b"}) {
    simulator::JobSpec job;
    job.id = id;
    cluster_.RunJob(job);
  }
  Reply("/v1/job/b", 200, "{");
  EXPECT_FALSE(Read().ok());
  between_->after = [](const auto&, auto*) {};
  cluster_.ResetCounters();
  EXPECT_THAT(Read(), IsOk());
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kNomad, "get", "job"), 1);

  AddNode("a");
  AddNode("b");
  clock_.Advance(seconds(10));
  const Reading reading = ReadAll();
  Reply("/v1/node/" + reading.nodes.back().id, 200, "{");
  EXPECT_FALSE(reader_.WorldOf(context_, reading, {.node_class = "batch"}).ok());
  between_->after = [](const auto&, auto*) {};
  cluster_.ResetCounters();
  WorldOf(reading);
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kNomad, "get", "node"), 1);
}

TEST_F(ReaderTest, ANodeThatIsPurgedAfterTheListIsLeftOut) {
  AddNode("a");
  AddNode("b");
  const Reading reading = ReadAll();
  ASSERT_TRUE(cluster_.PurgeNode("a"));
  const World world = WorldOf(reading);
  ASSERT_EQ(world.nodes.size(), 1U);
  EXPECT_EQ(world.nodes[0].node->name, "b");
}

TEST_F(ReaderTest, D5_ANodeIsReadInFullOnceForEachOfItsVersions) {
  AddNode("a");
  const auto count = [&] {
    return cluster_.RequestCount(simulator::System::kNomad, "get", "node");
  };
  const auto world = [&] {
    clock_.Advance(seconds(10));
    return WorldOf(ReadAll());
  };
  const World first = world();
  ASSERT_EQ(first.nodes.size(), 1U);
  EXPECT_TRUE(first.nodes[0].node->full);
  EXPECT_EQ(count(), 1);
  world();
  EXPECT_EQ(count(), 1);
  cluster_.SetEligible("a", false);
  EXPECT_FALSE(world().nodes.at(0).node->eligible);
  EXPECT_EQ(count(), 2);
}

TEST_F(ReaderTest, C19_of_nodes_that_are_to_be_emptied_the_jobs_are_read_once) {
  AddNode("a");
  simulator::NodeSpec other;
  other.name = "b";
  other.node_class = "other";
  cluster_.AddForeignNode(other);
  for (const char* const node : {"a", "b"}) {
    for (const char* const type : {"service", "system"}) {
      simulator::JobSpec job;
      job.id = std::string(type) + "-" + node;
      job.type = type;
      job.node_name = node;
      cluster_.RunJob(job);
    }
  }
  const auto jobs = [&] { return cluster_.RequestCount(simulator::System::kNomad, "get", "job"); };
  for (const int round : {1, 2}) {
    clock_.Advance(seconds(10));
    const Reading reading = ReadAll();
    std::string id;
    for (const nomad::Node& node : reading.nodes) {
      if (node.name == "b") id = node.id;
    }
    const World world = WorldOf(reading, {id});
    EXPECT_EQ(world.nodes.size(), 2U) << "b is of another pool, and emptied";
    ASSERT_EQ(world.groups.size(), 1U) << round;
    EXPECT_EQ(world.groups.begin()->second->job, "service-b");
    EXPECT_EQ(jobs(), 3) << "each system job, and what moves";
  }
}

TEST_F(ReaderTest, C19_so_are_the_jobs_of_what_leaves_other_nodes_of_any_pool) {
  AddNode("drained");
  for (const char* const name : {"drains", "stays"}) {
    simulator::NodeSpec other;
    other.name = name;
    other.node_class = "other";
    cluster_.AddForeignNode(other);
  }
  for (const char* const node : {"drained", "drains", "stays"}) {
    simulator::JobSpec job;
    job.id = std::string("of-") + node;
    job.node_name = node;
    cluster_.RunJob(job);
  }
  clock_.Advance(seconds(10));
  ASSERT_TRUE(cluster_.SetEligible("drained", false));
  ASSERT_TRUE(cluster_.OperatorDrain("drains"));
  const Reading reading = ReadAll();
  // The drain ended after the placements were read.
  Edit("/v1/node/", [](nlohmann::json& reply) {
    if (reply["Name"] != "drained") return;
    reply["LastDrain"] = {{"Status", "complete"}};
  });
  const World world = WorldOf(reading, {"victim"});
  EXPECT_EQ(world.nodes.size(), 2U) << "drained and drains";
  EXPECT_EQ(world.groups.size(), 2U);
  EXPECT_FALSE(world.groups.contains({"default", "of-stays", "group"}));
}

TEST_F(ReaderTest, C19_of_many_nodes_those_with_the_least_work_are_read) {
  for (const std::string node : {"victim", "busy", "idle", "one", "ineligible", "down"}) {
    AddNode(node);
  }
  for (const std::string node : {"busy", "busy", "one", "victim"}) {
    simulator::JobSpec job;
    job.id = node;
    job.count = node == "busy" ? 2 : 1;
    job.node_name = node;
    cluster_.RunJob(job);
  }
  clock_.Advance(seconds(10));
  ASSERT_TRUE(cluster_.SetEligible("ineligible", false));
  ASSERT_TRUE(cluster_.SetNodeStatus("down", "down"));
  const auto read = [&] {
    const Reading reading = ReadAll();
    const auto victim = std::find_if(reading.nodes.begin(), reading.nodes.end(),
                                     [](const auto& node) { return node.name == "victim"; });
    const auto world = reader_.WorldOf(context_, reading, {.node_class = "batch"}, {victim->id},
                                       /*most_places=*/2);
    EXPECT_THAT(world, IsOk());
    std::set<std::string> names;
    for (const PoolNode& each : world->nodes) names.insert(each.node->name);
    return names;
  };
  EXPECT_EQ(read(), (std::set<std::string>{"victim", "idle", "one"}));
  Edit("/v1/allocations", [](nlohmann::json& reply) {
    for (nlohmann::json& each : reply) {
      if (each["JobID"] == "busy") each["DesiredTransition"] = {{"Migrate", true}};
    }
  });
  clock_.Advance(seconds(10));
  EXPECT_EQ(read(), (std::set<std::string>{"victim", "idle", "one", "busy"}))
      << "what leaves busy needs a place, too";
}

TEST_F(ReaderTest, C19_of_many_nodes_each_one_is_read_that_others_empty) {
  for (const std::string node : {"victim", "idle", "drained"}) AddNode(node);
  simulator::JobSpec job;
  job.id = "moves";
  job.node_name = "drained";
  cluster_.RunJob(job);
  clock_.Advance(seconds(10));
  ASSERT_TRUE(cluster_.OperatorDrain("drained"));
  const Reading reading = ReadAll();
  const auto victim = std::find_if(reading.nodes.begin(), reading.nodes.end(),
                                   [](const auto& node) { return node.name == "victim"; });
  const auto world =
      reader_.WorldOf(context_, reading, {.node_class = "batch"}, {victim->id}, /*most_places=*/0);
  ASSERT_THAT(world, IsOk());
  EXPECT_EQ(world->nodes.size(), 2U) << "victim and drained";
  EXPECT_TRUE(world->groups.contains({"default", "moves", "group"}));
}

TEST_F(ReaderTest, C19_a_reading_from_now_on_is_none_that_is_kept) {
  const auto first = Read();
  ASSERT_THAT(first, IsOk());
  const auto second = reader_.Read(context_, /*from_now_on=*/true);
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(*second, *first);
}

TEST_F(ReaderTest, D5_a_node_that_nomad_no_longer_lists_is_forgotten) {
  AddNode("a");
  bool is_listed = true;
  between_->after = [&](const http::HttpRequest& request, http::HttpResponse* reply) {
    if (!is_listed && request.target.starts_with("/v1/nodes")) reply->body = "[]";
  };
  for (const bool listed : {true, false, true}) {
    is_listed = listed;
    clock_.Advance(seconds(10));
    const World world = WorldOf(ReadAll());
    EXPECT_EQ(world.nodes.size(), listed ? 1U : 0U);
  }
  EXPECT_EQ(cluster_.RequestCount(simulator::System::kNomad, "get", "node"), 2);
}

// Its meta says that no scale-in may take it, so that it counts.
TEST_F(ReaderTest, C7_a_node_that_is_down_is_read_in_full_too) {
  simulator::NodeSpec node;
  node.name = "a";
  node.node_class = "batch";
  node.meta = {{"harvester_protect", "true"}};
  cluster_.AddForeignNode(node);
  ASSERT_TRUE(cluster_.SetNodeStatus("a", "down"));
  const World world = WorldOf(ReadAll());
  ASSERT_EQ(world.nodes.size(), 1U);
  EXPECT_EQ(world.nodes[0].node->status, nomad::NodeStatus::kDown);
  EXPECT_EQ(world.nodes[0].node->meta.at("harvester_protect"), "true");
}

}  // namespace
}  // namespace nomad_harvester::demand
