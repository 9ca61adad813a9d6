// SPDX-License-Identifier: Apache-2.0
// Nomad's clients that come up late or never, that fall back, and what is placed on them.
#include "simulator_fixture.h"
#include "support/client_behaviours.h"

namespace nomad_harvester::simulator {
namespace {

using http::Method;
using nomad::NodeStatus;

class ClientsTest : public SimulatorTest {
 protected:
  NodeStatus StatusOfNode(const std::string& id) { return Read(id).status; }
  json Docker(const std::string& node) { return cluster().Node(node)["Drivers"]["docker"]; }
  json Stub() { return json::parse(Ask(System::kNomad, Method::kGet, "/v1/nodes").body).at(0); }
  // An allocation of the job, in full; null: none.
  json WorkOf(const std::string& job) {
    for (const json& allocation : cluster().Allocations()) {
      if (allocation["JobID"] == job) return allocation;
    }
    return nullptr;
  }
  void Run(const std::string& id, const std::string& type = "service",
           base::Duration lost_after = {}) {
    JobSpec job;
    job.id = id;
    job.type = type;
    job.lost_after = lost_after;
    cluster().RunJob(job);
    Wait(seconds(1));
  }
  absl::Status Drain(const std::string& id, base::Duration deadline = minutes(15)) {
    return nomad().Drain(context_, id, {deadline, false, {}});
  }
  static JobSpec Job(const std::string& id) {
    JobSpec job;
    job.id = id;
    return job;
  }
  static ClientBehaviour With(const std::string& driver, DriverSpec spec) {
    ClientBehaviour behaviour;
    behaviour.drivers[driver] = std::move(spec);
    return behaviour;
  }
};

TEST_F(ClientsTest, A_node_has_healthy_drivers_in_the_stub_and_in_full) {
  const std::string id = AddNode("a");
  const json expected = {{"Attributes", {{"driver.docker", "true"}}},
                         {"Detected", true},
                         {"Healthy", true},
                         {"HealthDescription", "Healthy"},
                         {"UpdateTime", "2026-01-01T00:00:00Z"}};
  EXPECT_EQ(Stub()["Drivers"]["docker"], expected);
  EXPECT_TRUE(Stub()["Drivers"]["exec"]["Healthy"]);
  EXPECT_EQ(cluster().Node(id)["Drivers"], Stub()["Drivers"]);
  EXPECT_EQ(Read(id).attributes.at("driver.docker"), "1");
}

TEST_F(ClientsTest, A_client_may_be_initializing_for_a_while_after_its_registration) {
  options_.client.initializing_for = seconds(7);
  const std::string id = AddNode("a");
  Run("service");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
  EXPECT_TRUE(WorkOf("service").is_null());
  Wait(seconds(6));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
  Wait(seconds(1));
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "running");
}

TEST_F(ClientsTest, The_next_guests_behave_as_they_are_told_and_the_others_do_not) {
  ClientBehaviour stuck;
  stuck.initializing_for = kForever;
  cluster().SetNextClients(1, stuck);
  EXPECT_EQ(JoinVm("vm-1").status, NodeStatus::kInitializing);
  EXPECT_EQ(JoinVm("vm-2").status, NodeStatus::kReady);
  Wait(std::chrono::hours(48));
  EXPECT_EQ(NodeOf("vm-1").status, NodeStatus::kInitializing);
}

TEST_F(ClientsTest, The_next_guests_behave_in_the_order_in_which_it_was_said) {
  cluster().SetNextClients(2, support::NeverReady());
  cluster().SetNextClients(1, support::FallsBackAfter(minutes(1)));
  cluster().SetNextClients(1, support::DockerAfter(minutes(1)));
  cluster().SetNextClients(1, support::NeverDocker());
  cluster().SetNextClients(1, support::StartsIneligible());
  cluster().SetNextClients(1, support::InitializingFor(minutes(1)));
  std::vector<nomad::Node> nodes;
  for (int vm = 1; vm <= 8; ++vm) nodes.push_back(JoinVm("vm-" + std::to_string(vm)));
  EXPECT_EQ(nodes[0].status, NodeStatus::kInitializing);
  EXPECT_EQ(nodes[1].status, NodeStatus::kInitializing);
  EXPECT_EQ(nodes[2].status, NodeStatus::kReady);
  EXPECT_FALSE(Docker("vm-4")["Healthy"]);
  EXPECT_FALSE(Docker("vm-5")["Healthy"]);
  EXPECT_FALSE(nodes[5].eligible);
  EXPECT_EQ(nodes[6].status, NodeStatus::kInitializing);
  EXPECT_TRUE(nodes[7].status == NodeStatus::kReady && nodes[7].eligible) << "nothing was said";
  Wait(minutes(2));
  EXPECT_EQ(NodeOf("vm-2").status, NodeStatus::kInitializing);
  EXPECT_EQ(NodeOf("vm-3").status, NodeStatus::kInitializing) << "it fell back";
  EXPECT_TRUE(Docker("vm-4")["Healthy"]);
  EXPECT_FALSE(Docker("vm-5")["Healthy"]);
  EXPECT_FALSE(NodeOf("vm-6").eligible);
  EXPECT_EQ(NodeOf("vm-7").status, NodeStatus::kReady);
}

TEST_F(ClientsTest, A_client_that_is_stuck_becomes_ready_when_it_is_told_so) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  ASSERT_TRUE(cluster().SetNodeStatus("a", "ready"));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
}

