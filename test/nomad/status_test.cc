// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/base/status.h"

#include <string>

#include "nomad_harvester/nomad/client.h"

#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

using absl::StatusCode;

struct Row {
  const char* name;
  int status;
  const char* body;
  StatusCode code;
  bool for_good;
};

// The table of HTTP status to code, row by row.
const Row kRows[] = {
    {"a_2xx_is_no_error", 200, "[]", StatusCode::kOk, false},
    {"a_204_is_no_error", 204, "", StatusCode::kOk, false},
    {"a_redirect_is_never_followed", 307, "", StatusCode::kFailedPrecondition, false},
    {"a_400_is_a_malformed_request", 400, "Request body is empty", StatusCode::kInvalidArgument,
     false},
    {"a_401_is_unauthenticated", 401, "Unauthorized", StatusCode::kUnauthenticated, false},
    {"a_403_is_a_missing_capability", 403, "Permission denied", StatusCode::kPermissionDenied,
     false},
    {"a_404_of_a_read_is_not_found", 404, "node not found", StatusCode::kNotFound, false},
    {"a_405_is_unimplemented", 405, "Invalid method", StatusCode::kUnimplemented, false},
    {"a_408_of_a_proxy_is_unavailable", 408, "", StatusCode::kUnavailable, false},
    {"a_413_of_a_proxy_is_a_failed_precondition", 413, "too large", StatusCode::kFailedPrecondition,
     false},
    {"a_429_is_unavailable", 429, "Too many requests", StatusCode::kUnavailable, false},
    {"a_500_of_a_write_to_a_missing_node_is_not_found", 500, "node not found",
     StatusCode::kNotFound, true},
    {"a_500_that_wraps_the_missing_node_is_not_found", 500, "rpc error: node not found",
     StatusCode::kNotFound, true},
    {"a_500_while_a_drain_runs_is_a_failed_precondition", 500,
     "can not set node's scheduling eligibility to eligible while it is draining",
     StatusCode::kFailedPrecondition, true},
    {"a_500_about_eligibility_is_a_malformed_request", 500, "invalid scheduling eligibility \"x\"",
     StatusCode::kInvalidArgument, true},
    {"a_500_about_an_expired_token_is_a_denial", 500, "ACL token expired",
     StatusCode::kPermissionDenied, true},
    {"a_500_without_a_leader_is_unavailable", 500, "rpc error: No cluster leader",
     StatusCode::kUnavailable, false},
    {"a_500_of_a_fresh_leader_is_unavailable", 500, "Not ready to serve consistent reads",
     StatusCode::kUnavailable, false},
    {"a_500_without_a_path_to_the_region_is_unavailable", 500, "No path to region",
     StatusCode::kUnavailable, false},
    {"any_other_500_is_internal", 500, "rpc error: failed to get conn", StatusCode::kInternal,
     false},
    {"a_501_is_internal", 501, "", StatusCode::kInternal, false},
    {"a_502_is_unavailable", 502, "<html>Bad Gateway</html>", StatusCode::kUnavailable, false},
    {"a_503_is_unavailable", 503, "", StatusCode::kUnavailable, false},
    {"a_504_is_unavailable", 504, "", StatusCode::kUnavailable, false},
};

class HttpTable : public testing::TestWithParam<Row> {};

TEST_P(HttpTable, maps_to_its_code) {
  const Row& row = GetParam();
  const http::HttpResponse response{row.status, {}, row.body};
  EXPECT_EQ(ToStatus(response, "drain Nomad node n1").code(), row.code);
}

TEST_P(HttpTable, says_whether_repeating_helps) {
  const Row& row = GetParam();
  EXPECT_EQ(IsPermanentRefusal(http::HttpResponse{row.status, {}, row.body}), row.for_good);
}

INSTANTIATE_TEST_SUITE_P(Rows, HttpTable, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

std::string TextOf(int status, std::string body) {
  return base::Message(ToStatus(http::HttpResponse{status, {}, std::move(body)}, "list nodes"));
}

TEST(StatusText, says_what_was_tried_what_the_server_said_and_the_number) {
  EXPECT_EQ(TextOf(403, "Permission denied\n"), "list nodes: Permission denied (HTTP 403)");
}

TEST(StatusText, has_no_message_if_the_server_sends_none) {
  EXPECT_EQ(TextOf(503, ""), "list nodes: HTTP 503");
}

TEST(StatusText, is_one_line_whatever_the_body_is) {
  EXPECT_EQ(TextOf(502, "<html>\r\n\tBad\x01</html>"),
            "list nodes: <html>   Bad </html> (HTTP 502)");
}

TEST(StatusText, shortens_a_page) {
  const std::string text = TextOf(502, std::string(100000, 'x'));
  EXPECT_EQ(text, "list nodes: " + std::string(300, 'x') + "... (HTTP 502)");
}

TEST(StatusText, is_valid_utf8_even_when_cut_inside_a_character) {
  const std::string text = TextOf(500, std::string(299, 'x') + "\xC3\xA9 and more");
  EXPECT_NE(text.find("\xEF\xBF\xBD..."), std::string::npos) << text;
}

}  // namespace
}  // namespace nomad_harvester::nomad
