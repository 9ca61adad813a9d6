// SPDX-License-Identifier: Apache-2.0
// HTTP status, reason and message → code. Each row of the table in error.cc is a case.
#include <string>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"
#include "support/status_matchers.h"

namespace nomad_harvester::kube {
namespace {

using absl::StatusCode;
using support::StatusIs;
using testing::HasSubstr;

struct Row {
  const char* name;
  int http_status;
  const char* reason;
  std::string message;
  StatusCode code;
};

void PrintTo(const Row& row, std::ostream* stream) {
  *stream << row.http_status << " " << row.name;
}

class ErrorTable : public testing::TestWithParam<Row> {};

TEST_P(ErrorTable, gives_the_code) {
  const Row& row = GetParam();
  const absl::Status status =
      ToStatus(Refusal(row.http_status, row.reason, row.message), "create VirtualMachine a/b");
  EXPECT_EQ(status.code(), row.code) << status;
  EXPECT_NE(status.code(), StatusCode::kAborted) << "that code tells the agent \"busy\"";
  EXPECT_THAT(base::Message(status), HasSubstr("create VirtualMachine a/b: "));
  EXPECT_THAT(base::Message(status), HasSubstr("HTTP " + std::to_string(row.http_status)));
}

// The part that Harvester's three versions of the quota error have in common.
const char kQuota[] = "storage insufficient resources due to resource quota";

const Row kRows[] = {
    {"continue", 100, "", "", StatusCode::kInternal},
    {"ok_that_nobody_asked_for", 204, "", "", StatusCode::kInternal},
    {"multiple_choices", 300, "", "", StatusCode::kFailedPrecondition},
    {"moved", 301, "", "", StatusCode::kFailedPrecondition},
    {"found", 302, "", "", StatusCode::kFailedPrecondition},
    {"temporary_redirect", 307, "", "", StatusCode::kFailedPrecondition},
    {"permanent_redirect", 308, "", "", StatusCode::kFailedPrecondition},
    {"BadRequest", 400, "BadRequest", "strict decoding error: unknown field \"spec.x\"",
     StatusCode::kInvalidArgument},
    {"webhook_bad_request", 400, "BadRequest", Denied("VM a has a backup in progress"),
     StatusCode::kInvalidArgument},
    {"Unauthorized", 401, "Unauthorized", "Unauthorized", StatusCode::kUnauthenticated},
    {"payment_required", 402, "", "", StatusCode::kFailedPrecondition},
    {"Forbidden", 403, "Forbidden",
     "secrets is forbidden: User \"u\" cannot list resource \"secrets\"",
     StatusCode::kPermissionDenied},
    {"webhook_without_a_code", 403, "Forbidden", Denied("no such thing"),
     StatusCode::kPermissionDenied},
    {"exceeded_quota", 403, "Forbidden",
     "secrets \"a\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=9, "
     "limited: secrets=9",
     StatusCode::kResourceExhausted},
    {"insufficient_quota", 403, "Forbidden", "insufficient quota to match these scopes",
     StatusCode::kResourceExhausted},
    {"failed_quota", 403, "Forbidden", "pods \"a\" is forbidden: failed quota: q: must specify cpu",
     StatusCode::kResourceExhausted},
    {"status_unknown_for_quota", 403, "Forbidden", "status unknown for quota: q, resources: cpu",
     StatusCode::kResourceExhausted},
    {"harvesters_quota", 403, "Forbidden", Denied(kQuota), StatusCode::kResourceExhausted},
    {"NotFound", 404, "NotFound", "virtualmachines.kubevirt.io \"b\" not found",
     StatusCode::kNotFound},
    {"MethodNotAllowed", 405, "MethodNotAllowed", "", StatusCode::kUnimplemented},
    {"NotAcceptable", 406, "NotAcceptable", "", StatusCode::kFailedPrecondition},
    {"request_timeout_of_a_proxy", 408, "", "", StatusCode::kUnavailable},
    {"AlreadyExists", 409, "AlreadyExists", "virtualmachines.kubevirt.io \"b\" already exists",
     StatusCode::kAlreadyExists},
    {"Conflict", 409, "Conflict", "the object has been modified", StatusCode::kFailedPrecondition},
    {"webhook_conflict", 409, "Conflict", Denied("A resource with the same name exists"),
     StatusCode::kFailedPrecondition},
    {"conflict_without_a_reason", 409, "", "", StatusCode::kFailedPrecondition},
    {"Expired", 410, "Expired", "too old resource version", StatusCode::kOutOfRange},
    {"Gone", 410, "Gone", "", StatusCode::kOutOfRange},
    {"RequestEntityTooLarge", 413, "RequestEntityTooLarge", "limit is 3145728",
     StatusCode::kResourceExhausted},
    {"UnsupportedMediaType", 415, "UnsupportedMediaType", "", StatusCode::kUnimplemented},
    {"teapot", 418, "", "", StatusCode::kFailedPrecondition},
    {"Invalid", 422, "Invalid", Denied("Termination grace period can't be negative"),
     StatusCode::kInvalidArgument},
    {"harvesters_quota_as", 422, "Invalid", Denied(kQuota), StatusCode::kResourceExhausted},
    {"TooManyRequests", 429, "TooManyRequests", "", StatusCode::kUnavailable},
    {"legal_reasons", 451, "", "", StatusCode::kFailedPrecondition},
    {"InternalError", 500, "InternalError", "etcdserver: request timed out", StatusCode::kInternal},
    {"webhook_that_is_down", 500, "InternalError",
     "Internal error occurred: failed calling webhook \"validator.harvesterhci.io\": no endpoints",
     StatusCode::kInternal},
    {"harvesters_quota_as_it_comes", 500, "InternalError", Denied(kQuota),
     StatusCode::kResourceExhausted},
    {"harvesters_older_quota", 500, "InternalError", Denied("limits.cpu insufficient resources"),
     StatusCode::kResourceExhausted},
    {"duplicate_mac_address", 500, "InternalError",
     Denied("duplicate mac address present for vm default/a for cluster network mgmt"),
     StatusCode::kFailedPrecondition},
    {"missing_network", 500, "InternalError",
     "Internal error occurred: network-attachment-definitions.k8s.cni.cncf.io \"v1\" not found",
     StatusCode::kFailedPrecondition},
    {"ServerTimeout", 500, "ServerTimeout", "The POST operation could not be completed",
     StatusCode::kUnavailable},
    {"not_implemented", 501, "", "", StatusCode::kUnimplemented},
    {"bad_gateway", 502, "", "", StatusCode::kUnavailable},
    {"ServiceUnavailable", 503, "ServiceUnavailable", "apiserver is shutting down",
     StatusCode::kUnavailable},
    {"Timeout", 504, "Timeout", "request did not complete within 30s", StatusCode::kUnavailable},
    {"a_proxys_own", 520, "", "", StatusCode::kUnavailable},
    {"beyond", 999, "", "", StatusCode::kUnavailable},
};

std::string RowName(const testing::TestParamInfo<Row>& info) {
  return std::to_string(info.param.http_status) + "_" + info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Kubernetes, ErrorTable, testing::ValuesIn(kRows), RowName);

TEST(ErrorTable, no_status_and_no_reason_ever_becomes_ABORTED) {
  for (const char* reason : {"", "Conflict", "AlreadyExists", "Aborted"}) {
    const std::string body = R"({"reason":")" + std::string(reason) + "\"}";
    for (int number = 100; number < 600; ++number) {
      const StatusCode code = ToStatus(Response(number, body), "p").code();
      EXPECT_NE(code, StatusCode::kAborted) << number;
      EXPECT_NE(code, StatusCode::kOk) << number;
    }
  }
}

// The text counts only with a status that can be a quota error: in an object's name or with another
// status it has no meaning.
TEST(ErrorTable, the_text_of_a_quota_error_counts_only_with_its_status) {
  EXPECT_EQ(ToStatus(Refusal(500, "", "exceeded quota: q"), "p").code(), StatusCode::kInternal);
  EXPECT_EQ(ToStatus(Refusal(422, "", "exceeded quota: q"), "p").code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ToStatus(Refusal(404, "NotFound", "insufficient resources"), "p").code(),
            StatusCode::kNotFound);
  EXPECT_EQ(ToStatus(Refusal(503, "", "insufficient resources"), "p").code(),
            StatusCode::kUnavailable);
}

TEST(ErrorTable, a_duplicate_mac_address_is_known_with_a_500_only) {
  EXPECT_EQ(ToStatus(Refusal(503, "", "duplicate mac address"), "p").code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(ToStatus(Refusal(400, "", "duplicate mac address"), "p").code(),
            StatusCode::kInvalidArgument);
}

TEST(ErrorTable, a_500_about_networks_that_are_there_is_a_fault_of_the_server) {
  EXPECT_EQ(ToStatus(Refusal(500, "", "network-attachment-definitions: timeout"), "p").code(),
            StatusCode::kInternal);
  EXPECT_EQ(ToStatus(Refusal(500, "", "the server was not found"), "p").code(),
            StatusCode::kInternal);
}

TEST(ErrorTable, a_quota_refusal_comes_before_a_duplicate_mac_address) {
  EXPECT_EQ(ToStatus(Refusal(500, "", "insufficient resources, duplicate mac address"), "p").code(),
            StatusCode::kResourceExhausted);
}

TEST(ErrorTable, a_429_in_plain_text_is_unavailable) {
  const absl::Status status = ToStatus(
      Response(429, "Too many requests, please try again later.\n"), "list VirtualMachines");
  EXPECT_THAT(status, StatusIs(StatusCode::kUnavailable,
                               "list VirtualMachines: Too many requests, please try again later. "
                               "(HTTP 429)"));
}

TEST(IsPermanentRefusal, is_a_500_that_a_retry_cannot_change) {
  const std::vector<std::string> refusals = {
      kQuota, "memory insufficient resources", "duplicate mac address present for vm a",
      "network-attachment-definitions.k8s.cni.cncf.io \"vlan1\" not found"};
  for (const std::string& message : refusals) {
    EXPECT_TRUE(IsPermanentRefusal(Refusal(500, "InternalError", message))) << message;
    EXPECT_TRUE(IsPermanentRefusal(Response(500, message))) << "as plain text: " << message;
    EXPECT_TRUE(IsPermanentRefusal(Refusal(500, "InternalError", Denied(message)))) << message;
    EXPECT_FALSE(IsPermanentRefusal(Refusal(503, "", message))) << message;
    EXPECT_FALSE(IsPermanentRefusal(Refusal(502, "", message))) << message;
  }
}

TEST(IsPermanentRefusal, is_no_other_500) {
  EXPECT_FALSE(IsPermanentRefusal(Refusal(500, "InternalError", "etcdserver: leader changed")));
  EXPECT_FALSE(IsPermanentRefusal(Refusal(500, "ServerTimeout", "could not be completed")));
  EXPECT_FALSE(IsPermanentRefusal(Response(500, "")));
}

}  // namespace
}  // namespace nomad_harvester::kube
