// SPDX-License-Identifier: Apache-2.0
// The whole objects: golden_test.cc.
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/harvester/vm_spec.h"

#include "gtest/gtest.h"
#include "harvester/samples.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;

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
