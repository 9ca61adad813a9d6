// SPDX-License-Identifier: Apache-2.0
// The members of a kubeconfig's cluster and user.
#include <string>

#include "kube/kubeconfig_fixture.h"

namespace nomad_harvester::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class KubeconfigEntries : public ConnectionFixture {
 protected:
  void UseCluster(const std::string& members) {
    UseKubeconfig(Kubeconfig("{server: 'https://vip:6443', " + members + "}", "{token: t}"));
  }
  void UseUser(const std::string& user) {
    UseKubeconfig(Kubeconfig("{server: 'https://vip:6443'}", user));
  }
  static std::string Base64(const std::string& text) { return base::Base64Encode(text); }
};

TEST_F(KubeconfigEntries, the_server_is_kept_with_its_path) {
  UseKubeconfig(Kubeconfig("{server: 'https://rancher/k8s/clusters/c-m-1/'}", "{token: t}"));
  EXPECT_EQ(Resolved().curl.base_url, "https://rancher/k8s/clusters/c-m-1");
}

TEST_F(KubeconfigEntries, a_server_that_is_none_is_a_problem) {
  UseKubeconfig(Kubeconfig("{server: 'vip:6443'}", "{token: t}"));
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: the address must begin with http://, https:// or unix://");
  UseKubeconfig(Kubeconfig("{}", "{token: t}"));
  EXPECT_EQ(Problems(), "harvester_kubeconfig: cluster \"c\" has no server; set harvester_url");
}

