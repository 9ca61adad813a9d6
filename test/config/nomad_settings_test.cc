// SPDX-License-Identifier: Apache-2.0
// The keys that the agent injects, and Nomad's environment variables as their fallback.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;

NomadSettings SettingsOf(const StringMap& map, const StringMap& environment = {}) {
  const auto config = ParsePlugin(map, environment);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? config->nomad : NomadSettings{};
}

TEST(NomadSettings, nothing_given_is_the_local_agent) {
  const NomadSettings settings = SettingsOf({});
  EXPECT_EQ(settings.address, "http://127.0.0.1:4646");
  EXPECT_EQ(settings.region, "");
  EXPECT_EQ(settings.ns, "");
  EXPECT_TRUE(settings.token.empty());
  EXPECT_EQ(settings.block_query_wait, std::chrono::seconds(5));
}

// All keys that hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go injects.
TEST(NomadSettings, everything_that_the_agent_injects_is_taken_over) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "x");
  const std::string key = directory.WriteFile("key", "x");
  const NomadSettings settings = SettingsOf({{"nomad_address", "https://nomad:4646"},
                                             {"nomad_region", "eu"},
                                             {"nomad_namespace", "*"},
                                             {"nomad_token", "s3cr3t"},
                                             {"nomad_http-auth", "user:pass"},
                                             {"nomad_ca-cert", file},
                                             {"nomad_ca-path", directory.path()},
                                             {"nomad_client-cert", file},
                                             {"nomad_client-key", key},
                                             {"nomad_tls-server-name", "server.eu.nomad"},
                                             {"nomad_skip-verify", "true"},
                                             {"nomad_block-query-wait-time", "20s"},
                                             {"nomad_config_inherit", "true"}});
  EXPECT_EQ(settings.address, "https://nomad:4646");
  EXPECT_EQ(settings.region, "eu");
  EXPECT_EQ(settings.ns, "*");
  EXPECT_EQ(settings.token.Reveal(), "s3cr3t");
  EXPECT_EQ(settings.http_auth.Reveal(), "user:pass");
  EXPECT_EQ(settings.ca_cert, file);
  EXPECT_EQ(settings.ca_path, directory.path());
  EXPECT_EQ(settings.client_cert, file);
  EXPECT_EQ(settings.client_key, key);
  EXPECT_EQ(settings.tls_server_name, "server.eu.nomad");
  EXPECT_TRUE(settings.skip_verify);
  EXPECT_EQ(settings.block_query_wait, std::chrono::seconds(20));
}

TEST(NomadSettings, absent_keys_are_read_from_nomads_environment) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "x");
  const NomadSettings settings = SettingsOf({}, {{"NOMAD_ADDR", "https://env:4646"},
                                                 {"NOMAD_REGION", "env-region"},
                                                 {"NOMAD_NAMESPACE", "env-namespace"},
                                                 {"NOMAD_TOKEN", "env-token"},
                                                 {"NOMAD_HTTP_AUTH", "env-user"},
                                                 {"NOMAD_CACERT", file},
                                                 {"NOMAD_CAPATH", directory.path()},
                                                 {"NOMAD_CLIENT_CERT", file},
                                                 {"NOMAD_CLIENT_KEY", file},
                                                 {"NOMAD_TLS_SERVER_NAME", "env.nomad"},
                                                 {"NOMAD_SKIP_VERIFY", "1"}});
  EXPECT_EQ(settings.address, "https://env:4646");
  EXPECT_EQ(settings.region, "env-region");
  EXPECT_EQ(settings.ns, "env-namespace");
  EXPECT_EQ(settings.token.Reveal(), "env-token");
  EXPECT_EQ(settings.http_auth.Reveal(), "env-user");
  EXPECT_EQ(settings.ca_cert, file);
  EXPECT_EQ(settings.ca_path, directory.path());
  EXPECT_EQ(settings.client_cert, file);
  EXPECT_EQ(settings.client_key, file);
  EXPECT_EQ(settings.tls_server_name, "env.nomad");
  EXPECT_TRUE(settings.skip_verify);
}

TEST(NomadSettings, a_key_wins_over_nomads_environment) {
  const NomadSettings settings =
      SettingsOf({{"nomad_address", "http://map:4646"}, {"nomad_token", "map"}},
                 {{"NOMAD_ADDR", "http://env:4646"}, {"NOMAD_TOKEN", "env"}});
  EXPECT_EQ(settings.address, "http://map:4646");
  EXPECT_EQ(settings.token.Reveal(), "map");
}

