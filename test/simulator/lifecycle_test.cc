// SPDX-License-Identifier: Apache-2.0
// The life cycle of a VM and its node.
#include <fstream>
#include <iterator>
#include <map>

#include "simulator_fixture.h"
#include "support/source_tree.h"

namespace nomad_harvester::simulator {
namespace {

json OwnerPatch(const std::string& name, const std::string& uid) {
  return {{"metadata",
           {{"ownerReferences", json::array({{{"apiVersion", "kubevirt.io/v1"},
                                              {"kind", "VirtualMachine"},
                                              {"name", name},
                                              {"uid", uid}}})}}}};
}

TEST_F(SimulatorTest, A_vm_boots_and_becomes_a_ready_node) {
  MakeVm("vm-1");
  EXPECT_EQ(StatusOf("vm-1"), "");  // no controller has observed it yet
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
  EXPECT_EQ(cluster().NodeIdOfVm(UidOf(cluster().Vm("vm-1"))), node.id);
}

// As test/e2e/world_test.go sees it of Harvester's own controllers.
TEST_F(SimulatorTest, A_vm_is_stopped_and_waits_for_its_volumes_before_it_starts) {
  MakeVm("vm-1");
  const auto finalizers = [&] {
    const json vm = cluster().Vm("vm-1");
    const json* all = base::FindPath(vm, {"metadata", "finalizers"});
    return all == nullptr ? std::size_t{0} : all->size();
  };
  std::vector<std::string> told;
  for (int step = 0; step < 5; ++step) {
    told.push_back(StatusOf("vm-1") + " " + std::to_string(finalizers()));
    Wait(milliseconds(100));
  }
  EXPECT_THAT(told, testing::ElementsAre(" 0", "Stopped 1", "WaitingForVolumeBinding 2",
                                         "ErrorUnschedulable 2", "Starting 2"));
}

TEST_F(SimulatorTest, A_vm_that_boots_faster_than_the_controllers_react_runs) {
  options_.boot_time = milliseconds(250);
  MakeVm("vm-1");
  Wait(seconds(12));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(PhaseOf("vm-1"), "Running");
}

TEST_F(SimulatorTest, A_vm_that_is_deleted_before_harvesters_finalizer_leaves_its_claims) {
  MakeVm("vm-1");
  Wait(milliseconds(100));
  ASSERT_TRUE(cluster().DeleteVmByHand("vm-1"));
  Wait(minutes(1));
  EXPECT_EQ(cluster().Vm("vm-1"), nullptr);
  EXPECT_THAT(cluster().Claims(), SizeIs(1));
}

TEST_F(SimulatorTest, A_clock_that_jumps_skips_nothing) {
  MakeVm("vm-1");
  Wait(minutes(10));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  const std::vector<std::string> journal = cluster().Journal();
  EXPECT_THAT(journal, testing::Contains("2026-01-01T00:00:05Z VmRunning nomad/vm-1 (controller)"));
  EXPECT_THAT(journal, testing::Contains(HasSubstr("2026-01-01T00:00:08Z NodeRegistered vm-1")));
}

TEST_F(SimulatorTest, A_guest_that_powers_off_stays_off_if_it_is_to_be_rerun_on_failure) {
  const nomad::Node node = JoinVm("vm-1");
  ASSERT_TRUE(cluster().PowerOff("vm-1"));
  EXPECT_EQ(PhaseOf("vm-1"), "Succeeded");
  EXPECT_EQ(StatusOf("vm-1"), "Stopped");
  EXPECT_FALSE(cluster().PowerOff("vm-1"));
  Wait(minutes(1));
  EXPECT_EQ(PhaseOf("vm-1"), "none");
  EXPECT_EQ(StatusOf("vm-1"), "Stopped");
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kDown);
  ASSERT_TRUE(cluster().StartVm("vm-1"));
  Wait(seconds(10));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(NodeOf("vm-1").id, node.id);
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
}

TEST_F(SimulatorTest, A_guest_that_powers_off_is_started_again_if_it_is_to_run_always) {
  json vm = VmNamed("vm-1");
  vm["spec"]["runStrategy"] = "Always";
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")), IsOk());
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm), IsOk());
  EXPECT_FALSE(cluster().PowerOff("vm-1"));  // it does not run yet
  Wait(seconds(10));
  ASSERT_TRUE(cluster().PowerOff("vm-1"));
  EXPECT_EQ(StatusOf("vm-1"), "Stopped");
  Wait(seconds(1));
  EXPECT_EQ(StatusOf("vm-1"), "Starting");
  Wait(seconds(9));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
}

