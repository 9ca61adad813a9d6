// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/error.h"

#include <cstdint>
#include <string>
#include <utility>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"

#include "gtest/gtest.h"

namespace nomad_harvester::nomad {
namespace {

using absl::StatusCode;

// Whether a retry is of no use, and whether the request is refused.
enum class Verdict { kRefused, kChanged, kTransient };

struct ErrorRow {
  const char* name;
  int status;
  const char* body;
  StatusCode code;
  Verdict verdict = Verdict::kTransient;
};

// The table of HTTP status and text to code, row by row.
const ErrorRow kErrorRows[] = {
    {"a_redirect_is_never_followed", 307, "", StatusCode::kFailedPrecondition},
    {"a_400_without_a_known_text_may_be_a_proxys", 400,
     "Client sent an HTTP request to an HTTPS server.", StatusCode::kInvalidArgument},
    {"a_400_where_acls_are_off_is_a_refusal", 400, "ACL support disabled",
     StatusCode::kInvalidArgument, Verdict::kRefused},
    {"a_400_about_an_empty_body_is_a_refusal", 400, "Request body is empty",
     StatusCode::kInvalidArgument, Verdict::kRefused},
    {"a_400_about_the_body_is_a_refusal", 400,
     "json: cannot unmarshal string into Go struct field .Deadline of type time.Duration",
     StatusCode::kInvalidArgument, Verdict::kRefused},
    {"a_401_is_unauthenticated", 401, "Unauthorized", StatusCode::kUnauthenticated},
    {"a_403_is_a_missing_capability", 403, "Permission denied", StatusCode::kPermissionDenied,
     Verdict::kRefused},
    {"a_403_about_an_unknown_token_passes_with_its_rotation", 403, "ACL token not found",
     StatusCode::kUnauthenticated},
    {"a_403_about_an_expired_token_passes_with_its_rotation", 403, "ACL token expired",
     StatusCode::kUnauthenticated},
    {"a_403_of_a_proxy_is_not_nomads_refusal", 403, "<html>Forbidden</html>",
     StatusCode::kPermissionDenied},
    {"a_404_of_a_read_is_not_found", 404, "node not found", StatusCode::kNotFound},
    {"a_404_of_a_client_that_is_not_connected_is_unavailable", 404, "No path to node",
     StatusCode::kUnavailable},
    {"a_405_is_unimplemented", 405, "Invalid method", StatusCode::kUnimplemented},
    {"a_408_of_a_proxy_is_unavailable", 408, "", StatusCode::kUnavailable},
    {"a_413_of_a_proxy_is_a_failed_precondition", 413, "too large",
     StatusCode::kFailedPrecondition},
    {"a_429_is_unavailable", 429, "Too many requests", StatusCode::kUnavailable},
    {"a_500_of_a_write_to_a_missing_node_is_not_found", 500, "node not found",
     StatusCode::kNotFound, Verdict::kChanged},
    {"a_500_that_wraps_the_missing_node_is_not_found", 500, "rpc error: node not found",
     StatusCode::kNotFound, Verdict::kChanged},
    {"a_500_of_metadata_of_a_missing_node_is_not_found", 500, "Unknown node 7f3c",
     StatusCode::kNotFound, Verdict::kChanged},
    {"a_500_while_a_drain_runs_is_a_failed_precondition", 500,
     "can not set node's scheduling eligibility to eligible while it is draining",
     StatusCode::kFailedPrecondition, Verdict::kChanged},
    {"a_500_about_eligibility_is_a_refusal", 500, "invalid scheduling eligibility \"x\"",
     StatusCode::kInvalidArgument, Verdict::kRefused},
    {"a_500_about_an_id_is_a_refusal", 500,
     "node lookup failed: index error: UUID must be 36 characters", StatusCode::kInvalidArgument,
     Verdict::kRefused},
    {"a_500_about_an_allocation_that_is_hidden_is_a_denial", 500, "Unknown allocation \"a1\"",
     StatusCode::kPermissionDenied, Verdict::kRefused},
    {"a_500_about_an_unknown_token_passes_with_its_rotation", 500, "ACL token not found",
     StatusCode::kUnauthenticated},
    {"a_500_about_an_expired_token_passes_with_its_rotation", 500, "rpc error: ACL token expired",
     StatusCode::kUnauthenticated},
    {"a_500_without_a_leader_is_unavailable", 500, "rpc error: No cluster leader",
     StatusCode::kUnavailable},
    {"a_500_of_a_fresh_leader_is_unavailable", 500, "Not ready to serve consistent reads",
     StatusCode::kUnavailable},
    {"a_500_without_a_path_to_the_region_is_unavailable", 500, "No path to region",
     StatusCode::kUnavailable},
    {"any_other_500_is_internal", 500, "rpc error: failed to get conn", StatusCode::kInternal},
    {"a_text_counts_only_with_its_status", 500, "Request body is empty", StatusCode::kInternal},
    {"a_501_is_internal", 501, "", StatusCode::kInternal},
    {"a_502_is_unavailable", 502, "<html>Bad Gateway</html>", StatusCode::kUnavailable},
    {"a_503_is_unavailable_whatever_its_text", 503, "Permission denied", StatusCode::kUnavailable},
    {"a_504_is_unavailable", 504, "", StatusCode::kUnavailable},
};

class ErrorTable : public testing::TestWithParam<ErrorRow> {
 protected:
  http::HttpResponse response() const { return {GetParam().status, {}, GetParam().body}; }
};

TEST_P(ErrorTable, maps_to_its_code) {
  EXPECT_EQ(ToStatus(response(), "drain Nomad node n1").code(), GetParam().code);
}

TEST_P(ErrorTable, L1_says_whether_repeating_the_request_will_hardly_help) {
  const absl::Status status = ToStatus(response(), "drain Nomad node n1");
  EXPECT_EQ(IsRefused(status), GetParam().verdict == Verdict::kRefused) << status;
  EXPECT_EQ(IsRefused(base::Annotate(status, "VM web-1")), IsRefused(status));
}

TEST_P(ErrorTable, says_which_500s_are_not_retried) {
  EXPECT_EQ(IsPermanentRefusal(response()),
            GetParam().status == 500 && GetParam().verdict != Verdict::kTransient);
}

INSTANTIATE_TEST_SUITE_P(Rows, ErrorTable, testing::ValuesIn(kErrorRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(NomadErrors, P3_a_token_that_the_server_tells_back_is_redacted_before_the_text_is_cut) {
  const base::Secret token("sesame-street-" + std::string(900, 't'));
  http::HttpResponse response;
  response.status = 403;
  response.body = std::string(200, 'x') + " unknown token " + token.Reveal();
  const std::string text = base::Message(ToStatus(response, "list nodes", ""));
  EXPECT_EQ(text.find("sesame"), std::string::npos) << text;
  EXPECT_NE(text.find("REDACTED"), std::string::npos) << text;
}

// The words of Harvester's side (test/kube/error_text_test.cc).
TEST(NomadErrors, pages_redirects_and_refused_credentials_are_told_as_harvesters_are) {
  const auto text = [](const http::HttpResponse& response) {
    return base::Message(ToStatus(response, "list Nomad nodes"));
  };
  EXPECT_EQ(text({502, {}, "<html><title>502 Bad Gateway</title>"}),
            "list Nomad nodes: an HTML page: 502 Bad Gateway (HTTP 502)");
  EXPECT_EQ(text({404, {}, "<html><title>Not here</title>"}),
            "list Nomad nodes: an HTML page: Not here (HTTP 404); this is not Nomad's API: check "
            "nomad_address");
  EXPECT_EQ(text({400,
                  {},
                  "<html><title>400 The plain HTTP request was sent to HTTPS port"
                  "</title>"}),
            "list Nomad nodes: an HTML page: 400 The plain HTTP request was sent to HTTPS port "
            "(HTTP 400); this port speaks TLS: write https:// in nomad_address");
  http::HttpResponse redirect;
  redirect.status = 307;
  redirect.headers.Add("Location", "https://nomad.example/ui/?token=x");
  EXPECT_EQ(text(redirect),
            "list Nomad nodes: redirected to https://nomad.example/ui/, which is not followed: "
            "check nomad_address (HTTP 307)");
  EXPECT_EQ(text({401, {}, "Unauthorized"}),
            "list Nomad nodes: Unauthorized (HTTP 401); the token is unknown to it, or has "
            "expired: check nomad_token, nomad_token_file or NOMAD_TOKEN");
}

TEST(NomadErrors, a_2xx_is_no_error) {
  EXPECT_EQ(ToStatus({200, {}, "[]"}, "p"), absl::OkStatus());
  EXPECT_EQ(ToStatus({204, {}, "Permission denied"}, "p"), absl::OkStatus());
}

TEST(NomadErrors, an_error_without_a_reply_is_no_refusal) {
  EXPECT_FALSE(IsRefused(absl::OkStatus()));
  EXPECT_FALSE(IsRefused(base::Unavailable("no connection")));
  EXPECT_FALSE(IsRefused(base::InvalidArgument("the Nomad ID is empty")));
  EXPECT_FALSE(GetNomadError(base::Unavailable("no connection")).has_value());
  EXPECT_FALSE(GetNomadError(absl::OkStatus()).has_value());
}

TEST(NomadErrors, carry_what_nomad_said_through_annotations) {
  const absl::Status status =
      ToStatus({500, {{"x-nomad-index", "18446744073709551615"}}, "node\nnot found"}, "purge n1");
  const auto error = GetNomadError(base::Annotate(status, "VM web-1"));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->http_status, 500);
  EXPECT_EQ(error->text, "node not found");
  EXPECT_EQ(error->index, UINT64_MAX);
}

TEST(NomadErrors, C15_a_reply_without_an_index_has_index_0) {
  for (const char* text : {"", "x", "-1", "12x", "99999999999999999999999"}) {
    const absl::Status status = ToStatus({404, {{"X-Nomad-Index", text}}, "node not found"}, "p");
    EXPECT_EQ(GetNomadError(status)->index, 0U) << text;
  }
  EXPECT_EQ(GetNomadError(ToStatus({404, {}, "404 page not found"}, "p"))->index, 0U);
}

std::string TextOf(int status, std::string body) {
  return base::Message(ToStatus(http::HttpResponse{status, {}, std::move(body)}, "list nodes"));
}

TEST(StatusText, says_what_was_tried_what_the_server_said_and_the_number) {
  EXPECT_EQ(TextOf(403, "Permission denied\n"), "list nodes: Permission denied (HTTP 403)");
}

TEST(StatusText, names_the_cure_where_no_repetition_helps) {
  EXPECT_EQ(TextOf(404, "404 page not found"),
            "list nodes: 404 page not found (HTTP 404); this is not Nomad's API: check "
            "nomad_address");
  EXPECT_EQ(TextOf(403, "ACL token not found"),
            "list nodes: ACL token not found (HTTP 403); the token is unknown to it, or has "
            "expired: check nomad_token, nomad_token_file or NOMAD_TOKEN");
  EXPECT_EQ(TextOf(404, "node not found"), "list nodes: node not found (HTTP 404)");
}

TEST(StatusText, has_no_message_if_the_server_sends_none) {
  EXPECT_EQ(TextOf(503, ""), "list nodes: HTTP 503");
}

TEST(StatusText, is_one_line_whatever_the_body_is) {
  EXPECT_EQ(TextOf(502, "Bad\r\n\tGate\x01way"), "list nodes: Bad Gate way (HTTP 502)");
}

TEST(StatusText, shortens_a_page) {
  const std::string text = TextOf(502, std::string(100000, 'x'));
  EXPECT_EQ(text, "list nodes: " + std::string(301, 'x') + "… (HTTP 502)");
}

TEST(StatusText, is_valid_utf8_even_when_cut_inside_a_character) {
  const std::string text = TextOf(500, std::string(300, 'x') + "\xC3\xA9 and more");
  EXPECT_NE(text.find("\xEF\xBF\xBD…"), std::string::npos) << text;
}

}  // namespace
}  // namespace nomad_harvester::nomad
