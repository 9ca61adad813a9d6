// SPDX-License-Identifier: Apache-2.0
// Which credentials for Harvester are used.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Credentials : public ::testing::Test {
 protected:
  support::ScopedTempDir directory_;
  std::string file_ = directory_.WriteFile("token", "x");
  std::string other_file_ = directory_.WriteFile("other", "x");
};

TEST_F(Credentials, those_of_the_environment_win_over_either_key_of_the_map) {
  const struct {
    StringMap map;
    StringMap environment;
    std::string token;
    std::string file;
  } rows[] = {
      {{}, {}, "", ""},
      {{{"auth_token", "map"}}, {}, "map", ""},
      {{{"auth_token_file", file_}}, {}, "", file_},
      {{{"auth_token", "map"}}, {{"HARVESTER_TOKEN", "env"}}, "env", ""},
      {{{"auth_token_file", file_}}, {{"HARVESTER_TOKEN", "env"}}, "env", ""},
      {{{"auth_token", "map"}}, {{"HARVESTER_TOKEN_FILE", file_}}, "", file_},
      {{{"auth_token_file", other_file_}}, {{"HARVESTER_TOKEN_FILE", file_}}, "", file_},
      {{{"auth_token", "map"}}, {{"HARVESTER_TOKEN", ""}}, "map", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.map) + testing::PrintToString(row.environment));
    const auto config = ParsePlugin(row.map, row.environment);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->harvester.token.Reveal(), row.token);
    EXPECT_EQ(config->harvester.token_file, row.file);
  }
}

TEST_F(Credentials, both_variables_or_both_keys_are_a_mistake) {
  EXPECT_EQ(ProblemOf(ParsePlugin({}, {{"HARVESTER_TOKEN", "a"}, {"HARVESTER_TOKEN_FILE", file_}})),
            "auth_token: HARVESTER_TOKEN and HARVESTER_TOKEN_FILE are both set; unset one of them");
  const StringMap both = {{"auth_token", "a"}, {"auth_token_file", file_}};
  for (const StringMap& environment : {StringMap{}, StringMap{{"HARVESTER_TOKEN", "b"}}}) {
    EXPECT_EQ(ProblemOf(ParsePlugin(both, environment)),
              "auth_token: given together with auth_token_file; remove one of them");
  }
}

TEST_F(Credentials, an_empty_token_is_a_mistake_and_not_the_kubeconfigs) {
  EXPECT_THAT(ProblemOf(ParsePlugin({{"auth_token", ""}, {"harvester_kubeconfig", file_}})),
              HasSubstr("auth_token: must not be empty"));
}

TEST_F(Credentials, P3_no_token_is_in_a_problem) {
  for (const StringMap& map :
       {StringMap{{"auth_token", "hunter2 x"}}, StringMap{{"nomad_token", "hunter2\n"}},
        StringMap{{"nomad_http-auth", std::string("u:hunter2\0", 10)}},
        StringMap{{"auth_token", "hunter2\nhunter2"}, {"max_concurrency", "x"}}}) {
    const auto config = ParsePlugin(map);
    ASSERT_FALSE(config.ok());
    EXPECT_THAT(base::Message(config.status()), Not(HasSubstr("hunter2")));
  }
  for (const char* const variable : {"HARVESTER_TOKEN", "NOMAD_TOKEN"}) {
    const std::string problem = ProblemOf(ParsePlugin({}, {{variable, "hunter2 x"}}));
    EXPECT_THAT(problem, Not(HasSubstr("hunter2")));
    EXPECT_THAT(problem, HasSubstr(std::string("(from ") + variable + ")"));
  }
}

