// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/observed.h"

#include "kube/client_fixture.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kCollection[] = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines";
constexpr char kObject[] = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web-1";

class KubeWrites : public ClientFixture {
 protected:
  absl::StatusOr<Observed> CreateVm(bool dry_run = false) {
    return client_.Create(context_, kVirtualMachines, "default", vm_, dry_run);
  }
  absl::StatusOr<Observed> PatchVm(const Json& patch) {
    return client_.MergePatch(context_, kVirtualMachines, "default", "web-1", patch);
  }
  absl::Status DeleteVm(const DeleteOptions& options) {
    return client_.Delete(context_, kVirtualMachines, "default", "web-1", options);
  }

  Json vm_ = {{"kind", "VirtualMachine"}, {"metadata", {{"name", "web-1"}}}};
  const Json conditional_ = {
      {"metadata", {{"resourceVersion", "77"}, {"annotations", {{"a", nullptr}}}}}};
};

TEST_F(KubeWrites, a_creation_posts_the_object_under_strict_validation) {
  transport_->Reply(201, R"({"metadata":{"name":"web-1","uid":"u-1"}})",
                    {{"Date", "Sat, 21 Nov 2026 02:03:04 GMT"}});
  const auto created = CreateVm();
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->object, Json::parse(R"({"metadata":{"name":"web-1","uid":"u-1"}})"));
  EXPECT_TRUE(created->server_time.has_value());
  EXPECT_EQ(OnlyRequest().method, http::Method::kPost);
  EXPECT_EQ(OnlyRequest().target, kCollection + std::string("?fieldValidation=Strict"));
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kWrite);
  EXPECT_EQ(OnlyRequest().headers.Find("content-type"), "application/json");
  EXPECT_EQ(OnlyRequest().headers.Find("accept"), "application/json");
  EXPECT_EQ(OnlyRequest().purpose, "create VirtualMachine default/web-1");
  EXPECT_FALSE(OnlyRequest().late_is_harmless);
  EXPECT_EQ(Body(), vm_);
}

// Otherwise a lost reply would hold the pool's Lease until it expires (rule C11).
TEST_F(KubeWrites, T3_a_write_of_a_history_may_take_effect_late) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(client_.MergePatch(context_, kConfigMaps, "default", "history", {{"data", Json()}}),
              IsOk());
  EXPECT_TRUE(OnlyRequest().late_is_harmless);
}

TEST_F(KubeWrites, L9_whether_a_write_that_a_page_answered_was_done_is_not_known) {
  transport_->Reply(200, "<!doctype html><title>Login</title>");
  const absl::Status status = CreateVm().status();
  EXPECT_THAT(status, StatusIs(StatusCode::kInternal, HasSubstr("the reply is an HTML page")));
  EXPECT_FALSE(GetKubeError(status).has_value()) << "no server of Kubernetes has answered";
}

TEST_F(KubeWrites, C3_a_creation_of_a_client_named_object_may_be_repeated) {
  transport_->Reply(201, "{}");
  ASSERT_THAT(CreateVm(), IsOk());
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
}

TEST_F(KubeWrites, I3_an_object_that_the_server_would_name_is_never_sent) {
  for (const char* member : {"generateName", "uid"}) {
    vm_["metadata"] = {{member, "web-"}};
    EXPECT_THAT(CreateVm(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("without a name")));
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeWrites, C13_a_dry_run_is_a_read) {
  transport_->Reply(201, "{}");
  ASSERT_THAT(CreateVm(/*dry_run=*/true), IsOk());
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().target, kCollection + std::string("?fieldValidation=Strict&dryRun=All"));
  EXPECT_EQ(OnlyRequest().purpose, "dry-run create VirtualMachine default/web-1");
}

TEST_F(KubeWrites, an_object_that_is_there_already_is_ALREADY_EXISTS) {
  transport_->Reply(409, AlreadyExistsBody());
  EXPECT_TRUE(kube::IsAlreadyExists(CreateVm().status()));
}

