// SPDX-License-Identifier: Apache-2.0
// The commands' --agent-config, --policy and --policy-name. That the maps are the agent's is the
// matter of test/contract/agent_files_test.go.
#include "operator_files.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "agent_grammar.h"
#include "support/scoped_temp_dir.h"
#include "support/source_tree.h"

namespace nomad_harvester::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::string Target(const std::string& name, const std::string& config,
                   const std::string& driver = "harvester") {
  return "target \"" + name + "\" {\n  driver = \"" + driver + "\"\n  config = {\n    " + config +
         "\n  }\n}\n";
}

std::string Policy(const std::string& name, const std::string& target = "harvester",
                   const std::string& enabled = "true") {
  return "scaling \"" + name + "\" {\n  enabled = " + enabled +
         "\n  max = 5\n  policy {\n    target \"" + target + "\" {\n      node_group_name = \"" +
         name + "\"\n      max_scale_out = 5\n      dry-run = true\n    }\n  }\n}\n";
}

class OperatorFilesTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    return dir_.WriteFile(name, text);
  }
  static FileSettings Read(const OperatorFiles& files) {
    auto settings = ReadOperatorFiles(files);
    EXPECT_TRUE(settings.ok()) << settings.status();
    return settings.ok() ? *std::move(settings) : FileSettings{};
  }
  static std::string Problem(const OperatorFiles& files) {
    const auto settings = ReadOperatorFiles(files);
    return settings.ok() ? "none" : base::Message(settings.status());
  }
  // The pool that TakePolicyName chooses, and the words that it leaves.
  std::vector<std::string> Take(std::vector<std::string> words,
                                const std::string& name = "") const {
    OperatorFiles files = {.policy = dir_.Path("policies"), .policy_name = name};
    TakePolicyName(&files, &words);
    words.insert(words.begin(), files.policy_name);
    return words;
  }

  const support::ScopedTempDir dir_;
};

TEST_F(OperatorFilesTest,
       a_later_file_of_the_agent_names_the_plugins_directory_unless_it_is_empty) {
  const std::string first =
      Write("agent/1.hcl", "plugin_dir = \"/one\"\n" + Target("harvester", ""));
  EXPECT_EQ(Read({.agent_config = {first}}).plugin_dir.path, "/one");
  Write("agent/2.hcl", "log_level = \"info\"\nplugin_dir = \"/two\"\n");
  Write("agent/3.hcl", "plugin_dir = \"\"\n");
  const PluginDirectory found = Read({.agent_config = {dir_.Path("agent")}}).plugin_dir;
  EXPECT_EQ(found.path, "/two");
  EXPECT_EQ(found.where, dir_.Path("agent/2.hcl") + ":2:1");
  EXPECT_EQ(Read({}).plugin_dir.path, "") << "no file was given";
}

TEST_F(OperatorFilesTest, without_files_there_are_no_settings) {
  const FileSettings settings = Read({});
  EXPECT_THAT(settings.plugin, IsEmpty());
  EXPECT_THAT(settings.policy, IsEmpty());
}

TEST_F(OperatorFilesTest, without_an_option_the_agents_files_are_those_of_the_variable) {
  const std::string a = Write("a.hcl", Target("harvester", "harvester_url = \"https://a\""));
  const std::string b = Write("b.hcl", Target("harvester", "harvester_url = \"https://b\""));
  const OperatorFiles found =
      FindAgentFiles({}, {{kAgentConfigVariable, a + ":" + b}}, dir_.Path("none"));
  EXPECT_THAT(found.agent_config, ElementsAre(a, b));
  const FileSettings settings = Read(found);
  EXPECT_THAT(settings.plugin, ElementsAre(Pair("harvester_url", "https://b")));
  EXPECT_THAT(settings.files, ElementsAre(a, b));
  EXPECT_EQ(settings.found, a + " and " + b);
  const OperatorFiles given = FindAgentFiles({.agent_config = {b}}, {{kAgentConfigVariable, a}});
  EXPECT_THAT(given.agent_config, ElementsAre(b)) << "an option is stronger";
  EXPECT_EQ(Read(given).found, "") << "and needs no line";
}

TEST_F(OperatorFilesTest,
       without_the_variable_they_are_those_of_the_agents_directory_if_it_has_any) {
  const std::string directory = dir_.Path("etc");
  EXPECT_THAT(FindAgentFiles({}, {}, directory).agent_config, IsEmpty()) << "it does not exist";
  EXPECT_EQ(FindAgentFiles({}, {}, directory).why_none, directory + " does not exist");
  Write("etc/policies/web.hcl", Policy("web"));
  Write("etc/cloud-init.yaml", "#cloud-config");
  EXPECT_THAT(FindAgentFiles({}, {}, directory).agent_config, IsEmpty()) << "it has no such file";
  EXPECT_EQ(FindAgentFiles({}, {}, directory).why_none,
            directory + " has no files *.hcl or *.json");
  const std::string agent =
      Write("etc/agent.hcl",
            Target("harvester", "x = 1") + "policy {\n  dir = \"" + directory + "/policies\"\n}\n");
  OperatorFiles found = FindAgentFiles({}, {}, directory);
  EXPECT_EQ(Read(found).found, directory) << "without the policies, which nothing asks for";
  found.needs_policy = true;
  const FileSettings settings = Read(found);
  EXPECT_EQ(settings.policy_name, "web");
  EXPECT_EQ(settings.found, directory + " and " + directory + "/policies");
  EXPECT_THAT(settings.files, ElementsAre(agent, directory + "/policies/web.hcl"));
  EXPECT_THAT(FindAgentFiles({}, {{kAgentConfigVariable, ""}}, directory).agent_config, IsEmpty())
      << "an empty variable means none";
}

TEST_F(OperatorFilesTest, a_policy_that_is_given_belongs_to_the_agents_files_that_are_found) {
  const std::string directory = dir_.Path("etc");
  Write("etc/agent.hcl", Target("east", "x = 1"));
  const FileSettings settings =
      Read(FindAgentFiles({.policy = Write("new.hcl", Policy("web", "east"))}, {}, directory));
  EXPECT_EQ(settings.policy_name, "web");
  EXPECT_EQ(settings.found, directory);
}

TEST_F(OperatorFilesTest, a_mistake_in_files_that_were_found_says_where_they_come_from) {
  const std::string wrong = Write("etc/agent.hcl", "nomad {\n  addres = \"x\"\n}\n");
  const std::string etc = dir_.Path("etc");
  const auto hint = [](const std::string& origin) {
    return "\nwithout --agent-config the agent's files are those of " + origin +
           "; --agent-config names others, and an empty NOMAD_HARVESTER_AGENT_CONFIG none";
  };
  EXPECT_THAT(Problem(FindAgentFiles({}, {}, etc)),
              AllOf(StartsWith(wrong + ":2:3: unknown argument addres"), EndsWith(hint(etc))));
  EXPECT_THAT(Problem(FindAgentFiles({}, {{kAgentConfigVariable, "/nowhere"}}, etc)),
              AllOf(HasSubstr("/nowhere"), EndsWith(hint("NOMAD_HARVESTER_AGENT_CONFIG"))));
  EXPECT_THAT(Problem({.agent_config = {wrong}}), Not(HasSubstr("without --agent-config")));
}

TEST_F(OperatorFilesTest, a_word_that_is_the_label_of_an_enabled_policy_is_the_pool) {
  Write("policies/a.hcl", Policy("web") + Policy("db") + Policy("off", "harvester", "false"));
  EXPECT_THAT(Take({"web"}), ElementsAre("web"));
  EXPECT_THAT(Take({"web-7", "db"}), ElementsAre("db", "web-7"));
  EXPECT_THAT(Take({"web-7"}), ElementsAre("", "web-7")) << "a VM";
  EXPECT_THAT(Take({"off"}), ElementsAre("off")) << "also of a disabled one that nothing else has";
  EXPECT_THAT(Take({"web"}, "db"), ElementsAre("db", "web")) << "the pool is named already";
  OperatorFiles unreadable = {.policy = dir_.Path("none")};
  std::vector<std::string> words = {"web"};
  TakePolicyName(&unreadable, &words);
  EXPECT_THAT(words, ElementsAre("web")) << "the error is that of reading the files";
}

