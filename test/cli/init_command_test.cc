// SPDX-License-Identifier: Apache-2.0
// harvester init against a simulated Harvester: the files, the questions, the errors.
#include <deque>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nomad_harvester/base/file.h"
#include "nomad_harvester/config/pool_policy.h"

#include "cli/golden.h"
#include "cli/operator.h"
#include "command.h"
#include "init_files.h"
#include "nlohmann/json.hpp"
#include "operator_files.h"
#include "support/scoped_temp_dir.h"
#include "support/source_tree.h"

namespace nomad_harvester::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

std::string ContentOf(const std::string& path) { return base::ReadFile(path).value_or(""); }

class InitCommand : public OperatorTest {
 protected:
  InitCommand() {
    const auto parsed = ReadSettings({"harvester_url=http://harvester.invalid", "auth_token=x",
                                      "nomad_address=http://nomad.example.com:4646"},
                                     {}, PolicyUse::kOptional, {});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    settings_ = *parsed;
    maintenance_ = MakeMaintenance(cluster_, clock_, executor_, settings_);
    arguments_.dir = dir_.Path("etc");
  }

  int Init(const Prompter& prompter = {}) {
    return Call(
        "init", [this](const CommandRun& run) { return WriteInitFiles(run, arguments_); },
        prompter);
  }
  // An operator at a terminal who answers this.
  static Prompter Answers(std::deque<std::string> lines) {
    return {.interactive = true,
            .read_line = [lines = std::move(lines)](const runtime::Context&) mutable {
              const std::string line = lines.empty() ? "" : lines.front();
              if (!lines.empty()) lines.pop_front();
              return line;
            }};
  }
  void AddNetwork(const std::string& ns, const std::string& name) {
    cluster_.PutObject({{"apiVersion", "k8s.cni.cncf.io/v1"},
                        {"kind", "NetworkAttachmentDefinition"},
                        {"metadata", {{"name", name}, {"namespace", ns}}}});
  }
  void AddKey(const std::string& name) {
    cluster_.PutObject({{"apiVersion", "harvesterhci.io/v1beta1"},
                        {"kind", "KeyPair"},
                        {"metadata", {{"name", name}, {"namespace", "default"}}},
                        {"spec", {{"publicKey", "ssh-ed25519 AAAA"}}}});
  }
  // The target block of the policy that was written.
  config::StringMap Policy() {
    const auto files = ReadOperatorFiles({.agent_config = {arguments_.dir + "/agent.hcl"},
                                          .policy = arguments_.dir + "/policies",
                                          .policy_name = "",
                                          .needs_policy = true});
    EXPECT_TRUE(files.ok()) << files.status();
    if (!files.ok()) return {};
    EXPECT_THAT(files->warnings, IsEmpty());
    EXPECT_THAT(files->refusals, IsEmpty());
    return files->policy;
  }

  support::ScopedTempDir dir_;
  InitArguments arguments_;
};

TEST_F(InitCommand, takes_what_there_is_one_of_without_a_question) {
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(
      Policy(),
      AllOf(Contains(Pair("image", "default/ubuntu-24.04")),
            Contains(Pair("networks", "default/vlan100")), Contains(Pair("namespace", "nomad")),
            Contains(Pair("node_group_name", "workers")), Contains(Pair("node_class", "workers")),
            Not(Contains(Pair("ssh_keys", testing::_)))));
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("Wrote " + arguments_.dir + "/policies/policy.hcl"),
                    HasSubstr("check --agent-config " + arguments_.dir + "/agent.hcl")));
}

TEST_F(InitCommand, ends_with_what_must_be_edited_or_where_the_vms_find_nomad) {
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("The VMs join Nomad at nomad.example.com (retry_join in " +
                                    arguments_.dir + "/cloud-init.yaml). Next:\n"));
  settings_.plugin.nomad.address = "http://127.0.0.1:4646";
  arguments_.force = true;
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Edit retry_join in " + arguments_.dir +
                                    "/cloud-init.yaml, which is an example: "));
}

TEST_F(InitCommand, names_each_file_of_several_kubeconfigs_by_its_whole_path) {
  settings_.plugin.harvester.kubeconfig_path = "/a/config:b/config";
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(ContentOf(arguments_.dir + "/agent.hcl"),
              HasSubstr("harvester_kubeconfig = \"/a/config:" +
                        std::filesystem::current_path().string() + "/b/config\"\n"));
}

TEST_F(InitCommand, C13_what_it_writes_is_a_dry_run) {
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  const auto policy = config::ParsePoolPolicy(Policy());
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->dry_run);
  EXPECT_THAT(policy->warnings, IsEmpty());
}