TEST_F(KubeconfigEntries, the_CA_may_be_data) {
  UseCluster("certificate-authority-data: " + Base64(kCaPem));
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

TEST_F(KubeconfigEntries, the_CA_may_be_a_file_next_to_the_kubeconfig) {
  dir_.WriteFile("pki/ca.pem", kCaPem);
  UseCluster("certificate-authority: pki/ca.pem");
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
  UseCluster("certificate-authority: " + dir_.Path("pki/ca.pem"));
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

// As in client-go.
TEST_F(KubeconfigEntries, data_wins_over_a_file) {
  UseCluster("certificate-authority: missing.pem, certificate-authority-data: " + Base64(kCaPem));
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

TEST_F(KubeconfigEntries, a_CA_that_is_none_is_a_problem_with_its_place) {
  UseCluster("certificate-authority-data: '!'");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: cluster \"c\".certificate-authority-data: it is not base64");
  UseCluster("certificate-authority: missing.pem");
  EXPECT_THAT(Problems(),
              AllOf(StartsWith("harvester_kubeconfig: cluster \"c\".certificate-authority: "),
                    HasSubstr(dir_.Path("missing.pem"))));
  UseCluster("certificate-authority: /dev/zero");
  EXPECT_THAT(Problems(), HasSubstr("/dev/zero"));
}

TEST_F(KubeconfigEntries, without_a_CA_the_machines_own_count) {
  UseCluster("certificate-authority-data: ''");
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kSystemCas);
}

// client-go: "specifying a root certificates file with the insecure flag is not allowed"
// (kubernetes/client-go:transport/transport.go).
TEST_F(KubeconfigEntries, a_CA_beside_insecure_skip_tls_verify_is_refused) {
  for (const std::string& ca : {std::string("certificate-authority: ca.pem"),
                                "certificate-authority-data: " + base::Base64Encode(kCaPem)}) {
    dir_.WriteFile("ca.pem", kCaPem);
    UseCluster("insecure-skip-tls-verify: true, " + ca);
    EXPECT_EQ(Problems(),
              "harvester_kubeconfig: cluster \"c\" has a certificate-authority and "
              "insecure-skip-tls-verify, which turns it off: remove one of them");
    UseCluster("insecure-skip-tls-verify: false, " + ca);
    EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
  }
}

// As with kubectl's --certificate-authority and --insecure-skip-tls-verify.
TEST_F(KubeconfigEntries, a_CA_beside_insecure_skip_tls_verify_is_irrelevant_if_a_key_says_how) {
  UseCluster("insecure-skip-tls-verify: true, certificate-authority: missing.pem");
  options_.skip_verify = true;
  EXPECT_TRUE(Resolved().curl.tls.skip_verify);
  options_.skip_verify = false;
  options_.ca_cert_file = dir_.WriteFile("key-ca.pem", kCaPem);
  EXPECT_FALSE(Resolved().curl.tls.skip_verify);
  EXPECT_EQ(Resolved().curl.tls.ca_pem, kCaPem);
}

TEST_F(KubeconfigEntries, a_CA_by_key_keeps_verification_on_whatever_the_kubeconfig_says) {
  UseCluster("insecure-skip-tls-verify: true");
  options_.ca_cert_file = dir_.WriteFile("key-ca.pem", kCaPem);
  const Connection connection = Resolved();
  EXPECT_FALSE(connection.curl.tls.skip_verify);
  EXPECT_EQ(connection.curl.tls.ca_pem, kCaPem);
  EXPECT_THAT(connection.warnings, testing::IsEmpty());
}

TEST_F(KubeconfigEntries, verification_that_is_off_is_a_warning_that_names_who_switched_it_off) {
  UseCluster("insecure-skip-tls-verify: true");
  EXPECT_THAT(Resolved().warnings,
              testing::Contains(StartsWith("insecure-skip-tls-verify in the kubeconfig: "
                                           "Harvester's certificate is not verified")));
  UseCluster("insecure-skip-tls-verify: false");
  EXPECT_THAT(Resolved().warnings, testing::IsEmpty());
  options_.skip_verify = true;
  EXPECT_THAT(Resolved().warnings,
              testing::Contains(StartsWith("harvester_skip_verify: Harvester's certificate")));
}

TEST_F(KubeconfigEntries, P3_PEM_in_place_of_its_path_is_not_quoted) {
  const std::string certificate = "{client-certificate-data: " + base::Base64Encode(kCertPem);
  for (const std::string& key : {std::string("\"-----BEGIN PRIVATE KEY-----\\nc2VzYW1l\\n\""),
                                 base::Base64Encode(kKeyPem)}) {
    UseUser(certificate + ", client-key: " + key + "}");
    EXPECT_EQ(Problems(),
              "harvester_kubeconfig: user \"u\".client-key: it is PEM itself: write that to a file "
              "and give the file's path");
  }
}

TEST_F(KubeconfigEntries, verification_can_be_switched_off) {
  for (const char* yes : {"true", "True", "\"true\""}) {
    UseCluster("insecure-skip-tls-verify: " + std::string(yes));
    const Connection connection = Resolved();
    EXPECT_TRUE(connection.curl.tls.skip_verify) << yes;
    EXPECT_EQ(connection.curl.tls.ca_pem, "") << "none is looked for";
  }
  for (const char* no : {"false", "~", "FALSE"}) {
    UseCluster("insecure-skip-tls-verify: " + std::string(no));
    EXPECT_FALSE(Resolved().curl.tls.skip_verify) << no;
  }
}

TEST_F(KubeconfigEntries, a_boolean_that_is_none_is_a_problem_and_no_default) {
  for (const char* text : {"yes", "1", "[true]", "''"}) {
    UseCluster("insecure-skip-tls-verify: " + std::string(text));
    EXPECT_EQ(Problems(),
              "harvester_kubeconfig: cluster \"c\".insecure-skip-tls-verify must be true or false")
        << text;
  }
}

TEST_F(KubeconfigEntries, the_name_to_verify_and_the_proxy_are_kept) {
  UseCluster("tls-server-name: harvester.local, proxy-url: 'socks5://proxy:1080'");
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.server_name, "harvester.local");
  EXPECT_EQ(connection.curl.proxy_url, "socks5://proxy:1080");
}