TEST_F(SimulatorTest, A_guest_that_powers_off_leaves_its_instance_if_it_runs_once) {
  json vm = VmNamed("vm-1");
  vm["spec"]["runStrategy"] = "Once";
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")), IsOk());
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm), IsOk());
  Wait(seconds(10));
  ASSERT_TRUE(cluster().PowerOff("vm-1"));
  Wait(minutes(5));
  EXPECT_EQ(PhaseOf("vm-1"), "Succeeded");
  EXPECT_EQ(StatusOf("vm-1"), "Stopped");
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kDown);
}

TEST_F(SimulatorTest, A_deleted_vm_takes_its_instance_claim_secret_and_node_along) {
  const json vm = MakeVm("vm-1");
  ASSERT_THAT(kube().MergePatch(context_, kube::kSecrets, "nomad", "vm-1-cloudinit",
                                OwnerPatch("vm-1", UidOf(vm))),
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

TEST_F(SimulatorTest, A_vm_without_its_secret_keeps_starting_until_the_secret_exists) {
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1")), IsOk());
  Wait(minutes(5));
  EXPECT_EQ(StatusOf("vm-1"), "Starting");
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", SecretFor("vm-1")), IsOk());
  Wait(seconds(5));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
}

TEST_F(SimulatorTest, A_secret_whose_owner_does_not_exist_is_garbage) {
  MakeVm("vm-1");
  ASSERT_THAT(kube().MergePatch(context_, kube::kSecrets, "nomad", "vm-1-cloudinit",
                                OwnerPatch("vm-0", "00000000-0000-0000-0000-000000000000")),
              IsOk());
  EXPECT_THAT(cluster().Secrets(), SizeIs(1));
  Wait(seconds(1));
  EXPECT_THAT(cluster().Secrets(), IsEmpty());
}

TEST_F(SimulatorTest, A_vm_deleted_before_any_controller_observed_it_leaves_no_claim) {
  const json vm = MakeVm("vm-1");
  kube::DeleteOptions options;
  options.uid = UidOf(vm);
  options.propagation = kube::Propagation::kBackground;
  ASSERT_THAT(kube().Delete(context_, kube::kVirtualMachines, "nomad", "vm-1", options), IsOk());
  EXPECT_EQ(StatusOf("vm-1"), "none");
  Wait(minutes(1));
  EXPECT_THAT(cluster().Claims(), IsEmpty());
  EXPECT_THAT(cluster().Nodes(), IsEmpty());
}

TEST_F(SimulatorTest, Some_vms_never_join) {
  cluster().NeverJoin(1);
  MakeVm("vm-1");
  MakeVm("vm-2");
  Wait(minutes(20));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  const auto nodes = nomad().ListNodes(context_);
  ASSERT_THAT(nodes->value, SizeIs(1));
  EXPECT_EQ(nodes->value[0].name, "vm-2");
}

TEST_F(SimulatorTest, A_failed_start_is_in_status_and_condition) {
  cluster().FailStart(1, "ErrorUnschedulable", "0/3 nodes are available: insufficient memory");
  MakeVm("vm-1");
  Wait(seconds(30));
  const json vm = cluster().Vm("vm-1");
  EXPECT_EQ(vm["status"]["printableStatus"], "ErrorUnschedulable");
  EXPECT_EQ(vm["status"]["created"], true);
  const json condition = vm["status"]["conditions"].back();
  EXPECT_EQ(condition["type"], "PodScheduled");
  EXPECT_EQ(condition["status"], "False");
  EXPECT_EQ(condition["message"], "0/3 nodes are available: insufficient memory");
  EXPECT_EQ(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
  EXPECT_THAT(cluster().Nodes(), IsEmpty());
}

TEST_F(SimulatorTest, A_quota_halts_a_vm_and_leaves_its_annotation) {
  cluster().FailStart(1, "Stopped", "limits.memory insufficient resources");
  MakeVm("vm-1");
  Wait(seconds(10));
  const json vm = cluster().Vm("vm-1");
  EXPECT_EQ(vm["spec"]["runStrategy"], "Halted");
  EXPECT_EQ(vm["status"]["printableStatus"], "Stopped");
  EXPECT_EQ(vm["metadata"]["annotations"]["harvesterhci.io/insufficient-resource-quota"],
            "limits.memory insufficient resources");
  EXPECT_EQ(PhaseOf("vm-1"), "none");
}

TEST_F(SimulatorTest, A_claim_of_an_unknown_image_is_not_created) {
  options_.images[0].name = "another";
  MakeVm("vm-1");
  Wait(seconds(10));
  EXPECT_EQ(StatusOf("vm-1"), "ErrorPvcNotFound");
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(SimulatorTest, A_vm_that_stops_and_starts_again_keeps_its_node) {
  const nomad::Node before = JoinVm("vm-1");
  ASSERT_TRUE(cluster().StopVm("vm-1"));
  Wait(seconds(4));
  EXPECT_EQ(StatusOf("vm-1"), "Stopped");
  EXPECT_EQ(PhaseOf("vm-1"), "none");
  Wait(seconds(10));
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kDown);
  ASSERT_TRUE(cluster().StartVm("vm-1"));
  Wait(seconds(9));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(NodeOf("vm-1").id, before.id);
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
  EXPECT_THAT(cluster().Nodes(), SizeIs(1));
}

TEST_F(SimulatorTest, A_paused_vm_loses_its_node_until_it_is_resumed) {
  JoinVm("vm-1");
  ASSERT_TRUE(cluster().PauseVm("vm-1"));
  EXPECT_EQ(StatusOf("vm-1"), "Paused");
  Wait(seconds(11));
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kDown);
  ASSERT_TRUE(cluster().PauseVm("vm-1", false));
  EXPECT_EQ(StatusOf("vm-1"), "Running");
  EXPECT_EQ(NodeOf("vm-1").status, nomad::NodeStatus::kReady);
}

TEST_F(SimulatorTest, A_deletion_that_hangs_leaves_the_vm_terminating_without_instance) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(9));
  ASSERT_TRUE(cluster().HangDeletion("vm-1"));
  ASSERT_THAT(DeleteVm(vm), IsOk());
  Wait(minutes(30));
  EXPECT_EQ(StatusOf("vm-1"), "Terminating");
  EXPECT_EQ(PhaseOf("vm-1"), "none");
  EXPECT_THAT(cluster().Claims(), SizeIs(1));
  ASSERT_TRUE(cluster().HangDeletion("vm-1", false));
  EXPECT_EQ(StatusOf("vm-1"), "none");
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(SimulatorTest, A_clone_copies_labels_and_annotations_but_not_identity) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(9));
  ASSERT_TRUE(cluster().CloneVm("vm-1", "copy"));
  Wait(seconds(9));
  const json copy = cluster().Vm("copy");
  EXPECT_EQ(copy["metadata"]["labels"], vm["metadata"]["labels"]);
  EXPECT_NE(UidOf(copy), UidOf(vm));
  EXPECT_EQ(copy["spec"]["template"]["spec"]["domain"], vm["spec"]["template"]["spec"]["domain"]);
  EXPECT_THAT(cluster().Claims(), SizeIs(2));
  EXPECT_EQ(NodeOf("copy").meta.count("harvester_vm_uuid"), 0U);
}

