// SPDX-License-Identifier: Apache-2.0
// What Harvester's webhooks deny when a VM changes.
#include <functional>
#include <string>
#include <vector>

#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

using absl::StatusCode;

class AdmissionTest : public SimulatorTest {
 protected:
  absl::Status Annotate(const std::string& vm, const std::string& value) {
    return kube()
        .MergePatch(context_, kube::kVirtualMachines, "nomad", vm,
                    {{"metadata", {{"annotations", {{"a", value}}}}}})
        .status();
  }
  void DeleteNetwork() {
    ASSERT_TRUE(
        cluster().DeleteObject({{"apiVersion", "k8s.cni.cncf.io/v1"},
                                {"kind", "NetworkAttachmentDefinition"},
                                {"metadata", {{"namespace", "default"}, {"name", "vlan100"}}}}));
  }
};

TEST_F(AdmissionTest, Any_change_of_a_vm_is_denied_once_its_network_is_gone) {
  MakeVm("vm-1");
  ASSERT_THAT(Annotate("vm-1", "1"), IsOk());
  DeleteNetwork();
  const absl::Status denied = Annotate("vm-1", "2");
  EXPECT_THAT(denied, StatusIs(StatusCode::kFailedPrecondition,
                               HasSubstr("admission webhook \"mutator.harvesterhci.io\" denied the "
                                         "request: network-attachment-definitions")));
  EXPECT_EQ(kube::GetKubeError(denied)->http_status, 500);
  EXPECT_EQ(cluster().Vm("vm-1")["metadata"]["annotations"]["a"], "1");
}

// What KubeVirt's and Harvester's webhooks find in a VM that is created.
TEST_F(AdmissionTest, A_vm_that_contradicts_itself_is_invalid) {
  struct Case {
    std::string message;
    std::function<void(json&)> spoil;
  };
  const auto guest = [](json& vm) -> json& { return vm["spec"]["template"]["spec"]; };
  const std::vector<Case> cases = {
      {"SecureBoot requires SMM",
       [&](json& vm) { guest(vm)["domain"]["firmware"]["bootloader"]["efi"] = json::object(); }},
      {"Name 'data' not found",
       [&](json& vm) {
         guest(vm)["domain"]["devices"]["disks"] = {{{"name", "data"}}};
       }},
      {"already set for a different device",
       [&](json& vm) {
         guest(vm)["domain"]["devices"]["disks"] = {{{"name", "disk-0"}, {"bootOrder", 1}},
                                                    {{"name", "init"}, {"bootOrder", 1}}};
       }},
      {"must not have the same Name",
       [&](json& vm) { guest(vm)["volumes"].push_back(guest(vm)["volumes"][0]); }},
      {"spec.template.spec.domain.devices.disks: Too many: 257: must have at most 256 items",
       [&](json& vm) {
         guest(vm)["domain"]["devices"]["disks"] =
             json(std::vector<json>(257, {{"name", "disk-0"}}));
       }},
      {"spec.template.spec.volumes: Too many: 257: must have at most 256 items",
       [&](json& vm) {
         guest(vm)["volumes"] = json(std::vector<json>(257, {{"name", "disk-0"}}));
       }},
      {"metadata.annotations: Too long: may not be more than 262144 bytes",
       [&](json& vm) {
         vm["metadata"]["annotations"]["example.org/a"] = std::string(200 * 1024, 'a');
         vm["metadata"]["annotations"]["example.org/b"] = std::string(62 * 1024, 'b');
       }},
      {"grace period can't be negative",
       [&](json& vm) { guest(vm)["terminationGracePeriodSeconds"] = -1; }},
      {"invalid maintenance mode strategy: Stop",
       [&](json& vm) {
         vm["metadata"]["labels"]["harvesterhci.io/maintain-mode-strategy"] = "Stop";
       }},
      {"PVC name is required", [&](json& vm) {
         vm["metadata"]["annotations"]["harvesterhci.io/volumeClaimTemplates"] = "[{}]";
       }}};
  for (const Case& c : cases) {
    json vm = VmNamed("vm-1");
    c.spoil(vm);
    const auto created = kube().Create(context_, kube::kVirtualMachines, "nomad", vm);
    EXPECT_THAT(created.status().ToString(), HasSubstr(c.message));
    const auto error = kube::GetKubeError(created.status());
    ASSERT_TRUE(error.has_value()) << c.message;
    EXPECT_EQ(error->http_status, 422) << c.message;
  }
}

