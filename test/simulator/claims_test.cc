// SPDX-License-Identifier: Apache-2.0
// Claims: who makes them, what keeps them, who removes them.
#include "simulator_fixture.h"

namespace nomad_harvester::simulator {
namespace {

constexpr char kClaim[] = "vm-1-disk-0-abcde";

class ClaimsTest : public SimulatorTest {
 protected:
  absl::Status DeleteClaim() {
    kube::DeleteOptions options;
    options.uid = UidOf(cluster().Claims().at(0));
    return kube().Delete(context_, kube::kPersistentVolumeClaims, "nomad", kClaim, options);
  }
  void RunAndDelete() {
    const json vm = MakeVm("vm-1");
    Wait(seconds(10));
    ASSERT_THAT(DeleteVm(vm), IsOk());
  }
};

TEST_F(ClaimsTest, A_claim_can_survive_its_vm_and_be_deleted_then) {
  cluster().KeepClaims(true);
  RunAndDelete();
  Wait(minutes(10));
  EXPECT_THAT(cluster().Vms(), IsEmpty());
  ASSERT_THAT(cluster().Claims(), SizeIs(1));
  ASSERT_THAT(DeleteClaim(), IsOk());
  Wait(seconds(1));
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(ClaimsTest, A_claim_of_cdi_has_neither_labels_nor_annotations_of_its_template) {
  ImageSpec image;
  image.backend = "cdi";
  options_.images = {image};
  RunAndDelete();
  ASSERT_THAT(cluster().Claims(), SizeIs(1));
  const json claim = cluster().Claims()[0];
  EXPECT_EQ(kube::NameOf(claim), kClaim);
  EXPECT_FALSE(claim["metadata"]["labels"].contains("pool"));
  EXPECT_EQ(claim["metadata"]["labels"]["app.kubernetes.io/managed-by"], "cdi-controller");
  EXPECT_FALSE(claim["metadata"]["annotations"].contains("harvesterhci.io/imageId"));
  EXPECT_EQ(claim["metadata"]["ownerReferences"][0]["kind"], "DataVolume");
  EXPECT_EQ(claim["spec"]["storageClassName"], "lh-2f0c8d6e");
  Wait(seconds(5));
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(ClaimsTest, A_claim_that_hangs_outlives_its_vm_as_a_terminating_one) {
  cluster().HangClaim(kClaim);
  RunAndDelete();
  Wait(minutes(5));
  EXPECT_THAT(cluster().Vms(), IsEmpty());
  ASSERT_THAT(cluster().Claims(), SizeIs(1));
  EXPECT_TRUE(cluster().Claims()[0]["metadata"].contains("deletionTimestamp"));
  EXPECT_THAT(DeleteClaim(), IsOk());  // once more, without effect
  Wait(minutes(5));
  EXPECT_THAT(cluster().Claims(), SizeIs(1));
  cluster().HangClaim(kClaim, false);
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(ClaimsTest, A_claim_deleted_by_request_hangs_too) {
  cluster().KeepClaims(true);
  cluster().HangClaim(kClaim);
  RunAndDelete();
  Wait(seconds(5));
  ASSERT_THAT(DeleteClaim(), IsOk());
  Wait(minutes(5));
  EXPECT_THAT(cluster().Claims(), SizeIs(1));
  cluster().HangClaim(kClaim, false);
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

TEST_F(ClaimsTest, A_claim_deleted_while_its_vm_ends_goes_when_the_guest_has_gone) {
  cluster().KeepClaims(true);
  RunAndDelete();
  Wait(seconds(1));
  ASSERT_THAT(DeleteClaim(), IsOk());
  Wait(seconds(1));
  ASSERT_THAT(cluster().Claims(), SizeIs(1));
  Wait(seconds(5));
  EXPECT_THAT(cluster().Claims(), IsEmpty());
}

}  // namespace
}  // namespace nomad_harvester::simulator
