// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "request_text.h"
#include "support/status_matchers.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::Status CheckTarget(const std::string& target) {
  HttpRequest request;
  request.target = target;
  return CheckRequest(request);
}

absl::Status CheckHeader(const std::string& name, const std::string& value) {
  HttpRequest request;
  request.target = "/";
  request.headers.Add(name, value);
  return CheckRequest(request);
}

TEST(CheckRequest, accepts_what_the_clients_send) {
  for (const std::string target : {"", "/", "/v1/nodes?stale&index=7", "/a/../b", "/%2F?a=%20"}) {
    EXPECT_THAT(CheckTarget(target), IsOk()) << target;
  }
  EXPECT_THAT(CheckHeader("Content-Type", "application/merge-patch+json"), IsOk());
  EXPECT_THAT(CheckHeader("X-Nomad-Token", ""), IsOk());
}

TEST(CheckRequest, refuses_targets_that_would_break_the_request_line) {
  for (const std::string target : {"v1", "/a b", "/a\r\nHost: x", "/a#b", "/\xc3\xb6", "/a\x7f"}) {
    EXPECT_THAT(CheckTarget(target), StatusIs(StatusCode::kInvalidArgument)) << target;
  }
  EXPECT_THAT(CheckTarget(std::string("/a\0b", 4)), StatusIs(StatusCode::kInvalidArgument));
}

TEST(CheckRequest, refuses_header_names_that_are_not_tokens) {
  for (const std::string name : {"", "A B", "A:", "A\r\nB", "\xc3\xb6"}) {
    EXPECT_THAT(CheckHeader(name, "x"), StatusIs(StatusCode::kInvalidArgument)) << name;
  }
}

TEST(CheckRequest, refuses_values_with_line_breaks_without_repeating_them) {
  for (const std::string& value :
       {std::string("hush\r\nX: y"), std::string("hush\n"), std::string("hush\0", 5)}) {
    EXPECT_THAT(CheckHeader("Authorization", value),
                StatusIs(StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("Authorization"), Not(HasSubstr("hush")))));
  }
}

TEST(CheckRequest, refuses_the_headers_that_frame_the_message) {
  for (const std::string name :
       {"Host", "content-length", "Transfer-Encoding", "Connection", "accept-encoding"}) {
    EXPECT_THAT(CheckHeader(name, "x"), StatusIs(StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

TEST(CheckRequest, refuses_a_GET_with_a_body) {
  HttpRequest request;
  request.body = "{}";
  request.purpose = "list nodes";
  EXPECT_THAT(CheckRequest(request),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("list nodes: a GET")));
}

TEST(CheckRequest, P3_the_query_stays_out_of_the_text) {
  EXPECT_THAT(CheckTarget("/v1/x y?token=hush"),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("GET /v1/x y:"), Not(HasSubstr("hush")))));
}

}  // namespace
}  // namespace nomad_harvester::http
