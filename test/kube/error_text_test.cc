// SPDX-License-Identifier: Apache-2.0
// Reads the body of an error response of any server, and puts it into the error's text.
#include <algorithm>
#include <string>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/kube/error.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/replies.h"

namespace nomad_harvester::kube {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::string TextOf(const http::HttpResponse& response) {
  return base::Message(ToStatus(response, "get X"));
}

TEST(ErrorText, says_what_was_tried_what_the_server_said_the_number_and_the_reason) {
  EXPECT_EQ(TextOf(Refusal(409, "Conflict", "the object has been modified")),
            "get X: the object has been modified (HTTP 409 Conflict)");
}

TEST(ErrorText, P3_a_token_that_the_server_tells_back_is_redacted_before_the_text_is_cut) {
  const base::Secret token("sesame-street-" + std::string(900, 't'));
  const std::string text = std::string(200, 'x') + " " + token.Reveal();
  EXPECT_THAT(TextOf(Refusal(401, "Unauthorized", text)),
              AllOf(HasSubstr("REDACTED"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(TextOf(Response(401, text)), AllOf(HasSubstr("REDACTED"), Not(HasSubstr("sesame"))));
}

TEST(ErrorText, has_no_message_if_the_server_sends_none) {
  EXPECT_EQ(TextOf(Response(503, "")), "get X: HTTP 503");
  EXPECT_EQ(TextOf(Response(503, " \r\n")), "get X: HTTP 503");
  EXPECT_EQ(TextOf(Response(503, "{}")), "get X: HTTP 503");
  EXPECT_EQ(TextOf(Refusal(503, "ServiceUnavailable", "")), "get X: HTTP 503 ServiceUnavailable");
}

TEST(ErrorText, a_webhooks_denial_keeps_its_message) {
  EXPECT_EQ(TextOf(Refusal(422, "Invalid", Denied("storage class x does not exist"))),
            "get X: admission webhook \"validator.harvesterhci.io\" denied the request: storage "
            "class x does not exist (HTTP 422 Invalid)");
}

TEST(ErrorText, Ranchers_own_errors_have_a_code_for_a_reason) {
  EXPECT_EQ(
      TextOf(Response(401, R"({"type":"error","status":"401","message":"must authenticate"})")),
      "get X: must authenticate (HTTP 401); the credential is unknown to it, or has expired: check "
      "auth_token, auth_token_file, HARVESTER_TOKEN or the kubeconfig; through Rancher it must be "
      "a "
      "Rancher API key");
  EXPECT_EQ(TextOf(Response(
                404, R"({"type":"error","status":404,"code":"NotFound","message":"no cluster"})")),
            "get X: no cluster (HTTP 404 NotFound); this is not Harvester's API: check "
            "harvester_url");
}

TEST(ErrorText, of_a_page_only_the_title_counts) {
  EXPECT_EQ(TextOf(Response(502,
                            "<html><head><TITLE lang=\"en\">502 Bad\n Gateway</TITLE></head>"
                            "<body>nginx</body></html>")),
            "get X: an HTML page: 502 Bad Gateway (HTTP 502)");
  for (const char* page : {"<html><body>x</body>", "<title", "<html><title>never ends", "<"}) {
    EXPECT_EQ(TextOf(Response(502, page)), "get X: an HTML page (HTTP 502)") << page;
  }
}

TEST(ErrorText, names_the_cure_where_no_repetition_helps) {
  EXPECT_THAT(TextOf(Response(404, "404 page not found")), EndsWith("check harvester_url"));
  EXPECT_THAT(TextOf(Response(403, "<html><title>Login</title>")), EndsWith("check harvester_url"));
  EXPECT_EQ(TextOf(Response(400, "Client sent an HTTP request to an HTTPS server.\n")),
            "get X: Client sent an HTTP request to an HTTPS server. (HTTP 400); this port speaks "
            "TLS: write https:// in harvester_url");
  EXPECT_THAT(TextOf(Refusal(403, "Forbidden", "secrets is forbidden")),
              EndsWith("grant it as in examples/rbac.yaml"));
  for (const http::HttpResponse& other :
       {Refusal(404, "NotFound", "no VM"), Refusal(403, "Forbidden", Denied("policy")),
        Refusal(403, "Forbidden", "exceeded quota: pods"), Response(502, "<html>")}) {
    EXPECT_THAT(TextOf(other), Not(HasSubstr("; "))) << other.body;
  }
}

TEST(ErrorText, a_body_that_only_looks_like_JSON_is_text) {
  EXPECT_EQ(TextOf(Response(500, "{\"message\": \"cut")), "get X: {\"message\": \"cut (HTTP 500)");
  EXPECT_EQ(TextOf(Response(500, "[1]")), "get X: [1] (HTTP 500)");
}

TEST(ErrorText, members_of_the_wrong_type_say_nothing) {
  EXPECT_EQ(TextOf(Response(500, R"({"message":["a"],"reason":7,"code":{},"details":"d"})")),
            "get X: HTTP 500");
}

TEST(ErrorText, P3_is_one_line_of_valid_UTF8_whatever_the_body_is) {
  EXPECT_EQ(TextOf(Response(500, "a\r\n\tb\x01\x7f  c\n")), "get X: a b c (HTTP 500)");
  EXPECT_EQ(TextOf(Refusal(500, "A\nB", "c\nd")), "get X: c d (HTTP 500 A B)");
  EXPECT_THAT(TextOf(Response(500, "a\xFFz")), HasSubstr("a\xEF\xBF\xBDz"));
}

TEST(ErrorText, a_long_body_is_cut) {
  const std::string text = TextOf(Response(500, std::string(5'000'000, 'x')));
  EXPECT_THAT(text, SizeIs(testing::Lt(1'100U)));
  EXPECT_THAT(text, EndsWith("x… (HTTP 500)"));
}

TEST(ErrorText, a_long_message_of_a_Status_is_cut_too) {
  const std::string text = TextOf(Refusal(500, "InternalError", std::string(100'000, 'x')));
  EXPECT_THAT(text, SizeIs(testing::Lt(1'100U)));
  EXPECT_THAT(text, HasSubstr("InternalError"));
}

TEST(ErrorText, what_is_cut_inside_a_character_is_still_UTF8) {
  for (std::size_t lead = 990; lead < 1010; ++lead) {
    std::string body(lead, 'x');
    for (int i = 0; i < 20; ++i) body += "\xE2\x82\xAC";  // a character of three bytes
    const std::string text = TextOf(Response(500, body));
    EXPECT_EQ(base::ToValidUtf8(text), text) << lead;
  }
}

TEST(ErrorText, P2_a_bottomless_document_is_text) {
  EXPECT_THAT(TextOf(Response(500, "{\"a\":" + std::string(100'000, '['))),
              StartsWith("get X: {\"a\":[[["));
}

TEST(ErrorText, any_cut_of_a_Status_is_an_error_with_the_right_code) {
  const std::string body = StatusBody(409, "AlreadyExists", "\"web-1\" already exists");
  for (std::size_t length = 0; length <= body.size(); ++length) {
    const absl::Status status = ToStatus(Response(409, body.substr(0, length)), "p");
    const bool whole = length == body.size();
    EXPECT_EQ(kube::IsAlreadyExists(status), whole) << length;
    EXPECT_EQ(IsConflict(status), !whole) << length;
  }
}

TEST(ErrorText, a_redirect_names_where_to_and_what_to_check) {
  const std::string text = TextOf(Response(302, "moved", {{"Location", "https://other/login"}}));
  EXPECT_EQ(text,
            "get X: redirected to https://other/login, which is not followed: check harvester_url "
            "(HTTP 302)");
  EXPECT_EQ(TextOf(Response(307, "")),
            "get X: redirected, which is not followed: check harvester_url (HTTP 307)");
}

TEST(ErrorText, P3_what_may_be_a_secret_in_a_redirect_is_left_out) {
  for (const char* location :
       {"https://h/login?session=sesame", "https://h/login#sesame", "https://u:sesame@h/login",
        "https://u:ses@me@h/login", "//u:sesame@h/login"}) {
    const std::string text = TextOf(Response(302, "", {{"Location", location}}));
    EXPECT_THAT(text, HasSubstr("h/login,")) << location;
    EXPECT_THAT(text, Not(HasSubstr("sesame"))) << location;
    EXPECT_THAT(text, Not(HasSubstr("me@"))) << location;
  }
  EXPECT_THAT(TextOf(Response(302, "", {{"Location", "https://h/users/a@b"}})),
              HasSubstr("https://h/users/a@b,"));
}

TEST(ErrorText, the_target_of_a_redirect_is_one_short_line) {
  const std::string text =
      TextOf(Response(302, "", {{"Location", "https://h/\x01\xFF" + std::string(90'000, 'x')}}));
  EXPECT_THAT(text, SizeIs(testing::Lt(1'300U)));
  EXPECT_EQ(base::ToValidUtf8(text), text);
  EXPECT_EQ(text.find('\x01'), std::string::npos);
}

}  // namespace
}  // namespace nomad_harvester::kube
