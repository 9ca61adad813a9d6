// SPDX-License-Identifier: Apache-2.0
// How callers classify an error: IsNotFound and its like, and the server's error behind a status.
#include <string>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"

namespace nomad_harvester::kube {
namespace {

absl::Status StatusOf(int code, const std::string& reason, const std::string& message = "x") {
  return ToStatus(Refusal(code, reason, message), "get VirtualMachine a/b");
}

TEST(KubeErrorKind, not_found_needs_a_Status_about_an_object) {
  EXPECT_TRUE(kube::IsNotFound(ToStatus(Response(404, NotFoundBody()), "p")));
  EXPECT_TRUE(kube::IsNotFound(StatusOf(404, "NotFound", "namespaces \"x\" not found")));
}

// Traefik and nginx in front of Harvester return this while Rancher restarts, the API server for a
// group whose CRD is missing, and Rancher for an unknown cluster.
TEST(KubeErrorKind, C5_a_404_that_is_not_from_Kubernetes_does_not_mean_that_an_object_is_deleted) {
  for (const std::string body :
       {"404 page not found\n", "default backend - 404", "", "{}",
        "<html><head><title>404 Not Found</title></head></html>", "{\"code\":404}",
        R"({"type":"error","status":"404","code":"NotFound","message":"c-m-1 not found"})",
        R"({"kind":"Status","code":404})", R"({"reason":"NotFound","code":404})"}) {
    const absl::Status status = ToStatus(Response(404, body), "get VirtualMachine a/b");
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << body;
    EXPECT_FALSE(kube::IsNotFound(status)) << body;
  }
}

TEST(KubeErrorKind, C5_a_404_for_an_unknown_path_does_not_mean_that_an_object_is_deleted) {
  EXPECT_FALSE(kube::IsNotFound(
      StatusOf(404, "NotFound", "the server could not find the requested resource")));
}

TEST(KubeErrorKind, a_NOT_FOUND_without_a_server_reply_is_not_IsNotFound) {
  EXPECT_FALSE(kube::IsNotFound(base::NotFound("no such file")));
  EXPECT_FALSE(kube::IsNotFound(absl::OkStatus()));
  EXPECT_FALSE(kube::IsNotFound(StatusOf(410, "NotFound")));
}

TEST(KubeErrorKind, a_conflict_is_any_409_but_AlreadyExists) {
  EXPECT_TRUE(IsConflict(StatusOf(409, "Conflict")));
  EXPECT_TRUE(IsConflict(StatusOf(409, "")));
  EXPECT_FALSE(IsConflict(StatusOf(409, "AlreadyExists")));
  EXPECT_TRUE(kube::IsAlreadyExists(StatusOf(409, "AlreadyExists")));
  EXPECT_FALSE(kube::IsAlreadyExists(StatusOf(409, "Conflict")));
}

TEST(KubeErrorKind, a_failed_precondition_that_is_not_a_409_is_not_a_conflict) {
  EXPECT_FALSE(IsConflict(base::FailedPrecondition("TLS refused the peer")));
  EXPECT_FALSE(IsConflict(StatusOf(302, "")));
  EXPECT_FALSE(IsConflict(StatusOf(500, "", "duplicate mac address")));
  EXPECT_FALSE(IsConflict(absl::OkStatus()));
}

TEST(KubeErrorKind, a_quota_is_not_a_lack_of_rights) {
  const absl::Status quota = StatusOf(403, "Forbidden", "exceeded quota: q");
  EXPECT_TRUE(absl::IsResourceExhausted(quota));
  EXPECT_FALSE(IsForbidden(quota));
  const absl::Status forbidden = StatusOf(403, "Forbidden", "cannot create resource");
  EXPECT_TRUE(IsForbidden(forbidden));
}

TEST(GetKubeError, carries_what_the_server_said) {
  const http::HttpResponse response =
      Refusal(503, "ServiceUnavailable", "apiserver is shutting down");
  const auto error = GetKubeError(ToStatus(response, "p"));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->http_status, 503);
  EXPECT_EQ(error->reason, "ServiceUnavailable");
  EXPECT_EQ(error->message, "apiserver is shutting down");
  EXPECT_TRUE(error->is_status);
  EXPECT_FALSE(error->creating);
  EXPECT_FALSE(GetKubeError(ToStatus(Response(503, "busy"), "p"))->is_status);
  EXPECT_TRUE(GetKubeError(ToStatus(Response(404, ""), "p", http::Method::kPost))->creating);
}

TEST(GetKubeError, survives_an_annotation) {
  const absl::Status status = base::Annotate(StatusOf(409, "Conflict"), "mark VM web-1");
  EXPECT_TRUE(IsConflict(status));
  EXPECT_EQ(GetKubeError(status)->reason, "Conflict");
}

TEST(GetKubeError, is_nothing_where_no_server_answered) {
  EXPECT_FALSE(GetKubeError(base::Unavailable("no answer")).has_value());
  EXPECT_FALSE(GetKubeError(absl::OkStatus()).has_value());
}

}  // namespace
}  // namespace nomad_harvester::kube
