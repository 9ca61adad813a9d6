// SPDX-License-Identifier: Apache-2.0
// Jobs and allocations of the simulated Nomad, above all under a drain.
#include <algorithm>

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using nomad::ClientStatus;

class NomadWorkTest : public SimulatorTest {
 protected:
  void Run(const std::string& type, int count, base::Duration poststop = {}) {
    JobSpec job;
    job.id = type;
    job.type = type;
    job.count = count;
    job.poststop = poststop;
    cluster().RunJob(job);
    Wait(seconds(1));
  }
  void Drain(const std::string& id, base::Duration deadline, bool ignore_system = false) {
    ASSERT_THAT(nomad().Drain(context_, id, {deadline, ignore_system, {{"action", "a"}}}), IsOk());
  }
  int StopJob(const std::string& id) {
    return Ask(System::kNomad, http::Method::kDelete, "/v1/job/" + id).status;
  }
  std::size_t LiveOn(const std::string& id) {
    const auto all = AllocationsOf(id);
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const nomad::Allocation& allocation) {
          return allocation.client_status == ClientStatus::kRunning ||
                 allocation.client_status == ClientStatus::kPending;
        }));
  }
};

TEST_F(NomadWorkTest, Work_that_has_ended_is_forgotten_after_a_while) {
  const std::string a = AddNode("a");
  Run("service", 1);
  Run("batch", 1);
  StopJob("service");
  StopJob("batch");
  Wait(minutes(59));
  EXPECT_THAT(AllocationsOf(a), SizeIs(2));
  Wait(minutes(2));
  ASSERT_THAT(AllocationsOf(a), SizeIs(1));
  EXPECT_EQ(AllocationsOf(a)[0].job_type, "batch");
  Wait(std::chrono::hours(24));
  EXPECT_THAT(AllocationsOf(a), IsEmpty());
}

TEST_F(NomadWorkTest, Service_work_is_spread_over_eligible_nodes) {
  const std::string a = AddNode("a");
  const std::string b = AddNode("b");
  const std::string c = AddNode("c");
  cluster().SetEligible("c", false);
  Run("service", 4);
  EXPECT_EQ(LiveOn(a), 2U);
  EXPECT_EQ(LiveOn(b), 2U);
  EXPECT_EQ(LiveOn(c), 0U);
  const auto one = AllocationsOf(a)[0];
  EXPECT_EQ(one.job_type, "service");
  EXPECT_EQ(one.cpu_shares, 100);
  EXPECT_FALSE(one.all_tasks_dead);
  EXPECT_EQ(nomad().ListAllocations(context_, nomad::AllocationPart::kTaskStates)->value.size(),
            4U);
  EXPECT_EQ(*nomad().NodeOfAllocation(context_, one.id), a);
}

TEST_F(NomadWorkTest, Work_waits_until_there_is_room) {
  Run("service", 2);
  EXPECT_THAT(cluster().Allocations(), IsEmpty());
  const std::string a = AddNode("a");
  Wait(seconds(1));
  EXPECT_EQ(LiveOn(a), 2U);
}

TEST_F(NomadWorkTest, A_drain_moves_service_work_and_is_complete_when_it_stopped) {
  const std::string a = AddNode("a");
  Run("service", 2);
  const std::string b = AddNode("b");
  Drain(a, minutes(15));
  Wait(seconds(3));
  EXPECT_TRUE(Read(a).draining);
  EXPECT_EQ(LiveOn(b), 2U);  // placed as soon as the old ones have desired status "stop"
  Wait(seconds(2));
  EXPECT_TRUE(IsComplete(a));
  EXPECT_EQ(LiveOn(a), 0U);
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kComplete);
}

TEST_F(NomadWorkTest, Work_without_room_stays_pending_until_the_node_is_enabled_again) {
  const std::string a = AddNode("a");
  Run("service", 1);
  Drain(a, minutes(15));
  Wait(seconds(5));
  EXPECT_TRUE(IsComplete(a));
  EXPECT_EQ(LiveOn(a), 0U);
  ASSERT_THAT(nomad().SetEligible(context_, a, true), IsOk());
  Wait(seconds(1));
  EXPECT_EQ(LiveOn(a), 1U);
}

TEST_F(NomadWorkTest, Batch_work_runs_on_until_the_deadline_which_completes_at_once) {
  const std::string a = AddNode("a");
  Run("batch", 1);
  Drain(a, minutes(15));
  Wait(minutes(15) - seconds(1));
  EXPECT_TRUE(Read(a).draining);
  EXPECT_EQ(AllocationsOf(a)[0].desired_status, "run");
  Wait(seconds(1));
  EXPECT_TRUE(IsComplete(a));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kRunning);  // tasks outlive it
  EXPECT_EQ(AllocationsOf(a)[0].desired_status, "stop");
  Wait(seconds(4));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kFailed);
  AddNode("b");
  Wait(seconds(5));
  EXPECT_THAT(cluster().Allocations(), SizeIs(1));  // not run again
}

