// SPDX-License-Identifier: Apache-2.0
// The keys that the agent injects, and Nomad's environment variables as their fallback.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

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

template <std::string NomadSettings::*kMember>
std::string Text(const NomadSettings& settings) {
  return settings.*kMember;
}
template <base::Secret NomadSettings::*kMember>
std::string Revealed(const NomadSettings& settings) {
  return (settings.*kMember).Reveal();
}

// All keys that hashicorp/nomad-autoscaler:sdk/helper/nomad/config.go injects.
TEST(NomadSettings, are_those_that_the_agent_injects_or_else_those_of_nomads_environment) {
  const support::ScopedTempDir directory;
  const std::string file = directory.WriteFile("file", "x");
  const std::string key = directory.WriteFile("key", "x");
  const struct {
    const char* key;
    const char* variable;
    std::string value;
    std::string (*of)(const NomadSettings& settings);
  } rows[] = {
      {"nomad_address", "NOMAD_ADDR", "https://nomad:4646", &Text<&NomadSettings::address>},
      {"nomad_region", "NOMAD_REGION", "eu", &Text<&NomadSettings::region>},
      {"nomad_namespace", "NOMAD_NAMESPACE", "*", &Text<&NomadSettings::ns>},
      {"nomad_token", "NOMAD_TOKEN", "s3cr3t", &Revealed<&NomadSettings::token>},
      {"nomad_http-auth", "NOMAD_HTTP_AUTH", "user:pass", &Revealed<&NomadSettings::http_auth>},
      {"nomad_ca-cert", "NOMAD_CACERT", file, &Text<&NomadSettings::ca_cert>},
      {"nomad_ca-path", "NOMAD_CAPATH", directory.path(), &Text<&NomadSettings::ca_path>},
      {"nomad_client-cert", "NOMAD_CLIENT_CERT", file, &Text<&NomadSettings::client_cert>},
      {"nomad_client-key", "NOMAD_CLIENT_KEY", key, &Text<&NomadSettings::client_key>},
      {"nomad_tls-server-name", "NOMAD_TLS_SERVER_NAME", "server.eu.nomad",
       &Text<&NomadSettings::tls_server_name>}};
  StringMap injected = {{"nomad_skip-verify", "true"},
                        {"nomad_block-query-wait-time", "20s"},
                        {"nomad_config_inherit", "true"}};
  StringMap environment = {{"NOMAD_SKIP_VERIFY", "1"}};
  StringMap others = {{"NOMAD_SKIP_VERIFY", "0"}};
  for (const auto& row : rows) {
    injected[row.key] = row.value;
    environment[row.variable] = row.value;
    others[row.variable] = "another";
  }
  for (const NomadSettings& settings :
       {SettingsOf(injected), SettingsOf({}, environment), SettingsOf(injected, others)}) {
    for (const auto& row : rows) EXPECT_EQ(row.of(settings), row.value) << row.key;
    EXPECT_TRUE(settings.skip_verify);
  }
  EXPECT_EQ(SettingsOf(injected).block_query_wait, std::chrono::seconds(20));
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
