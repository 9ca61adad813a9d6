// SPDX-License-Identifier: Apache-2.0
// Resolves the operator's options to a server and credentials.
#include "nomad_harvester/kube/connection.h"

#include <algorithm>
#include <string>

#include "kube/kubeconfig_fixture.h"

namespace nomad_harvester::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class KubeConnection : public ConnectionFixture {
 protected:
  KubeConnection() {
    options_.url = "https://vip:6443";
    options_.token = base::Secret("t");
  }
  // A kubeconfig with every member, for https://vip:6443.
  void UseRichKubeconfig(const std::string& user = "{token: from-kubeconfig}") {
    UseKubeconfig(
        Kubeconfig("{server: 'https://vip:6443', tls-server-name: own-name, "
                   "proxy-url: 'http://proxy:3128', certificate-authority-data: " +
                       base::Base64Encode(kCaPem) + "}",
                   user));
  }
  void UseClientCertificate() {
    options_.client_cert_file = dir_.WriteFile("cert.pem", kCertPem);
    options_.client_key_file = dir_.WriteFile("key.pem", kKeyPem);
  }
};

TEST_F(KubeConnection, a_URL_and_a_token_are_enough) {
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://vip:6443");
  EXPECT_EQ(TokenOf(connection), "t");
  EXPECT_EQ(connection.curl.tls.ca_pem, kSystemCas);
  EXPECT_EQ(connection.curl.tls.server_name, "");
  EXPECT_FALSE(connection.curl.tls.skip_verify);
  EXPECT_EQ(connection.curl.tls.client_cert_pem, "");
  EXPECT_EQ(connection.curl.proxy_url, "");
  EXPECT_EQ(connection.curl.basic_auth_user, "");
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(KubeConnection, a_path_of_the_URL_is_kept) {
  options_.url = "https://rancher/k8s/clusters/c-m-1/";
  EXPECT_EQ(Resolved().curl.base_url, "https://rancher/k8s/clusters/c-m-1");
}

TEST_F(KubeConnection, P3_a_URL_with_a_password_is_a_problem_that_is_not_quoted) {
  options_.url = "https://admin:sesame@vip";
  EXPECT_EQ(Problems(),
            "harvester_url: the address must not hold a user name or password: there are settings "
            "for them");
}

TEST_F(KubeConnection, the_address_is_http_or_https) {
  for (const char* url : {"vip", "ftp://vip", "unix:///run/api.sock"}) {
    options_.url = url;
    EXPECT_THAT(Problems(), StartsWith("harvester_url: ")) << url;
  }
  options_.url = " https://vip\n";
  EXPECT_EQ(Resolved().curl.base_url, "https://vip");
}

TEST_F(KubeConnection, without_credentials_a_warning_names_the_keys) {
  options_.token = base::Secret();
  const Connection connection = Resolved();
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_THAT(connection.warnings,
              ElementsAre(AllOf(HasSubstr("auth_token"), HasSubstr("auth_token_file"),
                                HasSubstr("harvester_kubeconfig"))));
}

TEST_F(KubeConnection, a_client_certificate_is_credentials_enough) {
  options_.token = base::Secret();
  UseClientCertificate();
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.client_cert_pem, kCertPem);
  EXPECT_EQ(connection.curl.tls.client_key_pem.Reveal(), kKeyPem);
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(KubeConnection, an_encrypted_key_is_named_by_its_own_key) {
  UseClientCertificate();
  options_.client_key_file =
      dir_.WriteFile("key.pem",
                     "-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n-----END ENCRYPTED "
                     "PRIVATE KEY-----\n");
  EXPECT_THAT(Problems(), AllOf(StartsWith("harvester_client_key: "), HasSubstr("passphrase")));
}

TEST_F(KubeConnection, a_CA_file_is_read) {
  options_.ca_cert_file = dir_.WriteFile("ca.pem", kCaPem);
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

TEST_F(KubeConnection, P2_files_that_are_none_are_problems_of_their_keys) {
  UseClientCertificate();
  options_.ca_cert_file = "/dev/zero";
  options_.client_cert_file = dir_.path();
  options_.client_key_file = dir_.Path("missing");
  const std::string text = Problems();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, HasSubstr("harvester_ca_cert: /dev/zero"));
  EXPECT_THAT(text, HasSubstr("harvester_client_cert: " + dir_.path()));
  EXPECT_THAT(text, HasSubstr("harvester_client_key: " + dir_.Path("missing")));
}

TEST_F(KubeConnection, a_machine_without_CAs_is_a_problem_that_names_the_key) {
  environment_.Set("SSL_CERT_FILE", dir_.Path("missing"));
  EXPECT_THAT(Problems(), StartsWith("harvester_ca_cert: "));
  options_.skip_verify = true;
  const Connection connection = Resolved();
  EXPECT_TRUE(connection.curl.tls.skip_verify);
  EXPECT_EQ(connection.curl.tls.ca_pem, "");
}

TEST_F(KubeConnection, plain_http_needs_no_CA_and_is_worth_a_warning) {
  environment_.Set("SSL_CERT_FILE", dir_.Path("missing"));
  options_.url = "http://vip";
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("plain http")));
  options_.url = "http://127.example.org";
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("plain http")));
  for (const char* own : {"http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"}) {
    options_.url = own;
    EXPECT_THAT(Resolved().warnings, IsEmpty()) << own;
  }
}