TEST_F(KubeconfigEntries, a_member_that_is_not_text_is_a_problem_and_not_left_out) {
  for (const std::string member :
       {"tls-server-name", "proxy-url", "certificate-authority", "certificate-authority-data"}) {
    UseCluster(member + ": [sesame]");
    EXPECT_EQ(Problems(), "harvester_kubeconfig: cluster \"c\"." + member + " must be a text");
  }
  UseKubeconfig(Kubeconfig("{server: [sesame]}", "{token: t}"));
  EXPECT_THAT(Problems(), HasSubstr("harvester_kubeconfig: cluster \"c\".server must be a text"));
  for (const std::string member : {"token", "tokenFile", "username", "password"}) {
    UseUser("{" + member + ": {a: sesame}}");
    EXPECT_EQ(Problems(), "harvester_kubeconfig: user \"u\"." + member + " must be a text");
  }
  UseUser("{client-certificate-data: [sesame], client-key-data: [sesame]}");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: user \"u\".client-certificate-data must be a text\n"
            "harvester_kubeconfig: user \"u\".client-key-data must be a text");
}

TEST_F(KubeconfigEntries, a_token_is_sent_without_white_space_around_it) {
  UseUser("{token: 'kubeconfig-u-1:abc'}");
  EXPECT_EQ(TokenOf(Resolved()), "kubeconfig-u-1:abc");
  UseUser("{token: \" abc\\n\"}");
  EXPECT_EQ(TokenOf(Resolved()), "abc");
  UseUser("{token: 0123456}");
  EXPECT_EQ(TokenOf(Resolved()), "0123456") << "a token of digits is not a number";
}

TEST_F(KubeconfigEntries, P3_a_token_that_no_header_can_carry_is_a_problem_that_is_not_quoted) {
  for (const char* token :
       {"\"ses\\name\"", "\"sesame\\r\\nX: y\"", "'ses ame'", "'säsame'", "' '"}) {
    UseUser("{token: " + std::string(token) + "}");
    EXPECT_EQ(Problems(),
              "harvester_kubeconfig: the token is empty or contains a character that is not "
              "allowed in a header")
        << token;
  }
}

// As in client-go, which uses the token until the file is readable.
TEST_F(KubeconfigEntries, a_token_file_wins_over_a_token_once_it_can_be_read) {
  UseUser("{token: fallback, tokenFile: " + dir_.Path("token") + "}");
  const Connection connection = Resolved();
  EXPECT_THAT(connection.warnings, ElementsAre(HasSubstr("does not exist yet")));
  ASSERT_NE(connection.token, nullptr);
  EXPECT_EQ(TokenOf(connection), "fallback");
  dir_.WriteFile("token", "from-file");
  EXPECT_EQ(TokenOf(connection), "from-file");
  dir_.WriteFile("token", "");
  EXPECT_EQ(TokenOf(connection), "from-file") << "the last one that could be read is kept";
  dir_.WriteFile("token", "renewed-and-longer");
  connection.token->Refresh();
  EXPECT_EQ(TokenOf(connection), "renewed-and-longer");
}

TEST_F(KubeconfigEntries, P2_a_token_file_that_can_never_be_one_is_a_problem) {
  for (const std::string& path : {std::string("/dev/zero"), dir_.path()}) {
    UseUser("{tokenFile: " + path + "}");
    EXPECT_THAT(Problems(), AllOf(StartsWith("harvester_kubeconfig: "), HasSubstr(path)));
  }
}

TEST_F(KubeconfigEntries, a_client_certificate_may_be_data_or_files) {
  UseUser("{client-certificate-data: " + Base64(kCertPem) +
          ", client-key-data: " + Base64(kKeyPem) + "}");
  Connection connection = Resolved();
  EXPECT_EQ(connection.curl.tls.client_cert_pem, kCertPem);
  EXPECT_EQ(connection.curl.tls.client_key_pem.Reveal(), kKeyPem);
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_THAT(connection.warnings, IsEmpty());

  dir_.WriteFile("cert.pem", kCertPem);
  dir_.WriteFile("key.pem", kKeyPem);
  UseUser("{client-certificate: cert.pem, client-key: " + dir_.Path("key.pem") + "}");
  connection = Resolved();
  EXPECT_EQ(connection.curl.tls.client_cert_pem, kCertPem);
  EXPECT_EQ(connection.curl.tls.client_key_pem.Reveal(), kKeyPem);

  UseUser("{client-certificate: cert.pem, client-key-data: " + Base64(kKeyPem) + "}");
  EXPECT_EQ(Resolved().curl.tls.client_key_pem.Reveal(), kKeyPem);
}

