// SPDX-License-Identifier: Apache-2.0
// The commands' --set.
#include "settings.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/config/option_table.h"

namespace nomad_harvester::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const std::vector<std::string> kWhole = {"harvester_url=http://h", "node_group_name=web",
                                         "namespace=nomad", "node_class=web"};

absl::StatusOr<Settings> Read(const std::vector<std::string>& pairs,
                              PolicyUse use = PolicyUse::kRequired,
                              const config::StringMap& environment = {}) {
  return ReadSettings(pairs, {}, use, environment);
}

std::vector<std::string> Problems(const absl::StatusOr<Settings>& settings) {
  std::istringstream lines(base::Message(settings.status()));
  std::vector<std::string> problems;
  for (std::string line; std::getline(lines, line);) problems.push_back(line);
  return problems;
}

TEST(Settings, keys_find_their_block_by_the_option_table) {
  const auto settings = Read(kWhole);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->plugin.harvester.url, "http://h");
  EXPECT_EQ(settings->ns, "nomad");
  EXPECT_EQ(settings->pool, "web");
  ASSERT_TRUE(settings->policy.has_value());
  EXPECT_EQ(settings->policy->node_class, "web");
}

TEST(Settings, a_whole_policy_has_what_new_vms_need_and_templates_that_work) {
  std::vector<std::string> pairs = kWhole;
  EXPECT_THAT(Problems(Read(pairs, PolicyUse::kWhole)),
              ElementsAre(StartsWith("image: required"), StartsWith("cpu_request: required"),
                          StartsWith("memory_request: required"), StartsWith("networks: required"),
                          StartsWith("missing keys come from ")));
  pairs.insert(pairs.end(), {"image=default/ubuntu", "cpu_request=2", "memory_request=4Gi",
                             "networks=management", "user_data={{vmname}}"});
  EXPECT_THAT(Problems(Read(pairs, PolicyUse::kWhole)), ElementsAre(HasSubstr("vmname")));
  pairs.back() = "user_data=#cloud-config\nhostname: {{vm_name}}";
  const auto settings = Read(pairs, PolicyUse::kWhole);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy_block.at("cpu_request"), "2");
  EXPECT_EQ(settings->plugin_block.at("harvester_url"), "http://h");
}

// Otherwise one of the two could not be given.
TEST(Settings, no_key_is_in_both_blocks) {
  for (const config::Option& a : config::OptionTable()) {
    for (const config::Option& b : config::OptionTable()) {
      EXPECT_TRUE(&a == &b || a.key != b.key) << a.key;
    }
  }
}

TEST(Settings, every_mistake_is_named_at_once_with_the_nearest_key) {
  const auto settings = Read({"harvester_ulr=http://h", "node_class=web", "nonsense", "=x",
                              "node_clas=web", "memory=1Gi", "request_timeout=10"});
  EXPECT_THAT(
      Problems(settings),
      ElementsAre("harvester_ulr: unknown key; did you mean harvester_url?",
                  "--set: expected KEY=VALUE, but number 3 has no \"=\"",
                  "--set: expected KEY=VALUE, but number 4 has no key",
                  "node_clas: unknown key; did you mean node_class?",
                  "memory: unknown key; did you mean memory_request?",
                  StartsWith("harvester_url: required"), StartsWith("request_timeout: "),
                  StartsWith("node_group_name: required"), StartsWith("missing keys come from ")));
}

TEST(Settings, without_the_agents_files_a_missing_address_is_told_with_what_has_it) {
  const auto problems = [](const FileSettings& files) {
    return Problems(ReadSettings({"namespace=nomad"}, files, PolicyUse::kOptional, {}));
  };
  EXPECT_THAT(problems({.why_none = "/etc/nomad-autoscaler does not exist"}),
              ElementsAre(StartsWith("harvester_url: required"),
                          StartsWith("no files of the agent are read (/etc/nomad-autoscaler does "
                                     "not exist); missing keys come from the agent's files")));
  EXPECT_THAT(problems({.plugin = {{"events", "true"}}}),
              ElementsAre(StartsWith("harvester_url: required")));
}