// The policy's label, and its pool.
std::string PolicyNamed(const std::string& label, const std::string& pool,
                        const std::string& ns = "default", const std::string& enabled = "true") {
  return "scaling \"" + label + "\" {\n  enabled = " + enabled +
         "\n  max = 5\n  policy {\n    target \"harvester\" {\n      node_group_name = \"" + pool +
         "\"\n      namespace = \"" + ns + "\"\n    }\n  }\n}\n";
}

TEST_F(OperatorFilesTest, a_pool_is_named_by_its_label_or_its_name_or_with_its_namespace) {
  Write("policies/a.hcl",
        PolicyNamed("batch-workers", "batch", "nomad") + PolicyNamed("web", "api", "nomad") +
            PolicyNamed("api", "front", "nomad") + PolicyNamed("old", "gone", "nomad", "false") +
            PolicyNamed("east", "db", "east") + PolicyNamed("west", "db", "west") +
            PolicyNamed("off", "db", "nomad", "false"));
  const std::string policies = dir_.Path("policies");
  const auto label = [&](const std::string& name) {
    return Read({.policy = policies, .policy_name = name}).policy_name;
  };
  EXPECT_EQ(label("batch"), "batch-workers");
  EXPECT_EQ(label("nomad/batch"), "batch-workers");
  EXPECT_EQ(label("api"), "api") << "a label counts first";
  EXPECT_EQ(label("nomad/api"), "web");
  EXPECT_EQ(label("gone"), "old") << "no enabled policy has it";
  EXPECT_EQ(label("west/db"), "west");
  EXPECT_THAT(Problem({.policy = policies, .policy_name = "db"}),
              AllOf(StartsWith(policies + " has several policies \"db\"; give the label of one"),
                    HasSubstr("\n  east: "), HasSubstr("\n  west: "), Not(HasSubstr("off"))));
  EXPECT_THAT(Problem({.policy = policies, .policy_name = "bach"}),
              HasSubstr("\"bach\"; did you mean batch?"));
  EXPECT_THAT(Take({"batch"}), ElementsAre("batch"));
  EXPECT_THAT(Take({"batch-7", "nomad/batch"}), ElementsAre("nomad/batch", "batch-7"));
  EXPECT_THAT(Take({"batch", "web"}), ElementsAre("web", "batch")) << "a label counts first";
  EXPECT_THAT(Take({"db"}), ElementsAre("db")) << "the choice is told to be ambiguous";
  EXPECT_THAT(Take({"batch-7", "old"}), ElementsAre("old", "batch-7")) << "a disabled policy";
  EXPECT_THAT(Take({"old", "web"}), ElementsAre("web", "old")) << "an enabled one counts first";
  EXPECT_THAT(Take({"gone"}), ElementsAre("", "gone")) << "the agent does not scale by it";
}

TEST_F(OperatorFilesTest, a_word_that_resembles_the_label_of_an_enabled_policy_is_told_so) {
  Write("policies/a.hcl", Policy("web") + Policy("db") + Policy("off", "harvester", "false"));
  const auto hint = [&](std::vector<std::string> words) {
    OperatorFiles files = {.policy = dir_.Path("policies")};
    TakePolicyName(&files, &words);
    return files.hint;
  };
  EXPECT_EQ(hint({"web-4xq7m2ka"}), "") << "a VM";
  EXPECT_EQ(hint({"web-4xq7m2ka", "wep"}), "; did you mean web?");
  EXPECT_EQ(hint({"offf"}), "") << "the agent does not scale by it";
  EXPECT_EQ(hint({"off"}), "") << "the pool is named";
  EXPECT_EQ(hint({"web", "da"}), "") << "the pool is named";
}

TEST_F(OperatorFilesTest, a_word_that_is_no_pool_is_told_with_the_files_that_cannot_be_read) {
  const auto unread = [&](const std::string& policy) {
    OperatorFiles files = {.policy = policy};
    std::vector<std::string> words = {"db"};
    TakePolicyName(&files, &words);
    return files.unread;
  };
  Write("policies/a.hcl", Policy("web"));
  EXPECT_EQ(unread(dir_.Path("policies")), "");
  const std::string wrong = Write("policies/db.hcl", "scaling \"db\" {\n");
  EXPECT_THAT(unread(dir_.Path("policies")),
              StartsWith("\nOf these files no policy is read:\n" + wrong + ":1:14: "));
  EXPECT_THAT(unread(wrong), StartsWith("\n" + wrong + ":1:14: "));
}

// hashicorp/nomad-autoscaler:sdk/helper/file/dir.go lists links, and the agent fails to read this
// one: it does not start with it, and goes on without its policies.
TEST_F(OperatorFilesTest, a_link_that_leads_nowhere_is_a_file_that_cannot_be_read) {
  Write("policies/a.hcl", Policy("web"));
  std::filesystem::create_symlink("nowhere", dir_.Path("policies/b.hcl"));
  std::filesystem::create_symlink("nowhere", dir_.Path("policies/.#c.hcl"));
  const std::string problem = dir_.Path("policies/b.hcl") + ": No such file or directory";
  EXPECT_THAT(Read({.policy = dir_.Path("policies"), .policy_name = "web"}).warnings,
              ElementsAre(problem));
  Write("etc/agent.hcl", Target("harvester", "x = 1"));
  std::filesystem::create_symlink("nowhere", dir_.Path("etc/b.hcl"));
  EXPECT_EQ(Problem({.agent_config = {dir_.Path("etc")}}),
            dir_.Path("etc/b.hcl") + ": No such file or directory");
}

TEST_F(OperatorFilesTest, each_file_is_read_once_for_a_command) {
  const std::string agent =
      Write("agent.hcl", Target("harvester", "x = 1") + "policy {\n  dir = \"" +
                             dir_.Path("policies") + "\"\n}\n");
  Write("policies/b.hcl", Policy("db"));
  OperatorFiles files = {.agent_config = {agent}, .policy = Write("policies/a.hcl", Policy("web"))};
  std::vector<std::string> words = {"web"};
  TakePolicyName(&files, &words);
  for (const char* const name : {"agent.hcl", "policies/a.hcl", "policies/b.hcl"}) {
    Write(name, "not read again");
  }
  Write("policies/b.hcl", Policy("ci"));
  const FileSettings settings = Read(files);
  EXPECT_EQ(settings.policy_name, "web");
  ASSERT_EQ(settings.pools.size(), 2U);
  EXPECT_EQ(settings.pools[1].label, "ci") << "the directory's others were not read before";
  Write("policies/b.hcl", "not read again");
  EXPECT_EQ(Read(files).pools.size(), 2U);
}

TEST_F(OperatorFilesTest, L11_a_policy_is_known_by_its_label_if_the_files_have_one_for_the_pool) {
  const FileSettings settings =
      Read({.policy = Write("a.hcl", Policy("web") + Policy("db")), .policy_name = "db"});
  const scaling::PoolKey web = {.ns = "default", .pool = "web"};
  EXPECT_EQ(settings.PolicyOf(web, "5f0e"), "web");
  EXPECT_EQ(settings.PolicyOf({.ns = "nomad", .pool = "web"}, "5f0e"), "5f0e");
  FileSettings twice = settings;
  twice.pools.push_back(settings.pools.front());
  twice.pools.back().label = "web2";
  EXPECT_EQ(twice.PolicyOf(web, "5f0e"), "5f0e") << "which one it was is not known";
}