// Credentials over plain http are checked where the kubeconfig is known, too.
TEST_F(Credentials, plain_http_is_accepted) {
  const auto config =
      ParsePlugin({{"harvester_url", "http://127.0.0.1:8080"}, {"auth_token", "a"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST_F(Credentials, a_client_certificate_and_its_key_go_together) {
  EXPECT_EQ(ProblemOf(ParsePlugin({{"harvester_client_cert", file_}})),
            "harvester_client_cert: given without harvester_client_key; add "
            "harvester_client_key, or remove harvester_client_cert");
  const auto config =
      ParsePlugin({{"harvester_client_cert", file_}, {"harvester_client_key", other_file_}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->harvester.client_cert_file, file_);
  EXPECT_EQ(config->harvester.client_key_file, other_file_);
}

// The connection warns of it, because a kubeconfig can switch it off, too.
TEST_F(Credentials, verification_is_skipped_when_told_so) {
  const auto config = ParsePlugin({{"harvester_skip_verify", "true"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->harvester.skip_verify);
}

TEST_F(Credentials, P3_PEM_in_place_of_its_path_is_not_quoted) {
  const std::string pem =
      "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----\n";  // no real key
  for (const std::string& value : {pem, "\n" + pem, std::string("LS0tLS1CRUdJTiBQhush")}) {
    for (const auto& [cert, key] : {std::pair("harvester_client_cert", "harvester_client_key"),
                                    std::pair("nomad_client-cert", "nomad_client-key")}) {
      EXPECT_THAT(ProblemOf(ParsePlugin({{cert, file_}, {key, value}})),
                  AllOf(HasSubstr(std::string(key) + ": is PEM itself instead of a path; write it "
                                                     "to a file and give the file's path"),
                        Not(HasSubstr("hush"))));
      EXPECT_THAT(ProblemOf(ParsePlugin({{cert, value}, {key, file_}})), Not(HasSubstr("hush")));
    }
  }
  EXPECT_THAT(ProblemOf(ParsePlugin({{"harvester_ca_cert", pem}})), HasSubstr("is PEM itself"));
}

TEST_F(Credentials, P3_the_content_of_a_kubeconfig_in_place_of_its_path_is_not_quoted) {
  for (const char* const content :
       {"apiVersion: v1\nusers: [{user: {token: hush}}]\n", "# a kubeconfig, token: hush",
        "{apiVersion: v1, users: [{user: {token: hush}}]}"}) {
    EXPECT_THAT(ProblemOf(ParsePlugin({}, {{"HARVESTER_KUBECONFIG", content}})),
                AllOf(HasSubstr("harvester_kubeconfig: must be the path of a file"),
                      HasSubstr("(from HARVESTER_KUBECONFIG)"), Not(HasSubstr("hush"))));
    EXPECT_THAT(ProblemOf(ParsePlugin({{"harvester_kubeconfig", content}})),
                Not(HasSubstr("hush")));
  }
}

TEST_F(Credentials, P3_a_key_without_its_first_line_is_not_quoted_either) {
  EXPECT_EQ(ProblemOf(ParsePlugin({{"harvester_client_cert", file_},
                                   {"harvester_client_key", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"}})),
            "harvester_client_key: no such file; the value is not shown, it may be the key itself; "
            "correct the path, as the autoscaler's agent sees it");
}

TEST_F(Credentials, P3_a_secret_in_the_value_of_another_key_is_not_quoted) {
  const auto config = ParsePlugin({{"auth_token", "sesame-street"},
                                   {"harvester_tls_server_name", "sesame-street:"},
                                   {"log_level", "sesame-street"}});
  EXPECT_THAT(ProblemsOf(config), Each(Not(HasSubstr("sesame"))));
  const auto broken =
      ParsePlugin({{"nomad_token", "sesame street"}, {"log_level", "sesame street"}});
  EXPECT_THAT(ProblemsOf(broken), Each(Not(HasSubstr("sesame"))));
}

TEST_F(Credentials, P3_secrets_are_in_force_as_long_as_the_configuration) {
  {
    const auto config = ParsePlugin(
        {{"auth_token", "sesame-street"}, {"nomad_token_file", "a-token-in-the-wrong-key"}},
        {{"NOMAD_TOKEN", "unused-token"}});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(base::WithoutSecrets("sesame-street, unused-token, a-token-in-the-wrong-key"),
              "REDACTED, REDACTED, REDACTED");
  }
  EXPECT_EQ(base::WithoutSecrets("sesame-street, unused-token"), "sesame-street, unused-token");
}

}  // namespace
}  // namespace nomad_harvester::config