TEST_F(KubeConnection, without_credentials_plain_http_gives_nothing_away) {
  options_.url = "http://vip";
  options_.token = base::Secret();
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("no credentials")));
}

TEST_F(KubeConnection, tls_settings_that_have_no_effect_are_a_warning) {
  options_.url = "http://127.0.0.1:8080";
  options_.ca_cert_file = dir_.WriteFile("ca.pem", kCaPem);
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("no effect")));
  options_.ca_cert_file.clear();
  UseClientCertificate();
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("no effect")));
}

TEST_F(KubeConnection,
       skipping_the_verification_for_which_a_CA_is_given_is_a_warning_that_says_so) {
  options_.skip_verify = true;
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("set harvester_ca_cert")));
  options_.ca_cert_file = dir_.WriteFile("ca.pem", kCaPem);
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("remove it, a CA is given")));
}

TEST_F(KubeConnection, the_name_to_verify_and_skipping_come_from_the_options) {
  options_.tls_server_name = "harvester.local";
  options_.skip_verify = true;
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.server_name, "harvester.local");
  EXPECT_TRUE(connection.curl.tls.skip_verify);
}

TEST_F(KubeConnection, P3_a_token_that_no_header_can_carry_is_a_problem_that_is_not_quoted) {
  for (const char* token : {"sesame\r\nX: y", "ses ame", "s\xC3\xA4same", " ", "\n"}) {
    options_.token = base::Secret(token);
    EXPECT_EQ(
        Problems(),
        "auth_token: the token is empty or contains a character that is not allowed in a header")
        << token;
  }
  options_.token = base::Secret(" t\n");
  EXPECT_EQ(TokenOf(Resolved()), "t");
}

TEST_F(KubeConnection, a_token_file_is_read_again_when_it_changes_and_on_a_refusal) {
  options_.token = base::Secret();
  options_.token_file = dir_.WriteFile("token", " first\n");
  const Connection connection = Resolved();
  EXPECT_THAT(connection.warnings, IsEmpty());
  ASSERT_NE(connection.token, nullptr);
  EXPECT_EQ(TokenOf(connection), "first");
  dir_.WriteFile("token", "second-and-longer");
  EXPECT_EQ(TokenOf(connection), "second-and-longer");
  dir_.WriteFile("token", "third");
  connection.token->Refresh();
  EXPECT_EQ(TokenOf(connection), "third");
}

TEST_F(KubeConnection, a_token_file_may_be_rendered_later) {
  options_.token = base::Secret();
  options_.token_file = dir_.Path("later");
  const Connection connection = Resolved();
  EXPECT_THAT(connection.warnings, IsEmpty()) << "the configuration has warned of it";
  EXPECT_THAT(TokenOf(connection), StartsWith("error: cannot use the token file "));
  dir_.WriteFile("later", "rendered");
  EXPECT_EQ(TokenOf(connection), "rendered");
}

TEST_F(KubeConnection, a_token_file_that_is_empty_yet_is_a_warning) {
  options_.token = base::Secret();
  options_.token_file = dir_.WriteFile("token", "\n");
  EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("is still empty")));
}

TEST_F(KubeConnection, P2_a_token_file_that_can_never_be_one_is_a_problem) {
  options_.token = base::Secret();
  for (const std::string& path : {std::string("/dev/zero"), dir_.path()}) {
    options_.token_file = path;
    EXPECT_THAT(Problems(), StartsWith("auth_token_file: " + path));
  }
}

TEST_F(KubeConnection, a_token_of_the_options_wins_over_all_credentials_of_a_kubeconfig) {
  UseRichKubeconfig(
      "{username: admin, password: x, client-certificate-data: " + base::Base64Encode(kCertPem) +
      ", client-key-data: " + base::Base64Encode(kKeyPem) + "}");
  const Connection connection = Resolved();
  EXPECT_EQ(TokenOf(connection), "t");
  EXPECT_EQ(connection.curl.basic_auth_user, "");
  EXPECT_TRUE(connection.curl.basic_auth_password.empty());
  EXPECT_EQ(connection.curl.tls.client_cert_pem, "") << "it would win at the API server";
  EXPECT_TRUE(connection.curl.tls.client_key_pem.empty());
}