TEST_F(OperatorFilesTest, the_examples_are_read) {
  const FileSettings settings = Read({.agent_config = {support::SourcePath("examples/agent.hcl")},
                                      .policy = support::SourcePath("examples/policy.hcl")});
  EXPECT_THAT(settings.plugin, Contains(Pair("harvester_url", "https://10.0.0.10:6443")));
  EXPECT_THAT(settings.plugin, Contains(Pair("nomad_address", "http://127.0.0.1:4646")));
  EXPECT_THAT(settings.policy, Contains(Pair("node_group_name", "batch")));
  EXPECT_THAT(settings.origins, Contains(Pair("nomad_address", HasSubstr("agent.hcl:"))));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST_F(OperatorFilesTest, the_queries_of_the_other_enabled_policies_are_read_too) {
  const auto policy = [](const std::string& name, const std::string& enabled) {
    return "scaling \"" + name + "\" {\n  enabled = " + enabled +
           "\n  max = 5\n  policy {\n    check \"" + name +
           "\" {\n      source = \"demand\"\n      strategy \"pass-through\" {}\n    }\n    "
           "target \"harvester\" {\n    }\n  }\n}\n";
  };
  const std::string file =
      Write("policies.hcl", policy("web", "true") + policy("batch", "true") + policy("x", "false"));
  const FileSettings settings = Read({.policy = file, .policy_name = "web"});
  EXPECT_EQ(settings.policy_name, "web");
  ASSERT_EQ(settings.queries.size(), 1U);
  ASSERT_EQ(settings.other_queries.size(), 1U);
  EXPECT_EQ(settings.other_queries.front().policy, "batch");
  EXPECT_EQ(settings.other_queries.front().check.where, file + ":17:5");
}

TEST_F(OperatorFilesTest, values_arrive_as_texts_with_their_places) {
  const std::string agent = Write("agent.hcl", Target("harvester", "max_concurrency = 5"));
  const std::string policy = Write("policy.hcl", Policy("web"));
  const FileSettings settings = Read({.agent_config = {agent}, .policy = policy});
  EXPECT_THAT(settings.plugin, ElementsAre(Pair("max_concurrency", "5")));
  EXPECT_THAT(settings.policy,
              UnorderedElementsAre(Pair("node_group_name", "web"), Pair("max_scale_out", "5"),
                                   Pair("dry-run", "true")));
  EXPECT_EQ(settings.origins.at("max_concurrency"), agent + ":4:5");
  EXPECT_EQ(settings.origins.at("max_scale_out"), policy + ":7:7");
}

TEST_F(OperatorFilesTest, a_policy_chooses_the_target_block_that_it_names) {
  Write("agent/a.hcl", Target("east", "harvester_url = \"https://east\"") +
                           Target("west", "harvester_url = \"https://west\""));
  Write("agent/b.hcl", Target("asg", "x = 1", "aws-asg"));
  const std::string agent = dir_.Path("agent");
  const std::string policy = Write("policy.hcl", Policy("web", "west"));
  EXPECT_THAT(Read({.agent_config = {agent}, .policy = policy}).plugin,
              ElementsAre(Pair("harvester_url", "https://west")));
  EXPECT_EQ(Problem({.agent_config = {agent}}),
            "--agent-config: several target blocks have the driver harvester: \"east\", \"west\"; "
            "give --policy too, whose target names one of them");
  EXPECT_EQ(
      Problem({.agent_config = {agent}, .policy = Write("asg.hcl", Policy("db", "asg"))}),
      "--policy: " + dir_.Path("asg.hcl") +
          " has no policy with the target \"east\", \"west\"; it has\n  db: target \"asg\", " +
          dir_.Path("asg.hcl") + ":1:1");
}

TEST_F(OperatorFilesTest, S5_the_pools_of_all_enabled_policies_of_the_plugin_are_known) {
  const std::string agent =
      Write("agent.hcl", Target("harvester", "x = 1") + Target("asg", "x = 1", "aws-asg"));
  Write("policies/a.hcl", Policy("web") + Policy("db") + Policy("off", "harvester", "false"));
  Write("policies/b.hcl", Policy("elsewhere", "asg"));
  const FileSettings settings =
      Read({.agent_config = {agent}, .policy = dir_.Path("policies"), .policy_name = "web"});
  EXPECT_THAT(PoolsOfHarvester(settings, settings.plugin, {}),
              ElementsAre(scaling::PoolKey{.ns = "default", .pool = "db"},
                          scaling::PoolKey{.ns = "default", .pool = "web"}));
}

TEST_F(OperatorFilesTest, S5_a_policy_of_another_harvester_has_no_pool_here) {
  const std::string agent =
      Write("agent.hcl", Target("east", "harvester_url = \"https://east\"") +
                             Target("east2", "harvester_url = \"https://east:443/\"") +
                             Target("west", "harvester_url = \"https://west\""));
  Write("policies/a.hcl", Policy("web", "east") + Policy("db", "east2") + Policy("ci", "west"));
  const FileSettings settings =
      Read({.agent_config = {agent}, .policy = dir_.Path("policies"), .policy_name = "web"});
  const scaling::PoolKey ci = {.ns = "default", .pool = "ci"};
  EXPECT_THAT(PoolsOfHarvester(settings, settings.plugin, {}),
              AllOf(testing::SizeIs(2), Not(Contains(ci))));
  EXPECT_THAT(PoolsOfHarvester(settings, settings.plugin, {{"HARVESTER_URL", "https://one"}}),
              Contains(ci))
      << "the environment names the same one for all targets";
  const auto pools = PoolsOfHarvester(settings, {{"harvester_url", "https://west"}}, {});
  EXPECT_THAT(pools, AllOf(Contains(ci), Contains(scaling::PoolKey{.ns = "default", .pool = "web"}),
                           testing::SizeIs(2)))
      << "--set says where the pools of the own target are";
}

TEST_F(OperatorFilesTest, S5_the_other_files_of_the_agents_directory_count_as_well) {
  Write("policies/b.hcl", Policy("db"));
  const std::string agent =
      Write("agent.hcl", Target("harvester", "x = 1") + "policy {\n  dir = \"" +
                             dir_.Path("policies") + "\"\n}\n");
  const FileSettings settings =
      Read({.agent_config = {agent}, .policy = Write("policies/a.hcl", Policy("web"))});
  EXPECT_THAT(PoolsOfHarvester(settings, settings.plugin, {}),
              Contains(scaling::PoolKey{.ns = "default", .pool = "db"}));
}

TEST_F(OperatorFilesTest, an_agent_without_the_plugin_is_a_problem) {
  const std::string agent = Write("agent.hcl", Target("asg", "x = 1", "aws-asg"));
  EXPECT_THAT(
      Problem({.agent_config = {agent}}),
      EndsWith("has no target block with the driver harvester; it has asg (driver aws-asg), "
               "nomad-target (driver nomad-target)"));
}

TEST_F(OperatorFilesTest, of_several_policies_a_name_chooses) {
  Write("policies/a.hcl", Policy("web") + Policy("db"));
  Write("policies/b.json", R"({"scaling": {"ci": {"enabled": true, "max": 1, "policy": {
      "target": {"harvester": {"node_group_name": "ci"}}}}}})");
  Write("policies/other.hcl", Policy("asg", "aws-asg"));
  const std::string policies = dir_.Path("policies");
  EXPECT_THAT(Read({.policy = policies, .policy_name = "ci"}).policy,
              ElementsAre(Pair("node_group_name", "ci")));
  EXPECT_EQ(Problem({.policy = policies}),
            "--policy: several policies; name one of them (--policy-name)"
            "\n  web: target \"harvester\", " +
                policies + "/a.hcl:1:1\n  db: target \"harvester\", " + policies +
                "/a.hcl:12:1\n  ci: target \"harvester\", " + policies + "/b.json:1:14");
  EXPECT_THAT(
      Problem({.policy = policies, .policy_name = "wbe"}),
      AllOf(StartsWith(policies + " has no policy or pool \"wbe\"; did you mean web? It has"),
            HasSubstr("\n  asg: target \"aws-asg\"")));
  Write("policies/c.hcl", Policy("ci"));
  EXPECT_THAT(
      Problem({.policy = policies, .policy_name = "ci"}),
      AllOf(
          StartsWith(policies + " has several policies with the label \"ci\", and the agent runs"),
          HasSubstr("give one another label or enabled = false, or name its file by --policy")));
  EXPECT_THAT(Problem({.policy_name = "web"}),
              HasSubstr("no files of the agent are read, so that"));
  const std::string agent = Write("agent.hcl", Target("harvester", "x = 1"));
  EXPECT_EQ(Problem({.agent_config = {agent}, .policy_name = "web"}),
            "no policies are read to find \"web\": " + agent +
                " has no policy.dir; name them with --policy");
}