TEST_F(KubeWrites, an_unknown_field_is_INVALID_ARGUMENT_with_its_name) {
  transport_->Reply(
      400, StatusBody(400, "BadRequest", "strict decoding error: unknown field \"spec.hostName\""));
  EXPECT_THAT(CreateVm(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("spec.hostName")));
}

TEST_F(KubeWrites, text_that_is_not_UTF8_is_sent_all_the_same) {
  transport_->Reply(201, "{}");
  vm_["metadata"]["annotations"]["a"] = "x\xFF";
  ASSERT_THAT(CreateVm(), IsOk());
  EXPECT_EQ(Body()["metadata"]["annotations"]["a"], "x\xEF\xBF\xBD");
}

TEST_F(KubeWrites, a_patch_is_a_merge_patch) {
  transport_->Reply(200, R"({"metadata":{"resourceVersion":"78"}})");
  const auto patched = PatchVm(conditional_);
  ASSERT_THAT(patched, IsOk());
  EXPECT_EQ(ResourceVersionOf(patched->object), "78");
  EXPECT_EQ(OnlyRequest().method, http::Method::kPatch);
  EXPECT_EQ(OnlyRequest().target, kObject);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kWrite);
  EXPECT_EQ(OnlyRequest().headers.Find("content-type"), "application/merge-patch+json");
  EXPECT_EQ(OnlyRequest().purpose, "patch VirtualMachine default/web-1");
  EXPECT_EQ(Body(), conditional_) << "a null removes, and must arrive";
}

TEST_F(KubeWrites, a_conditional_patch_may_be_repeated) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(PatchVm(conditional_), IsOk());
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
}

TEST_F(KubeWrites, an_unconditional_patch_is_sent_once) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(PatchVm({{"metadata", {{"annotations", {{"a", "b"}}}}}}), IsOk());
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kOnce);
}

// Kubernetes treats an empty one as absent, so the precondition would be lost silently.
TEST_F(KubeWrites, a_patch_with_an_empty_resourceVersion_is_refused) {
  for (const Json& version : {Json(""), Json(nullptr), Json(77), Json::array()}) {
    EXPECT_THAT(PatchVm({{"metadata", {{"resourceVersion", version}}}}),
                StatusIs(StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("patch VirtualMachine default/web-1: "),
                               HasSubstr("empty resourceVersion"))))
        << version;
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeWrites, a_patch_of_another_version_is_a_conflict_and_never_ABORTED) {
  transport_->Reply(409, ConflictBody());
  const auto patched = PatchVm(conditional_);
  EXPECT_TRUE(IsConflict(patched.status()));
  EXPECT_THAT(patched, StatusIs(StatusCode::kFailedPrecondition));
}

TEST_F(KubeWrites, C5_a_deletion_carries_uid_and_resourceVersion) {
  transport_->Reply(200, R"({"kind":"Status","status":"Success"})");
  ASSERT_THAT(DeleteVm({.uid = "u-1", .resource_version = "77"}), IsOk());
  EXPECT_EQ(OnlyRequest().method, http::Method::kDelete);
  EXPECT_EQ(OnlyRequest().target, kObject);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kWrite);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().headers.Find("content-type"), "application/json");
  EXPECT_EQ(OnlyRequest().purpose, "delete VirtualMachine default/web-1");
  EXPECT_EQ(Body(), Json::parse(R"({
      "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
      "preconditions": {"uid": "u-1", "resourceVersion": "77"}})"));
}

TEST_F(KubeWrites, a_deletion_in_the_background_says_so) {
  transport_->Reply(200, "{}");
  ASSERT_THAT(
      DeleteVm({.uid = "u-1", .resource_version = "", .propagation = Propagation::kBackground}),
      IsOk());
  EXPECT_EQ(Body(), Json::parse(R"({
      "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
      "preconditions": {"uid": "u-1"}})"));
}