TEST_F(NomadWorkTest, Batch_work_that_ends_completes_the_drain) {
  const std::string a = AddNode("a");
  JobSpec job;
  job.id = "short";
  job.type = "batch";
  job.run_for = seconds(60);
  cluster().RunJob(job);
  Wait(seconds(1));
  Drain(a, minutes(15));
  Wait(seconds(58));
  EXPECT_TRUE(Read(a).draining);
  Wait(seconds(2));
  EXPECT_TRUE(IsComplete(a));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kComplete);
}

TEST_F(NomadWorkTest, A_poststop_task_runs_on_under_a_terminal_status) {
  const std::string a = AddNode("a");
  Run("batch", 1, seconds(20));
  Drain(a, seconds(-1));
  Wait(seconds(1));
  EXPECT_TRUE(IsComplete(a));
  Wait(seconds(4));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kFailed);
  EXPECT_FALSE(AllocationsOf(a)[0].all_tasks_dead);
  Wait(seconds(20));
  EXPECT_TRUE(AllocationsOf(a)[0].all_tasks_dead);
}

TEST_F(NomadWorkTest, System_work_goes_last_or_stays) {
  const std::string a = AddNode("a");
  const std::string b = AddNode("b");
  Run("system", 1);
  EXPECT_EQ(LiveOn(a), 1U);
  EXPECT_EQ(LiveOn(b), 1U);
  Drain(a, minutes(15));
  Wait(seconds(1));
  EXPECT_TRUE(IsComplete(a));  // before its system work has stopped
  EXPECT_EQ(AllocationsOf(a)[0].desired_status, "stop");
  Drain(b, minutes(15), true);
  Wait(seconds(10));
  EXPECT_TRUE(IsComplete(b));
  EXPECT_EQ(LiveOn(a), 0U);
  EXPECT_EQ(LiveOn(b), 1U);
}

TEST_F(NomadWorkTest, Tasks_that_never_stop_outlive_every_drain) {
  const std::string a = AddNode("a");
  JobSpec job;
  job.id = "stubborn";
  job.never_stops = true;
  cluster().RunJob(job);
  Wait(seconds(1));
  Drain(a, minutes(5));
  Wait(minutes(4));
  EXPECT_TRUE(Read(a).draining);
  Wait(minutes(60));
  EXPECT_TRUE(IsComplete(a));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kRunning);
}

TEST_F(NomadWorkTest, A_node_that_hangs_stops_its_work_when_it_no_longer_does) {
  const std::string a = AddNode("a");
  Run("service", 1);
  cluster().HangDrain("a");
  Drain(a, minutes(15));
  Wait(minutes(2));
  EXPECT_EQ(LiveOn(a), 1U);
  cluster().HangDrain("a", false);
  Wait(seconds(5));
  EXPECT_EQ(LiveOn(a), 0U);
  EXPECT_TRUE(IsComplete(a));
}

TEST_F(NomadWorkTest, Work_on_a_node_that_goes_down_is_lost_and_done_elsewhere) {
  const std::string a = AddNode("a");
  Run("service", 1);
  const std::string b = AddNode("b");
  cluster().KillNode("a");
  Wait(seconds(12));
  EXPECT_EQ(AllocationsOf(a)[0].client_status, ClientStatus::kLost);
  EXPECT_EQ(LiveOn(b), 1U);
}

TEST_F(NomadWorkTest, A_drain_of_a_node_that_goes_down_completes_when_its_work_is_lost) {
  const std::string a = AddNode("a");
  Run("batch", 1);
  Drain(a, minutes(15));
  cluster().KillNode("a");
  Wait(seconds(11));
  EXPECT_TRUE(IsComplete(a));
}

TEST_F(NomadWorkTest, A_client_that_reconnects_in_time_stops_what_it_must_stop) {
  const std::string a = AddNode("a");
  Run("service", 1);
  Drain(a, minutes(15));
  Wait(seconds(1));
  cluster().KillNode("a");
  Wait(seconds(5));
  cluster().ReviveNode("a");
  Wait(seconds(5));
  EXPECT_EQ(LiveOn(a), 0U);
  EXPECT_TRUE(IsComplete(a));
}

TEST_F(NomadWorkTest, A_stopped_job_stops_its_work_permanently) {
  const std::string a = AddNode("a");
  Run("service", 2);
  EXPECT_EQ(StopJob("service"), 200);
  EXPECT_EQ(StopJob("nothing"), 404);
  Wait(seconds(10));
  EXPECT_EQ(LiveOn(a), 0U);
  EXPECT_THAT(cluster().Allocations(), SizeIs(2));
}

TEST_F(NomadWorkTest, A_token_without_read_job_sees_no_work) {
  const std::string a = AddNode("a");
  Run("service", 1);
  cluster().DenyReadJob(true);
  EXPECT_THAT(AllocationsOf(a), IsEmpty());
}

TEST_F(NomadWorkTest, A_job_may_ask_for_one_node) {
  AddNode("a");
  const std::string b = AddNode("b");
  JobSpec job;
  job.id = "picky";
  job.count = 3;
  job.node_name = "b";
  cluster().RunJob(job);
  Wait(seconds(1));
  EXPECT_EQ(LiveOn(b), 3U);
}

}  // namespace
}  // namespace nomad_harvester::simulator
