// SPDX-License-Identifier: Apache-2.0
// Networks and keys.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/store_fixture.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::IsOkAndHolds;
using support::StatusIs;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class VmStoreSources : public StoreTest {
 protected:
  void PutKey(const json& spec) {
    Put(kube::kKeyPairs, "keys", {{"metadata", {{"name", "ops"}}}, {"spec", spec}});
  }
};

TEST_F(VmStoreSources, C2_a_network_has_to_be_there) {
  EXPECT_THAT(store_.CheckNetwork(context_, {false, "net", "vlan100"}),
              StatusIs(absl::StatusCode::kNotFound, EndsWith("the namespace has no networks")));
  Put(kube::kNetworkAttachments, "net", {{"metadata", {{"name", "vlan100"}}}});
  EXPECT_THAT(store_.CheckNetwork(context_, {false, "net", "vlan100"}), IsOk());
  const absl::Status missing = store_.CheckNetwork(context_, {false, "net", "vlan200"});
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("network net/vlan200 does not exist; the namespace has: "
                                          "vlan100")));
}

TEST_F(VmStoreSources, what_there_is_instead_is_left_out_if_it_may_not_be_listed) {
  cluster_.Forbid("list", "network-attachment-definitions");
  EXPECT_THAT(store_.CheckNetwork(context_, {false, "net", "vlan100"}),
              StatusIs(absl::StatusCode::kNotFound, EndsWith("does not exist")));
}

TEST_F(VmStoreSources, the_management_network_always_is) {
  EXPECT_THAT(store_.CheckNetwork(context_, {true, "", ""}), IsOk());
  EXPECT_THAT(script_.requests(), SizeIs(0));
}

TEST_F(VmStoreSources, C2_a_storage_class_and_a_priority_class_have_to_be_there) {
  const auto longhorn = store_.ReadStorageClass(context_, "harvester-longhorn");
  ASSERT_THAT(longhorn, IsOk());
  EXPECT_FALSE(longhorn->unknown);
  EXPECT_FALSE(longhorn->is_lvm);
  EXPECT_THAT(store_.ReadStorageClass(context_, "fast"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("storage class fast does not exist; the cluster has: "
                                 "harvester-longhorn")));
  EXPECT_THAT(store_.ReadPriorityClass(context_, "system-node-critical"), IsOk());
  EXPECT_THAT(store_.ReadPriorityClass(context_, "low"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("priority class low")));
  cluster_.Forbid("list", "storageclasses");
  EXPECT_THAT(store_.ReadStorageClass(context_, "fast"),
              StatusIs(absl::StatusCode::kNotFound, EndsWith("storage class fast does not exist")));
}

TEST_F(VmStoreSources, C2_a_class_that_the_token_may_not_read_is_not_known_to_be_missing) {
  cluster_.Forbid("get", "storageclasses");
  cluster_.Forbid("get", "priorityclasses");
  const auto storage = store_.ReadStorageClass(context_, "fast");
  ASSERT_THAT(storage, IsOk());
  EXPECT_TRUE(storage->unknown);
  const auto priority = store_.ReadPriorityClass(context_, "low");
  ASSERT_THAT(priority, IsOk());
  EXPECT_TRUE(priority->unknown);
}

TEST_F(VmStoreSources, C2_a_storage_class_of_lvm_is_known_by_its_provisioner) {
  EXPECT_TRUE(cluster_.PutObject({{"apiVersion", "storage.k8s.io/v1"},
                                  {"kind", "StorageClass"},
                                  {"metadata", {{"name", "local"}}},
                                  {"provisioner", "lvm.driver.harvesterhci.io"}}));
  const auto read = store_.ReadStorageClass(context_, "local");
  ASSERT_THAT(read, IsOk());
  EXPECT_TRUE(read->is_lvm);
}

TEST_F(VmStoreSources, gpus_are_what_the_version_of_harvester_says) {
  const auto takes = [&](const json& setting) {
    json object = setting;
    object["apiVersion"] = "harvesterhci.io/v1beta1";
    object["kind"] = "Setting";
    object["metadata"]["name"] = "server-version";
    EXPECT_TRUE(cluster_.PutObject(object));
    return store_.TakesGpusAsHostDevices(context_);
  };
  EXPECT_THAT(takes({{"value", "v1.7.3"}, {"default", "dev"}}), IsOkAndHolds(false));
  EXPECT_THAT(takes({{"value", "v1.8.0"}, {"default", "dev"}}), IsOkAndHolds(true));
  EXPECT_THAT(takes({{"value", ""}, {"default", "v1.6.1"}}), IsOkAndHolds(false));
  EXPECT_THAT(takes({{"value", 7}}), IsOkAndHolds(true));
  EXPECT_THAT(takes({{"value", "v1.7.3"}}), IsOkAndHolds(false));
  script_.Always("get", simulator::Fault::Answer(500));
  EXPECT_THAT(store_.TakesGpusAsHostDevices(context_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the version of Harvester")));
  script_.Always("get", simulator::Fault::None());
  cluster_.Forbid("get", "settings");
  EXPECT_THAT(store_.TakesGpusAsHostDevices(context_), IsOkAndHolds(true))
      << "what must not be read counts as the newest";
}

TEST(HarvesterVersion, takes_gpus_as_host_devices_from_1_8_on) {
  for (const char* const old : {"v1.7.0", "v1.7.3-rc1", "1.5.0", "v0.3.0", "v1.7-1a2b3c4d-head"}) {
    EXPECT_FALSE(IsVersionWithGpusAsHostDevices(old)) << old;
  }
  for (const char* const newer : {"v1.8.0-rc1", "v1.8.2", "v1.10.0", "v2.0.0", "dev", "", "v", "v1",
                                  "v1.x", "master-1a2b3c4d-head", "v1.9-1a2b3c4d-head"}) {
    EXPECT_TRUE(IsVersionWithGpusAsHostDevices(newer)) << newer;
  }
}

TEST_F(VmStoreSources, reads_a_public_key_without_the_white_space_around_it) {
  PutKey({{"publicKey", "ssh-ed25519 AAAA ops@example\n"}});
  EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
              IsOkAndHolds("ssh-ed25519 AAAA ops@example"));
}

TEST_F(VmStoreSources, names_a_key_that_is_missing_or_holds_none) {
  EXPECT_THAT(
      store_.PublicKey(context_, "keys", "ops"),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("SSH key keys/ops does not exist; the namespace has no SSH keys")));
  for (const json& spec : {json({{"publicKey", " \n"}}), json({{"publicKey", 1}}), json(nullptr)}) {
    PutKey(spec);
    EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("keys/ops"), HasSubstr("no public key"))))
        << spec;
  }
}

TEST_F(VmStoreSources, refuses_a_key_of_several_lines) {
  PutKey({{"publicKey", "ssh-rsa AAAA a\nssh-rsa AAAB b\n"}});
  EXPECT_THAT(store_.PublicKey(context_, "keys", "ops"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than one line")));
}

}  // namespace
}  // namespace nomad_harvester::harvester
