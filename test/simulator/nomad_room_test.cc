// SPDX-License-Identifier: Apache-2.0
// The room on the nodes of the simulated Nomad, and the work that waits for it.
#include <string>
#include <vector>

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

class NomadRoomTest : public SimulatorTest {
 protected:
  // A node has room for four of them.
  static JobSpec Job(const std::string& id, int count) {
    JobSpec job;
    job.id = id;
    job.count = count;
    job.cpu = 1000;
    job.memory_mb = 1024;
    return job;
  }
  void Run(const JobSpec& job) {
    cluster().RunJob(job);
    Wait(seconds(1));
  }
  std::vector<nomad::BlockedEvaluation> Blocked() {
    const auto list = nomad().ListBlockedEvaluations(context_);
    EXPECT_THAT(list, IsOk());
    return list.ok() ? list->value : std::vector<nomad::BlockedEvaluation>{};
  }
  std::int64_t Queued(const std::string& id) {
    const auto jobs = nomad().ListJobs(context_);
    EXPECT_THAT(jobs, IsOk());
    for (const nomad::JobStub& job : jobs->value) {
      if (job.id == id) return job.queued.at("group");
    }
    return -1;
  }
};

TEST_F(NomadRoomTest, Work_beyond_the_room_waits_and_says_what_lacks) {
  const std::string a = AddNode("a");
  Run(Job("web", 6));
  EXPECT_THAT(AllocationsOf(a), SizeIs(4));
  ASSERT_THAT(Blocked(), SizeIs(1));
  const nomad::BlockedEvaluation blocked = Blocked()[0];
  EXPECT_EQ(blocked.job, "web");
  const nomad::PlacementFailure& failure = blocked.failures.at("group");
  EXPECT_EQ(failure.unplaced, 2);
  EXPECT_EQ(failure.nodes_evaluated, 1);
  EXPECT_EQ(failure.nodes_exhausted, 1);
  EXPECT_EQ(failure.dimension_exhausted.at("cpu"), 1);
  EXPECT_EQ(Queued("web"), 2);
}

TEST_F(NomadRoomTest, A_new_node_takes_what_waits) {
  Run(Job("web", 6));
  EXPECT_EQ(Queued("web"), 6);
  const std::string a = AddNode("a");
  Wait(seconds(1));
  EXPECT_THAT(AllocationsOf(a), SizeIs(4));
  ASSERT_THAT(Blocked(), SizeIs(1));
  EXPECT_EQ(Blocked()[0].failures.at("group").unplaced, 6) << "as Nomad, which does not lower it";
  EXPECT_EQ(Queued("web"), 2);
  AddNode("b");
  Wait(seconds(1));
  EXPECT_THAT(Blocked(), IsEmpty());
  EXPECT_EQ(Queued("web"), 0);
}

TEST_F(NomadRoomTest, A_job_that_stops_frees_its_room_and_no_longer_waits) {
  const std::string a = AddNode("a");
  Run(Job("first", 4));
  Run(Job("second", 4));
  EXPECT_EQ(Queued("second"), 4);
  Ask(System::kNomad, http::Method::kDelete, "/v1/job/first");
  Wait(minutes(1));
  EXPECT_THAT(Blocked(), IsEmpty());
  Run(Job("third", 4));
  EXPECT_EQ(Queued("third"), 4);
  Ask(System::kNomad, http::Method::kDelete, "/v1/job/third");
  EXPECT_THAT(Blocked(), IsEmpty());
}

TEST_F(NomadRoomTest, A_node_that_the_job_may_not_use_is_filtered) {
  AddNode("a");
  JobSpec job = Job("gpu", 1);
  job.node_class = "gpu";
  Run(job);
  ASSERT_THAT(Blocked(), SizeIs(1));
  EXPECT_EQ(Blocked()[0].failures.at("group").nodes_filtered, 1);
}

TEST_F(NomadRoomTest, A_job_can_be_read_as_it_was_given) {
  JobSpec job = Job("web", 3);
  job.node_class = "batch";
  job.datacenter = "dc2";
  job.node_pool = "default";
  Run(job);
  const auto read = nomad().GetJob(context_, "default", "web");
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->datacenters, ElementsAre("dc2"));
  EXPECT_EQ(read->node_pool, "default");
  ASSERT_THAT(read->constraints, SizeIs(1));
  EXPECT_EQ(read->constraints[0].left, "${node.class}");
  ASSERT_THAT(read->groups, SizeIs(1));
  EXPECT_EQ(read->groups[0].count, 3);
  ASSERT_THAT(read->groups[0].tasks, SizeIs(1));
  EXPECT_EQ(read->groups[0].tasks[0].cpu_shares, 1000);
  EXPECT_EQ(read->groups[0].tasks[0].memory_mb, 1024);
  EXPECT_THAT(nomad().GetJob(context_, "default", "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(NomadRoomTest, A_token_without_read_job_sees_no_jobs) {
  Run(Job("web", 3));
  cluster().DenyReadJob(true);
  EXPECT_THAT(nomad().ListBlockedEvaluations(context_),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("read-job")));
  EXPECT_THAT(nomad().ListJobs(context_), StatusIs(absl::StatusCode::kPermissionDenied));
}

}  // namespace
}  // namespace nomad_harvester::simulator
