// SPDX-License-Identifier: Apache-2.0
// One error lists all problems: maps with many mistakes.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_test_support.h"

namespace nomad_harvester::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Mistakes, a_plugin_block_with_ten_names_all_ten_in_the_order_of_the_table) {
  const StringMap values = {{"harvester_url", "10.0.0.10:6443"},
                            {"auth_token", "hunter2"},
                            {"auth_token_file", "/no/such/token"},
                            {"harvester_ca_cert", "/no/such/ca.pem"},
                            {"harvester_skip_verify", "nope"},
                            {"nomad_address", "localhost"},
                            {"nomad_client-cert", "/dev/null"},
                            {"nomad_skip-verify", "yes"},
                            {"request_timeout", "10"},
                            {"max_concurrency", "0"},
                            {"log_level", "loud"},
                            {"metrics_adress", "true"}};
  const auto config = ParsePluginConfig(values, {});
  EXPECT_THAT(
      ProblemsOf(config),
      ElementsAre(StartsWith("harvester_url: the address must begin with"),
                  StartsWith("auth_token: given together with auth_token_file"),
                  StartsWith("harvester_ca_cert: no such file"),
                  StartsWith("harvester_skip_verify: must be true or false"),
                  StartsWith("nomad_address: the address must begin with"),
                  StartsWith("nomad_client-cert: is not a regular file"),
                  StartsWith("nomad_client-cert: given without nomad_client-key"),
                  StartsWith("nomad_skip-verify: must be true or false"),
                  StartsWith("request_timeout: must be a duration"),
                  StartsWith("max_concurrency: must be"), StartsWith("log_level: must be one of"),
                  "metrics_adress: unknown key; did you mean metrics_address?"));
  EXPECT_THAT(base::Message(config.status()), Not(HasSubstr("hunter2")));
}

TEST(Mistakes, a_policy_with_ten_names_all_ten_in_the_order_of_the_table) {
  const StringMap values = {{"node_group_name", "Web_Pool"},
                            {"namespace", "No_Space"},
                            {"node_filter_ignore_init", "si"},
                            {"image", "ubuntu"},
                            {"cpu_request", "1.5"},
                            {"networks", "vlan10"},
                            {"user_data", "#cloud-config"},
                            {"user_data_file", "/etc/x"},
                            {"run_strategy", "Halted"},
                            {"on_join_timeout", "godot"},
                            {"node_drain_deadline", "10mm"},
                            {"node_drain_deadine", "10m"}};
  EXPECT_THAT(ProblemsOf(ParsePoolPolicy(values)),
              ElementsAre(StartsWith("node_group_name: must be a DNS label"),
                          StartsWith("namespace: must be"),
                          StartsWith("node_class: node pool identification method required"),
                          StartsWith("node_filter_ignore_init: must be true or false"),
                          StartsWith("image: must be of the form"),
                          StartsWith("cpu_request: must be a whole number"),
                          StartsWith("memory_request: required"),
                          StartsWith("networks: \"vlan10\" is neither"),
                          StartsWith("user_data: given together with user_data_file"),
                          StartsWith("run_strategy: never boots a VM"),
                          StartsWith("on_join_timeout: must be one of"),
                          StartsWith("node_drain_deadline: must be a duration"),
                          "node_drain_deadine: unknown key; did you mean node_drain_deadline?"));
}

TEST(Mistakes, each_line_has_a_key_and_a_fix) {
  StringMap values;
  for (const char* const key :
       {"node_group_name", "namespace", "dry-run", "image", "cpu_request", "memory_request",
        "disk_size", "networks", "ssh_keys", "labels", "run_strategy", "on_join_timeout",
        "join_timeout", "max_scale_out", "node_drain_deadline", "unknown"}) {
    values[key] = "?";
  }
  const std::vector<std::string> problems = ProblemsOf(ParsePoolPolicy(values));
  EXPECT_EQ(problems.size(), values.size() + 1) << "and no identifier of nodes";
  for (const std::string& problem : problems) {
    EXPECT_THAT(problem, ::testing::MatchesRegex("[a-z_-]+: [^;]+; .+")) << problem;
  }
}

TEST(Mistakes, P2_a_map_of_a_thousand_unknown_keys_names_all_of_them) {
  StringMap values = MinimalPolicy();
  for (int i = 0; i < 1000; ++i) values["unknown_" + std::to_string(i)] = "x";
  EXPECT_EQ(ProblemsOf(ParsePoolPolicy(values)).size(), 1000U);
}

TEST(Mistakes, P2_huge_values_do_not_swell_the_error) {
  const std::string huge(1 << 16, 'x');
  StringMap policy = MinimalPolicy();
  for (auto& [key, value] : policy) value = huge;
  StringMap plugin = {{"harvester_url", huge},     {"auth_token", huge},
                      {"nomad_address", huge},     {"request_timeout", huge},
                      {"harvester_ca_cert", huge}, {"log_level", huge}};
  policy.erase("node_class");
  for (const auto& status :
       {ParsePoolPolicy(policy).status(), ParsePluginConfig(plugin, {}).status()}) {
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 4000U);
  }
}

// Every byte in every key, also before a valid value: no crash, and errors are valid UTF-8.
TEST(Mistakes, P2_odd_bytes_in_values_give_valid_errors) {
  for (const auto& [key, value] : MinimalPolicy()) {
    for (int byte = 0; byte < 256; ++byte) {
      const auto policy = ParsePolicy({{key, static_cast<char>(byte) + value}});
      for (const char c : base::Message(policy.status())) {
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
      }
    }
  }
}

}  // namespace
}  // namespace nomad_harvester::config
