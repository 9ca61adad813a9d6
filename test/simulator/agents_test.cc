// SPDX-License-Identifier: Apache-2.0
// Nodes that change under their ID, fall silent, hold volumes, or are forgotten.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;
using http::Method;

class AgentsTest : public SimulatorTest {
 protected:
  void RunService() {
    JobSpec job;
    job.id = "service";
    cluster().RunJob(job);
    Wait(seconds(1));
  }
  std::string WorkStatus() { return cluster().Allocations().at(0)["ClientStatus"]; }
};

TEST_F(AgentsTest, An_agent_that_registers_again_under_its_id_is_what_it_says_now) {
  const std::string id = AddNode("a");
  ASSERT_THAT(nomad().SetEligible(context_, id, false), IsOk());
  const nomad::Node before = Read(id);
  ASSERT_TRUE(cluster().ReRegister("a", [](NodeSpec& spec) {
    spec.name = "b";
    spec.node_class = "gpu";
    spec.meta["harvester_protect"] = "true";
  }));
  const nomad::Node after = Read(id);
  EXPECT_EQ(after.name, "b");
  EXPECT_EQ(after.attributes.at("unique.hostname"), "b");
  EXPECT_EQ(after.node_class, "gpu");
  EXPECT_EQ(after.meta.at("harvester_protect"), "true");
  EXPECT_EQ(after.create_index, before.create_index);
  EXPECT_GT(after.modify_index, before.modify_index);
  EXPECT_FALSE(after.eligible);
  EXPECT_FALSE(cluster().ReRegister("a", [](NodeSpec&) {}));
}

TEST_F(AgentsTest, A_silent_agent_changes_its_node_when_it_is_back) {
  const std::string id = AddNode("a");
  cluster().KillNode("a");
  Wait(seconds(11));
  ASSERT_TRUE(cluster().ReRegister(id, [](NodeSpec& spec) { spec.name = "b"; }));
  EXPECT_EQ(Read(id).name, "a");
  cluster().ReviveNode(id);
  EXPECT_EQ(Read(id).name, "b");
  EXPECT_EQ(Read(id).status, nomad::NodeStatus::kReady);
}

TEST_F(AgentsTest, An_initializing_node_takes_no_work_until_it_is_ready) {
  const std::string id = AddNode("a");
  ASSERT_TRUE(cluster().SetNodeStatus("a", "initializing"));
  EXPECT_EQ(Read(id).status, nomad::NodeStatus::kInitializing);
  RunService();
  EXPECT_THAT(cluster().Allocations(), IsEmpty());
  cluster().SetNodeStatus("a", "ready");
  Wait(seconds(1));
  EXPECT_EQ(WorkStatus(), "running");
}

TEST_F(AgentsTest, A_disconnected_node_keeps_its_work_which_is_unknown_meanwhile) {
  const std::string id = AddNode("a");
  AddNode("b");
  RunService();
  const std::string busy = cluster().Allocations().at(0)["NodeID"];
  EXPECT_EQ(busy, id);
  ASSERT_TRUE(cluster().SetNodeStatus("a", "disconnected"));
  Wait(minutes(10));
  EXPECT_EQ(Read(id).status, nomad::NodeStatus::kDisconnected);
  EXPECT_EQ(WorkStatus(), "unknown");
  cluster().SetNodeStatus("a", "ready");
  EXPECT_EQ(Read(id).status, nomad::NodeStatus::kReady);
  EXPECT_EQ(WorkStatus(), "running");
  EXPECT_THAT(cluster().Allocations(), SizeIs(1));
}

TEST_F(AgentsTest, A_node_can_be_down_at_once_and_loses_its_work) {
  const std::string id = AddNode("a");
  RunService();
  ASSERT_TRUE(cluster().SetNodeStatus("a", "down"));
  EXPECT_EQ(Read(id).status, nomad::NodeStatus::kDown);
  EXPECT_EQ(WorkStatus(), "lost");
  EXPECT_FALSE(cluster().SetNodeStatus("nobody", "down"));
}

TEST_F(AgentsTest,
       Host_volumes_stand_in_the_stub_and_in_the_node_and_only_dynamic_ones_have_an_id) {
  const std::string id = AddNode("a");
  cluster().ReRegister("a", [](NodeSpec& spec) {
    spec.host_volumes = {{"data", "8d3f1a60-0c1e-4f0a-9d55-3b1f0a1b2c3d"}, {"certs", ""}};
  });
  const json stub = json::parse(Ask(System::kNomad, Method::kGet, "/v1/nodes").body)[0];
  const json node = json::parse(Ask(System::kNomad, Method::kGet, "/v1/node/" + id).body);
  EXPECT_EQ(stub["HostVolumes"]["data"]["ID"], "8d3f1a60-0c1e-4f0a-9d55-3b1f0a1b2c3d");
  EXPECT_EQ(stub["HostVolumes"]["certs"]["ID"], "");
  EXPECT_EQ(node["HostVolumes"], stub["HostVolumes"]);
}

