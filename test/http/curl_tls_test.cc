// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <openssl/ssl.h>

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
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::SizeIs;

class CurlTls : public CurlTest {
 protected:
  void Serve(const std::string& names, bool expired = false) {
    server_options_.tls = ca_.Issue(names, expired);
    server_ = std::make_unique<LoopbackServer>(ServerReply(), server_options_);
    options_.base_url = server_->url();
    options_.tls.ca_pem = ca_.pem();
  }
  absl::StatusOr<HttpResponse> Send() { return Make(options_)->Send(context_, Get("/")); }

  const TestCa ca_;
  LoopbackOptions server_options_;
  std::unique_ptr<LoopbackServer> server_;
  CurlOptions options_;
};

TEST_F(CurlTls, the_right_CA_and_name_are_accepted) {
  Serve("IP:127.0.0.1");
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, P6_a_certificate_with_only_a_common_name_is_refused_with_the_cure) {
  for (const std::string names : {"", "email:ops@example.org", "URI:https://127.0.0.1"}) {
    Serve(names);
    EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("no name in subjectAltName"),
                                       HasSubstr("issued again with \"127.0.0.1\""))))
        << names;
    EXPECT_THAT(server_->requests(), SizeIs(0));
  }
  options_.tls.skip_verify = true;
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, P6_the_common_name_does_not_replace_a_name_of_another_kind) {
  Serve("DNS:other.test");
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition));
}

TEST_F(CurlTls, a_CA_bundle_may_hold_more_than_one) {
  Serve("IP:127.0.0.1");
  options_.tls.ca_pem = "# others\n" + TestCa("other").pem() + ca_.pem();
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, the_wrong_CA_is_FAILED_PRECONDITION) {
  Serve("IP:127.0.0.1");
  options_.tls.ca_pem = TestCa("other").pem();
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("CA certificate"), HasSubstr("server name"),
                                     HasSubstr(server_->authority()))));
  EXPECT_THAT(server_->requests(), SizeIs(0));
}

TEST_F(CurlTls, P3_a_proxy_with_a_certificate_of_another_CA_sees_no_request) {
  Serve("IP:127.0.0.1");
  options_.base_url = "http://nomad.invalid:4646";
  options_.proxy_url = server_->url();
  EXPECT_THAT(Send(), IsOk());
  options_.tls.ca_pem = TestCa("other").pem();
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(server_->requests(), SizeIs(1));
}

TEST_F(CurlTls, a_proxy_whose_certificate_has_another_name_sees_no_request) {
  Serve("DNS:other.invalid");
  options_.base_url = "http://nomad.invalid:4646";
  options_.proxy_url = server_->url();
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition));
  EXPECT_THAT(server_->requests(), SizeIs(0));
}

TEST_F(CurlTls, a_CA_of_the_options_replaces_those_of_the_machine) {
  const support::ScopedTempDir dir;
  environment_.Set("SSL_CERT_FILE", dir.WriteFile("ca.pem", ca_.pem()));
  Serve("IP:127.0.0.1");
  options_.tls.ca_pem = TestCa("other").pem();
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition));
}

TEST_F(CurlTls, without_a_CA_of_the_options_the_machines_count) {
  const support::ScopedTempDir dir;
  environment_.Unset("SSL_CERT_DIR");
  environment_.Set("SSL_CERT_FILE", dir.WriteFile("ca.pem", ca_.pem()));
  Serve("IP:127.0.0.1");
  options_.tls.ca_pem.clear();
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, another_name_is_FAILED_PRECONDITION_and_named) {
  Serve("DNS:vip.test");
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("\"127.0.0.1\"")));
  EXPECT_THAT(server_->requests(), SizeIs(0));
}

TEST_F(CurlTls, an_expired_certificate_is_FAILED_PRECONDITION) {
  Serve("IP:127.0.0.1", /*expired=*/true);
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("expired")));
}

TEST_F(CurlTls, a_server_name_is_verified_and_sent_as_SNI_but_Host_stays_the_real_one) {
  Serve("DNS:vip.test");
  options_.tls.server_name = "vip.test";
  options_.base_url += "/k8s/clusters/c-1";
  EXPECT_THAT(Send(), IsOk());
  EXPECT_EQ(server_->last_sni(), "vip.test");
  EXPECT_EQ(server_->requests().at(0).target, "/k8s/clusters/c-1/");
  EXPECT_THAT(server_->requests().at(0).headers.Find("Host"), Optional(Eq(server_->authority())));
}

