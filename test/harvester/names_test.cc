// SPDX-License-Identifier: Apache-2.0
// Names and selectors that operators and other programs rely on: their format is fixed.
#include <string>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/harvester/metadata.h"

#include "gtest/gtest.h"

namespace nomad_harvester::harvester {
namespace {

TEST(Keys, are_spelled_as_the_documentation_says) {
  EXPECT_STREQ(kPoolLabel, "nomad-harvester-autoscaler/pool");
  EXPECT_STREQ(kManagedByLabel, "app.kubernetes.io/managed-by");
  EXPECT_STREQ(kManagedByValue, "nomad-harvester-autoscaler");
  EXPECT_STREQ(kCreatorLabel, "harvesterhci.io/creator");
  EXPECT_STREQ(kSelfAnnotation, "nomad-harvester-autoscaler/self");
  EXPECT_STREQ(kActionIdAnnotation, "nomad-harvester-autoscaler/action-id");
  EXPECT_STREQ(kTemplateHashAnnotation, "nomad-harvester-autoscaler/template-hash");
  EXPECT_STREQ(kTemplatePartsAnnotation, "nomad-harvester-autoscaler/template-parts");
  EXPECT_STREQ(kJoinTimeoutAnnotation, "nomad-harvester-autoscaler/join-timeout");
  EXPECT_STREQ(kNodesAnnotation, "nomad-harvester-autoscaler/nodes");
  EXPECT_STREQ(kNodeIdAnnotation, "nomad-harvester-autoscaler/nomad-node-id");
  EXPECT_STREQ(kJoinedAtAnnotation, "nomad-harvester-autoscaler/joined-at");
  EXPECT_STREQ(kScaleInAnnotation, "nomad-harvester-autoscaler/scale-in");
  EXPECT_STREQ(kRolledBackAnnotation, "nomad-harvester-autoscaler/rolled-back");
  EXPECT_STREQ(kRemovalUndoneAnnotation, "nomad-harvester-autoscaler/removal-undone");
  EXPECT_STREQ(kNomadClusterAnnotation, "nomad-harvester-autoscaler/nomad-cluster");
  EXPECT_STREQ(kProtectAnnotation, "nomad-harvester-autoscaler/protect");
  EXPECT_STREQ(kDeleteFirstAnnotation, "nomad-harvester-autoscaler/delete-first");
  EXPECT_STREQ(kLeaseActionAnnotation, "nomad-harvester-autoscaler/action");
  EXPECT_STREQ(kLeaseBackOffAnnotation, "nomad-harvester-autoscaler/back-off");
  EXPECT_STREQ(kLeaseLastEventAnnotation, "nomad-harvester-autoscaler/last-event");
  EXPECT_STREQ(kLeasePausedAnnotation, "nomad-harvester-autoscaler/paused");
  EXPECT_STREQ(kLeasePolicyAnnotation, "nomad-harvester-autoscaler/policy");
}

TEST(Keys, are_label_keys_that_Kubernetes_accepts) {
  for (const char* key : {kPoolLabel, kManagedByLabel, kCreatorLabel, kSelfAnnotation,
                          kScaleInAnnotation, kLeaseLastEventAnnotation}) {
    EXPECT_TRUE(base::IsLabelKey(key)) << key;
  }
}

TEST(Names, follow_the_VM_and_the_pool) {
  EXPECT_EQ(SelfValue("web-x", "abc"), "web-x/abc");
  EXPECT_EQ(SecretName("web-x"), "web-x-cloudinit");
  EXPECT_EQ(ClaimName("web-x", 0, "r4nd0"), "web-x-disk-0-r4nd0");
  EXPECT_EQ(ClaimName("web-x", 12, "b"), "web-x-disk-12-b");
  EXPECT_EQ(LeaseName("web"), "nomad-harvester-autoscaler-web");
}

TEST(Selectors, find_everything_of_ours) {
  EXPECT_EQ(ManagedSelector(), "app.kubernetes.io/managed-by=nomad-harvester-autoscaler");
}

struct ClaimCase {
  std::string claim;
  std::string vm;
  bool matches;
};

TEST(ClaimNames, are_recognised_for_their_own_VM_only) {
  const ClaimCase cases[] = {
      {ClaimName("web-x", 0, "r4nd0"), "web-x", true},
      {ClaimName("web-x", 10, "b"), "web-x", true},
      {"web-x-disk-0-r4nd0", "web", false},
      {"web-x-disk-0-r4nd0", "web-x2", false},
      {"web-x-disk-0-r4nd0", "", false},
      {"web-x-disk--r4nd0", "web-x", false},
      {"web-x-disk-0-", "web-x", false},
      {"web-x-disk-0", "web-x", false},
      {"web-x-disk-a-r4nd0", "web-x", false},
      {"web-x-disk-0-R4ND0", "web-x", false},
      {"web-x-data-0-r4nd0", "web-x", false},
      {"web-x", "web-x", false},
      {"", "web-x", false},
      // A VM whose name looks like the claim of another VM.
      {ClaimName("web-disk-0", 0, "abc"), "web-disk-0", true},
      {ClaimName("web-disk-0", 0, "abc"), "web", false},
      {ClaimName("web-disk-0-a", 1, "abc"), "web", false},
  };
  for (const ClaimCase& c : cases) {
    EXPECT_EQ(IsClaimNameOf(c.claim, c.vm), c.matches) << c.claim << " of " << c.vm;
  }
}

TEST(ClaimNames, C4_tell_the_disk_also_of_a_claim_that_was_restored_in_place) {
  EXPECT_EQ(DiskOfClaim(ClaimName("web-x", 12, "r4nd0"), "web-x"), "disk-12");
  EXPECT_EQ(DiskOfClaim(ClaimName("web-disk-0", 1, "abc"), "web-disk-0"), "disk-1");
  EXPECT_EQ(DiskOfClaim("restore-nightly-5f0c-9d-disk-0", "web-x"), "disk-0");
  EXPECT_EQ(DiskOfClaim("restore-of-disk-0-5f0c-disk-3", "web-x"), "disk-3");
  for (const char* claim : {"", "data", "web-y-disk-0-r4nd0", "web-x-disk-0", "restore-b-5f0c-data",
                            "restore-b-5f0c-disk-", "restore-b-5f0c-disk-a", "restore-disk",
                            "restore-b-disk-0-r4nd0", "my-restore-b-5f0c-disk-0"}) {
    EXPECT_EQ(DiskOfClaim(claim, "web-x"), "") << claim;
  }
}

}  // namespace
}  // namespace nomad_harvester::harvester