TEST_F(KubeWrites, a_deletion_without_a_uid_is_refused) {
  EXPECT_THAT(
      DeleteVm({.uid = "", .resource_version = "77"}),
      StatusIs(StatusCode::kInvalidArgument,
               AllOf(HasSubstr("delete VirtualMachine default/web-1: "), HasSubstr("uid"))));
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeWrites, a_deletion_is_OK_whatever_the_reply_holds) {
  for (const char* body : {"", "{}", kObject, R"({"metadata":{"deletionTimestamp":"x"}})"}) {
    transport_->Reply(200, body);
    EXPECT_THAT(DeleteVm({.uid = "u-1"}), IsOk());
  }
  transport_->Reply(202, "");
  EXPECT_THAT(DeleteVm({.uid = "u-1"}), IsOk());
}

TEST_F(KubeWrites, C5_a_deletion_of_another_version_or_uid_is_a_conflict) {
  transport_->Reply(409, ConflictBody());
  EXPECT_TRUE(IsConflict(DeleteVm({.uid = "u-1", .resource_version = "77"})));
}

TEST_F(KubeWrites, deleting_a_missing_object_is_NOT_FOUND) {
  transport_->Reply(404, NotFoundBody());
  EXPECT_TRUE(kube::IsNotFound(DeleteVm({.uid = "u-1"})));
}

TEST_F(KubeWrites, names_that_would_name_another_path_are_never_sent) {
  for (const std::string name : {"", ".", "..", "a/b", "a%b"}) {
    EXPECT_THAT(client_.MergePatch(context_, kVirtualMachines, "default", name, conditional_),
                StatusIs(StatusCode::kInvalidArgument))
        << name;
    EXPECT_THAT(client_.Delete(context_, kVirtualMachines, "default", name, {.uid = "u-1"}),
                StatusIs(StatusCode::kInvalidArgument))
        << name << ": it would empty the collection";
    if (name.empty()) continue;
    EXPECT_THAT(client_.Create(context_, kVirtualMachines, name, vm_),
                StatusIs(StatusCode::kInvalidArgument))
        << name;
  }
  EXPECT_THAT(transport_->requests(), IsEmpty());
}

TEST_F(KubeWrites, a_question_is_a_post_that_counts_as_a_read) {
  transport_->Reply(201, R"({"status":{"allowed":true}})");
  const auto answer =
      client_.CreateReview(context_, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                           {{"kind", "SelfSubjectAccessReview"}});
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(*answer, Json::parse(R"({"status":{"allowed":true}})"));
  EXPECT_EQ(OnlyRequest().method, http::Method::kPost);
  EXPECT_EQ(OnlyRequest().effect, http::Effect::kRead);
  EXPECT_EQ(OnlyRequest().idempotency, http::Idempotency::kIdempotent);
  EXPECT_EQ(OnlyRequest().headers.Find("content-type"), "application/json");
  EXPECT_EQ(OnlyRequest().purpose, "ask SelfSubjectAccessReview");
}

TEST_F(KubeWrites, a_question_without_a_kind_is_one_too) {
  transport_->Reply(503, "");
  EXPECT_THAT(client_.CreateReview(context_, "/version", Json::object()),
              StatusIs(StatusCode::kUnavailable, HasSubstr("ask the API server: ")));
}

TEST_F(KubeWrites, P3_what_a_webhook_quotes_of_a_patched_secret_is_left_out) {
  const std::string data = base::Base64Encode("#cloud-config\npassword: open-sesame\n");
  const Json refusal = {{"kind", "Status"},
                        {"message", "admission webhook \"x\" denied the request: " + data}};
  transport_->Reply(403, refusal.dump());
  const Json patch = {{"metadata", {{"resourceVersion", "77"}}}, {"data", {{"userdata", data}}}};
  const absl::Status refused =
      client_.MergePatch(context_, kSecrets, "default", "web-1-cloudinit", patch).status();
  EXPECT_THAT(base::Message(refused),
              AllOf(HasSubstr("denied the request: (data)"), Not(HasSubstr(data.substr(0, 24)))));
}

}  // namespace
}  // namespace nomad_harvester::kube
