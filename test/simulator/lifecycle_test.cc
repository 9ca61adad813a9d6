// A VM's life: from its creation to its node, and to the end of both.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

TEST_F(SimulatorTest, A_vm_boots_and_becomes_a_ready_node) {
  MakeVm("vm-1");
  EXPECT_EQ(StatusOf("vm-1"), "");  // no controller has seen it yet
  Wait(seconds(1));
  EXPECT_EQ(StatusOf("vm-1"), "Starting");
  EXPECT_EQ(PhaseOf("vm-1"), "Pending");
  Wait(seconds(1));
  EXPECT_EQ(PhaseOf("vm-1"), "Scheduling");
  Wait(seconds(1));
  EXPECT_EQ(PhaseOf("vm-1"), "Scheduled");
  Wait(seconds(2));
  EXPECT_EQ(PhaseOf("vm-1"), "Running");
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_THAT(nomad().ListNodes(context_)->value, IsEmpty());
  Wait(seconds(3));
  const auto nodes = nomad().ListNodes(context_);
  ASSERT_THAT(nodes->value, SizeIs(1));
  EXPECT_EQ(nodes->value[0].name, "vm-1");
  EXPECT_EQ(nodes->value[0].status, nomad::NodeStatus::kReady);
  EXPECT_TRUE(nodes->value[0].eligible);
  const nomad::Node node = NodeOf("vm-1");
  EXPECT_EQ(node.node_class, "batch");
  EXPECT_EQ(node.node_pool, "default");
  EXPECT_EQ(node.datacenter, "dc1");
  EXPECT_EQ(node.attributes.at("unique.hostname"), "vm-1");
  EXPECT_EQ(node.meta.at("harvester_vm_uuid"), kUuid);
}

TEST_F(SimulatorTest, A_deleted_vm_takes_its_instance_claim_secret_and_node_along) {
  const json vm = MakeVm("vm-1");
  const json secret = cluster().Secrets().at(0);
  const json patch = {{"metadata",
                       {{"ownerReferences", json::array({{{"apiVersion", "kubevirt.io/v1"},
                                                          {"kind", "VirtualMachine"},
                                                          {"name", "vm-1"},
                                                          {"uid", kube::UidOf(vm)}}})}}}};
  ASSERT_THAT(kube().MergePatch(context_, kube::kSecrets, "nomad", "vm-1-cloudinit", patch),
              IsOk());
  Wait(seconds(9));
  ASSERT_THAT(cluster().Claims(), SizeIs(1));
  ASSERT_THAT(DeleteVm(vm), IsOk());
  Wait(seconds(1));
  EXPECT_EQ(StatusOf("vm-1"), "Terminating");
  EXPECT_EQ(PhaseOf("vm-1"), "Running");
  Wait(seconds(2));
  EXPECT_EQ(StatusOf("vm-1"), "none");
  EXPECT_EQ(PhaseOf("vm-1"), "none");
  EXPECT_THAT(cluster().Claims(), IsEmpty());
  Wait(seconds(1));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
  Wait(seconds(9));
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kDown);
}

}  // namespace
}  // namespace nomad_harvester::simulator
