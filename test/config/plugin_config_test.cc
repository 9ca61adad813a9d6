// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/config/plugin_config.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/secret.h"

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The initializers of the struct and the table state the same ones.
TEST(PluginConfig, a_url_alone_gives_the_documented_defaults) {
  const auto parsed = ParsePlugin({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->harvester.url, "https://10.0.0.10:6443");
  for (const PluginConfig& config : {*parsed, PluginConfig()}) {
    EXPECT_FALSE(config.harvester.skip_verify);
    EXPECT_FALSE(config.nomad.skip_verify);
    EXPECT_EQ(config.nomad.block_query_wait, std::chrono::seconds(5));
    EXPECT_EQ(config.request_timeout, std::chrono::seconds(10));
    EXPECT_EQ(config.max_concurrency, 10);
    EXPECT_TRUE(config.events);
    EXPECT_EQ(config.log_level, "");
    EXPECT_EQ(config.metrics_address, "");
    EXPECT_EQ(config.own_allocation_id, "");
    EXPECT_THAT(config.template_environment, IsEmpty());
    EXPECT_THAT(config.warnings, IsEmpty());
  }
}

TEST(PluginConfig, every_other_key_is_taken_over) {
  const auto config = ParsePlugin({{"request_timeout", "3s"},
                                   {"max_concurrency", "4"},
                                   {"events", "0"},
                                   {"log_level", "warn"},
                                   {"metrics_address", "127.0.0.1:9464"},
                                   {"harvester_tls_server_name", "harvester.local"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->request_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config->max_concurrency, 4);
  EXPECT_FALSE(config->events);
  EXPECT_EQ(config->log_level, "warn");
  EXPECT_EQ(config->metrics_address, "127.0.0.1:9464");
  EXPECT_EQ(config->harvester.tls_server_name, "harvester.local");
  EXPECT_TRUE(ParsePlugin({{"harvester_tls_server_name", "2001:0db8::1"}}).ok());
}

TEST(PluginConfig, a_url_is_required) {
  EXPECT_EQ(ProblemOf(ParsePluginConfig({}, {})),
            "harvester_url: required, but absent; add it or harvester_kubeconfig, or set "
            "HARVESTER_URL or HARVESTER_KUBECONFIG");
}

TEST(PluginConfig, a_kubeconfig_replaces_the_url) {
  const support::ScopedTempDir directory;
  const std::string path = directory.WriteFile("kubeconfig", "x");
  const auto config = ParsePluginConfig(
      {{"harvester_kubeconfig", path}, {"harvester_kubeconfig_context", "lab"}}, {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->harvester.url, "");
  EXPECT_EQ(config->harvester.kubeconfig_path, path);
  EXPECT_EQ(config->harvester.kubeconfig_context, "lab");
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(PluginConfig, of_several_kubeconfigs_one_must_exist) {
  const support::ScopedTempDir directory;
  const std::string path = directory.WriteFile("kubeconfig", "x");
  for (const std::string& list : {"/no/such:" + path, path + ":/no/such", ":" + path}) {
    const auto config = ParsePluginConfig({{"harvester_kubeconfig", list}}, {});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->harvester.kubeconfig_path, list);
  }
  EXPECT_THAT(ProblemOf(ParsePluginConfig({{"harvester_kubeconfig", "/no/such:/none"}}, {})),
              HasSubstr("harvester_kubeconfig: no such file"));
}

TEST(PluginConfig, the_environment_alone_suffices) {
  const support::ScopedTempDir directory;
  const StringMap variables = {{"HARVESTER_KUBECONFIG", directory.WriteFile("kubeconfig", "x")}};
  EXPECT_TRUE(ParsePluginConfig({}, variables).ok());
  const auto config = ParsePluginConfig({}, {{"HARVESTER_URL", "https://env:6443/"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->harvester.url, "https://env:6443");
}

TEST(PluginConfig, an_empty_url_is_a_problem_and_not_the_kubeconfigs_server) {
  const support::ScopedTempDir directory;
  EXPECT_THAT(
      ProblemOf(ParsePlugin({{"harvester_url", ""},
                             {"harvester_kubeconfig", directory.WriteFile("kubeconfig", "x")}})),
      HasSubstr("harvester_url: the address is empty"));
}

TEST(PluginConfig, a_wrong_url_of_the_environment_is_not_replaced_by_the_maps) {
  EXPECT_EQ(ProblemOf(ParsePlugin({}, {{"HARVESTER_URL", "10.0.0.10"}})),
            "harvester_url: the address must begin with http://, https:// or unix:// (got "
            "\"10.0.0.10\" from "
            "HARVESTER_URL); write it such as \"https://10.0.0.1:6443\"");
}

TEST(PluginConfig, a_context_without_kubeconfig_is_a_problem) {
  EXPECT_EQ(ProblemOf(ParsePlugin({{"harvester_kubeconfig_context", "lab"}})),
            "harvester_kubeconfig_context: given without harvester_kubeconfig; add "
            "harvester_kubeconfig, or set HARVESTER_KUBECONFIG, or remove "
            "harvester_kubeconfig_context");
  const support::ScopedTempDir directory;
  EXPECT_TRUE(ParsePlugin({{"harvester_kubeconfig_context", "lab"}},
                          {{"HARVESTER_KUBECONFIG", directory.WriteFile("kubeconfig", "x")}})
                  .ok());
}

TEST(PluginConfig, the_concurrency_has_a_limit) {
  EXPECT_EQ(ParsePlugin({{"max_concurrency", "1000"}})->max_concurrency, 1000);
  for (const char* const bad : {"1001", "0", "-1", "4294967297", "ten"}) {
    EXPECT_THAT(ProblemOf(ParsePlugin({{"max_concurrency", bad}})),
                HasSubstr("max_concurrency: must be a whole number from 1 to 1000"))
        << bad;
  }
}

TEST(PluginConfig, a_log_level_is_known_in_any_case) {
  EXPECT_EQ(ParsePlugin({{"log_level", "INFO"}})->log_level, "info");
  EXPECT_THAT(ProblemOf(ParsePlugin({{"log_level", "verbose"}})),
              HasSubstr("log_level: must be one of trace, debug, info, warn, error (got "
                        "\"verbose\")"));
}

TEST(PluginConfig, a_timeout_of_0_is_a_problem) {
  EXPECT_THAT(ProblemOf(ParsePlugin({{"request_timeout", "0s"}})),
              HasSubstr("request_timeout: must be longer than 0 (got \"0s\")"));
}

TEST(PluginConfig, C7_the_autoscalers_own_allocation_is_known) {
  EXPECT_EQ(ParsePlugin({}, {{"NOMAD_ALLOC_ID", "0123-abc"}})->own_allocation_id, "0123-abc");
}

TEST(PluginConfig, templates_see_only_variables_with_their_prefix) {
  const StringMap environment = {{"HARVESTER_TEMPLATE_A", "1"},  {"HARVESTER_TEMPLATE_B", ""},
                                 {"HARVESTER_TOKEN", "hunter2"}, {"HARVESTER_TEMPLATF", "x"},
                                 {"HARVESTER_TEMPLATE", "x"},    {"PATH", "/bin"}};
  const StringMap expected = {{"HARVESTER_TEMPLATE_A", "1"}, {"HARVESTER_TEMPLATE_B", ""}};
  EXPECT_EQ(TemplateVariablesOf(environment), expected);
  EXPECT_EQ(ParsePlugin({}, environment)->template_environment, expected);
}

TEST(ApmConfig, needs_nothing_of_harvester) {
  const auto config = ParseApmConfig(
      {{"nomad_address", "http://nomad:4646"}, {"log_level", "debug"}},
      {{"HARVESTER_KUBECONFIG", "/no/such/file"}, {"NOMAD_TOKEN", "s3cr3t-of-nomad"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->nomad.address, "http://nomad:4646");
  EXPECT_EQ(config->nomad.token.Reveal(), "s3cr3t-of-nomad");
  EXPECT_EQ(config->log_level, "debug");
  EXPECT_EQ(config->harvester.url, "");
}

TEST(ApmConfig, D6_reads_the_connection_to_harvester_as_a_target_does) {
  const StringMap block = {{"harvester_url", "https://10.0.0.10:6443"},
                           {"auth_token", "s3cr3t-of-harvester"},
                           {"harvester_skip_verify", "true"}};
  const auto config = ParseApmConfig(block, {{"HARVESTER_URL", "https://10.0.0.11:6443"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->harvester.has_server());
  EXPECT_EQ(config->harvester.url, "https://10.0.0.11:6443");
  EXPECT_EQ(config->harvester.token.Reveal(), "s3cr3t-of-harvester");
  EXPECT_TRUE(config->harvester.skip_verify);
  EXPECT_FALSE(ParseApmConfig({}, {{"HARVESTER_URL", "https://h:6443"}})->harvester.has_server());
}

TEST(ApmConfig, P3_names_every_key_that_is_not_its_own_and_no_secret) {
  const auto config = ParseApmConfig(
      {{"auth_token", "s3cr3t-of-harvester"}, {"events", "true"}, {"log_levl", "debug"}}, {});
  const std::string text(config.status().message());
  EXPECT_THAT(text, HasSubstr("harvester_url: required, but absent"));
  EXPECT_THAT(text, HasSubstr("events: not a key of an apm block"));
  EXPECT_THAT(text, HasSubstr("log_levl: unknown key; did you mean log_level?"));
  EXPECT_EQ(text.find("s3cr3t"), std::string::npos);
}

TEST(ApmConfig, P3_secrets_that_it_does_not_use_are_in_force_as_long_as_it_is) {
  const auto config = ParseApmConfig({{"nomad_token_file", "a-token-in-the-wrong-key"}},
                                     {{"NOMAD_TOKEN", "unused-token"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(base::WithoutSecrets("a-token-in-the-wrong-key, unused-token"), "REDACTED, REDACTED");
}

TEST(ApmConfig, P3_names_the_key_about_nomad_of_which_only_the_prefix_lacks) {
  const auto config = ParseApmConfig({{"token", "s3cr3t"}, {"address", "http://n"}}, {});
  EXPECT_EQ(config.status().message(),
            "address: unknown key; did you mean nomad_address?\n"
            "token: unknown key; did you mean nomad_token?");
}

}  // namespace
}  // namespace nomad_harvester::config