TEST_F(OperatorFilesTest, a_policy_of_another_target_is_not_read_as_a_pool) {
  const std::string agent = Write("agent.hcl", Target("harvester", ""));
  const std::string policy = Write("policy.hcl", Policy("asg", "aws-asg"));
  EXPECT_THAT(Problem({.agent_config = {agent}, .policy = policy, .policy_name = "asg"}),
              EndsWith("has the target \"aws-asg\"; the targets of this plugin are \"harvester\""));
}

TEST_F(OperatorFilesTest, policies_that_are_not_enabled_count_only_if_no_other_does) {
  const std::string both = Write("both.hcl", Policy("web", "harvester", "false") + Policy("db"));
  const FileSettings enabled = Read({.policy = both});
  EXPECT_THAT(enabled.policy, Contains(Pair("node_group_name", "db")));
  EXPECT_THAT(enabled.warnings, IsEmpty());
  const FileSettings named = Read({.policy = both, .policy_name = "web"});
  EXPECT_THAT(named.policy, Contains(Pair("node_group_name", "web")));
  EXPECT_THAT(named.warnings, ElementsAre(EndsWith("policy \"web\" is not enabled: the agent does "
                                                   "not scale its pool")));
}

TEST_F(OperatorFilesTest, the_block_nomad_is_inherited_unless_the_target_forbids_it) {
  const std::string nomad = "nomad {\n  address = \"http://n\"\n  token = \"t\"\n}\n";
  const FileSettings inherited = Read(
      {.agent_config = {Write("a.hcl", nomad + Target("harvester", "nomad_token = \"own\""))}});
  EXPECT_THAT(inherited.plugin,
              UnorderedElementsAre(Pair("nomad_address", "http://n"), Pair("nomad_token", "own")));
  EXPECT_EQ(inherited.origins.at("nomad_address"), dir_.Path("a.hcl") + ":2:3");
  const FileSettings own =
      Read({.agent_config = {
                Write("b.hcl", nomad + Target("harvester", "nomad_config_inherit = false"))}});
  EXPECT_THAT(own.plugin, Not(Contains(Key("nomad_address"))));
  const FileSettings unreadable =
      Read({.agent_config = {
                Write("c.hcl", nomad + Target("harvester", "nomad_config_inherit = \"maybe\""))}});
  EXPECT_THAT(unreadable.plugin, Not(Contains(Key("nomad_address"))));
}

TEST_F(OperatorFilesTest, later_files_replace_the_map_of_earlier_ones) {
  Write("agent/a.hcl", Target("harvester", "a = 1\n    b = 2"));
  Write("agent/b.hcl", Target("harvester", "a = 3"));
  Write("agent/b.hcl~", "not read");
  Write("agent/.#c.hcl", "not read");
  EXPECT_THAT(Read({.agent_config = {dir_.Path("agent")}}).plugin, ElementsAre(Pair("a", "3")));
  // One without a map, or without a directory of policies, leaves that of the earlier one.
  Write("policies/web.hcl", Policy("web"));
  Write("agent/c.hcl", "target \"harvester\" {\n  driver = \"harvester\"\n}\npolicy {\n  dir = \"" +
                           dir_.Path("policies") + "\"\n}\n");
  Write("agent/d.hcl", "policy {\n  default_cooldown = \"2m\"\n}\n");
  const FileSettings merged = Read({.agent_config = {dir_.Path("agent")}, .needs_policy = true});
  EXPECT_THAT(merged.plugin, ElementsAre(Pair("a", "3")));
  EXPECT_THAT(merged.policy, Contains(Pair("node_group_name", "web")));
}

TEST_F(OperatorFilesTest, a_mistake_in_any_file_of_a_directory_is_a_problem) {
  Write("policies/a.hcl", Policy("web"));
  Write("policies/b.hcl", "scaling \"db\" {\n");
  EXPECT_THAT(
      Problem({.policy = dir_.Path("policies")}),
      StartsWith(dir_.Path("policies/b.hcl") +
                 ":1:14: this block is not closed (the agent reads no policy of this file)\n"));
}

// handleDir of the agent's policy/file/source.go reads the others, and decodeFile no policy of a
// file with a mistake.
TEST_F(OperatorFilesTest, a_mistake_in_a_file_without_the_named_policy_is_a_warning) {
  Write("policies/a.hcl", "scaling \"db\" {\n");
  Write("policies/b.hcl", Policy("web"));
  Write("policies/c.hcl", Policy("ci") + "scaling \"api\" {\n  max = \"many\"\n  policy {}\n}\n");
  const std::string policies = dir_.Path("policies");
  const FileSettings web = Read({.policy = policies, .policy_name = "web"});
  EXPECT_THAT(web.policy, Contains(Pair("node_group_name", "web")));
  EXPECT_THAT(web.warnings,
              ElementsAre(policies + "/a.hcl:1:14: this block is not closed (the agent reads no "
                                     "policy of this file)",
                          StartsWith(policies + "/c.hcl:13:3: max: expected a whole number (")));
  EXPECT_THAT(
      Problem({.policy = policies, .policy_name = "ci"}),
      AllOf(StartsWith(policies + " has no policy or pool \"ci\"; it has\n  web"),
            HasSubstr("\n" + policies + "/a.hcl:1:14: this block is not closed (the agent reads"),
            HasSubstr("\n" + policies + "/c.hcl:13:3: max: expected a whole number (the agent"),
            HasSubstr("13 |   max = \"many\"")));
  EXPECT_THAT(Problem({.policy = policies + "/c.hcl", .policy_name = "ci"}),
              StartsWith(policies + "/c.hcl:13:3: max: expected a whole number (the agent"));
}

// Each as "NAME: TEXT", and the labels of the policies that are read.
std::vector<std::string> All(const FilesOfAll& all) {
  std::vector<std::string> texts;
  for (const FileSettings& each : all.policies) texts.push_back(each.policy_name);
  for (const UnreadPolicy& each : all.unread) texts.push_back(each.Name() + ": " + each.Text());
  return texts;
}

TEST_F(OperatorFilesTest, of_all_policies_those_that_cannot_be_read_are_told_beside_the_others) {
  Write("policies/a.hcl", Policy("web"));
  Write("policies/b.hcl", "scaling \"db\" {\n");
  Write("policies/c.hcl",
        Policy("api", "harvestr") + Policy("old", "harvestr", "false") + Policy("aws", "aws-asg"));
  Write("policies/d.hcl",
        "scaling \"ci\" {\n  max = 1\n  policy {\n    target \"harvester\" {}\n"
        "    target \"harvester\" {}\n  }\n}\n");
  const std::string policies = dir_.Path("policies");
  const auto all = ReadFilesOfAll({.policy = policies});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(All(*all),
              ElementsAre("web",
                          "b.hcl:1:14: " + policies +
                              "/b.hcl:1:14: this block is not closed (the "
                              "agent reads no policy of this file)",
                          StartsWith("d.hcl:5:5: " + policies + "/d.hcl:5:5: "),
                          "policy api: " + policies +
                              "/c.hcl:1:1: no target block of this plugin is named \"harvestr\"; "
                              "did you mean harvester?"));
  EXPECT_THAT(all->policies.front().warnings, IsEmpty());
}