TEST_F(KubeConnection, a_token_file_of_the_options_wins_over_a_kubeconfigs_token) {
  UseRichKubeconfig();
  options_.token = base::Secret();
  options_.token_file = dir_.WriteFile("token", "from-file");
  EXPECT_EQ(TokenOf(Resolved()), "from-file");
}

TEST_F(KubeConnection, a_token_of_the_options_makes_an_exec_entry_irrelevant) {
  UseRichKubeconfig("{exec: {command: x}}");
  EXPECT_EQ(TokenOf(Resolved()), "t");
}

TEST_F(KubeConnection, without_a_token_of_the_options_the_kubeconfigs_counts) {
  UseRichKubeconfig();
  options_.token = base::Secret();
  EXPECT_EQ(TokenOf(Resolved()), "from-kubeconfig");
}

TEST_F(KubeConnection, a_certificate_of_the_options_replaces_the_kubeconfigs) {
  UseRichKubeconfig("{token: from-kubeconfig, client-certificate-data: '!', client-key-data: '!'}");
  options_.token = base::Secret();
  UseClientCertificate();
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.client_cert_pem, kCertPem) << "the other is not looked at";
  EXPECT_EQ(TokenOf(connection), "from-kubeconfig");
}

TEST_F(KubeConnection, the_options_win_over_the_kubeconfigs_CA_and_name) {
  UseRichKubeconfig();
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
  EXPECT_EQ(Resolved().curl.tls.server_name, "own-name");
  EXPECT_EQ(Resolved().curl.proxy_url, "http://proxy:3128");
  options_.ca_cert_file = dir_.WriteFile("ca.pem", kCertPem);
  options_.tls_server_name = "mine";
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCertPem);
  EXPECT_EQ(Resolved().curl.tls.server_name, "mine");
}

