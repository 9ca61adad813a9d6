// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/nomad/connection.h"

#include <string>

#include "nomad_harvester/base/status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/scoped_temp_dir.h"

namespace nomad_harvester::nomad {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kCertificate =
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
constexpr const char* kKey = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";

class NomadConnection : public testing::Test {
 protected:
  Connection Resolved() const {
    auto connection = ResolveConnection(options_);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *std::move(connection) : Connection{};
  }
  std::string Problems() const {
    const auto connection = ResolveConnection(options_);
    EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument);
    return base::Message(connection.status());
  }

  const support::ScopedTempDir dir_;
  config::NomadSettings options_;
};

TEST_F(NomadConnection, the_default_is_the_agent_on_this_machine_without_a_token) {
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "http://127.0.0.1:4646");
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_EQ(connection.curl.basic_auth_user, "");
  EXPECT_EQ(connection.curl.tls.ca_pem, "");
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(NomadConnection, keeps_the_address_with_its_path_and_socket) {
  for (const std::string address :
       {"http://nomad:4646", "http://[fd00::1]:4646", "http://lb/nomad", "unix:///run/api.sock"}) {
    options_.address = address;
    EXPECT_EQ(Resolved().curl.base_url, address);
  }
}

TEST_F(NomadConnection, an_address_of_an_unknown_kind_is_a_problem_that_is_not_quoted) {
  for (const char* address :
       {"nomad:4646", "127.0.0.1:4646", "tcp://nomad:4646", "http:/nomad", "unix://",
        "unix://relative", "unix:///", "http://", "https:///path", "http://user:sesame@nomad:4646",
        "http://nomad?token=sesame", "http://nomad#x", "http://no mad", "http://nomad\r\nX: y"}) {
    options_.address = address;
    const std::string text = Problems();
    EXPECT_THAT(text, StartsWith("nomad_address: ")) << address;
    EXPECT_THAT(text, Not(HasSubstr("sesame")));
  }
}

TEST_F(NomadConnection, a_token_is_sent_as_it_is) {
  options_.token = base::Secret("0f0e-token");
  EXPECT_EQ(Resolved().token->Token()->Reveal(), "0f0e-token");
}

TEST_F(NomadConnection, a_token_file_wins_over_the_token_that_the_agent_injects) {
  options_.token = base::Secret("injected");
  options_.token_file = dir_.WriteFile("token", "from-file\n");
  const Connection connection = Resolved();
  EXPECT_EQ(connection.token->Token()->Reveal(), "from-file");
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(NomadConnection, a_token_file_may_be_rendered_later) {
  options_.token_file = dir_.Path("later");
  const Connection connection = Resolved();
  EXPECT_THAT(connection.warnings, IsEmpty()) << "the configuration has warned of it";
  ASSERT_NE(connection.token, nullptr);
  EXPECT_FALSE(connection.token->Token().ok());
  dir_.WriteFile("later", "rendered");
  EXPECT_EQ(connection.token->Token()->Reveal(), "rendered");
}

TEST_F(NomadConnection, the_token_travels_in_nomads_header_and_is_refreshed_on_a_403) {
  const http::TokenHeader header = NomadTokenHeader();
  EXPECT_EQ(header.name, "X-Nomad-Token");
  EXPECT_EQ(header.prefix, "");
  EXPECT_TRUE(header.refresh_on_403);
}

TEST_F(NomadConnection, http_auth_is_split_at_the_first_colon) {
  struct Row {
    const char* text;
    const char* user;
    const char* password;
  };
  for (const Row& row : {Row{"", "", ""}, Row{"user", "user", ""}, Row{"user:pass", "user", "pass"},
                         Row{"user:pa:ss", "user", "pa:ss"}, Row{":pass", "", "pass"}}) {
    options_.http_auth = base::Secret(row.text);
    const Connection connection = Resolved();
    EXPECT_EQ(connection.curl.basic_auth_user, row.user) << row.text;
    EXPECT_EQ(connection.curl.basic_auth_password.Reveal(), row.password) << row.text;
  }
}

TEST_F(NomadConnection, http_auth_that_no_header_can_carry_is_a_problem_that_is_not_quoted) {
  options_.http_auth = base::Secret("user:sesame\n");
  EXPECT_EQ(Problems(), "nomad_http-auth: contains a character that is not allowed in a header");
}

TEST_F(NomadConnection, tls_files_are_read) {
  options_.address = "https://nomad:4646";
  options_.ca_cert = dir_.WriteFile("ca.pem", kCertificate);
  options_.client_cert = dir_.WriteFile("cert.pem", kCertificate);
  options_.client_key = dir_.WriteFile("key.pem", kKey);
  options_.tls_server_name = "server.global.nomad";
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.ca_pem, kCertificate);
  EXPECT_EQ(connection.curl.tls.client_cert_pem, kCertificate);
  EXPECT_EQ(connection.curl.tls.client_key_pem.Reveal(), kKey);
  EXPECT_EQ(connection.curl.tls.server_name, "server.global.nomad");
  EXPECT_FALSE(connection.curl.tls.skip_verify);
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(NomadConnection, a_ca_directory_is_read_whatever_its_files_are_called) {
  options_.address = "https://nomad:4646";
  dir_.WriteFile("one", kCertificate);
  dir_.WriteFile("two.crt", "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n");
  options_.ca_path = dir_.path();
  const std::string pem = Resolved().curl.tls.ca_pem;
  EXPECT_THAT(pem, HasSubstr("MIIB"));
  EXPECT_THAT(pem, HasSubstr("MIIC"));
}

TEST_F(NomadConnection, the_ca_file_wins_over_the_directory) {
  options_.address = "https://nomad:4646";
  options_.ca_cert = dir_.WriteFile("ca.pem", kCertificate);
  options_.ca_path = "/nowhere";
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.ca_pem, kCertificate);
  EXPECT_THAT(connection.warnings, ElementsAre(HasSubstr("nomad_ca-path")));
}