TEST_F(CurlTls, a_server_name_that_the_certificate_lacks_is_FAILED_PRECONDITION) {
  Serve("IP:127.0.0.1");
  options_.tls.server_name = "vip.test";
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("\"vip.test\"")));
}

TEST_F(CurlTls, connections_with_a_server_name_are_kept_too) {
  Serve("DNS:vip.test");
  options_.tls.server_name = "vip.test";
  const auto transport = Make(options_);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(transport->Send(context_, Get("/")), IsOk());
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(CurlTls, skip_verify_accepts_any_certificate) {
  Serve("DNS:other.test", /*expired=*/true);
  options_.tls.ca_pem.clear();
  options_.tls.skip_verify = true;
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, a_client_certificate_is_presented) {
  server_options_.client_ca_pem = ca_.pem();
  Serve("IP:127.0.0.1");
  const PemPair pair = ca_.Issue("DNS:client.test");
  options_.tls.client_cert_pem = pair.certificate;
  options_.tls.client_key_pem = Secret(pair.key);
  EXPECT_THAT(Send(), IsOk());
}

TEST_F(CurlTls, a_missing_client_certificate_is_FAILED_PRECONDITION) {
  // A server rejects the certificate in the handshake (TLS 1.2) or after it (TLS 1.3).
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    server_options_.client_ca_pem = ca_.pem();
    server_options_.highest_tls_version = version;
    Serve("IP:127.0.0.1");
    EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("client certificate")))
        << version;
  }
}

TEST_F(CurlTls, a_client_certificate_of_an_unknown_issuer_is_FAILED_PRECONDITION) {
  server_options_.client_ca_pem = ca_.pem();
  Serve("IP:127.0.0.1");
  const PemPair pair = TestCa("other").Issue("DNS:client.test");
  options_.tls.client_cert_pem = pair.certificate;
  options_.tls.client_key_pem = Secret(pair.key);
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("client certificate")));
}

TEST_F(CurlTls, a_client_certificate_that_cannot_work_is_refused_without_a_request) {
  const std::string broken = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n";
  const PemPair pair = ca_.Issue("DNS:a.test");
  options_.base_url = "https://127.0.0.1:1";
  options_.tls.ca_pem = ca_.pem();
  const auto refusal = [&](const std::string& certificate, const std::string& key) {
    options_.tls.client_cert_pem = certificate;
    options_.tls.client_key_pem = Secret(key);
    const auto made = MakeCurlTransport(options_);
    EXPECT_THAT(made, StatusIs(StatusCode::kInvalidArgument));
    return base::Message(made.status());
  };
  EXPECT_EQ(refusal(pair.certificate, ca_.Issue("DNS:b.test").key),
            "the key is not that of the client certificate");
  EXPECT_EQ(refusal(pair.certificate, broken), "the key of the client certificate is broken");
  EXPECT_EQ(refusal("-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n", pair.key),
            "the client certificate is broken");
  options_.base_url = "http://127.0.0.1:1";
  EXPECT_THAT(MakeCurlTransport(options_), IsOk()) << "it is not used";
}

TEST_F(CurlTls, versions_before_1_2_are_refused) {
  server_options_.highest_tls_version = TLS1_1_VERSION;
  Serve("IP:127.0.0.1");
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("TLS 1.2")));
}

TEST_F(CurlTls, a_server_that_speaks_no_TLS_is_FAILED_PRECONDITION) {
  const LoopbackServer plain(ServerReply(),
                             LoopbackOptions{.greeting = "HTTP/1.1 400 Bad Request\r\n\r\n"});
  options_.base_url = "https://" + plain.authority();
  options_.tls.ca_pem = ca_.pem();
  EXPECT_THAT(Send(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("speaks TLS")));
}

TEST_F(CurlTls, a_connection_that_ends_in_the_handshake_is_UNAVAILABLE) {
  server_options_.close_on_accept = true;
  Serve("IP:127.0.0.1");
  EXPECT_THAT(Send(), StatusIs(StatusCode::kUnavailable,
                               AllOf(HasSubstr("cannot connect"), Not(HasSubstr("eof")))));
}

}  // namespace
}  // namespace nomad_harvester::http