TEST_F(SimulatorTest, A_clone_with_the_same_user_data_registers_under_the_old_name) {
  JoinVm("vm-1");
  ASSERT_TRUE(cluster().CloneVm("vm-1", "copy", true));
  Wait(seconds(9));
  const auto nodes = nomad().ListNodes(context_);
  ASSERT_THAT(nodes->value, SizeIs(2));
  EXPECT_EQ(nodes->value[0].name, "vm-1");
  EXPECT_EQ(nodes->value[1].name, "vm-1");
}

// The example's template with every variable filled in, as the plugin renders it.
std::string RenderedExample(std::map<std::string, std::string> values) {
  std::ifstream file(support::SourcePath("examples/cloud-init.yaml"));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (const auto& [key, value] : values) {
    const std::string variable = "{{" + key + "}}";
    for (auto at = text.find(variable); at != std::string::npos; at = text.find(variable)) {
      text.replace(at, variable.size(), value);
    }
  }
  return text;
}

TEST_F(SimulatorTest, A_guest_reads_the_user_data_of_the_examples) {
  json secret = SecretFor("vm-1");
  const std::string text = RenderedExample({{"vm_name", "vm-1"},
                                            {"vm_uuid", kUuid},
                                            {"nomad_region", "global"},
                                            {"namespace", "nomad"},
                                            {"pool", "p"},
                                            {"node_class", "elastic"},
                                            {"node_pool", "gpu"},
                                            {"datacenter", "dc7"}});
  ASSERT_EQ(text.find("{{"), std::string::npos);
  secret["data"]["userdata"] = base::Base64Encode(text);
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", secret), IsOk());
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", VmNamed("vm-1")), IsOk());
  Wait(seconds(9));
  const nomad::Node node = NodeOf("vm-1");
  EXPECT_EQ(node.name, "vm-1");
  EXPECT_EQ(node.node_class, "elastic");
  EXPECT_EQ(node.node_pool, "gpu");
  EXPECT_EQ(node.datacenter, "dc7");
  EXPECT_EQ(node.meta.at("harvester_vm_uuid"), kUuid);
}

