// SPDX-License-Identifier: Apache-2.0
// The options of CurlTransport, except those for connections, proxies and TLS, and the invalid
// ones.
#include <string>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/secret.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http/curl_fixture.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::http {
namespace {

using absl::StatusCode;
using base::Secret;
using support::IsOk;
using support::StatusIs;
using testing::AllOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;

class CurlOptionsTest : public CurlTest {
 protected:
  CurlOptionsTest() { options_.base_url = "http://127.0.0.1:1"; }

  CurlOptions options_;
  const TestCa ca_;
};

TEST_F(CurlOptionsTest, nothing_is_connected_at_construction) {
  LoopbackServer server{ServerReply()};
  options_.base_url = server.url();
  EXPECT_THAT(MakeCurlTransport(options_), IsOk());
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(CurlOptionsTest, a_bad_address_is_INVALID_ARGUMENT) {
  options_.base_url = "vip:6443";
  EXPECT_THAT(MakeCurlTransport(options_), StatusIs(StatusCode::kInvalidArgument));
}

TEST_F(CurlOptionsTest, a_bad_proxy_is_INVALID_ARGUMENT) {
  options_.proxy_url = "gopher://u:hush@proxy";
  EXPECT_THAT(
      MakeCurlTransport(options_),
      StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("proxy"), Not(HasSubstr("hush")))));
}

TEST_F(CurlOptionsTest, basic_authentication_is_sent) {
  LoopbackServer server{ServerReply()};
  options_.base_url = server.url();
  options_.basic_auth_user = "admin";
  options_.basic_auth_password = Secret("p:ss w\xc3\xb6rd");
  EXPECT_THAT(Make(options_)->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(server.requests().at(0).headers.Find("Authorization"),
              Optional(Eq("Basic " + base::Base64Encode("admin:p:ss w\xc3\xb6rd"))));
}

// As Nomad's own client and curl do.
TEST_F(CurlOptionsTest, a_password_without_a_user_name_is_sent) {
  LoopbackServer server{ServerReply()};
  options_.base_url = server.url();
  options_.basic_auth_password = Secret("sesame-street");
  EXPECT_THAT(Make(options_)->Send(context_, Get("/")), IsOk());
  EXPECT_THAT(server.requests().at(0).headers.Find("Authorization"),
              Optional(Eq("Basic " + base::Base64Encode(":sesame-street"))));
}

TEST_F(CurlOptionsTest, P3_a_user_name_without_a_password_is_recognised_as_it_travels) {
  const std::string travels = base::Base64Encode("a-token-for-the-gateway:");
  options_.basic_auth_user = "a-token-for-the-gateway";
  const std::shared_ptr<HttpTransport> transport = Make(options_);
  EXPECT_EQ(base::WithoutSecrets(travels), "REDACTED");
}

TEST_F(CurlOptionsTest, P3_a_login_is_recognised_as_it_travels_while_its_transport_is_held) {
  const std::string travels = base::Base64Encode("root:sesame-street");
  options_.basic_auth_user = "root";
  options_.basic_auth_password = Secret("sesame-street");
  {
    const std::shared_ptr<HttpTransport> transport = Make(options_);
    EXPECT_EQ(base::WithoutSecrets(travels), "REDACTED");
  }
  EXPECT_EQ(base::WithoutSecrets(travels), travels);
}

TEST_F(CurlOptionsTest, a_token_beside_basic_authentication_wins_its_header) {
  LoopbackServer server{ServerReply()};
  options_.base_url = server.url();
  options_.basic_auth_user = "admin";
  options_.basic_auth_password = Secret("p");
  HttpRequest request = Get("/");
  request.headers.Add("Authorization", "Bearer t");
  EXPECT_THAT(Make(options_)->Send(context_, request), IsOk());
  EXPECT_THAT(server.requests().at(0).headers.Find("Authorization"), Optional(Eq("Bearer t")));
}

TEST_F(CurlOptionsTest, a_user_name_that_basic_authentication_cannot_carry_is_refused) {
  options_.basic_auth_user = "a:b";
  EXPECT_THAT(MakeCurlTransport(options_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("colon")));
  options_.basic_auth_user = "a";
  options_.basic_auth_password = Secret("hush\n");
  EXPECT_THAT(MakeCurlTransport(options_),
              StatusIs(StatusCode::kInvalidArgument, Not(HasSubstr("hush"))));
}

TEST_F(CurlOptionsTest, a_CA_that_is_not_PEM_is_refused_by_name) {
  options_.base_url = "https://127.0.0.1:1";
  options_.tls.ca_pem = "not PEM";
  EXPECT_THAT(MakeCurlTransport(options_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("CA certificate")));
}

TEST_F(CurlOptionsTest, a_server_name_is_a_host_name) {
  options_.base_url = "https://127.0.0.1:1";
  options_.tls.ca_pem = ca_.pem();
  for (const std::string name : {"a/b", "a@b", "a b", "a?b", "a#b", "a\nb"}) {
    options_.tls.server_name = name;
    EXPECT_THAT(MakeCurlTransport(options_),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("server name")))
        << name;
  }
}

TEST_F(CurlOptionsTest, without_any_CA_the_error_names_what_was_tried) {
  const support::ScopedTempDir dir;
  environment_.Set("SSL_CERT_FILE", dir.Path("missing.pem"));
  environment_.Unset("SSL_CERT_DIR");
  options_.base_url = "https://127.0.0.1:1";
  EXPECT_THAT(MakeCurlTransport(options_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr(dir.Path("missing.pem"))));
  // Without verification, or without TLS, no CA is needed.
  options_.tls.skip_verify = true;
  EXPECT_THAT(MakeCurlTransport(options_), IsOk());
  options_.tls.skip_verify = false;
  options_.base_url = "http://127.0.0.1:1";
  EXPECT_THAT(MakeCurlTransport(options_), IsOk());
}

}  // namespace
}  // namespace nomad_harvester::http
