// SPDX-License-Identifier: Apache-2.0
// Which errors of the API server are refusals. Each row of the table of IsRefused is a case.
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/client.h"
#include "nomad_harvester/kube/error.h"
#include "nomad_harvester/kube/observed.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/client_fixture.h"
#include "kube/replies.h"

namespace nomad_harvester::kube {
namespace {

struct RefusalRow {
  const char* name;
  int http_status;
  const char* reason;
  std::string message;
  bool refused;
};

void PrintTo(const RefusalRow& row, std::ostream* stream) {
  *stream << row.http_status << " " << row.name;
}

std::string NotCalled() {
  return "Internal error occurred: failed calling webhook \"validator.harvesterhci.io\": failed to "
         "call webhook: Post \"https://harvester-webhook\": context deadline exceeded";
}

const RefusalRow kRefusalRows[] = {
    {"BadRequest", 400, "BadRequest", "strict decoding error: unknown field", true},
    {"webhook_bad_request", 400, "BadRequest", Denied("VM a has a backup in progress"), true},
    {"Unauthorized", 401, "Unauthorized", "Unauthorized", false},
    {"payment_required", 402, "", "", true},
    {"Forbidden", 403, "Forbidden", "User \"u\" cannot patch resource", true},
    {"exceeded_quota", 403, "Forbidden", "exceeded quota: q, requested: cpu=4", true},
    {"webhook_that_cannot_be_called", 403, "Forbidden", NotCalled(), false},
    {"NotFound", 404, "NotFound", "virtualmachines.kubevirt.io \"b\" not found", false},
    {"webhook_not_found", 404, "NotFound", Denied("image not found"), true},
    {"MethodNotAllowed", 405, "MethodNotAllowed", "", true},
    {"NotAcceptable", 406, "NotAcceptable", "", true},
    {"Timeout", 408, "Timeout", "", false},
    {"Conflict", 409, "Conflict", "the object has been modified", false},
    {"AlreadyExists", 409, "AlreadyExists", "secrets \"b\" already exists", false},
    {"webhook_conflict", 409, "Conflict", Denied("volume is attached to VM: nomad/b"), true},
    {"Gone", 410, "Gone", "", true},
    {"RequestEntityTooLarge", 413, "RequestEntityTooLarge", "limit is 3145728", true},
    {"UnsupportedMediaType", 415, "UnsupportedMediaType", "", true},
    {"Invalid", 422, "Invalid", "spec.runStrategy: Invalid value", true},
    {"webhook_invalid", 422, "Invalid", Denied("Termination grace period can't be negative"), true},
    {"TooManyRequests", 429, "TooManyRequests", "", false},
    {"webhook_too_many", 429, "TooManyRequests", Denied("no more than one a minute"), true},
    {"legal_reasons", 451, "", "", true},
    {"InternalError", 500, "InternalError", "etcdserver: request timed out", false},
    {"harvesters_quota", 500, "InternalError",
     Denied("storage insufficient resources due to resource quota"), true},
    {"harvesters_quota_without_wrapper", 500, "InternalError", "limits.cpu insufficient resources",
     true},
    {"duplicate_mac_address", 500, "InternalError", "duplicate mac address present for vm a", true},
    {"missing_network", 500, "InternalError",
     "network-attachment-definitions.k8s.cni.cncf.io \"v1\" not found", true},
    {"webhook_denial_of_any_kind", 500, "InternalError", Denied("volume v is exporting"), true},
    {"webhook_that_is_down", 500, "InternalError", NotCalled(), false},
    {"webhook_whose_own_webhook_is_down", 500, "InternalError", Denied(NotCalled()), false},
    {"ServerTimeout", 500, "ServerTimeout", "The PATCH operation could not be completed", false},
    {"not_implemented", 501, "", "", false},
    {"ServiceUnavailable", 503, "ServiceUnavailable", "apiserver is shutting down", false},
    {"webhook_unavailable", 503, "ServiceUnavailable", Denied("not now"), true},
    {"GatewayTimeout", 504, "Timeout", "request did not complete within 30s", false},
    {"redirect", 307, "", "", false},
};

class RefusalTable : public testing::TestWithParam<RefusalRow> {
 protected:
  http::HttpResponse response() const {
    return Refusal(GetParam().http_status, GetParam().reason, GetParam().message);
  }
};

TEST_P(RefusalTable, L1_says_whether_repeating_the_request_will_hardly_help) {
  const absl::Status status = ToStatus(response(), "patch VirtualMachine a/b");
  EXPECT_EQ(IsRefused(status), GetParam().refused) << status;
  EXPECT_EQ(IsRefused(base::Annotate(status, "mark VM b")), GetParam().refused);
}

TEST_P(RefusalTable, is_the_one_by_which_retries_end) {
  EXPECT_EQ(IsPermanentRefusal(response()), GetParam().refused);
}

std::string RefusalName(const testing::TestParamInfo<RefusalRow>& info) {
  return std::to_string(info.param.http_status) + "_" + info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Kubernetes, RefusalTable, testing::ValuesIn(kRefusalRows), RefusalName);

// Traefik and nginx in front of Harvester, firewalls, and Rancher.
TEST(IsRefused, a_4xx_that_may_be_an_ingress_is_no_refusal) {
  const std::vector<std::string> bodies = {
      "", "404 page not found\n", "<html><head><title>403 Forbidden</title></head></html>", "{}",
      R"({"type":"error","status":"403","code":"Forbidden","message":"clusters forbidden"})"};
  for (const std::string& body : bodies) {
    for (const int status : {400, 401, 403, 404, 405, 409, 421, 422, 429, 500, 502, 503}) {
      EXPECT_FALSE(IsRefused(ToStatus(Response(status, body), "p"))) << status << " " << body;
    }
  }
}

TEST(IsRefused, a_request_that_is_too_large_for_an_ingress_is_refused) {
  EXPECT_TRUE(IsRefused(
      ToStatus(Response(413, "<html><title>413 Request Entity Too Large</title></html>"), "p")));
}

TEST(IsRefused, the_texts_of_webhooks_count_in_any_body) {
  EXPECT_TRUE(IsRefused(ToStatus(Response(400, Denied("no")), "p")));
  EXPECT_TRUE(IsRefused(ToStatus(Response(500, "duplicate mac address present"), "p")));
  EXPECT_FALSE(IsRefused(ToStatus(Response(500, NotCalled()), "p")));
}

TEST(IsRefused, text_before_the_denial_does_not_hide_it) {
  EXPECT_TRUE(IsRefused(ToStatus(
      Refusal(409, "Conflict", "virtualmachines.kubevirt.io \"b\" is forbidden: " + Denied("no")),
      "p")));
}

TEST(IsRefused, the_two_halves_of_a_denial_in_another_order_are_none) {
  EXPECT_FALSE(IsRefused(
      ToStatus(Refusal(500, "", "x\" denied the request by admission webhook \"y"), "p")));
}

TEST(IsRefused, what_no_server_said_is_no_refusal) {
  EXPECT_FALSE(IsRefused(absl::OkStatus()));
  EXPECT_FALSE(IsRefused(base::Unavailable("no connection")));
  EXPECT_FALSE(IsRefused(base::InvalidArgument("needs its uid")));
  EXPECT_FALSE(IsRefused(base::FailedPrecondition("the Lease was lost")));
}

// A webhook chooses status and reason: its 404 must not make a VM look deleted, its 409 must not be
// answered by reading the VM again and again.
TEST(IsRefused, C5_a_denial_is_neither_a_missing_object_nor_a_conflict) {
  const absl::Status missing = ToStatus(Refusal(404, "NotFound", Denied("no such image")), "p");
  EXPECT_FALSE(kube::IsNotFound(missing));
  EXPECT_FALSE(kube::IsNotFound(ToStatus(Refusal(404, "NotFound", Denied(NotCalled())), "p")));
  EXPECT_FALSE(IsConflict(ToStatus(Refusal(409, "Conflict", Denied("attached")), "p")));
}

class RefusedRequest : public ClientFixture {};

TEST_F(RefusedRequest, L1_a_404_of_a_create_is_the_missing_namespace_and_a_refusal) {
  const Json secret = {{"metadata", {{"name", "b"}}}};
  transport_->Reply(404, StatusBody(404, "NotFound", "namespaces \"nomad\" not found"));
  const absl::Status created = client_.Create(context_, kSecrets, "nomad", secret).status();
  EXPECT_TRUE(IsRefused(created)) << created;
  EXPECT_TRUE(kube::IsNotFound(created));
}

TEST_F(RefusedRequest, a_404_of_a_create_that_an_ingress_or_a_missing_CRD_sends_is_none) {
  const Json secret = {{"metadata", {{"name", "b"}}}};
  for (const std::string& body :
       {std::string("404 page not found"),
        StatusBody(404, "NotFound", "the server could not find the requested resource")}) {
    transport_->Reply(404, body);
    EXPECT_FALSE(IsRefused(client_.Create(context_, kSecrets, "nomad", secret).status())) << body;
  }
}

TEST_F(RefusedRequest, a_404_of_any_other_request_is_none) {
  transport_->Reply(404, NotFoundBody());
  EXPECT_FALSE(IsRefused(client_.Get(context_, kVirtualMachines, "nomad", "web-1").status()));
  transport_->Reply(404, NotFoundBody());
  EXPECT_FALSE(
      IsRefused(client_.Delete(context_, kVirtualMachines, "nomad", "web-1", {.uid = "u"})));
}

}  // namespace
}  // namespace nomad_harvester::kube