TEST_F(AdmissionTest, A_class_or_device_that_does_not_exist_is_admitted) {
  json vm = VmNamed("vm-1");
  vm["spec"]["template"]["spec"]["priorityClassName"] = "low";
  vm["spec"]["template"]["spec"]["domain"]["devices"]["hostDevices"] = {
      {{"name", "a"}, {"deviceName", "x.io/a"}}};
  EXPECT_THAT(kube().Create(context_, kube::kVirtualMachines, "nomad", vm, /*dry_run=*/true),
              IsOk());
}

TEST_F(AdmissionTest, The_deletion_of_a_vm_asks_no_webhook_and_the_rest_of_its_life_no_mutator) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(10));
  DeleteNetwork();
  ASSERT_THAT(DeleteVm(vm), IsOk());
  EXPECT_THAT(Annotate("vm-1", "1"), IsOk());
}

TEST_F(AdmissionTest, A_quota_denies_changes_of_a_vm_that_waits_for_its_start) {
  MakeVm("vm-1");
  MakeVm("vm-2");
  Wait(seconds(10));
  ASSERT_TRUE(cluster().PowerOff("vm-2"));
  Wait(seconds(1));
  cluster().SetQuotaExceeded("memory insufficient resources due to resource quota");
  EXPECT_THAT(Annotate("vm-1", "1"), IsOk());
  const absl::Status denied = Annotate("vm-2", "1");
  EXPECT_THAT(denied, StatusIs(StatusCode::kResourceExhausted));
  EXPECT_EQ(kube::GetKubeError(denied)->http_status, 500);
  ASSERT_TRUE(cluster().StopVm("vm-2"));
  EXPECT_THAT(Annotate("vm-2", "1"), IsOk());
}

TEST_F(AdmissionTest, A_quota_denies_the_end_of_a_vm_that_is_being_deleted_until_it_is_halted) {
  const json vm = MakeVm("vm-1");
  Wait(seconds(10));
  cluster().SetQuotaExceeded("memory insufficient resources due to resource quota");
  ASSERT_THAT(DeleteVm(vm), IsOk());
  Wait(seconds(600));
  ASSERT_FALSE(cluster().Vm("vm-1").is_null());
  ASSERT_TRUE(cluster().StopVm("vm-1"));
  Wait(seconds(15));
  EXPECT_TRUE(cluster().Vm("vm-1").is_null());
}

TEST_F(AdmissionTest, A_run_strategy_that_is_no_text_is_denied_by_the_mutator_before_validation) {
  json vm = VmNamed("vm-1");
  vm["spec"]["runStrategy"] = 7;
  vm["spec"]["template"]["spec"]["volumes"].push_back({{"name", "disk-0"}});
  const absl::Status made = kube().Create(context_, kube::kVirtualMachines, "nomad", vm).status();
  MakeVm("vm-2");
  const absl::Status changed = kube()
                                   .MergePatch(context_, kube::kVirtualMachines, "nomad", "vm-2",
                                               {{"spec", {{"runStrategy", 7}}}})
                                   .status();
  for (const absl::Status& denied : {made, changed}) {
    ASSERT_FALSE(denied.ok());
    EXPECT_THAT(base::Message(denied), HasSubstr("\"mutator.harvesterhci.io\" denied the request: "
                                                 "json: cannot unmarshal number into Go struct"));
    EXPECT_EQ(kube::GetKubeError(denied)->http_status, 500);
  }
}

TEST_F(AdmissionTest, A_replaced_vm_is_admitted_like_a_patched_one) {
  json vm = MakeVm("vm-1");
  DeleteNetwork();
  vm["metadata"]["annotations"]["a"] = "1";
  const auto reply = Ask(System::kHarvester, http::Method::kPut,
                         "/apis/kubevirt.io/v1/namespaces/nomad/virtualmachines/vm-1", vm.dump());
  EXPECT_EQ(reply.status, 500);
}

}  // namespace
}  // namespace nomad_harvester::simulator