TEST_F(InitCommand, asks_for_each_choice_by_number_or_name) {
  AddNetwork("default", "vlan200");
  AddKey("alice");
  AddKey("bob");
  // The pool, the namespace, the image, the network, the key pair.
  ASSERT_EQ(Init(Answers({"web", "", "", "2", "bob"})), kExitOk) << err_.str();
  EXPECT_THAT(Policy(),
              AllOf(Contains(Pair("node_group_name", "web")), Contains(Pair("namespace", "nomad")),
                    Contains(Pair("networks", "default/vlan200")),
                    Contains(Pair("ssh_keys", "default/bob"))));
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("  2  default/vlan200\n"), HasSubstr("Network [default/vlan100]: "),
                    HasSubstr("Key pair [none]: ")));
}

TEST_F(InitCommand, asks_again_after_an_answer_that_is_no_choice) {
  ASSERT_EQ(Init(Answers({"web", "", "7", "fedora", "1", "", ""})), kExitOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("there is no image fedora; there are: default/ubuntu-24.04"));
}

TEST_F(InitCommand, asks_again_for_a_name_that_a_pool_cannot_have_and_for_nothing_else) {
  AddNetwork("default", "vlan200");
  ASSERT_EQ(Init(Answers({"Web Workers", "web", "", "", "2", ""})), kExitOk) << err_.str();
  EXPECT_THAT(Policy(), AllOf(Contains(Pair("node_group_name", "web")),
                              Contains(Pair("networks", "default/vlan200"))));
  const std::string asked = "Name of the pool [workers]: ";
  EXPECT_THAT(out_.str(),
              testing::StartsWith(asked +
                                  "the name of a pool: must be a DNS label of at most 40 "
                                  "characters (got \"Web Workers\"); use a-z, 0-9 and "
                                  "'-', with a letter or digit at both ends\n" +
                                  asked + "\n  1  default\n"));
}

TEST_F(InitCommand, an_interrupted_question_writes_nothing) {
  const Prompter interrupts = {.interactive = true, .read_line = [this](const runtime::Context&) {
                                 work_.Cancel(runtime::CancelReason::kShutdown);
                                 return std::string();
                               }};
  EXPECT_EQ(Init(interrupts), kExitFailure);
  EXPECT_EQ(err_.str(), "nomad-harvester init: interrupted; nothing was written\n");
  EXPECT_FALSE(std::filesystem::exists(arguments_.dir));
}

TEST_F(InitCommand, a_question_that_nobody_answers_writes_nothing) {
  const Prompter ends = {.interactive = true,
                         .read_line = [](const runtime::Context&) { return std::nullopt; }};
  EXPECT_EQ(Init(ends), kExitFailure);
  EXPECT_THAT(err_.str(), HasSubstr("no answer; nothing was written\n"));
  EXPECT_FALSE(std::filesystem::exists(arguments_.dir));
}

TEST_F(InitCommand, a_choice_that_does_not_exist_names_those_that_do) {
  arguments_.image = "default/fedora";
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--image: there is no image default/fedora; there are: "
                                    "default/ubuntu-24.04"));
  arguments_.image = "ubuntu-24.04";
  arguments_.network = "vlan1";
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("there are: default/vlan100, management"));
  arguments_.network = "management";
  arguments_.ns = "prod";
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--namespace: there is no namespace prod; there are: default"));
  EXPECT_FALSE(std::filesystem::exists(arguments_.dir));
}

TEST_F(InitCommand, a_missing_choice_without_a_terminal_names_all) {
  AddNetwork("default", "vlan200");
  AddNetwork("harvester-system", "storagenetwork-x");
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("--network: choose the network; there are: default/vlan100, "
                                    "default/vlan200, management"));
}

TEST_F(InitCommand, offers_no_image_that_is_not_imported) {
  cluster_.SetImageReady("default/ubuntu-24.04", false);
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("no image that can be used"));
}

constexpr char kForbidden[] =
    R"({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "virtualmachineimages.harvesterhci.io is forbidden"})";

TEST_F(InitCommand, a_token_that_may_list_some_namespaces_is_offered_what_they_have) {
  cluster_.SetFaultHook([](const simulator::RequestInfo& request) {
    const bool is_of_all =
        request.verb == "list" && request.target.find("/namespaces/") == std::string::npos;
    return is_of_all ? simulator::Fault::Answer(403, kForbidden) : simulator::Fault::None();
  });
  ASSERT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(Policy(), AllOf(Contains(Pair("image", "default/ubuntu-24.04")),
                              Contains(Pair("namespace", "nomad"))));
}

TEST_F(InitCommand, a_token_that_may_list_nothing_is_told_so) {
  cluster_.Refuse({.verb = "list"});
  EXPECT_EQ(Init(), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("that this token may list"));
}