TEST(Settings, L10_of_a_policy_a_pause_checks_the_keys_that_name_the_pool_alone) {
  const auto read = [](const std::string& pool) {
    return ReadSettings({"harvester_url=http://h"},
                        {.policy = {{"node_group_name", pool}, {"memory", "1Gi"}}},
                        PolicyUse::kPool, {});
  };
  EXPECT_TRUE(read("web").ok()) << read("web").status();
  EXPECT_THAT(Problems(read("no name")), ElementsAre(StartsWith("node_group_name: ")));
}

TEST(Settings, what_may_be_a_secret_is_not_quoted) {
  const auto settings = Read({"hunter2", "auth_token=hunter2", "auth_token_file=hunter2"});
  EXPECT_FALSE(settings.ok());
  EXPECT_THAT(base::Message(settings.status()), Not(HasSubstr("hunter2\" has")));
  EXPECT_THAT(Problems(settings)[0], Not(HasSubstr("hunter2")));
}

TEST(Settings, a_secret_given_by_set_is_a_warning_that_names_a_better_place) {
  auto pairs = kWhole;
  pairs.push_back("auth_token=sesame-street");
  const auto settings = Read(pairs);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(
      settings->plugin.warnings,
      Contains(AllOf(StartsWith("auth_token: a secret given by --set is in the process list"),
                     HasSubstr("HARVESTER_TOKEN"), Not(HasSubstr("sesame")))));
  EXPECT_THAT(
      Read(kWhole, PolicyUse::kRequired, {{"HARVESTER_TOKEN", "sesame-street"}})->plugin.warnings,
      Not(Contains(HasSubstr("process list"))));
}

TEST(Settings, a_value_may_hold_equals_signs_commas_and_brackets) {
  auto pairs = kWhole;
  pairs.push_back("labels=team=data,environment=test");
  pairs.push_back("nomad_http-auth=[user:pass=word]");
  const auto settings = Read(pairs);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->policy->labels.at("environment"), "test");
}

