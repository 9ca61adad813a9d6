// SPDX-License-Identifier: Apache-2.0
// What Harvester's webhooks deny when a VM changes.
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