TEST_F(InitCommand, overwrites_nothing_unless_it_must) {
  ASSERT_EQ(Init(), kExitOk);
  std::ofstream(arguments_.dir + "/agent.hcl") << "mine";
  EXPECT_EQ(Init(Answers({})), kExitFailure);
  EXPECT_EQ(out_.str(), "") << "before any question";
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("these files exist: " + arguments_.dir + "/agent.hcl"),
                                HasSubstr("--force")));
  EXPECT_EQ(ContentOf(arguments_.dir + "/agent.hcl"), "mine");
  arguments_.force = true;
  EXPECT_EQ(Init(), kExitOk) << err_.str();
  EXPECT_THAT(ContentOf(arguments_.dir + "/agent.hcl"), HasSubstr("plugin_dir"));
}

TEST_F(InitCommand, a_pools_name_that_cannot_be_one_is_refused) {
  arguments_.pool = "Web Workers";
  EXPECT_EQ(Init(Answers({})), kExitUsage);
  EXPECT_EQ(out_.str(), "") << "before any question";
  EXPECT_THAT(err_.str(), HasSubstr("--pool: must be a DNS label of at most 40 characters (got "
                                    "\"Web Workers\"); use a-z, 0-9 and '-'"));
  EXPECT_FALSE(std::filesystem::exists(arguments_.dir));
}

InitChoices Example() {
  return {.dir = "/etc/pool",
          .plugin_dir = "/opt/plugins",
          .kubeconfig = "/root/harvester.kubeconfig",
          .nomad_address = "https://nomad.example.com:4646",
          .pool = "web",
          .ns = "prod",
          .image = "images/debian-12",
          .image_bytes = (std::int64_t{41} << 30) + 1,
          .network = "prod/vlan7",
          .ssh_key = "prod/alice"};
}

TEST(InitFiles, are_the_examples_with_the_choices_in_them) {
  const std::vector<InitFile> files = InitFiles(Example());
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].path, "/etc/pool/agent.hcl");
  ExpectGolden("init-agent.hcl", files[0].content);
  EXPECT_EQ(files[1].path, "/etc/pool/policies/policy.hcl");
  ExpectGolden("init-policy.hcl", files[1].content);
  EXPECT_THAT(files[2].content,
              AllOf(HasSubstr("retry_join = [\"nomad.example.com\"]"), Not(HasSubstr("EDIT"))));
}

// Beside a document, and Nomad's own file within a VM.
TEST(InitFiles, name_no_file_that_is_not_written) {
  const std::regex file(R"([A-Za-z0-9_./-]+\.(ya?ml|hcl|pem|token|kubeconfig)\b)");
  const std::set<std::string> known = {"agent.hcl",
                                       "policy.hcl",
                                       "cloud-init.yaml",
                                       "/etc/pool/cloud-init.yaml",
                                       "/root/harvester.kubeconfig",
                                       "/etc/nomad.d/nomad.hcl",
                                       ".release/linux/package/etc/nomad.d/nomad.hcl"};
  for (const InitFile& written : InitFiles(Example())) {
    const std::string& text = written.content;
    for (std::sregex_iterator found(text.begin(), text.end(), file), end; found != end; ++found) {
      EXPECT_TRUE(known.contains(found->str())) << written.path << ": " << found->str();
    }
  }
}

TEST(InitFiles, the_agent_and_the_plugin_log_no_debug_lines) {
  const std::string agent = InitFiles(Example())[0].content;
  EXPECT_THAT(agent, AllOf(HasSubstr("\nlog_level = \"INFO\"\n"), Not(HasSubstr("debug"))));
}

TEST(InitFiles, VMs_are_not_sent_to_a_nomad_of_this_machine_alone) {
  InitChoices choices = Example();
  choices.nomad_address = "http://127.0.0.1:4646";
  EXPECT_THAT(InitFiles(choices)[2].content,
              HasSubstr("# EDIT: an example. Set the addresses of your Nomad servers, or no VM "
                        "joins.\n        server_join {\n          retry_join = "
                        "[\"nomad.example.org\"]"));
}

TEST(InitFiles, a_path_may_have_any_character) {
  InitChoices choices = Example();
  choices.kubeconfig = "/a\"b\\c${d}%{e}";
  EXPECT_THAT(InitFiles(choices)[0].content,
              HasSubstr(R"(harvester_kubeconfig = "/a\"b\\c$${d}%%{e}")"));
}

TEST(RightsYaml, gives_the_rights_of_the_example_in_the_namespaces_that_are_used) {
  ExpectGolden("init-rights.yaml", RightsYaml("prod", {"images", "prod"}));
}

TEST(RightsYaml, of_the_usual_namespaces_is_the_example_and_a_token) {
  const std::string example = ContentOf(support::SourcePath("examples/rbac.yaml"));
  const std::string text = RightsYaml("nomad", {"default"});
  const std::size_t optional = example.find("# Optional, for the whole cluster");
  ASSERT_NE(optional, std::string::npos);
  EXPECT_EQ(text.substr(0, optional), example.substr(0, optional));
  EXPECT_THAT(text, HasSubstr("kubernetes.io/service-account-token"));
}

}  // namespace
}  // namespace nomad_harvester::cli