TEST(Settings, the_environment_is_read_as_by_the_plugin) {
  const auto settings = ReadSettings(
      {"node_group_name=web", "node_class=web"}, {.plugin = {{"harvester_url", "http://file"}}},
      PolicyUse::kRequired, {{"HARVESTER_URL", "http://other"}, {"NOMAD_ADDR", "http://nomad"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->plugin.harvester.url, "http://other") << "it wins over the file";
  EXPECT_EQ(settings->plugin.nomad.address, "http://nomad");
}

TEST(Settings, set_wins_over_the_environment_and_the_last_one_of_a_key_counts) {
  auto pairs = kWhole;
  pairs.insert(pairs.end(), {"harvester_url=http://last", "auth_token=mine-and-not-a-file",
                             "nomad_token=mine-as-well-of-nomad"});
  const auto settings = Read(pairs, PolicyUse::kRequired,
                             {{"HARVESTER_URL", "http://other"},
                              {"HARVESTER_TOKEN_FILE", "/nowhere"},
                              {"NOMAD_TOKEN_FILE", "/nowhere"},
                              {"NOMAD_ADDR", "http://nomad"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->plugin.harvester.url, "http://last");
  EXPECT_EQ(settings->plugin.harvester.token_file, "");
  EXPECT_EQ(settings->plugin.nomad.token_file, "");
  EXPECT_EQ(settings->plugin.nomad.address, "http://nomad");
  EXPECT_EQ(settings->environment, (config::StringMap{{"NOMAD_ADDR", "http://nomad"}}))
      << "as the service of nomad-harvester scale gets it";
}

TEST(Settings, a_token_that_is_set_replaces_the_files_token_file) {
  const auto settings =
      ReadSettings({"harvester_url=http://h", "node_group_name=web", "node_class=web",
                    "auth_token=mine-and-not-a-file"},
                   {.plugin = {{"auth_token_file", "/nowhere"}}}, PolicyUse::kRequired, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->plugin.harvester.token_file, "");
}

TEST(Settings, a_kubeconfig_that_is_set_is_not_redirected_by_the_environment) {
  EXPECT_EQ(ReadPluginSettings({"harvester_kubeconfig=/nowhere"}, {},
                               {{"HARVESTER_URL", "http://other"}, {"HARVESTER_TOKEN", "x"}})
                ->environment,
            config::StringMap());
}

TEST(Settings, a_kubeconfig_that_is_set_replaces_every_key_of_the_files_connection) {
  FileSettings files{.plugin = {{"nomad_address", "http://nomad"}, {"request_timeout", "5s"}}};
  const config::StringMap others = files.plugin;
  for (const config::Option& option : config::OptionsOf(config::Section::kPlugin)) {
    const bool of_harvester =
        option.key.starts_with("harvester_") || option.key.starts_with("auth_token");
    if (of_harvester) files.plugin.emplace(option.key, "of the file");
  }
  config::StringMap block = ReadPluginSettings({"harvester_kubeconfig=/mine"}, files, {})->block;
  EXPECT_EQ(block["harvester_kubeconfig"], "/mine");
  block.erase("harvester_kubeconfig");
  EXPECT_EQ(block, others);
}

TEST(Settings, given_ones_replace_those_of_files) {
  const FileSettings files{.plugin = {{"harvester_url", "http://file"}, {"max_concurrency", "3"}},
                           .policy = {{"node_group_name", "web"}, {"node_class", "file"}},
                           .origins = {},
                           .warnings = {"a warning"}};
  const auto settings =
      ReadSettings({"harvester_url=http://set", "node_class=set"}, files, PolicyUse::kOptional, {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->plugin.harvester.url, "http://set");
  EXPECT_EQ(settings->plugin.max_concurrency, 3);
  EXPECT_EQ(settings->pool, "web");
  ASSERT_TRUE(settings->policy.has_value());
  EXPECT_EQ(settings->policy->node_class, "set");
  EXPECT_THAT(settings->plugin.warnings, Contains("a warning"));
}

TEST(Settings, the_log_level_of_files_is_not_that_of_a_command) {
  const FileSettings files{.plugin = {{"harvester_url", "http://file"}, {"log_level", "debug"}},
                           .policy = {},
                           .origins = {},
                           .warnings = {}};
  const auto from_files = ReadSettings({}, files, PolicyUse::kOptional, {});
  ASSERT_TRUE(from_files.ok()) << from_files.status();
  EXPECT_EQ(from_files->plugin.log_level, "");
  const auto given = ReadSettings({"log_level=debug"}, files, PolicyUse::kOptional, {});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->plugin.log_level, "debug");
}

TEST(Settings, a_problem_of_a_file_ends_with_its_place) {
  const FileSettings files{.plugin = {{"harvester_ulr", "http://file"}, {"max_concurrency", "x"}},
                           .policy = {{"node_group_name", "web"}, {"join_timeout", "5"}},
                           .origins = {{"harvester_ulr", "a.hcl:1:2"},
                                       {"max_concurrency", "a.hcl:2:2"},
                                       {"join_timeout", "p.hcl:3:4"}},
                           .warnings = {}};
  EXPECT_THAT(Problems(ReadSettings({"node_class=web", "max_concurrency=0"}, files,
                                    PolicyUse::kRequired, {})),
              UnorderedElementsAre(AllOf(StartsWith("harvester_ulr: "), EndsWith(" (a.hcl:1:2)")),
                                   AllOf(StartsWith("harvester_url: required"), Not(EndsWith(")"))),
                                   AllOf(StartsWith("max_concurrency: "), Not(HasSubstr("a.hcl"))),
                                   AllOf(StartsWith("join_timeout: "), EndsWith(" (p.hcl:3:4)"))));
}

TEST(Settings, keys_for_new_vms_may_be_omitted_but_must_be_valid) {
  EXPECT_TRUE(Read(kWhole).ok());
  auto pairs = kWhole;
  pairs.push_back("cpu_request=1.5");
  EXPECT_THAT(Problems(Read(pairs)), ElementsAre(StartsWith("cpu_request: ")));
}

TEST(Settings, a_pool_or_a_namespace_alone_is_not_a_policy) {
  const auto pool = Read({"harvester_url=http://h", "node_group_name=web"}, PolicyUse::kOptional);
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_FALSE(pool->policy.has_value());
  EXPECT_EQ(pool->pool, "web");
  EXPECT_EQ(pool->ns, "default");
  const auto all = Read({"harvester_url=http://h", "namespace=nomad"}, PolicyUse::kOptional);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->pool, "");
  EXPECT_EQ(all->ns, "nomad");
  EXPECT_THAT(
      Problems(Read({"harvester_url=http://h", "node_group_name=Web!"}, PolicyUse::kOptional)),
      ElementsAre(StartsWith("node_group_name: ")));
}

TEST(Settings, a_policy_that_is_given_in_part_is_refused) {
  EXPECT_THAT(Problems(Read({"harvester_url=http://h", "node_class=web"}, PolicyUse::kOptional)),
              ElementsAre(StartsWith("node_group_name: required"), HasSubstr("--policy FILE")));
  EXPECT_THAT(Problems(Read({"harvester_url=http://h", "node_group_name=web", "node_purge=true"},
                            PolicyUse::kOptional)),
              ElementsAre(StartsWith("node_class: "), HasSubstr("--policy FILE")));
}

TEST(ReadPluginSettings, tells_which_is_used_where_a_file_and_the_environment_differ) {
  const FileSettings files{.plugin = {{"harvester_url", "http://theirs"},
                                      {"auth_token_file", "theirs"},
                                      {"nomad_address", "http://theirs"},
                                      {"nomad_region", "global"}},
                           .origins = {{"harvester_url", "agent.hcl:2:3"},
                                       {"auth_token_file", "agent.hcl:3:3"},
                                       {"nomad_address", "agent.hcl:4:3"}},
                           .warnings = {"of a file"}};
  const config::StringMap environment = {{"HARVESTER_URL", "http://me:hush@mine"},
                                         {"HARVESTER_TOKEN", "hush"},
                                         {"NOMAD_ADDR", "http://me:hush@mine"},
                                         {"NOMAD_REGION", "global"}};
  EXPECT_THAT(
      ReadPluginSettings({}, files, environment)->warnings,
      UnorderedElementsAre(
          "of a file",
          "harvester_url: using HARVESTER_URL of the environment; ignoring agent.hcl:2:3 "
          "(different); --set harvester_url=VALUE overrides both",
          "auth_token_file: using HARVESTER_TOKEN of the environment; ignoring agent.hcl:3:3 "
          "(different); --set auth_token_file=VALUE overrides both",
          "nomad_address: using agent.hcl:4:3; ignoring NOMAD_ADDR of the environment "
          "(different); --set nomad_address=VALUE overrides both"));
  EXPECT_THAT(
      ReadPluginSettings({"harvester_url=http://x", "auth_token_file=x", "nomad_address=http://x"},
                         files, environment)
          ->warnings,
      ElementsAre("of a file"));
}

TEST(ReadPluginSettings, takes_the_files_under_what_is_set_but_not_their_log_level) {
  const auto settings = ReadPluginSettings(
      {"harvester_url=http://a"},
      {.plugin = {{"harvester_url", "http://b"}, {"auth_token_file", "f"}, {"log_level", "debug"}}},
      {});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->block,
            (config::StringMap{{"harvester_url", "http://a"}, {"auth_token_file", "f"}}));
}

}  // namespace
}  // namespace nomad_harvester::cli