TEST_F(OperatorFilesTest, a_target_of_another_plugin_is_no_misspelt_one_of_this) {
  const std::string agent =
      Write("agent.hcl", Target("harvester", "") + Target("harvester2", "", "aws-asg"));
  Write("policies/a.hcl", Policy("web") + Policy("aws", "harvester2"));
  const auto all = ReadFilesOfAll({.agent_config = {agent}, .policy = dir_.Path("policies")});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(All(*all), ElementsAre("web"));
}

TEST_F(OperatorFilesTest, of_all_policies_two_with_one_label_leave_the_others) {
  Write("policies/a.hcl", Policy("web"));
  Write("policies/b.hcl", Policy("web") + Policy("db"));
  const auto all = ReadFilesOfAll({.policy = dir_.Path("policies")});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(All(*all),
              ElementsAre("db", AllOf(StartsWith("policy web: " + dir_.Path("policies")),
                                      HasSubstr("several policies with the label \"web\""))));
}

TEST_F(OperatorFilesTest, a_label_is_that_of_the_policy_that_is_enabled) {
  Write("policies/a.hcl", PolicyNamed("web", "old", "nomad", "false"));
  Write("policies/b.hcl", PolicyNamed("web", "new", "nomad"));
  const auto read = ReadOperatorFiles({.policy = dir_.Path("policies"), .policy_name = "web"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->policy.at("node_group_name"), "new");
}

// The next agent's names are like those of this one: none may be taken for a typing error.
void ExpectNamesApart(const BlockRule& rule) {
  std::vector<std::string> names;
  for (const ArgumentRule& argument : rule.arguments) {
    names.insert(names.end(), argument.names.begin(), argument.names.end());
  }
  for (const BlockRule& block : rule.blocks) {
    names.emplace_back(block.type);
    ExpectNamesApart(block);
  }
  for (const std::string& name : names) {
    std::vector<std::string> others = names;
    std::erase(others, name);
    EXPECT_EQ(base::NearestName(name, others), std::nullopt) << name;
  }
}

TEST(AgentGrammar, takes_no_name_of_the_agents_for_another_one_misspelt) {
  ExpectNamesApart(AgentFileRule());
  ExpectNamesApart(PolicyFileRule());
}

TEST_F(OperatorFilesTest, a_name_of_a_newer_agent_is_noted_and_no_typing_error) {
  for (const std::string text :
       {"telemetry {\n  circonus_api_key = \"x\"\n}\n", "nomad {\n  ca_file = \"x\"\n}\n",
        "policy {\n  id = \"x\"\n}\n"}) {
    const std::string agent = Write("agent.hcl", text + Target("harvester", "x = 1"));
    EXPECT_THAT(Read({.agent_config = {agent}}).unknown,
                ElementsAre(HasSubstr("agents up to 0.5.0 refuse this file")))
        << text;
  }
}

TEST_F(OperatorFilesTest, mistakes_in_blocks_have_their_place) {
  const std::pair<std::string, std::string> kCases[] = {
      {"target \"h\" {\n}\n", ":1:1: driver is required"},
      {"target {\n}\n", ":1:1: block target has one label"},
      {"target \"h\" {\n  driver = \"x\"\n  confg = {}\n}\n",
       ":3:3: unknown argument confg in block target; did you mean config? (the agent does not "
       "start with this file)\n"},
      {"target \"h\" {\n  driver = \"x\"\n  config {\n  }\n}\n", ":3:3: config is an argument"},
      {"target \"h\" {\n  driver = \"x\"\n  config = 1\n}\n", ":3:12: config: expected a map"},
      {Target("h", "networks = [\"a\", \"b\"]"), ":4:16: networks: a list is not possible here"},
      {Target("h", "a = null"), ":4:9: a: null is not possible here"},
      {"tagret \"h\" {}\n", ":1:1: unknown block tagret; did you mean target?"},
      {"nomad = {}\n", ":1:1: nomad is a block"},
      {"nomad {}\nnomad {}\n", ":2:1: a second block nomad"},
      {"nomad {\n  skip_verify = \"yes\"\n}\n", ":2:3: skip_verify: expected true or false"},
      {"nomad {\n  skip_verify = 1\n}\n", ":2:3: skip_verify: expected true or false"},
      {"http {\n  bind_prot = 8080\n}\n",
       ":2:3: unknown argument bind_prot in block http; did you mean bind_port?"},
      {"http {\n  bind_port = 80800\n}\n",
       ":2:3: bind_port: expected a whole number, at least 0 and at most 65535"},
      {"telemetry {\n  collection_interval = \"1 second\"\n}\n",
       ":2:3: collection_interval: \"1 second\" is not a duration"},
      {"log_json = \"yes\"\n", ":1:1: log_json: expected true or false"},
      {"policy {\n  default_cooldown = \"5 min\"\n}\n", ":2:3: default_cooldown: \"5 min\""},
      {"policy {\n  source \"consul\" {}\n}\n", ":2:3: there is no source \"consul\""},
      {"policy_eval {\n  delivery_limit = 0\n}\n",
       ":2:3: delivery_limit: expected a whole number, at least 1"},
      {"policy_eval {\n  workers = { cluster = -1 }\n}\n",
       ":2:15: cluster: expected a whole number"},
      {"high_availability {\n  enabled = true\n  lock_ttl = 30\n}\n", ":3:3: lock_ttl: \"30\" is"},
      {"dynamic_application_sizing {\n  job_label = \"x\"\n}\n",
       ":1:1: this block is for Nomad Au"},
      {"http \"x\" {\n}\n", ":1:1: block http has no label"},
      {"target \"h\" {\n  driver = \"x\"\n  args = \"-x\"\n}\n", ":3:10: args: expected a list"},
      {"nomad {\n  block_query_wait_time = \"5\"\n}\n",
       ":2:3: block_query_wait_time: \"5\" is not a duration"},
  };
  for (const auto& [text, problem] : kCases) {
    const std::string path = Write("agent.hcl", text);
    EXPECT_THAT(Problem({.agent_config = {path}}), StartsWith(path + problem)) << text;
  }
}

// As in decodeFile of the agent's policy/file/parse.go, which then reads no policy of the file.
TEST_F(OperatorFilesTest, mistakes_in_a_policy_have_their_place) {
  const std::pair<std::string, std::string> kCases[] = {
      {"  max = \"many\"\n  policy {}", ":2:3: max: expected a whole number"},
      {"  max = 5\n  min = 1.5\n  policy {}", ":3:3: min: expected a whole number"},
      {"  max = 5\n  min = \"1.5\"\n  policy {}", ":3:3: min: expected a whole number"},
      {"  max = \"+-5\"\n  policy {}", ":2:3: max: expected a whole number"},
      {"  max = 5\n  policy {\n    cooldown = \"5\"\n  }",
       ":4:5: cooldown: \"5\" is not a duration"},
      {"  max = 5\n  policy {\n    cooldown_on_scale_up = \"x\"\n  }", ":4:5: cooldown_on_"},
      {"  max = 5\n  policy {\n    evaluation_interval = 5\n  }", ":4:5: evaluation_interval: "},
      {"  max = 5\n  policy {\n    check \"a\" {\n      query_window = \"5\"\n    }\n  }",
       ":5:7: query_window: \"5\" is not a duration"},
      {"  max = 5\n  policy {\n    check \"a\" {\n      query_window_offset = \"x\"\n    }\n  }",
       ":5:7: query_window_offset: "},
      {"  max = 5\n  policy {\n    check \"a\" {\n      strategy {}\n    }\n  }",
       ":5:7: block strategy has one label"},
      {"  max = 5\n  policy {\n    check \"a\" {\n      sorce = \"x\"\n    }\n  }",
       ":5:7: unknown argument sorce in block check; did you mean source? (the agent reads no "
       "policy "
       "of this file)"},
      {"  max = 5\n  policy {\n    check \"a\" {\n      strategy \"x\" {\n        config = { a = 1 "
       "}\n      }\n    }\n  }",
       ":6:18: config: a map is not possible here"},
      {"  max = 5\n  policy {\n    schedule {\n    }\n  }",
       ":4:5: start is required in this block"},
      {"  max = 5", ":1:1: this block has no block policy: the agent crashes"},
      {"  enabled = true\n  max = 5\n  policy {}",
       ":4:3: this block has no block target: the agent"},
  };
  for (const auto& [text, problem] : kCases) {
    const std::string path = Write("policy.hcl", "scaling \"web\" {\n" + text + "\n}\n");
    EXPECT_THAT(Problem({.policy = path}), StartsWith(path + problem)) << text;
  }
}

// As in ValidatePolicy of its policy/policy.go, Validate of its sdk/policy.go and loadCheckRunners
// of its policy/handler.go.
TEST_F(OperatorFilesTest, what_keeps_the_agent_from_scaling_by_a_policy_is_told) {
  const std::string check = "    check \"a\" {\n      strategy \"pass-through\" {}\n    }\n";
  const auto refusals = [&](const std::string& arguments, const std::string& body,
                            const std::string& enabled = "true") {
    const std::string path =
        Write("policy.hcl", "scaling \"web\" {\n  enabled = " + enabled + "\n" + arguments +
                                "  policy {\n" + body + "    target \"harvester\" {}\n  }\n}\n");
    auto told = Read({.agent_config = {Write("agent.hcl", Target("harvester", "") +
                                                              "strategy \"own\" {\n  driver = "
                                                              "\"own\"\n}\n")},
                      .policy = path})
                    .refusals;
    for (std::string& refusal : told) {
      EXPECT_THAT(refusal, StartsWith(path + ":"));
      refusal.erase(0, path.size());
    }
    return told;
  };
  EXPECT_THAT(refusals("  max = 5\n", check), IsEmpty());
  EXPECT_THAT(refusals("  max = 0\n  min = 0\n  type = \"horizontal\"\n", check), IsEmpty());
  for (const char* number : {"\"5\"", "\"5.0\"", "\"5e0\"", "\"+5\"", "5.0", "0.5e1"}) {
    EXPECT_THAT(refusals("  max = 3\n  min = " + std::string(number) + "\n", check),
                ElementsAre(":4:3: min, 5, is greater than max, 3"))
        << number;
  }
  EXPECT_THAT(refusals("  max = 3\n  min = \"-1e1\"\n", check),
              ElementsAre(":4:3: min is negative"));
  EXPECT_THAT(refusals("  max = 3\n  min = 5\n", check),
              ElementsAre(":4:3: min, 5, is greater than max, 3"));
  EXPECT_THAT(refusals("  max = -1\n  min = -2\n", check),
              ElementsAre(":4:3: min is negative", ":3:3: max is negative"));
  EXPECT_THAT(refusals("  max = 5\n  type = \"vertical_cpu\"\n", check),
              ElementsAre(HasSubstr(":4:3: the type of a cluster's policy is")));
  EXPECT_THAT(refusals("  max = 5\n", ""), ElementsAre(HasSubstr("there is no block check")));
  EXPECT_THAT(refusals("  max = 5\n", check + "    on_check_error = \"stop\"\n"),
              ElementsAre(HasSubstr("on_check_error must be")));
  EXPECT_THAT(refusals("  max = 5\n", "    check \"a\" {\n      on_error = \"x\"\n    }\n"),
              ElementsAre(HasSubstr("no block strategy"), HasSubstr("on_error must be")));
  for (const char* strategy : {"pass-thru", "app-sizing-max"}) {
    EXPECT_THAT(refusals("  max = 5\n", "    check \"a\" {\n      strategy \"" +
                                            std::string(strategy) + "\" {}\n    }\n"),
                Contains(HasSubstr("the agent has no strategy \"" + std::string(strategy))));
  }
  EXPECT_THAT(
      refusals("  max = 5\n", "    check \"a\" {\n      strategy \"tresholds\" {}\n    }\n"),
      ElementsAre(EndsWith("no strategy \"tresholds\"; did you mean threshold?")));
  EXPECT_THAT(
      refusals("  max = 5\n", "    check \"a\" {\n      strategy \"none\" {}\n    }\n"),
      ElementsAre(EndsWith("; it has fixed-value, own, pass-through, target-value, threshold")));
  EXPECT_THAT(refusals("  max = 5\n", "    check \"a\" {\n      strategy \"own\" {}\n    }\n"),
              IsEmpty());
  const std::string instant =
      "    check \"a\" {\n      query_window = \"instant\"\n      strategy \"threshold\" {\n";
  EXPECT_THAT(refusals("  max = 5\n", instant + "      }\n    }\n"),
              ElementsAre(HasSubstr("within_bounds_trigger must be 1")));
  const auto refused = [&](const std::string& trigger) {
    return !refusals("  max = 5\n",
                     instant + "        within_bounds_trigger = " + trigger + "\n      }\n    }\n")
                .empty();
  };
  for (const char* trigger : {"1", "1.0", "\"1\"", "\"+1\"", "\"01\""}) {
    EXPECT_FALSE(refused(trigger)) << trigger;
  }
  for (const char* trigger : {"2", "\"1.0\"", "\" 1\"", "\"-1\"", "\"++1\"", "\"\""}) {
    EXPECT_TRUE(refused(trigger)) << trigger;
  }
  const auto of_schedule = [&](const std::string& arguments) {
    return refusals("  max = 5\n", check + "    schedule {\n" + arguments + "    }\n");
  };
  EXPECT_THAT(of_schedule("      start = \"0 7 * * mon-fri\"\n      duration = \"12h\"\n"),
              IsEmpty());
  EXPECT_THAT(
      of_schedule("      start = \"every day\"\n      duration = \"12h\"\n"),
      ElementsAre(HasSubstr(":9:7: schedule: start: \"every day\" has 2 fields; expected fi")));
  EXPECT_THAT(of_schedule("      start = \"0 7 * * *\"\n      end = \"0 25 * * *\"\n"),
              ElementsAre(":10:7: schedule: end: \"25\" is no hour of a cron expression"));
  // The agent accepts these, and never fires or crashes (cronexpr, Expression.Next).
  EXPECT_THAT(of_schedule("      start = \"0 22-6 * * *\"\n      duration = \"1h\"\n"),
              ElementsAre(":9:7: schedule: start: \"22-6\" is no hour of a cron expression"));
  EXPECT_THAT(of_schedule("      start = \"0 7 * * *\"\n"),
              ElementsAre(HasSubstr("start: goes with either end or duration, and neither is")));
  EXPECT_THAT(of_schedule("      start = \"0 7 * * *\"\n      duration = \"0s\"\n"),
              ElementsAre(HasSubstr("duration: must be greater than zero")));
  EXPECT_THAT(refusals("  max = 3\n  min = 5\n", check, "false"), IsEmpty())
      << "the agent does not look at it";
}

TEST_F(OperatorFilesTest, the_limits_of_an_enabled_policy_are_known) {
  const auto limits = [&](const std::string& enabled) {
    const std::string path =
        Write("policy.hcl", "scaling \"web\" {\n  enabled = " + enabled +
                                "\n  min = 2\n  max = 5\n  policy {\n    target \"harvester\" "
                                "{}\n  }\n}\n");
    return Read({.policy = path}).limits;
  };
  ASSERT_TRUE(limits("true").has_value());
  EXPECT_EQ(limits("true")->min, 2);
  EXPECT_EQ(limits("true")->max, 5);
  EXPECT_THAT(limits("true")->policy, AllOf(StartsWith("policy \"web\" ("), EndsWith(":1:1)")));
  EXPECT_FALSE(limits("false").has_value());
}

TEST_F(OperatorFilesTest, each_check_of_a_policy_comes_with_its_source) {
  const std::string agent = Write("agent.hcl",
                                  "apm \"prom\" {\n  driver = \"prometheus\"\n"
                                  "  config = { address = \"http://p:9090\" }\n}\n" +
                                      Target("harvester", ""));
  const std::string policy =
      Write("policy.hcl",
            "scaling \"web\" {\n  max = 5\n  min = 1\n  policy {\n"
            "    check \"a\" {\n      source = \"prom\"\n      query = \"q\"\n"
            "      query_window = \"5m\"\n      strategy \"pass-through\" {}\n    }\n"
            "    check \"b\" {\n      query = \"r\"\n      query_window = \"instant\"\n"
            "      strategy \"pass-through\" {}\n    }\n    target \"harvester\" {}\n  }\n}\n");
  const FileSettings files = Read({.agent_config = {agent}, .policy = policy});
  ASSERT_EQ(files.queries.size(), 2U);
  const MetricQuery& first = files.queries[0];
  EXPECT_EQ(first.policy, "web");
  EXPECT_THAT(first.check.where, EndsWith("policy.hcl:5:5"));
  EXPECT_EQ(first.check.source, "prom");
  ASSERT_TRUE(first.apm.has_value());
  EXPECT_EQ(first.apm->config.values.at("address"), "http://p:9090");
  EXPECT_EQ(files.queries[1].check.source, "nomad-apm") << "the agent's default";
  EXPECT_EQ(files.queries[1].apm.value().driver, "nomad-apm");
}

// MutatePolicy of the agent's policy/mutators.go.
TEST_F(OperatorFilesTest, only_the_policy_of_a_cluster_scales_from_zero) {
  const auto from_zero = [&](const std::string& arguments) {
    const std::string path =
        Write("policy.hcl", "scaling \"web\" {\n  max = 5\n" + arguments +
                                "  policy {\n    check \"a\" {\n      strategy \"pass-through\" "
                                "{}\n    }\n    target \"harvester\" {}\n  }\n}\n");
    return Read({.policy = path}).queries.at(0).from_zero;
  };
  EXPECT_TRUE(from_zero(""));
  EXPECT_TRUE(from_zero("  type = \"cluster\"\n"));
  EXPECT_FALSE(from_zero("  min = 1\n"));
  EXPECT_FALSE(from_zero("  type = \"horizontal\"\n"));
}

TEST_F(OperatorFilesTest, jsonencode_in_a_policy_is_a_warning_because_agents_of_today_refuse_it) {
  const std::string path =
      Write("policy.hcl",
            "scaling \"web\" {\n  max = 5\n  policy {\n    target \"harvester\" {\n"
            "      labels = jsonencode({ a = 1 })\n    }\n  }\n}\n");
  const FileSettings settings = Read({.policy = path});
  EXPECT_THAT(settings.policy, Contains(Pair("labels", R"({"a":1})")));
  EXPECT_THAT(settings.warnings,
              Contains(StartsWith(path + ":5:16: agents up to 0.5.0 do not know jsonencode")));
}

TEST_F(OperatorFilesTest, what_only_a_newer_agent_knows_is_a_warning) {
  const std::string path =
      Write("agent.hcl", Target("harvester", "") + "quantum_foam {\n  x = 1\n}\n");
  const std::string unknown =
      path + ":7:1: unknown block quantum_foam: agents up to 0.5.0 refuse this file";
  const FileSettings read = Read({.agent_config = {path}});
  EXPECT_THAT(read.warnings, ElementsAre(unknown));
  EXPECT_THAT(read.unknown, ElementsAre(unknown)) << "fails the check";
  Write("policies/a.hcl", Policy("web"));
  Write("policies/b.hcl", Policy("db") + "quantum_foam = 1\n");
  const std::string policies = dir_.Path("policies");
  EXPECT_THAT(Read({.policy = policies, .policy_name = "web"}).unknown, IsEmpty());
  EXPECT_THAT(Read({.policy = policies, .policy_name = "db"}).unknown,
              ElementsAre(policies + "/b.hcl:12:1: unknown argument quantum_foam: agents up to "
                                     "0.5.0 refuse this file"));
}

TEST_F(OperatorFilesTest, what_agent_046_does_not_know_is_a_warning) {
  const std::string agent =
      Write("agent.hcl", "nomad {\n  namespace = [\"a\", \"b\"]\n}\n" + Target("harvester", ""));
  EXPECT_THAT(
      Read({.agent_config = {agent}}).warnings,
      ElementsAre(agent + ":2:15: agent 0.4.6 does not know a list of namespaces and refuses "
                          "this file"));
  const std::string policy =
      Write("policy.hcl",
            "scaling \"web\" {\n  max = 5\n  policy {\n    cooldown_on_scale_up = \"1m\"\n"
            "    schedule {\n      start = \"0 7 * * *\"\n      duration = \"1h\"\n    }\n"
            "    check \"a\" {\n      query_window = \"instant\"\n    }\n"
            "    target \"harvester\" {}\n  }\n}\n");
  const FileSettings read = Read({.policy = policy});
  EXPECT_THAT(read.warnings, Contains(StartsWith(policy + ":4:5: agent 0.4.6 does not know cool")));
  EXPECT_THAT(read.warnings,
              Contains(StartsWith(policy + ":5:5: agent 0.4.6 does not know block")));
  EXPECT_THAT(read.warnings,
              Contains(StartsWith(policy + ":10:7: agent 0.4.6 does not know query")));
  EXPECT_THAT(read.unknown, IsEmpty());
}

TEST_F(OperatorFilesTest, of_two_targets_of_a_name_in_a_file_the_agent_uses_the_last_alone) {
  const std::string path =
      Write("agent.hcl", Target("harvester", "a = 1") + Target("harvester", "b = 1"));
  const FileSettings read = Read({.agent_config = {path}});
  EXPECT_THAT(read.plugin, ElementsAre(Pair("b", "1")));
  EXPECT_THAT(read.warnings, ElementsAre(path + ":7:1: a second target harvester; the agent uses "
                                                "this one alone"));
}

TEST_F(OperatorFilesTest, several_configurations_are_merged_in_the_order_given) {
  const std::string first =
      Write("z.hcl", "plugin_dir = \"/one\"\n" + Target("harvester", "a = 1"));
  const std::string second = Write("a/nomad.hcl", "nomad {\n  address = \"http://n\"\n}\n");
  const std::string third = Write("b.hcl", "plugin_dir = \"/three\"\n");
  const FileSettings read = Read({.agent_config = {first, dir_.Path("a"), third}});
  EXPECT_THAT(read.plugin, ElementsAre(Pair("a", "1"), Pair("nomad_address", "http://n")));
  EXPECT_EQ(read.plugin_dir.path, "/three");
  EXPECT_EQ(Read({.agent_config = {third, first}}).plugin_dir.path, "/one");
  EXPECT_THAT(Problem({.agent_config = {second, third}}),
              StartsWith("--agent-config: " + second + ", " + third + " has no target block"));
}

TEST_F(OperatorFilesTest, a_job_of_nomad_is_told_from_a_file_of_the_agent) {
  const std::string kJobs[] = {
      "# ours\njob \"autoscaler\" {\n  args = [\"${NOMAD_TASK_DIR}/a\"]\n}\n",
      "variable \"x\" {\n}\njob \"autoscaler\" {\n}\n", "job \"autoscaler\" {\n}\n"};
  for (const std::string& job : kJobs) {
    const std::string path = Write("job.hcl", job);
    for (const OperatorFiles& files :
         {OperatorFiles{.agent_config = {path}}, OperatorFiles{.policy = path}}) {
      EXPECT_THAT(Problem(files), StartsWith(path + ": is a Nomad job, not a file of the agent: "));
    }
  }
  const std::string json = Write("job.json", R"({ "Job": {"ID": "autoscaler"} })");
  EXPECT_THAT(Problem({.agent_config = {json}}), HasSubstr(": is a Nomad job"));
}

TEST_F(OperatorFilesTest, sources_of_policies_that_are_off_are_told) {
  const auto with = [&](const std::string& sources) {
    return Write("agent.hcl", Target("harvester", "") + "policy {\n" + sources + "}\n");
  };
  const std::string file = "  source \"file\" {\n    enabled = false\n  }\n";
  const std::string nomad = "  source \"nomad\" {\n    enabled = false\n  }\n";
  EXPECT_THAT(Read({.agent_config = {with(nomad)}}).unknown, IsEmpty());
  EXPECT_THAT(Read({.agent_config = {with(file)}}).unknown,
              ElementsAre(EndsWith("the source \"file\" is off: the agent reads no files of "
                                   "policies")));
  EXPECT_THAT(Problem({.agent_config = {with(file + nomad)}}),
              EndsWith("no source of policies is enabled: the agent does not start"));
}

TEST_F(OperatorFilesTest, an_interval_of_which_the_agent_crashes_is_told_and_zero_is_none) {
  const auto unknown = [&](const std::string& interval) {
    return Read({.agent_config = {Write(
                     "agent.hcl", Target("harvester", "") +
                                      "policy {\n  default_evaluation_interval = \"" + interval +
                                      "\"\n}\n")}})
        .unknown;
  };
  EXPECT_THAT(unknown("0s"), IsEmpty());
  EXPECT_THAT(unknown("-10s"),
              ElementsAre(EndsWith(":8:3: default_evaluation_interval is negative: the agent "
                                   "crashes; write a time such as \"10s\"")));
  const auto refusals = [&](const std::string& interval) {
    return Read({.policy = Write("policy.hcl",
                                 "scaling \"web\" {\n  enabled = true\n  max = 5\n  policy {\n"
                                 "    evaluation_interval = \"" +
                                     interval +
                                     "\"\n    check \"a\" {\n      strategy \"pass-through\" {}\n"
                                     "    }\n    target \"harvester\" {}\n  }\n}\n")})
        .refusals;
  };
  EXPECT_THAT(refusals("0s"), IsEmpty());
  EXPECT_THAT(refusals("-10s"),
              ElementsAre(HasSubstr(":5:5: evaluation_interval is negative: the agent crashes")));
}

TEST_F(OperatorFilesTest, workers_of_the_agent_that_evaluate_no_policy_of_a_cluster_are_told) {
  const auto unknown = [&](const std::string& workers, const std::string& later = "") {
    const auto eval = [](const std::string& map) {
      return "policy_eval {\n  workers = { " + map + " }\n}\n";
    };
    OperatorFiles files{.agent_config = {Write("a.hcl", eval(workers) + Target("harvester", ""))}};
    if (!later.empty()) files.agent_config.push_back(Write("b.hcl", eval(later)));
    return Read(files).unknown;
  };
  EXPECT_THAT(unknown("cluster = 0"),
              ElementsAre(EndsWith("a.hcl:2:15: no worker for cluster: the agent evaluates no "
                                   "policy of a cluster")));
  EXPECT_THAT(unknown("cluster = 0", "cluster = 2"), IsEmpty());
  EXPECT_THAT(unknown("clustr = 0"),
              ElementsAre(EndsWith(":2:15: unknown queue clustr; did you mean cluster?")));
  EXPECT_THAT(unknown("cluster = 1, horizontal = 0, other = 3"), IsEmpty());
}

TEST_F(OperatorFilesTest, a_policy_that_the_agent_may_not_read_is_told) {
  Write("policies/web.hcl", Policy("web"));
  const std::string elsewhere = Write("web.hcl", Policy("web"));
  const auto doubt = [&](const std::string& dir, const std::string& policy) {
    return Read({.agent_config = {Write("agent.hcl",
                                        "policy {\n" + dir + "}\n" + Target("harvester", ""))},
                 .policy = policy})
        .policy_dir_doubt;
  };
  const std::string dir = "  dir = \"" + dir_.Path("policies") + "\"\n";
  EXPECT_EQ(doubt(dir, dir_.Path("policies")), "");
  EXPECT_EQ(doubt(dir, dir_.Path("policies/web.hcl")), "");
  EXPECT_EQ(doubt(dir, elsewhere), elsewhere + " is not in policy.dir, " + dir_.Path("policies") +
                                       ": the agent does not read it");
  EXPECT_EQ(doubt("", elsewhere),
            dir_.Path("agent.hcl") + " has no policy.dir: the agent reads no file of policies");
  EXPECT_EQ(Read({.policy = elsewhere}).policy_dir_doubt, "") << "no agent is known";
}

TEST_F(OperatorFilesTest, what_only_the_commands_refuse_is_not_said_of_the_agent) {
  EXPECT_THAT(Problem({.agent_config = {Write("agent.hcl", Target("harvester", "a = 1 + 2"))}}),
              AllOf(HasSubstr("is not read here"), Not(HasSubstr("the agent"))));
}

TEST_F(OperatorFilesTest, a_byte_order_mark_is_refused_in_JSON_alone) {
  const std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(Problem({.agent_config = {Write("a.hcl", mark + Target("harvester", ""))}}), "none");
  EXPECT_THAT(Problem({.agent_config = {Write("a.json", mark + "{}")}}),
              HasSubstr("begins with a byte order mark"));
}

TEST_F(OperatorFilesTest, files_that_are_given_for_each_other_are_told) {
  const std::string agent = Write("agent.hcl", Target("harvester", ""));
  const std::string policy = Write("policy.hcl", Policy("web"));
  EXPECT_THAT(Problem({.agent_config = {policy}, .policy = agent}),
              StartsWith(policy + ":1:1: a block scaling is a policy's: give this file with "
                                  "--policy"));
  EXPECT_THAT(Problem({.policy = agent}), AllOf(StartsWith(agent + ":1:1: a block target outside"),
                                                HasSubstr("with --agent-config")));
}

TEST_F(OperatorFilesTest, files_that_cannot_be_read_are_problems) {
  EXPECT_THAT(Problem({.agent_config = {dir_.Path("none.hcl")}}), HasSubstr("none.hcl"));
  Write("empty/a.txt", "");
  EXPECT_THAT(Problem({.policy = dir_.Path("empty")}), EndsWith("has no files *.hcl or *.json"));
  EXPECT_THAT(Problem({.policy = Write("policy.conf", "")}), HasSubstr(".hcl or .json"));
  EXPECT_THAT(Problem({.policy = Write("big.hcl", std::string(2 * 1024 * 1024, '#'))}),
              HasSubstr("big.hcl"));
}

TEST_F(OperatorFilesTest, without_a_policy_the_agents_directory_is_used_where_one_is_needed) {
  const std::string dir = dir_.Path("policies");
  std::filesystem::create_directory(dir);
  Write("policies/web.hcl", Policy("web") + Policy("api"));
  const std::string agent =
      Write("agent.hcl", Target("harvester", "harvester_url = \"https://a\"") +
                             "policy {\n  dir = \"" + dir + "\"\n  default_cooldown = \"2m\"\n}\n");
  EXPECT_THAT(Read({.agent_config = {agent}}).policy, IsEmpty());
  EXPECT_THAT(Read({.agent_config = {agent}, .policy_name = "api"}).policy,
              Contains(Pair("node_group_name", "api")));
  EXPECT_THAT(Problem({.agent_config = {agent}, .needs_policy = true}),
              AllOf(HasSubstr("several policies"), HasSubstr("web"), HasSubstr("api")));
  Write("policies/web.hcl", Policy("web"));
  EXPECT_THAT(Read({.agent_config = {agent}, .needs_policy = true}).policy,
              Contains(Pair("node_group_name", "web")));
  const std::string other = Write("other.hcl", Policy("other"));
  EXPECT_THAT(Read({.agent_config = {agent}, .policy = other, .needs_policy = true}).policy,
              Contains(Pair("node_group_name", "other")));
}

}  // namespace
}  // namespace nomad_harvester::cli