TEST_F(NomadConnection, without_verification_no_ca_is_looked_for_and_a_warning_says_so) {
  options_.address = "https://nomad:4646";
  options_.skip_verify = true;
  const Connection connection = Resolved();
  EXPECT_TRUE(connection.curl.tls.skip_verify);
  EXPECT_EQ(connection.curl.tls.ca_pem, "");
  EXPECT_THAT(connection.warnings, ElementsAre(HasSubstr("nomad_skip-verify")));
  options_.ca_cert = dir_.WriteFile("ca.pem", kCertificate);
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("remove it, a CA is given")));
}

TEST_F(NomadConnection, tls_settings_that_have_no_effect_are_a_warning) {
  options_.address = "unix:///run/nomad.sock";
  options_.ca_cert = dir_.WriteFile("ca.pem", kCertificate);
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("no effect")));
}

TEST_F(NomadConnection, every_problem_is_reported_at_once_with_its_key) {
  options_.address = "nomad";
  options_.http_auth = base::Secret("a\nb");
  options_.client_cert = dir_.Path("missing.pem");
  options_.client_key = dir_.WriteFile("key.pem", "no key");
  options_.ca_cert = dir_.path();
  const std::string text = Problems();
  for (const char* key : {"nomad_address: ", "nomad_http-auth: ", "nomad_client-cert: ",
                          "nomad_client-key: ", "nomad_ca-cert: "}) {
    EXPECT_THAT(text, HasSubstr(key));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

TEST_F(NomadConnection, a_file_of_the_wrong_kind_is_named) {
  options_.ca_cert = dir_.WriteFile("ca.pem", kKey);
  EXPECT_THAT(Problems(), HasSubstr("ca.pem holds no PEM certificate"));
}

TEST_F(NomadConnection, P2_a_device_in_place_of_a_file_is_a_problem) {
  options_.ca_cert = "/dev/zero";
  EXPECT_THAT(Problems(), StartsWith("nomad_ca-cert: "));
}

TEST_F(NomadConnection, a_ca_directory_that_is_not_there_is_a_problem) {
  options_.ca_path = dir_.Path("missing");
  EXPECT_THAT(Problems(), StartsWith("nomad_ca-path: "));
}

}  // namespace
}  // namespace nomad_harvester::nomad
