// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

TEST(BuildSecret, carries_the_user_data_and_what_it_is_found_by) {
  EXPECT_EQ(BuildSecret(SampleVmSpec(), SampleIdentity(), {.user_data = "#cloud-config\n"}),
            json::parse(R"({
    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
    "metadata": {
      "name": "batch-7f3k2-cloudinit", "namespace": "nomad",
      "labels": {"nomad-harvester-autoscaler/pool": "batch",
                 "app.kubernetes.io/managed-by": "nomad-harvester-autoscaler"},
      "annotations": {"nomad-harvester-autoscaler/action-id": "a-1"}},
    "data": {"userdata": "I2Nsb3VkLWNvbmZpZwo="}})"));
}

TEST(BuildSecret, has_no_owner_before_there_is_a_VM) {
  const json secret = BuildSecret(SampleVmSpec(), SampleIdentity(), {.user_data = "x"});
  EXPECT_FALSE(secret["metadata"].contains("ownerReferences"));
}

TEST(BuildSecret, carries_every_byte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const json secret = BuildSecret(SampleVmSpec(), SampleIdentity(), {.user_data = bytes});
  const auto decoded = base::Base64Decode(secret["data"]["userdata"].get<std::string>());
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, bytes);
}

TEST(BuildSecretOwnerPatch, makes_the_VM_the_owner_under_a_precondition) {
  EXPECT_EQ(BuildSecretOwnerPatch(SampleIdentity(), "uid-1", "77"), json::parse(R"({
    "metadata": {
      "resourceVersion": "77",
      "ownerReferences": [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                           "name": "batch-7f3k2", "uid": "uid-1", "blockOwnerDeletion": false}]}})"));
}

}  // namespace
}  // namespace nomad_harvester::harvester