TEST_F(KubeConnection, a_CA_of_the_options_makes_a_broken_one_irrelevant) {
  UseKubeconfig(
      Kubeconfig("{server: 'https://vip:6443', certificate-authority: missing}", "{token: t}"));
  EXPECT_THAT(Problems(), HasSubstr("certificate-authority"));
  options_.ca_cert_file = dir_.WriteFile("ca.pem", kCaPem);
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

class OtherServer : public KubeConnection {
 protected:
  OtherServer() { options_.token = base::Secret(); }
};

TEST_F(OtherServer, the_URL_replaces_the_kubeconfigs_server) {
  UseRichKubeconfig();
  options_.url = "https://vip:6443/k8s/clusters/local";
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://vip:6443/k8s/clusters/local");
  EXPECT_EQ(TokenOf(connection), "from-kubeconfig") << "host and port are the same";
  EXPECT_EQ(connection.curl.tls.server_name, "own-name");
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(OtherServer, a_kubeconfigs_credentials_are_not_sent_to_another_host_or_port) {
  const std::string certificate = "client-certificate-data: " + base::Base64Encode(kCertPem) +
                                  ", client-key-data: " + base::Base64Encode(kKeyPem);
  for (const char* url : {"https://other:6443", "https://vip", "https://vip:443",
                          "https://vip.example.org:6443", "http://vip", "https://[::1]:6443"}) {
    for (const std::string& user :
         {std::string("{token: sesame}"), std::string("{username: a, password: sesame}"),
          "{" + certificate + "}", "{token: sesame, " + certificate + "}",
          std::string("{tokenFile: /dev/null}")}) {
      UseRichKubeconfig(user);
      options_.url = url;
      const Connection connection = Resolved();
      EXPECT_EQ(connection.token, nullptr) << url << user;
      EXPECT_EQ(connection.curl.basic_auth_user, "") << url << user;
      EXPECT_TRUE(connection.curl.basic_auth_password.empty()) << url << user;
      EXPECT_EQ(connection.curl.tls.client_cert_pem, "") << url << user;
      EXPECT_TRUE(connection.curl.tls.client_key_pem.empty()) << url << user;
      EXPECT_THAT(connection.warnings,
                  ElementsAre(HasSubstr("the kubeconfig's credentials are not sent there"),
                              HasSubstr("no credentials")));
    }
  }
}

TEST_F(KubeConnection, what_is_sent_is_named_for_people) {
  EXPECT_EQ(Resolved().credential, "the token of auth_token or HARVESTER_TOKEN");
  options_.token = base::Secret();
  options_.token_file = dir_.WriteFile("token", "t");
  const std::string token = "the token of auth_token_file " + options_.token_file;
  EXPECT_EQ(Resolved().credential, token);
  options_.client_cert_file = dir_.WriteFile("cert.pem", kCertPem);
  options_.client_key_file = dir_.WriteFile("key.pem", kKeyPem);
  const std::string certificate = "the client certificate " + options_.client_cert_file;
  EXPECT_EQ(Resolved().credential, certificate + " and " + token);
  options_.url = "http://vip";
  EXPECT_EQ(Resolved().credential, token) << "there is no TLS";
  options_.token_file.clear();
  EXPECT_EQ(Resolved().credential, "");
}

TEST_F(OtherServer, of_a_kubeconfig_what_is_not_sent_is_not_named) {
  const std::string certificate = "client-certificate-data: " + base::Base64Encode(kCertPem) +
                                  ", client-key-data: " + base::Base64Encode(kKeyPem);
  const std::pair<std::string, std::string> sent[] = {
      {"{token: sesame}", "the token"},
      {"{tokenFile: later}", "the token"},
      {"{username: a, password: sesame}", "the user name and password"},
      {"{" + certificate + "}", "the client certificate"},
      {"{}", ""}};
  for (const auto& [user, credential] : sent) {
    UseRichKubeconfig(user);
    options_.url.clear();
    const std::string of = credential.empty() ? "" : " of kubeconfig " + options_.kubeconfig_path;
    EXPECT_EQ(Resolved().credential, credential + of);
    options_.url = "https://other";
    EXPECT_EQ(Resolved().credential, "") << user;
  }
}

TEST_F(OtherServer, another_spelling_of_the_server_is_the_same_server) {
  UseRichKubeconfig();
  for (const char* url : {"https://VIP:6443", "https://vip:6443/", "https://vip.:6443/x"}) {
    options_.url = url;
    EXPECT_EQ(TokenOf(Resolved()), "from-kubeconfig") << url;
  }
}

TEST_F(OtherServer, the_leave_to_skip_verification_does_not_go_along) {
  UseKubeconfig(Kubeconfig(
      "{server: 'https://vip:6443', insecure-skip-tls-verify: true, tls-server-name: own-name}",
      "{token: t}"));
  EXPECT_TRUE(Resolved().curl.tls.skip_verify);
  options_.url = "https://other:6443";
  const Connection connection = Resolved();
  EXPECT_FALSE(connection.curl.tls.skip_verify);
  EXPECT_EQ(connection.curl.tls.server_name, "");
  EXPECT_EQ(connection.curl.tls.ca_pem, kSystemCas);
}

TEST_F(OtherServer, the_CA_and_the_proxy_do_they_may_lead_to_another_address_of_the_cluster) {
  UseRichKubeconfig();
  options_.url = "https://other";
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
  EXPECT_EQ(Resolved().curl.proxy_url, "http://proxy:3128");
}

TEST_F(OtherServer, a_token_of_the_options_is_sent_there_without_a_warning) {
  UseRichKubeconfig();
  options_.url = "https://other";
  options_.token = base::Secret("mine");
  const Connection connection = Resolved();
  EXPECT_EQ(TokenOf(connection), "mine");
  EXPECT_THAT(connection.warnings, IsEmpty());
}

TEST_F(OtherServer, a_kubeconfig_without_a_server_vouches_for_none) {
  UseKubeconfig(Kubeconfig("{}", "{token: sesame}"));
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.base_url, "https://vip:6443");
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_THAT(connection.warnings, SizeIs(2));
}

TEST_F(OtherServer, a_kubeconfig_without_credentials_gives_no_warning_about_unused_ones) {
  options_.url = "https://other";
  for (const char* user : {"{}", "{token: '', username: \"\", exec: ~}"}) {
    UseRichKubeconfig(user);
    EXPECT_THAT(Resolved().warnings, ElementsAre(HasSubstr("no credentials"))) << user;
  }
}

TEST_F(KubeConnection, every_problem_is_reported_at_once_with_its_key) {
  options_.url = "vip";
  options_.token = base::Secret();
  options_.token_file = "/dev/zero";
  options_.kubeconfig_path = dir_.Path("missing");
  options_.ca_cert_file = dir_.Path("missing-ca");
  options_.client_cert_file = dir_.Path("missing-cert");
  options_.client_key_file = dir_.Path("missing-key");
  const std::string text = Problems();
  for (const char* key :
       {"harvester_url: ", "auth_token_file: ", "harvester_kubeconfig: ", "harvester_ca_cert: ",
        "harvester_client_cert: ", "harvester_client_key: "}) {
    EXPECT_THAT(text, HasSubstr(key));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
}

TEST_F(KubeConnection, P3_no_problem_and_no_warning_holds_a_secret) {
  options_.token = base::Secret("sesame");
  options_.url = "http://other";
  UseRichKubeconfig("{token: sesame, password: sesame, exec: {env: [{value: sesame}]}}");
  for (const std::string& warning : Resolved().warnings) {
    EXPECT_THAT(warning, Not(HasSubstr("sesame")));
  }
  options_.token = base::Secret();
  options_.url.clear();
  EXPECT_THAT(Problems(), Not(HasSubstr("sesame")));
}

}  // namespace
}  // namespace nomad_harvester::kube
