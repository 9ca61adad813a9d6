// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/http/reply_text.h"

#include <string>

#include "nomad_harvester/base/secret.h"

#include "gtest/gtest.h"

namespace nomad_harvester::http {
namespace {

TEST(ReplyText, of_a_page_is_its_title) {
  EXPECT_EQ(TextOfBody("  <html><TITLE lang=en>502 Bad Gateway</Title><p>x</html>\n"),
            "an HTML page: 502 Bad Gateway");
  EXPECT_EQ(TextOfBody("<html><body>no title"), "an HTML page");
  EXPECT_EQ(TextOfBody(" 404 page not found\n"), "404 page not found");
  EXPECT_TRUE(IsPage(TextOfBody("<!doctype html>")));
  EXPECT_FALSE(IsPage(TextOfBody("Permission denied")));
}

TEST(ReplyText, is_one_line_cut_and_without_secrets) {
  const base::Secret token("sesame-street-1234567890");
  EXPECT_EQ(OneLine(" a\n\tb\x01"
                    "c ",
                    100),
            "a b c");
  EXPECT_EQ(OneLine("abcdef", 3), "abcd…");
  EXPECT_EQ(OneLine("the token " + token.Reveal(), 15).find("sesame"), std::string::npos);
}

TEST(ReplyText, P3_of_a_redirect_shows_no_part_of_a_secret) {
  const base::Secret token("sesame?street");
  HttpResponse response;
  response.status = 302;
  response.headers.Add("Location", "https://login.example/sesame?street");
  EXPECT_EQ(RedirectionText(response, "nomad_address").find("sesame"), std::string::npos);
}

TEST(ReplyText, of_a_redirect_names_its_target_without_what_may_be_secret) {
  HttpResponse response;
  response.status = 302;
  EXPECT_EQ(RedirectionText(response, "nomad_address"),
            "redirected, which is not followed: check nomad_address");
  response.headers.Add("Location", "https://user:word@login.example/realm?token=x#y");
  EXPECT_EQ(RedirectionText(response, "nomad_address"),
            "redirected to https://login.example/realm, which is not followed: check "
            "nomad_address");
  EXPECT_TRUE(IsRedirection(response));
  response.status = 404;
  EXPECT_FALSE(IsRedirection(response));
}

}  // namespace
}  // namespace nomad_harvester::http
