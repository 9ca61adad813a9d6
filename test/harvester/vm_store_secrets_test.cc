// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include "nomad_harvester/base/secret.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "harvester/samples.h"
#include "harvester/store_fixture.h"
#include "support/scripted_transport.h"
#include "support/status_matchers.h"

namespace nomad_harvester::harvester {
namespace {

using nlohmann::json;
using support::IsOk;
using support::StatusIs;
using testing::HasSubstr;
using testing::SizeIs;

class VmStoreSecrets : public StoreTest {
 protected:
  json FindSecret() const { return Find(kube::kSecrets, kNs, name_); }
  void PutSecret(const json& secret) { Put(kube::kSecrets, kNs, secret); }
  json Owned(const std::string& uid) {
    json secret = wanted_;
    secret["metadata"]["ownerReferences"] = {
        {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"uid", "other"}},
        {{"apiVersion", "kubevirt.io/v1"}, {"kind", "VirtualMachine"}, {"uid", uid}}};
    return secret;
  }

  const json wanted_ =
      BuildSecret(SampleVmSpec(), SampleIdentity(), {.user_data = "#cloud-config\n"});
  const std::string name_ = SecretName(SampleIdentity().name);
};

TEST_F(VmStoreSecrets, C3_creates_one_without_an_owner) {
  const auto secret = store_.CreateSecret(context_, wanted_);
  ASSERT_THAT(secret, IsOk());
  EXPECT_EQ(secret->name, name_);
  EXPECT_NE(secret->uid, "");
  EXPECT_NE(secret->resource_version, "");
  EXPECT_EQ(secret->pool, "batch");
  EXPECT_EQ(secret->action_id, "a-1");
  EXPECT_EQ(secret->owner_uid, "");
  EXPECT_EQ(secret->created_at, At("2026-11-21T02:03:04Z"));
}

TEST_F(VmStoreSecrets, C3_a_repetition_after_a_lost_reply_finds_the_same_Secret) {
  script_.Next("create", Fault::DropReply());
  EXPECT_THAT(store_.CreateSecret(context_, wanted_), StatusIs(absl::StatusCode::kUnavailable));
  const auto secret = store_.CreateSecret(context_, wanted_);
  ASSERT_THAT(secret, IsOk());
  EXPECT_EQ(FindSecret()["metadata"]["uid"], secret->uid);
}

TEST_F(VmStoreSecrets, P3_the_lines_of_one_that_is_read_are_secret_while_it_is_held) {
  const std::string line = "echo what-nobody-else-may-know";
  PutSecret(BuildSecret(SampleVmSpec(), SampleIdentity(),
                        {.user_data = "#cloud-config\nruncmd:\n- " + line + "\n"}));
  ASSERT_EQ(base::WithoutSecrets(line), line);
  const auto secret = store_.GetSecret(context_, name_);
  ASSERT_THAT(secret, IsOk());
  EXPECT_EQ(base::WithoutSecrets("bad value: - " + line), "bad value: REDACTED");
}

TEST_F(VmStoreSecrets, C10_a_Secret_that_is_not_this_very_one_stays_a_refusal) {
  const std::pair<const char*, json> changes[] = {
      {"/metadata/annotations/nomad-harvester-autoscaler~1action-id", "another"},
      {"/metadata/annotations", json::object()},
      {"/data/userdata", "c3RhbGU="},
      {"/data", json::object()},
  };
  for (const auto& [where, value] : changes) {
    json other = wanted_;
    other[json::json_pointer(where)] = value;
    PutSecret(other);
    EXPECT_THAT(store_.CreateSecret(context_, wanted_), StatusIs(absl::StatusCode::kAlreadyExists))
        << where;
  }
  PutTerminating(kube::kSecrets, kNs, wanted_);
  EXPECT_THAT(store_.CreateSecret(context_, wanted_), StatusIs(absl::StatusCode::kAlreadyExists))
      << "it is being deleted";
}

TEST_F(VmStoreSecrets, a_Secret_that_went_between_two_tries_stays_a_refusal) {
  PutSecret(wanted_);
  script_.Before("get", [this] { Remove(kube::kSecrets, kNs, name_); });
  EXPECT_THAT(store_.CreateSecret(context_, wanted_), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST_F(VmStoreSecrets, a_refusal_and_a_failing_read_back_are_passed_on) {
  script_.Next("create", Refusal(403, "Forbidden", "exceeded quota: q"));
  EXPECT_THAT(store_.CreateSecret(context_, wanted_),
              StatusIs(absl::StatusCode::kResourceExhausted));
  PutSecret(wanted_);
  script_.Next("get", Refusal(403, "Forbidden", "secrets is forbidden"));
  EXPECT_THAT(store_.CreateSecret(context_, wanted_),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(VmStoreSecrets, gives_it_to_its_VM_once) {
  PutSecret(wanted_);
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"), IsOk());
  EXPECT_EQ(FindSecret()["metadata"]["ownerReferences"], json::parse(R"([{
    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "batch-7f3k2",
    "uid": "vm-uid", "blockOwnerDeletion": false}])"));
  EXPECT_EQ(FindSecret()["data"], wanted_["data"]);
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"), IsOk());
  EXPECT_EQ(script_.Count("patch"), 1U);
}

TEST_F(VmStoreSecrets, gives_it_to_its_VM_even_if_it_has_another_owner) {
  PutSecret(Owned("earlier-vm"));
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"), IsOk());
  const json owners = FindSecret()["metadata"]["ownerReferences"];
  ASSERT_THAT(owners, SizeIs(1));
  EXPECT_EQ(owners[0]["uid"], "vm-uid");
}

TEST_F(VmStoreSecrets, reads_again_after_a_conflict_with_another_client) {
  PutSecret(wanted_);
  script_.Before("patch", [this] {
    Touch(kube::kSecrets, kNs, name_);
    script_.Before("patch", [this] { Touch(kube::kSecrets, kNs, name_); });
  });
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"), IsOk());
  EXPECT_EQ(script_.Count("patch"), 3U);
}

TEST_F(VmStoreSecrets, takes_a_conflict_with_its_own_lost_patch_for_success) {
  PutSecret(wanted_);
  script_.Next("patch", Fault::DropReply());
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"), IsOk());
  EXPECT_EQ(script_.Count("patch"), 1U);
}

TEST_F(VmStoreSecrets, gives_up_after_repeated_conflicts) {
  PutSecret(wanted_);
  const std::function<void()> change = [this, &change] {
    Touch(kube::kSecrets, kNs, name_);
    script_.Before("patch", change);
  };
  script_.Before("patch", change);
  const absl::Status status = store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid");
  EXPECT_TRUE(kube::IsConflict(status)) << status;
  EXPECT_EQ(script_.Count("patch"), 4U);
}

TEST_F(VmStoreSecrets, never_takes_a_Secret_of_another_action) {
  json other = wanted_;
  other["metadata"]["annotations"][kActionIdAnnotation] = "a-9";
  PutSecret(other);
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another action")));
  EXPECT_EQ(script_.Count("patch"), 0U);
  Remove(kube::kSecrets, kNs, name_);
  EXPECT_THAT(store_.SetSecretOwner(context_, SampleIdentity(), "vm-uid"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(VmStoreSecrets, lists_only_ours_and_knows_their_owner) {
  PutSecret(Owned("vm-uid"));
  PutSecret({{"metadata", {{"name", "unmanaged"}}}, {"data", {{"k", "v"}}}});
  const auto seen = store_.ListSecrets(context_);
  ASSERT_THAT(seen, IsOk());
  ASSERT_THAT(seen->value, SizeIs(1));
  EXPECT_EQ(seen->value[0].name, name_);
  EXPECT_EQ(seen->value[0].owner_uid, "vm-uid");
  EXPECT_EQ(seen->server_time, At("2026-11-21T02:03:04Z"));
  EXPECT_EQ(script_.requests()[0].query.at("labelSelector"), ManagedSelector());
}

TEST_F(VmStoreSecrets, P3_a_list_of_Secrets_asks_for_none_of_their_data) {
  const auto transport = std::make_shared<support::ScriptedTransport>();
  transport->Reply(200, R"({"kind":"SecretList","metadata":{"resourceVersion":"1"},"items":[]})");
  const VmStore store(std::make_shared<const kube::KubeClient>(transport), kNs);
  EXPECT_THAT(store.ListSecrets(context_), IsOk());
  EXPECT_THAT(transport->requests().at(0).headers.Find("Accept"),
              testing::Optional(HasSubstr("as=PartialObjectMetadataList")));
}

TEST_F(VmStoreSecrets, deletes_by_uid_and_accepts_a_missing_object) {
  PutSecret(wanted_);
  const auto secret = store_.GetSecret(context_, name_);
  ASSERT_THAT(secret, IsOk());
  EXPECT_THAT(store_.DeleteSecret(context_, *secret), IsOk());
  EXPECT_EQ(FindSecret(), nullptr);
  EXPECT_THAT(store_.DeleteSecret(context_, *secret), IsOk());
  PutSecret(wanted_);
  EXPECT_TRUE(kube::IsConflict(store_.DeleteSecret(context_, *secret)));
  EXPECT_NE(FindSecret(), nullptr);
}

}  // namespace
}  // namespace nomad_harvester::harvester