TEST(NomadSettings, an_empty_key_counts_as_absent) {
  const NomadSettings settings = SettingsOf({{"nomad_address", ""},
                                             {"nomad_token", ""},
                                             {"nomad_region", ""},
                                             {"nomad_ca-cert", ""},
                                             {"nomad_http-auth", ""},
                                             {"nomad_token_file", ""}},
                                            {{"NOMAD_TOKEN", "env"}});
  EXPECT_EQ(settings.address, "http://127.0.0.1:4646");
  EXPECT_EQ(settings.token.Reveal(), "env");
  EXPECT_EQ(settings.region, "");
  EXPECT_EQ(settings.token_file, "");
}

TEST(NomadSettings, the_task_api_is_the_last_resort) {
  const StringMap task = {{"NOMAD_UNIX_ADDR", "unix:///secrets/api.sock"}};
  EXPECT_EQ(SettingsOf({}, task).address, "unix:///secrets/api.sock");
  EXPECT_EQ(SettingsOf({}, With(task, {{"NOMAD_ADDR", "http://a:1"}})).address, "http://a:1");
  EXPECT_EQ(SettingsOf({{"nomad_address", "http://b:1"}}, task).address, "http://b:1");
}

TEST(NomadSettings, a_socket_can_be_the_address) {
  EXPECT_EQ(SettingsOf({{"nomad_address", "unix:///run/nomad.sock"}}).address,
            "unix:///run/nomad.sock");
}

TEST(NomadSettings, the_variable_of_the_token_file_wins_over_its_key) {
  const support::ScopedTempDir directory;
  const std::string in_map = directory.WriteFile("map", "x");
  const std::string in_environment = directory.WriteFile("environment", "x");
  EXPECT_EQ(SettingsOf({{"nomad_token_file", in_map}}).token_file, in_map);
  EXPECT_EQ(
      SettingsOf({{"nomad_token_file", in_map}}, {{"NOMAD_TOKEN_FILE", in_environment}}).token_file,
      in_environment);
}

TEST(NomadSettings, a_token_that_the_agent_injects_is_not_a_conflict_with_a_file) {
  const support::ScopedTempDir directory;
  const NomadSettings settings = SettingsOf(
      {{"nomad_token", "injected"}, {"nomad_token_file", directory.WriteFile("token", "x")}});
  EXPECT_EQ(settings.token_file, directory.Path("token"));
}

TEST(NomadSettings, an_invalid_boolean_is_a_problem_from_any_source) {
  EXPECT_EQ(ProblemOf(ParsePlugin({{"nomad_skip-verify", "yes"}})),
            "nomad_skip-verify: must be true or false (got \"yes\"); write \"true\" or \"false\"");
  EXPECT_EQ(ProblemOf(ParsePlugin({}, {{"NOMAD_SKIP_VERIFY", "yes"}})),
            "nomad_skip-verify: must be true or false (got \"yes\" from NOMAD_SKIP_VERIFY); write "
            "\"true\" or \"false\"");
  EXPECT_THAT(ProblemOf(ParsePlugin({{"nomad_config_inherit", "falso"}})),
              HasSubstr("nomad_config_inherit: must be true or false (got \"falso\")"));
}

TEST(NomadSettings, an_empty_boolean_or_duration_is_a_problem) {
  EXPECT_THAT(ProblemOf(ParsePlugin({{"nomad_skip-verify", ""}})),
              HasSubstr("nomad_skip-verify: must be true or false (got \"\")"));
  EXPECT_THAT(ProblemOf(ParsePlugin({{"nomad_block-query-wait-time", ""}})),
              HasSubstr("nomad_block-query-wait-time: must be a duration (got \"\")"));
}

TEST(NomadSettings, a_client_certificate_and_its_key_go_together) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "x");
  EXPECT_EQ(ProblemOf(ParsePlugin({}, {{"NOMAD_CLIENT_KEY", file}})),
            "nomad_client-key: given without nomad_client-cert; add nomad_client-cert, or set "
            "NOMAD_CLIENT_CERT, or remove nomad_client-key");
  EXPECT_EQ(SettingsOf({{"nomad_client-cert", file}}, {{"NOMAD_CLIENT_KEY", file}}).client_key,
            file);
}

TEST(NomadSettings, a_wrong_address_is_a_problem) {
  EXPECT_THAT(
      ProblemOf(ParsePlugin({{"nomad_address", "127.0.0.1:4646"}})),
      HasSubstr("nomad_address: the address must begin with http://, https:// or unix:// (got "
                "\"127.0.0.1:4646\")"));
}

TEST(NomadSettings, P3_a_password_in_the_address_is_refused_and_not_shown) {
  const std::string problem = ProblemOf(ParsePlugin({{"nomad_address", "http://u:hunter2@host"}}));
  EXPECT_THAT(problem,
              HasSubstr("nomad_address: the address must not hold a user name or password"));
  EXPECT_THAT(problem, ::testing::Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace nomad_harvester::config