TEST_F(KubeconfigEntries, a_certificate_and_its_key_belong_together) {
  UseUser("{client-certificate-data: " + Base64(kCertPem) + "}");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: user \"u\" has a client-certificate without a client-key");
  UseUser("{client-key: key.pem}");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: user \"u\" has a client-key without a client-certificate");
}

TEST_F(KubeconfigEntries, P3_a_bad_certificate_or_key_is_a_problem_and_not_quoted) {
  UseUser("{client-certificate-data: " + Base64(kKeyPem) +
          ", client-key-data: " + Base64("sesame") + "}");
  EXPECT_EQ(Problems(),
            "harvester_kubeconfig: user \"u\".client-certificate-data: it holds no PEM "
            "certificate\nharvester_kubeconfig: user \"u\".client-key-data: it holds no PEM "
            "private key");
}

TEST_F(KubeconfigEntries, user_name_and_password_are_kept) {
  UseUser("{username: admin, password: sesame}");
  const Connection connection = Resolved();
  EXPECT_EQ(connection.curl.basic_auth_user, "admin");
  EXPECT_EQ(connection.curl.basic_auth_password.Reveal(), "sesame");
  EXPECT_EQ(connection.token, nullptr);
  EXPECT_THAT(connection.warnings, IsEmpty());
  UseUser("{username: admin}");
  EXPECT_EQ(Resolved().curl.basic_auth_user, "admin");
}

TEST_F(KubeconfigEntries, two_identities_at_once_are_a_problem) {
  for (const char* token : {"token: sesame", "tokenFile: t"}) {
    UseUser("{" + std::string(token) + ", username: admin, password: sesame}");
    EXPECT_THAT(Problems(), HasSubstr("has a token and a username: only one can be sent"));
  }
  UseUser("{password: sesame}");
  EXPECT_EQ(Problems(), "harvester_kubeconfig: user \"u\" has a password without a username");
}

TEST_F(KubeconfigEntries, an_exec_entry_is_refused_with_a_hint) {
  for (const char* exec : {"{command: rancher, args: [token]}", "{}", "x"}) {
    UseUser("{exec: " + std::string(exec) + "}");
    EXPECT_THAT(Problems(),
                AllOf(StartsWith("harvester_kubeconfig: user \"u\" uses an exec plugin"),
                      HasSubstr("auth_token_file")))
        << exec;
  }
}

TEST_F(KubeconfigEntries, an_auth_provider_is_refused_with_a_hint) {
  UseUser("{auth-provider: {name: oidc, config: {id-token: sesame}}}");
  EXPECT_THAT(Problems(), AllOf(HasSubstr("auth-provider"), HasSubstr("auth_token_file"),
                                Not(HasSubstr("sesame"))));
}

TEST_F(KubeconfigEntries, an_exec_entry_beside_a_token_is_refused_all_the_same) {
  UseUser("{token: t, exec: {command: x}}");
  EXPECT_THAT(Problems(), HasSubstr("exec plugin"));
}

TEST_F(KubeconfigEntries, an_entry_that_is_null_or_empty_is_none) {
  UseUser("{token: t, exec: ~, auth-provider: null, as: '', username: ''}");
  EXPECT_EQ(TokenOf(Resolved()), "t");
}

TEST_F(KubeconfigEntries, impersonation_is_refused) {
  for (const std::string member : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    UseUser("{token: t, " + member + ": [x]}");
    EXPECT_EQ(Problems(),
              "harvester_kubeconfig: user \"u\"." + member + ": impersonation is not supported");
  }
}

TEST_F(KubeconfigEntries, every_problem_is_reported_at_once_with_its_place) {
  UseKubeconfig(
      Kubeconfig("{server: vip, certificate-authority-data: '!', insecure-skip-tls-verify: maybe}",
                 "{exec: {}, username: [a], client-certificate: missing}"));
  const std::string text = Problems();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  for (const char* part : {"certificate-authority-data", "insecure-skip-tls-verify", "address",
                           "exec", "username", "without a client-key"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace nomad_harvester::kube