TEST_F(SimulatorTest, Values_missing_in_user_data_come_from_the_vms_annotation) {
  json secret = SecretFor("vm-1");
  secret["data"]["userdata"] = base::Base64Encode("#cloud-config\n");
  ASSERT_THAT(kube().Create(context_, kube::kSecrets, "nomad", secret), IsOk());
  json vm = VmNamed("vm-1");
  vm["metadata"]["annotations"]["nomad-harvester-autoscaler/nodes"] =
      R"({"node_class":"elastic","datacenter":"dc2"})";
  ASSERT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm), IsOk());
  Wait(seconds(9));
  EXPECT_EQ(NodeOf("vm-1").node_class, "elastic");
  EXPECT_EQ(NodeOf("vm-1").datacenter, "dc2");
  EXPECT_EQ(NodeOf("vm-1").node_pool, "default");
}

TEST_F(SimulatorTest, Actions_on_unknown_names_return_false) {
  EXPECT_FALSE(cluster().StopVm("nobody"));
  EXPECT_FALSE(cluster().DeleteVmByHand("nobody"));
  EXPECT_FALSE(cluster().EditAnnotation("nobody", "k", "v"));
  EXPECT_FALSE(cluster().CancelDrain("nobody", true));
  EXPECT_FALSE(cluster().HangDrain("nobody"));
  EXPECT_EQ(cluster().ReviveNodeUnderNewId("nobody"), "");
  EXPECT_TRUE(cluster().Vm("nobody").is_null());
  EXPECT_TRUE(cluster().Node("nobody").is_null());
}

}  // namespace
}  // namespace nomad_harvester::simulator