TEST_F(ClientsTest, An_initializing_client_that_dies_is_down_and_not_disconnected) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  cluster().KillNode("a");
  Wait(seconds(10));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDown);
  cluster().ReviveNode("a");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
}

TEST_F(ClientsTest, An_initializing_client_that_restarts_in_time_is_initializing_still) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  cluster().KillNode("a");
  Wait(seconds(5));
  cluster().ReviveNode("a");
  Wait(minutes(5));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
}

TEST_F(ClientsTest, A_stuck_client_that_is_purged_registers_again_as_ready) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  ASSERT_THAT(nomad().Purge(context_, id), IsOk());
  Wait(seconds(6));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
}

TEST_F(ClientsTest, A_driver_that_comes_late_is_absent_until_then_and_takes_no_work) {
  options_.client = With("docker", {DriverHealth::kAbsent, seconds(60)});
  const std::string id = AddNode("a");
  const auto before = Read(id).modify_index;
  Run("service");
  EXPECT_FALSE(Stub()["Drivers"].contains("docker"));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
  EXPECT_TRUE(WorkOf("service").is_null());
  Wait(seconds(60));
  EXPECT_TRUE(Stub()["Drivers"]["docker"]["Healthy"]);
  EXPECT_EQ(Stub()["Drivers"]["docker"]["UpdateTime"], "2026-01-01T00:01:00Z");
  EXPECT_GT(Read(id).modify_index, before);
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "running");
}

TEST_F(ClientsTest, A_driver_that_is_never_healthy_says_why_and_takes_no_work) {
  options_.client = With("docker", {DriverHealth::kUnhealthy, kForever, "no daemon"});
  const std::string id = AddNode("a");
  Run("service");
  JobSpec other = Job("other");
  other.driver = "exec";
  cluster().RunJob(other);
  Wait(std::chrono::hours(1));
  const json driver = Stub()["Drivers"]["docker"];
  EXPECT_TRUE(driver["Detected"]);
  EXPECT_FALSE(driver["Healthy"]);
  EXPECT_EQ(driver["HealthDescription"], "no daemon");
  EXPECT_TRUE(WorkOf("service").is_null());
  EXPECT_EQ(WorkOf("other")["NodeID"], id);
}

TEST_F(ClientsTest, A_driver_that_is_not_detected_is_not_in_the_attributes) {
  options_.client = With("docker", {DriverHealth::kUndetected, kForever, "no daemon"});
  const std::string id = AddNode("a");
  Run("service");
  EXPECT_FALSE(Stub()["Drivers"]["docker"]["Detected"]);
  EXPECT_FALSE(Read(id).attributes.contains("driver.docker"));
  EXPECT_TRUE(WorkOf("service").is_null());
}