TEST_F(AgentsTest, Every_answer_about_a_missing_object_tells_the_index) {
  AddNode("a");
  const std::string index =
      *Ask(System::kNomad, Method::kGet, "/v1/nodes").headers.Find("X-Nomad-Index");
  const auto node = Ask(System::kNomad, Method::kGet, "/v1/node/nobody");
  EXPECT_EQ(node.status, 404);
  EXPECT_EQ(node.headers.Find("X-Nomad-Index"), index);
  const auto allocation = Ask(System::kNomad, Method::kGet, "/v1/allocation/none");
  EXPECT_EQ(allocation.status, 404);
  EXPECT_EQ(allocation.headers.Find("X-Nomad-Index"), "1");
}

TEST_F(AgentsTest, A_restored_nomad_knows_nothing_until_the_agents_are_back) {
  const std::string id = AddNode("a");
  RunService();
  ASSERT_THAT(nomad().SetEligible(context_, id, false), IsOk());
  const auto before = nomad().ListNodes(context_);
  cluster().RestoreNomad(true);
  const auto empty = nomad().ListNodes(context_);
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(empty->value, IsEmpty());
  EXPECT_LT(empty->index, before->index);
  EXPECT_THAT(nomad().GetNode(context_, id), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(cluster().Allocations(), IsEmpty());
  Wait(seconds(5));
  const nomad::Node after = Read(id);
  EXPECT_TRUE(after.eligible);
  EXPECT_LT(after.create_index, before->value.at(0).create_index);
}

TEST_F(AgentsTest, Two_nomads_of_one_harvester_know_only_their_own_nodes_work_and_keys) {
  const std::string first = AddNode("a");
  const std::string second = cluster().AddForeignNode({.name = "b", .nomad = "second"});
  cluster().RunJob({.id = "service", .count = 3, .nomad = "second"});
  cluster().SetNomadKeys({"other"}, "second");
  Wait(seconds(1));
  const nomad::NomadClient other(cluster().NomadTransport("", "second"), {});
  EXPECT_EQ(nomad().ListNodes(context_)->value.at(0).id, first);
  EXPECT_EQ(other.ListNodes(context_)->value.at(0).id, second);
  EXPECT_THAT(AllocationsOf(first), IsEmpty());
  EXPECT_THAT(other.NodeAllocations(context_, second)->value, SizeIs(3));
  EXPECT_THAT(other.GetNode(context_, first), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(other.Purge(context_, first), StatusIs(StatusCode::kNotFound));
  EXPECT_EQ(*nomad().ReadClusterKeys(context_), kFirstNomadKey);
  EXPECT_EQ(*other.ReadClusterKeys(context_), "other");
  EXPECT_THAT(cluster().Nodes(), SizeIs(2)) << "the operator sees both";
  EXPECT_TRUE(cluster().KillNode("b"));
  Wait(seconds(11));
  EXPECT_EQ(cluster().Node("b")["Status"], "down");
  EXPECT_EQ(Read(first).status, nomad::NodeStatus::kReady);
}

TEST_F(AgentsTest, A_guest_is_a_client_of_the_nomad_that_its_user_data_names) {
  json secret = SecretFor("vm-1");
  secret["data"]["userdata"] = base::Base64Encode("name = \"vm-1\"\nnomad_cluster = \"second\"\n");
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", secret), IsOk());
  const auto vm = kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1"));
  ASSERT_THAT(vm, IsOk());
  Wait(seconds(9));
  const nomad::NomadClient other(cluster().NomadTransport("", "second"), {});
  EXPECT_THAT(nomad().ListNodes(context_)->value, IsEmpty());
  EXPECT_EQ(other.ListNodes(context_)->value.at(0).id, cluster().NodeIdOfVm(UidOf(vm->object)));
  cluster().StopVm("vm-1");
  Wait(seconds(20));
  EXPECT_EQ(cluster().Node("vm-1")["Status"], "down");
}

TEST_F(AgentsTest, At_the_address_of_another_nomad_the_agents_never_appear) {
  const std::string id = AddNode("a");
  cluster().RestoreNomad(false);
  Wait(minutes(10));
  EXPECT_THAT(nomad().ListNodes(context_)->value, IsEmpty());
  EXPECT_THAT(nomad().Purge(context_, id), StatusIs(StatusCode::kNotFound));
}

}  // namespace
}  // namespace nomad_harvester::simulator