TEST_F(ClientsTest, A_client_that_starts_ineligible_does_so_only_when_nomad_does_not_know_it) {
  options_.client.starts_ineligible = true;
  const std::string id = AddNode("a");
  Run("service");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
  EXPECT_FALSE(Read(id).eligible);
  EXPECT_EQ(Read(id).last_drain, std::nullopt);
  EXPECT_TRUE(WorkOf("service").is_null());
  ASSERT_THAT(nomad().SetEligible(context_, id, true), IsOk());
  cluster().KillNode("a");
  Wait(seconds(11));
  cluster().ReviveNode("a");
  EXPECT_TRUE(Read(id).eligible);
}

TEST_F(ClientsTest, A_client_that_falls_back_to_initializing_is_back_when_it_is_told) {
  options_.client.ready_for = minutes(2);
  const std::string id = AddNode("a");
  Run("service");
  Wait(minutes(2));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "running");
  Wait(std::chrono::hours(3));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
  ASSERT_TRUE(cluster().SetNodeStatus("a", "ready"));
  Wait(minutes(10));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
}

TEST_F(ClientsTest, A_disconnected_client_whose_vm_stops_is_down_in_the_end) {
  const std::string id = JoinVm("vm-1").id;
  ASSERT_TRUE(cluster().SetNodeStatus("vm-1", "disconnected"));
  cluster().StopVm("vm-1");
  Wait(minutes(1));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDown);
}

TEST_F(ClientsTest, A_silent_node_is_disconnected_until_its_last_work_is_lost_and_then_down) {
  const std::string id = AddNode("a");
  Run("short", "service", minutes(2));
  Run("long", "service", minutes(5));
  Run("plain");
  cluster().KillNode("a");
  Wait(seconds(11));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDisconnected);
  EXPECT_EQ(WorkOf("long")["ClientStatus"], "unknown");
  EXPECT_EQ(WorkOf("plain")["ClientStatus"], "lost");
  Wait(minutes(3));
  EXPECT_EQ(WorkOf("short")["ClientStatus"], "lost");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDisconnected);
  Wait(minutes(2) + seconds(15));
  EXPECT_EQ(WorkOf("long")["ClientStatus"], "lost");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDown);
}

TEST_F(ClientsTest, A_disconnected_client_that_returns_is_initializing_first) {
  const std::string id = AddNode("a");
  Run("service", "service", minutes(5));
  cluster().KillNode("a");
  Wait(seconds(11));
  cluster().ReviveNode("a");
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "running");
  Wait(seconds(5));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kReady);
  Wait(minutes(10));  // the time of the first silence is over
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "running");
}

TEST_F(ClientsTest, Each_silence_gives_the_work_its_whole_time) {
  AddNode("a");
  Run("service", "service", minutes(5));
  cluster().SetNodeStatus("a", "disconnected");
  Wait(minutes(3));
  cluster().SetNodeStatus("a", "ready");
  cluster().SetNodeStatus("a", "disconnected");
  Wait(minutes(4));
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "unknown");
  cluster().SetNodeStatus("a", "initializing");  // its client does not report its work
  Wait(minutes(1));
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "lost");
}

TEST_F(ClientsTest, Work_that_has_ended_holds_its_node_disconnected_until_it_is_forgotten) {
  const std::string id = AddNode("a");
  JobSpec job = Job("batch");
  job.type = "batch";
  job.run_for = seconds(5);
  job.lost_after = minutes(1);
  cluster().RunJob(job);
  Wait(seconds(10));
  EXPECT_EQ(WorkOf("batch")["ClientStatus"], "complete");
  cluster().KillNode("a");
  Wait(std::chrono::hours(23));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDisconnected);
  Wait(std::chrono::hours(2));
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kDown);
}

TEST_F(ClientsTest, A_drain_of_an_initializing_node_without_work_is_complete_at_once) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  ASSERT_THAT(Drain(id), IsOk());
  Wait(seconds(1));
  EXPECT_TRUE(IsComplete(id));
  EXPECT_FALSE(Read(id).eligible);
  EXPECT_EQ(StatusOfNode(id), NodeStatus::kInitializing);
}

TEST_F(ClientsTest, A_drain_of_a_disconnected_node_waits_until_its_work_is_lost) {
  const std::string id = AddNode("a");
  Run("service", "service", minutes(5));
  cluster().KillNode("a");
  Wait(seconds(11));
  ASSERT_THAT(Drain(id), IsOk());
  Wait(minutes(4));
  EXPECT_TRUE(Read(id).draining);
  EXPECT_EQ(WorkOf("service")["DesiredStatus"], "run");
  Wait(minutes(1));
  EXPECT_TRUE(IsComplete(id));
}

TEST_F(ClientsTest, Work_that_outlives_the_drain_of_its_silent_node_stops_when_the_client_is_back) {
  const std::string id = AddNode("a");
  Run("service", "service", std::chrono::hours(1));
  cluster().KillNode("a");
  Wait(seconds(11));
  ASSERT_THAT(Drain(id, minutes(2)), IsOk());
  Wait(minutes(3));
  EXPECT_TRUE(IsComplete(id));
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "unknown");
  cluster().ReviveNode("a");
  Wait(seconds(5));
  EXPECT_EQ(WorkOf("service")["ClientStatus"], "complete");
}

TEST_F(ClientsTest, A_plan_that_commits_before_the_drainer_looks_is_drained) {
  const std::string id = AddNode("a");
  cluster().PlaceLate(Job("late"), milliseconds(10));
  ASSERT_THAT(Drain(id), IsOk());
  Wait(seconds(1));
  EXPECT_EQ(WorkOf("late")["DesiredStatus"], "stop");
  EXPECT_TRUE(Read(id).draining);
  Wait(seconds(5));
  EXPECT_TRUE(IsComplete(id));
}

TEST_F(ClientsTest, Nothing_stops_a_plan_that_commits_after_the_drain_but_a_second_drain) {
  const std::string id = AddNode("a");
  cluster().PlaceLate(Job("late"), seconds(2), "a");
  ASSERT_THAT(Drain(id), IsOk());
  Wait(minutes(20));
  EXPECT_TRUE(IsComplete(id));
  EXPECT_EQ(WorkOf("late")["ClientStatus"], "running");
  ASSERT_THAT(Drain(id), IsOk());
  Wait(seconds(5));
  EXPECT_TRUE(IsComplete(id));
  EXPECT_EQ(WorkOf("late")["ClientStatus"], "complete");
}

TEST_F(ClientsTest, A_plan_of_another_job_that_commits_during_a_drain_runs_until_the_deadline) {
  const std::string id = AddNode("a");
  Run("batch", "batch");
  cluster().PlaceLate(Job("late"), seconds(2));
  ASSERT_THAT(Drain(id, minutes(10)), IsOk());
  Wait(minutes(9));
  EXPECT_TRUE(Read(id).draining);
  EXPECT_EQ(WorkOf("late")["DesiredStatus"], "run");
  Wait(minutes(1));
  EXPECT_TRUE(IsComplete(id));
  EXPECT_EQ(WorkOf("late")["DesiredStatus"], "stop");
}

TEST_F(ClientsTest, A_plan_may_commit_on_a_node_that_was_just_made_ineligible) {
  const std::string id = AddNode("a");
  cluster().PlaceLate(Job("late"), milliseconds(50));
  ASSERT_THAT(nomad().SetEligible(context_, id, false), IsOk());
  Wait(seconds(1));
  EXPECT_EQ(WorkOf("late")["NodeID"], id);
}

TEST_F(ClientsTest, No_plan_is_in_flight_for_a_node_that_was_not_ready) {
  options_.client.initializing_for = kForever;
  const std::string id = AddNode("a");
  cluster().PlaceLate(Job("late"), milliseconds(50));
  ASSERT_THAT(Drain(id), IsOk());
  Wait(minutes(1));
  EXPECT_THAT(cluster().Allocations(), IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::simulator
