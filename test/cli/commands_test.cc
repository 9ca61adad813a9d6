// SPDX-License-Identifier: Apache-2.0
// The executable's behaviour by its arguments and its environment, for the cases that end by
// themselves.
#include "nomad_harvester/cli/commands.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "nomad_harvester/plugin/plugin_process.h"

#include "absl/strings/str_replace.h"
#include "cli/captured_output.h"
#include "error_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "operator_files.h"
#include "simulated_world.h"
#include "support/listener.h"
#include "support/scoped_temp_dir.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class Commands : public testing::Test {
 protected:
  Commands() {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &actions_[i]);
  }
  ~Commands() override {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_[i], nullptr);
  }

  // Without the agent's files of the machine that runs the test.
  static Outcome Call(const std::vector<std::string>& arguments,
                      config::StringMap environment = {}) {
    environment.try_emplace(kAgentConfigVariable, "");
    const CapturedOutput output;
    Outcome outcome;
    outcome.exit_code = Main(arguments, environment);
    outcome.out = output.Stdout();
    outcome.err = output.Stderr();
    return outcome;
  }

  // Closes `fd`, which takes the standard output.
  static Outcome CallWritingTo(int fd, const std::vector<std::string>& arguments) {
    const CapturedOutput output;
    dup2(fd, STDOUT_FILENO);
    close(fd);
    Outcome outcome;
    outcome.exit_code = Main(arguments, {});
    outcome.err = output.Stderr();
    return outcome;
  }

  // What Main and the servers change for the whole process.
  static constexpr std::array<int, 4> kSignals{SIGTERM, SIGINT, SIGHUP, SIGPIPE};
  sigset_t mask_{};
  std::array<struct sigaction, kSignals.size()> actions_{};
};

TEST_F(Commands, L9_of_a_nomad_that_hangs_names_it_and_says_meanwhile_what_is_waited_for) {
  const support::Listener nomad;
  const Outcome outcome = Call({"adopt", "--set", "namespace=nomad", "--set", "node_group_name=web",
                                "--set", "node_class=web"},
                               {{"HARVESTER_URL", "http://127.0.0.1:1"},
                                {"HARVESTER_TOKEN", "any"},
                                {"NOMAD_ADDR", nomad.url()}});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("waits for Nomad at " + nomad.url() + ": "),
                                 HasSubstr("Nomad at " + nomad.url() + " gave no reply")));
}

TEST_F(Commands, help_is_no_error_and_is_printed_without_a_cookie_and_a_command) {
  const std::string help = Call({"--help"}).out;
  EXPECT_THAT(help, AllOf(HasSubstr("Nomad Autoscaler"), HasSubstr("plugin_dir"), HasSubstr("dev"),
                          HasSubstr("version")));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, {"-h"}, {"--help"}, {"help"}, {"help", "help"}}) {
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, help);
    EXPECT_THAT(outcome.err, IsEmpty());
  }
  EXPECT_EQ(Call({"help", "status"}).out, Call({"status", "--help"}).out);
  EXPECT_THAT(Call({"help", "status"}).out, HasSubstr("--output"));
}

// A link to the driver has another name than the driver.
TEST_F(Commands, help_and_errors_have_the_name_by_which_it_was_called) {
  const auto call = [](const std::string& called) {
    const CapturedOutput output;
    const int exit_code = Main({"help", "status"}, {}, called) + 10 * Main({"stauts"}, {}, called);
    EXPECT_EQ(exit_code, 20);
    return output.Stdout() + output.Stderr();
  };
  EXPECT_THAT(
      call("harvester"),
      AllOf(HasSubstr("Usage: harvester status"), HasSubstr("\n  harvester status batch-workers"),
            HasSubstr("harvester: there is no command"), Not(HasSubstr("nomad-harvester"))));
  EXPECT_THAT(call("nomad-harvester"), AllOf(HasSubstr("Usage: nomad-harvester status"),
                                             HasSubstr("nomad-harvester: there is no command")));
  EXPECT_EQ(call(""), call("nomad-harvester"));
}

// The installed command has one name, whatever the file is called.
TEST_F(Commands, completion_and_manual_pages_are_those_of_the_installed_command) {
  const CapturedOutput output;
  for (const char* shell : {"bash", "zsh", "fish"}) Main({"completion", shell}, {}, "harvester");
  Main({"manual", "status"}, {}, "harvester");
  EXPECT_THAT(output.Stdout(), AllOf(HasSubstr("complete -F _nomad_harvester nomad-harvester\n"),
                                     HasSubstr("#compdef nomad-harvester\n"),
                                     HasSubstr("complete -c nomad-harvester -f -a "),
                                     HasSubstr(".TH NOMAD-HARVESTER-STATUS 1")));
}

// test/contract/documents_test.go runs them.
TEST_F(Commands, each_help_and_manual_page_has_examples_that_fit_a_terminal) {
  std::vector<std::string> commands;
  std::istringstream help(Call({"help"}).out);
  bool is_command = false;
  for (std::string line; std::getline(help, line);) {
    if (is_command && line.starts_with("  ") && line[2] != ' ') {
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    is_command = line == "Subcommands:" || (is_command && !line.empty());
  }
  EXPECT_THAT(commands, testing::IsSupersetOf({"check", "status", "gc", "scale", "version"}));
  for (const std::string& command : commands) {
    const std::string text = Call({"help", command}).out;
    EXPECT_THAT(text, HasSubstr("\nExamples:\n  nomad-harvester " + command));
    EXPECT_THAT(Call({"manual", command}).out,
                HasSubstr(".SH EXAMPLES\n.nf\nnomad\\-harvester " + command));
    std::istringstream lines(text.substr(text.find("Examples:")));
    for (std::string line; std::getline(lines, line) && !line.empty();) {
      EXPECT_LE(line.size(), 80U) << line;
    }
  }
}

TEST_F(Commands, the_version_is_told_to_programs_too) {
  const Outcome outcome = Call({"version", "-o", "json"});
  EXPECT_EQ(outcome.exit_code, 0);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["version"], Version());
  EXPECT_EQ(document["commit"], Commit());
  EXPECT_GT(document["libraries"].size(), 5U);
  EXPECT_THAT(Call({"version", "-o", "yaml"}).out, StartsWith("version: "));
}

TEST_F(Commands, a_mistyped_one_is_told_with_the_nearest_and_a_secret_is_not_repeated) {
  const Outcome mistyped = Call({"stauts"});
  EXPECT_EQ(mistyped.exit_code, 2);
  EXPECT_EQ(mistyped.err,
            "nomad-harvester: there is no command \"stauts\"; did you mean status?\n");
  const Outcome secret = Call({"s3cr3t-t0ken-of-somebody"});
  EXPECT_EQ(secret.exit_code, 2);
  EXPECT_THAT(secret.err, AllOf(HasSubstr("there is no such command; the commands are dev, "),
                                Not(HasSubstr("s3cr3t"))));
  EXPECT_THAT(Call({"nosuch"}).err, HasSubstr("no command \"nosuch\"; the commands are dev, "));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"help", "stauts"}, {"stauts", "--help"}}) {
    EXPECT_EQ(Call(arguments).exit_code, 2);
    EXPECT_EQ(Call(arguments).err, mistyped.err);
  }
}

TEST_F(Commands, P3_a_mistyped_option_is_told_with_the_nearest_and_without_values) {
  const Outcome separate = Call({"status", "--outptu", "sesame"});
  EXPECT_EQ(separate.exit_code, 2);
  EXPECT_THAT(separate.err, AllOf(StartsWith("nomad-harvester status: "), HasSubstr("--outptu"),
                                  HasSubstr("did you mean --output?"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(Call({"gc", "--dryrun"}).err, HasSubstr("did you mean --dry-run?"));
  EXPECT_THAT(Call({"--verson"}).err, HasSubstr("did you mean --version?"));
}

TEST_F(Commands, with_output_json_usage_errors_are_JSON_too) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"status", "--output", "json", "--outptu"},
        {"stauts", "--output=json"},
        {"status", "--output", "json", "--policy-name", "x"},
        {"status", "--output", "json", "--set"}}) {
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err,
                AllOf(StartsWith("{\"error\":{"), EndsWith("}}\n"), HasSubstr("\"exit_code\":2")));
  }
}

// For each that prints by itself or by CLI11.
TEST_F(Commands, output_that_cannot_be_written_is_an_error) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"version"}, {"--version"}, {"--help"}, {"help", "gc"}}) {
    const Outcome full = CallWritingTo(open("/dev/full", O_WRONLY), arguments);
    EXPECT_EQ(full.exit_code, 1) << arguments.front();
    EXPECT_EQ(full.err, "nomad-harvester: cannot write the output: No space left on device\n");
  }
}

TEST_F(Commands, a_reader_who_has_left_is_an_error_without_words) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const Outcome outcome = CallWritingTo(ends[1], {"version"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(Commands, standard_output_has_a_reader_until_the_other_end_of_its_pipe_is_closed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::vector<bool> has_reader;
  {
    const CapturedOutput output;
    has_reader.push_back(HasReader());  // a file
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    has_reader.push_back(HasReader());
    close(ends[0]);
    has_reader.push_back(HasReader());
  }
  EXPECT_THAT(has_reader, testing::ElementsAre(true, true, false));
}

TEST_F(Commands, T3_the_history_is_that_of_one_pool) {
  const Outcome all = Call({"status", "--all", "--history"});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_THAT(all.err, HasSubstr("--history is that of one pool"));
}

TEST_F(Commands, P1_a_wrong_cookie_is_an_error_and_no_request_for_help) {
  for (const char* cookie : {"", "x", "E082FA04D587A6525D683666FA253D6AFDA00F20C122C54A"}) {
    const Outcome outcome = Call({}, {{plugin::kCookieKey, cookie}});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.out, IsEmpty()) << "no handshake";
    EXPECT_THAT(outcome.err, HasSubstr(plugin::kCookieKey));
    EXPECT_EQ(Call({"version"}, {{plugin::kCookieKey, cookie}}).exit_code, 0);
  }
}

// An unreadable certificate of the agent ends the plugin before it serves.
TEST_F(Commands, with_the_cookie_it_is_the_plugin_regardless_of_the_arguments) {
  const support::ScopedTempDir tmp;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{}, std::vector<std::string>{"version"},
        std::vector<std::string>{"--no-such-option"}}) {
    const Outcome outcome = Call(arguments, {{plugin::kCookieKey, plugin::kCookieValue},
                                             {"TMPDIR", tmp.path()},
                                             {"PLUGIN_CLIENT_CERT", "no certificate"}});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.out, IsEmpty()) << "no handshake";
    EXPECT_THAT(outcome.err, AllOf(StartsWith("{"), HasSubstr("Cannot serve"), EndsWith("}\n")));
  }
}

TEST_F(Commands, version_prints_the_version_on_standard_output_also_as_an_option) {
  for (const char* word : {"version", "--version"}) {
    const Outcome outcome = Call({word});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, VersionText());
    EXPECT_THAT(outcome.err, IsEmpty());
  }
}

TEST_F(Commands, each_command_has_its_own_help) {
  const Outcome dev = Call({"dev", "--help"});
  EXPECT_EQ(dev.exit_code, 0);
  EXPECT_THAT(dev.out, AllOf(HasSubstr("--listen"), HasSubstr("unix:/path"),
                             HasSubstr("127.0.0.1:PORT"), HasSubstr("--simulate")));
  const Outcome version = Call({"version", "--help"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, Not(HasSubstr("\ncommit "))) << "help is not the command";
}

TEST_F(Commands, usage_errors_are_2_with_a_text_on_standard_error) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"no-such-command"},
        {"--no-such-option"},
        {"--listen", "x"},
        {""},
        {"dev", "--no-such-option"},
        {"dev", "--listen"},
        {"dev", "--simulate=maybe"},
        {"dev", "superfluous"},
        {"dev", "--fail", "quota"},
        {"dev", "--kill-after", "3"},
        {"dev", "--simulate", "--fail", "fire"},
        {"dev", "--simulate", "--set", "harvester_url=http://h"},
        {"dev", "--listen", "unix:/a", "--listen", "unix:/b"},
        {"version", "superfluous"},
        {"version", "--listen", "x"},
        {"VERSION"},
        {"status"},
        {"status", "--output", "xml", "--set", "node_group_name=web", "--set", "node_class=web"},
        {"status", "--set", "node_group_nam=web"},
        {"status", "--policy", "x.hcl"},
        {"gc", "--agent-config", "x.hcl"},
        {"gc", "--set"},
        {"gc", "web"}}) {
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.out, IsEmpty()) << testing::PrintToString(arguments);
    EXPECT_THAT(outcome.err, Not(IsEmpty())) << testing::PrintToString(arguments);
  }
}

TEST_F(Commands, plan_that_answers_by_its_exit_code_has_1_for_wrong_usage) {
  EXPECT_EQ(Call({"plan", "3"}).exit_code, 2);
  EXPECT_EQ(Call({"plan", "3", "--exit-code"}).exit_code, 1);
  EXPECT_EQ(Call({"plan", "--exit-code"}).exit_code, 1) << "2 would mean that something changes";
}

TEST_F(Commands, an_unexpected_argument_is_told_what_there_is) {
  EXPECT_THAT(Call({"manual", "gc", "--output", "yaml"}).err,
              AllOf(HasSubstr("among them --output; there are none but --help. Run"),
                    Not(HasSubstr("--set"))));
  EXPECT_THAT(Call({"unpause"}).err, HasSubstr("did you mean resume?"));
  EXPECT_THAT(Call({"paus"}).err, HasSubstr("did you mean pause?"));
}

TEST_F(Commands, an_argument_that_is_missing_is_shown_by_an_example) {
  EXPECT_EQ(Call({"plan"}).err,
            "nomad-harvester plan: --count is required; for example: nomad-harvester plan 3 "
            "batch-workers\n");
  EXPECT_THAT(Call({"evacuate"}).err, HasSubstr("HOST is required; for example: "));
}

TEST_F(Commands, an_argument_that_is_wrong_or_too_many_is_repeated_with_what_is_right) {
  EXPECT_THAT(Call({"scale", "--count", "three"}).err,
              HasSubstr("scale: --count: must be a whole number without leading zeros, such as 3, "
                        "got \"three\"; run with --help for more information\n"));
  EXPECT_THAT(Call({"scale", "three"}).err,
              HasSubstr("--count is required; \"three\" is no count; for example: "));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "--count", "-1"},
        {"plan", "-1"},
        {"scale", "-1", "web"}}) {
    EXPECT_EQ(Call(arguments).exit_code, 2);
    EXPECT_THAT(Call(arguments).err,
                HasSubstr(": --count: must be a whole number without leading zeros, such as 3, got "
                          "\"-1\""));
  }
  for (const char* const pool_first : {"web", "007"}) {
    const std::string other = pool_first == std::string("web") ? "007" : "web";
    EXPECT_EQ(Call({"scale", pool_first, other}).err,
              "nomad-harvester scale: --count: must be a whole number without leading zeros, such "
              "as 3, got \"007\"\n");
  }
  EXPECT_THAT(Call({"status", "-w", "--interval", "9"}).err,
              HasSubstr("must be a duration of at least 1s, such as 5s or 1m, got \"9\""));
  EXPECT_THAT(Call({"dev", "--simulate", "--kill-after", "0"}).err,
              HasSubstr("must be a whole number from 1, such as 5, got \"0\""));
  EXPECT_EQ(Call({"scale", "2", "3"}).err,
            "nomad-harvester scale: unexpected argument \"3\"; it takes COUNT and [POOL] and "
            "options; a setting "
            "is given as --set KEY=VALUE, a policy as --policy FILE. Run with --help for more "
            "information.\n");
  EXPECT_THAT(Call({"check", "web.hcl", "x"}).err,
              HasSubstr("unexpected argument \"web.hcl\"; it takes [POOL] and options; "));
  EXPECT_THAT(
      Call({"status", "web-a", "web-b", "--set", "node_group_name=web"}).err,
      HasSubstr("it takes a pool and a VM, and none of these is a pool of the files: web-a, "
                "web-b\n"));
  EXPECT_THAT(Call({"version", "x"}).err, HasSubstr("\"x\"; it takes nothing but options. Run"));
}

TEST_F(Commands, a_missing_key_is_told_with_the_options_that_give_it) {
  constexpr char kHow[] =
      "no files of the agent are read (NOMAD_HARVESTER_AGENT_CONFIG is empty); missing keys come "
      "from the agent's files, --agent-config FILE and --policy FILE, or one by one from --set "
      "KEY=VALUE\n";
  const config::StringMap environment = {{"HARVESTER_URL", "http://127.0.0.1:1"}};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"plan", "3"}, std::vector<std::string>{"status"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--set", "node_group_name=web"});
    EXPECT_THAT(Call(words, environment).err, EndsWith(std::string(": ") + kHow));
  }
  EXPECT_THAT(Call({"plan", "3", "--set", "node_group_name=web", "--set", "node_class=web", "--set",
                    "vm_template=a/b", "--set", "on_join_timeout=x"},
                   environment)
                  .err,
              Not(HasSubstr(kHow)))
      << "nothing is missing";
  const support::ScopedTempDir tmp;
  const std::string policy = tmp.WriteFile(
      "p.hcl",
      "scaling \"web\" {\n  max = 1\n  policy {\n    target \"harvester\" {\n      node_class = "
      "\"web\"\n    }\n  }\n}\n");
  EXPECT_THAT(Call({"status", "--policy", policy}, environment).err,
              AllOf(HasSubstr("add it to the policy's target block"), Not(HasSubstr(kHow))))
      << "it has a file";
}

TEST_F(Commands, a_pool_without_files_is_told_that_no_files_are_read) {
  constexpr char kNone[] =
      ": no files of the agent are read (NOMAD_HARVESTER_AGENT_CONFIG is empty)";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"check", "web"},
                                                  {"scale", "3", "web"},
                                                  {"plan", "2", "web"},
                                                  {"status", "web"},
                                                  {"replace", "web", "--drifted"},
                                                  {"pause", "web"},
                                                  {"gc", "web"}}) {
    const Outcome outcome = Call(command);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, "nomad-harvester " + command.front() + kNone +
                               ", so that \"web\" is no pool here: name them with "
                               "--agent-config, or the pool with --set node_group_name=web\n");
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"pause"}, {"status"}, {"evacuate", "rack1-a"}}) {
    EXPECT_EQ(Call(command).err, "nomad-harvester " + command.front() + kNone +
                                     ": name them with --agent-config, or the pool with --set "
                                     "node_group_name=NAME\n");
  }
  EXPECT_THAT(Call({"status", "nomad/web"}).err,
              HasSubstr("\"nomad/web\" is no pool here: name them with --agent-config, or the pool "
                        "with --set node_group_name=NAME\n"));
  EXPECT_EQ(Call({"demand", "web"}).err,
            std::string("nomad-harvester demand") + kNone +
                ", so that \"web\" is no pool here: name them with --agent-config, or give a query "
                "such as 'nodes-needed node_class=web'\n");
  EXPECT_EQ(Call({"demand"}).err,
            std::string("nomad-harvester demand") + kNone +
                ": name them with --agent-config, or give a query such as 'nodes-needed "
                "node_class=web'\n");
  EXPECT_EQ(Call({"why", "shop"}).err,
            std::string("nomad-harvester why") + kNone +
                ": name them with --agent-config, or a policy with --policy\n");
  EXPECT_THAT(Call({"status", "hunter2-hunter2-hunter2"}).err, Not(HasSubstr("hunter2")))
      << "it may be a secret";
}

TEST_F(Commands, init_without_a_cluster_says_how_to_name_one) {
  const Outcome outcome = Call({"init"}, {{"HOME", "/nowhere"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, StartsWith("nomad-harvester init: no cluster is known: give "
                                      "--kubeconfig FILE, or set HARVESTER_KUBECONFIG"));
}

TEST_F(Commands, init_merges_the_kubeconfigs_of_kubectl) {
  const support::ScopedTempDir tmp;
  const auto write = [&](const std::string& name, const std::string& server) {
    return tmp.WriteFile(name,
                         "current-context: m\ncontexts: [{name: m, context: {cluster: c}}]\n"
                         "clusters: [{name: c, cluster: {server: '" +
                             server + "'}}]\n");
  };
  const std::string list = tmp.Path("none") + ":" + write("a", "http://127.0.0.1:1") + ":" +
                           write("b", "http://127.0.0.1:2");
  EXPECT_THAT(Call({"init", "--dir", tmp.Path("etc")}, {{"KUBECONFIG", list}}).err,
              AllOf(HasSubstr("http://127.0.0.1:1"), Not(HasSubstr("no such file"))));
}

TEST_F(Commands, the_agents_configuration_may_be_given_several_times) {
  const support::ScopedTempDir tmp;
  const std::string target =
      tmp.WriteFile("a.hcl",
                    "target \"harvester\" {\n  driver = \"harvester\"\n  config = {\n    "
                    "harvester_url = \"http://127.0.0.1:1\"\n  }\n}\n");
  const std::string wrong = tmp.WriteFile("b.hcl", "nomad {\n  addres = \"x\"\n}\n");
  EXPECT_THAT(Call({"status", "--agent-config", target, "--agent-config=" + wrong}, {}).err,
              AllOf(HasSubstr("b.hcl:2:3: unknown argument addres in block nomad; did you mean "
                              "address? (the agent does not start with this file)"),
                    Not(HasSubstr("several times"))));
}

TEST_F(Commands, an_argument_that_is_also_an_option_is_told_once) {
  for (const char* command : {"plan", "scale"}) {
    const std::string help = Call({"help", command}).out;
    EXPECT_EQ(help.find("COUNT INT REQUIRED"), help.rfind("REQUIRED") - 10) << help;
    EXPECT_THAT(help, HasSubstr("3, or --count 3"));
  }
}

TEST_F(Commands, the_help_of_each_command_that_asks_a_system_has_the_exit_code_of_ctrl_c) {
  for (const char* command : {"init", "check", "status", "demand", "why", "gc", "adopt", "pause",
                              "resume", "replace", "evacuate", "plan", "scale", "render"}) {
    EXPECT_THAT(Call({"help", command}).out, EndsWith(", 130 interrupted.\n")) << command;
  }
}

TEST_F(Commands, demand_refuses_a_setting_that_an_apm_block_does_not_have) {
  const Outcome outcome = Call({"demand", "nodes-needed node_class=web", "--set", "events=true"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("events: not a key of an apm block"));
}

constexpr char kAgentOfOnePolicy[] = R"(
target "harvester" {
  driver = "harvester"
}
nomad {
  address = "http://127.0.0.1:1"
}
policy {
  dir = "DIR/policies"
}
)";
constexpr char kOnePolicy[] = R"(
scaling "workers" {
  enabled = ENABLED
  type    = "cluster"
  min     = 0
  max     = 2

  policy {
    check "need" {
      source = "prometheus"
      query  = "1"
      strategy "pass-through" {}
    }
    target "TARGET" {
      node_group_name = "workers"
      node_class      = "web"
      dry-run         = "true"
    }
  }
}
)";

TEST_F(Commands, demand_and_why_without_an_enabled_policy_of_this_plugin_say_which_there_are) {
  const support::ScopedTempDir dir;
  std::filesystem::create_directory(dir.path() + "/policies");
  const std::string agent = dir.path() + "/agent.hcl";
  std::ofstream(agent) << absl::StrReplaceAll(kAgentOfOnePolicy, {{"DIR", dir.path()}});
  const auto call = [&](std::vector<std::string> command, const std::string& enabled,
                        const std::string& target, const std::vector<std::string>& more = {}) {
    std::ofstream(dir.path() + "/policies/workers.hcl")
        << absl::StrReplaceAll(kOnePolicy, {{"ENABLED", enabled}, {"TARGET", target}});
    command.insert(command.end(), {"--agent-config", agent});
    command.insert(command.end(), more.begin(), more.end());
    return Call(command);
  };
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"demand"}, std::vector<std::string>{"why", "shop"}}) {
    const Outcome other = call(command, "true", "aws-asg");
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, AllOf(HasSubstr("has no policy with the target \"harvester\""),
                                 HasSubstr("workers: target \"aws-asg\"")));
    const Outcome disabled = call(command, "false", "harvester");
    EXPECT_THAT(disabled.err, HasSubstr("policy \"workers\" is not enabled: the agent does not"));
    EXPECT_THAT(call(command, "false", "harvester", {"--policy-name", "workers"}).err,
                HasSubstr("policy \"workers\" is not enabled: the agent does not"));
  }
  const Outcome set = call({"why", "shop", "--set", "node_class=api"}, "true", "harvester");
  EXPECT_EQ(set.exit_code, 2);
  EXPECT_THAT(set.err, HasSubstr("node_class: belongs in the query or in the policy's target"));
}

TEST_F(Commands, demand_answers_a_query_with_the_connection_of_the_agents_apm_block) {
  const support::ScopedTempDir dir;
  const std::string agent = dir.WriteFile("agent.hcl",
                                          "target \"harvester\" {\n  driver = \"harvester\"\n}\n"
                                          "apm \"demand\" {\n"
                                          "  driver = \"harvester\"\n"
                                          "  args   = [\"apm\"]\n"
                                          "  config = { harvester_url = \"ftp://of-the-apm\" }\n"
                                          "}\n");
  const Outcome outcome =
      Call({"demand", "room namespace=nomad pool=web", "--agent-config", agent});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("ftp://of-the-apm"));
}

TEST_F(Commands, demand_and_why_do_not_mix_the_answers_of_two_apm_blocks) {
  const support::ScopedTempDir dir;
  std::filesystem::create_directory(dir.path() + "/policies");
  std::string text = absl::StrReplaceAll(kAgentOfOnePolicy, {{"DIR", dir.path()}});
  for (const std::string name : {"east", "west"}) {
    text += "apm \"" + name + "\" {\n  driver = \"harvester\"\n  args = [\"apm\"]\n" +
            "  config = { nomad_address = \"http://" + name + ".invalid\" }\n}\n";
    std::ofstream(dir.path() + "/policies/" + name + ".hcl")
        << absl::StrReplaceAll(kOnePolicy, {{"ENABLED", "true"},
                                            {"TARGET", "harvester"},
                                            {"\"workers\"", "\"" + name + "\""},
                                            {"prometheus", name},
                                            {"\"1\"", "\"nodes-needed node_class=web\""}});
  }
  const std::string agent = dir.WriteFile("agent.hcl", text);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"demand"}, std::vector<std::string>{"why", "shop"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--agent-config", agent});
    const Outcome outcome = Call(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err,
                HasSubstr("the policies ask the apm blocks east, west, which differ in "
                          "nomad_address: give --policy-name of a policy"));
    // The block of one policy's check, or what is the same in both, is no mixture.
    std::vector<std::string> one = words;
    one.insert(one.end(), {"--policy-name", "west", "--set", "request_timeout=soon"});
    EXPECT_THAT(Call(one).err, AllOf(HasSubstr(": using the apm block west\n"),
                                     HasSubstr("request_timeout: "), Not(HasSubstr("differ"))));
    words.insert(words.end(), {"--set", "nomad_address=ftp://n"});
    EXPECT_THAT(Call(words).err, AllOf(HasSubstr("nomad_address: "), Not(HasSubstr("which differ")),
                                       Not(HasSubstr("using the apm block"))));
  }
  const Outcome query = Call({"demand", "nodes-needed node_class=web", "--agent-config", agent});
  EXPECT_EQ(query.exit_code, 2);
  EXPECT_THAT(query.err, HasSubstr("no check names one of the apm blocks east, west, which differ "
                                   "in nomad_address: give --policy-name of a policy"));
}

TEST_F(Commands, demand_does_not_choose_between_apm_blocks_of_which_one_lacks_a_key) {
  const support::ScopedTempDir dir;
  std::filesystem::create_directory(dir.path() + "/policies");
  std::string text = absl::StrReplaceAll(kAgentOfOnePolicy, {{"DIR", dir.path()}});
  for (const std::string key : {"nomad_address = \"http://n.invalid\"",
                                "nomad_address = \"http://n.invalid\"\n nomad_region = \"eu\""}) {
    text += "apm \"" + std::string(key.ends_with("eu\"") ? "with" : "without") +
            "\" {\n  driver = \"harvester\"\n  args = [\"apm\"]\n  config = {\n" + key +
            "\n  }\n}\n";
  }
  const std::string agent = dir.WriteFile("agent.hcl", text);
  const Outcome outcome = Call({"demand", "nodes-needed node_class=web", "--agent-config", agent});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the apm blocks with, without, which differ in nomad_region"));
}

// The agent's files with these policies, and an address that is refused before it is asked.
class AgentsFiles : public Commands {
 protected:
  explicit AgentsFiles(const std::vector<std::string>& policies = {"workers"}) {
    std::filesystem::create_directory(dir_.path() + "/policies");
    std::ofstream(agent_) << absl::StrReplaceAll(
        kAgentOfOnePolicy, {{"DIR", dir_.path()}, {"http://127.0.0.1:1", "ftp://nomad"}});
    for (const std::string& name : policies) {
      std::ofstream(dir_.path() + "/policies/" + name + ".hcl") << absl::StrReplaceAll(
          kOnePolicy,
          {{"ENABLED", "true"}, {"TARGET", "harvester"}, {"\"workers\"", "\"" + name + "\""}});
    }
  }
  Outcome Find(const std::vector<std::string>& arguments) const {
    return Call(arguments, {{kAgentConfigVariable, agent_}});
  }

  const support::ScopedTempDir dir_;
  const std::string agent_ = dir_.path() + "/agent.hcl";
};

TEST_F(AgentsFiles, are_read_without_an_option_and_one_line_says_so) {
  for (const char* command : {"status", "check", "pause", "demand", "gc", "plan"}) {
    std::vector<std::string> words = {command};
    if (words.front() == "plan") words.emplace_back("1");
    const Outcome outcome = Find(words);
    const std::string line = "nomad-harvester " + words.front() + ": using the files of " + agent_ +
                             " and " + dir_.path() + "/policies\n";
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, AllOf(StartsWith(line), HasSubstr("nomad_address: ")));
    EXPECT_EQ(outcome.err.find("using the files"), outcome.err.rfind("using the files"));
  }
  EXPECT_THAT(Find({"status", "--all"}).err, HasSubstr("using the files of "));
  EXPECT_THAT(Find({"gc", "-n", "nomad"}).err, HasSubstr("using the files of " + agent_ + "\n"));
  for (const char* output : {"json", "yaml"}) {
    EXPECT_THAT(Find({"status", "-o", output}).err, Not(HasSubstr("using the files")));
  }
  EXPECT_THAT(Find({"status", "--agent-config", agent_}).err, Not(HasSubstr("using the files")));
  EXPECT_EQ(Find({"__complete", "status", "--policy-name", ""}).out, "workers\n");
}

class AgentsFilesOfTwo : public AgentsFiles {
 protected:
  AgentsFilesOfTwo() : AgentsFiles({"web", "db"}) {}
};

TEST_F(AgentsFilesOfTwo, each_command_takes_its_pool_by_the_label_of_the_policy) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"check", "web"},
                                                  {"status", "web"},
                                                  {"status", "web", "web-7"},
                                                  {"adopt", "web"},
                                                  {"pause", "web"},
                                                  {"resume", "web"},
                                                  {"replace", "web", "--drifted"},
                                                  {"replace", "web", "web-7"},
                                                  {"evacuate", "rack1-a", "web"},
                                                  {"plan", "1", "web"},
                                                  {"plan", "web", "1"},
                                                  {"scale", "1", "web"},
                                                  {"scale", "web", "--count", "1"},
                                                  {"render", "web"}}) {
    const std::string text = testing::PrintToString(command);
    EXPECT_THAT(Find(command).err, AllOf(HasSubstr("nomad_address: "), Not(HasSubstr("several"))))
        << text << ": it has a pool";
    std::vector<std::string> unnamed = command;
    std::erase(unnamed, "web");
    EXPECT_THAT(Find(unnamed).err, HasSubstr("several policies; name one of them")) << text;
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"demand", "web"}, {"why", "shop", "web"}, {"gc", "web"}}) {
    EXPECT_THAT(Find(command).err, HasSubstr("nomad_address: ")) << "it would also do without";
  }
  EXPECT_THAT(Find({"pause", "batch"}).err,
              HasSubstr("/policies has no policy or pool \"batch\"; it has\n"));
  EXPECT_THAT(Find({"pause", "wep"}).err,
              HasSubstr("/policies has no policy or pool \"wep\"; did you mean web? It has\n"));
  EXPECT_EQ(Find({"pause", "web", "--policy-name", "web"}).exit_code, 2);
  for (const char* path : {"/web", "policies/", "./web", "etc/policies/web"}) {
    EXPECT_THAT(Find({"pause", path}).err, HasSubstr("unexpected argument")) << path;
  }
  EXPECT_EQ(Find({"status", "web", "--all"}).exit_code, 2);
}

TEST_F(AgentsFilesOfTwo, name_the_nearest_pool_for_a_word_that_is_none) {
  EXPECT_THAT(
      Find({"scale", "wep"}).err,
      HasSubstr("--count is required; \"wep\" is neither a count nor the pool of an enabled "
                "policy; did you mean web? For example: "));
  EXPECT_THAT(Find({"plan", "batch"}).err,
              HasSubstr("nor the pool of an enabled policy; there are db, web; for example: "));
  EXPECT_THAT(Find({"scale", "web"}).err, HasSubstr("--count is required; for example: "));
  EXPECT_THAT(Find({"status", "wep"}).err, HasSubstr("did you mean web?\n"));
  EXPECT_THAT(Find({"status", "wep", "web-7"}).err, HasSubstr("did you mean web?\n"));
  EXPECT_THAT(Find({"demand", "wep"}).err,
              HasSubstr("\"wep\" is neither a query nor a pool; did you mean web?\n"));
  EXPECT_THAT(Find({"demand", "nope"}).err,
              HasSubstr("\"nope\" is neither a query nor a pool; there are db, web\n"));
  EXPECT_THAT(Find({"demand", "nodes-neded"}).err, Not(HasSubstr("is neither")))
      << "its own error names nodes-needed";
  EXPECT_THAT(Find({"replace", "nope", "--drifted"}).err,
              HasSubstr("nope: no pool has such a name; there are db, web; give either the names"));
  EXPECT_THAT(Find({"replace", "wep", "--drifted"}).err,
              HasSubstr("wep: no pool has such a name; did you mean web? Else give either"));
}

TEST_F(AgentsFilesOfTwo, demand_names_the_file_that_cannot_be_read_for_a_word_that_is_no_pool) {
  const std::string wrong = dir_.WriteFile("policies/api.hcl", "scaling \"api\" {\n");
  EXPECT_THAT(Find({"demand", "api"}).err,
              HasSubstr("\"api\" is neither a query nor a pool; there are db, web\n"
                        "nomad-harvester demand: Of these files no policy is read:\n"
                        "nomad-harvester demand: " +
                        wrong + ":1:15: this block is not closed"));
}

TEST_F(AgentsFilesOfTwo, are_completed_by_pools_and_their_namespaces) {
  for (const char* command : {"status", "pause", "gc", "replace", "demand"}) {
    EXPECT_THAT(Find({"__complete", command, ""}).out, HasSubstr("db\nweb\n")) << command;
    EXPECT_EQ(Find({"__complete", command, "w"}).out, "web\n") << command;
    EXPECT_THAT(Find({"__complete", command, "web", ""}).out, Not(HasSubstr("db\n")))
        << "it has a pool: " << command;
  }
  EXPECT_EQ(Find({"__complete", "scale", "3", "d"}).out, "db\n");
  EXPECT_EQ(Find({"__complete", "gc", "-n", ""}).out, "default\n");
  EXPECT_EQ(Find({"__complete", "init", "--pool", ""}).out, "") << "it will be a new one";
}

// Against a simulated Harvester and Nomad.
class AgentsFilesOfAWorld : public AgentsFiles {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.Start().ok());
    std::ofstream(agent_) << "target \"harvester\" {\n  driver = \"harvester\"\n  config = {\n    "
                             "harvester_url = \""
                          << world_.harvester_url() << "\"\n    auth_token = \""
                          << world_.Config().at("auth_token") << "\"\n  }\n}\n"
                          << "nomad {\n  address = \"" << world_.nomad_address() << "\"\n}\n"
                          << "policy {\n  dir = \"" << dir_.path() << "/policies\"\n}\n";
  }

  SimulatedWorld world_;
};

TEST_F(AgentsFilesOfAWorld, let_status_work_bare_and_by_the_pools_name) {
  const Outcome bare = Find({"status"});
  EXPECT_THAT(bare.out, StartsWith("Pool:       default/workers\n")) << bare.err;
  const Outcome named = Find({"status", "workers"});
  EXPECT_EQ(named.exit_code, bare.exit_code);
  EXPECT_EQ(named.out, bare.out);
  EXPECT_EQ(Find({"status", "default/workers"}).out, bare.out);
  EXPECT_THAT(Find({"status", "workers", "workers-7"}).err,
              HasSubstr("pool default/workers has no VM workers-7"));
  EXPECT_THAT(Find({"status", "worker"}).err,
              HasSubstr("pool default/workers has no VM worker, and no enabled policy of the files "
                        "has such a pool; did you mean workers?"));
  EXPECT_THAT(Find({"replace", "worker", "--yes"}).err,
              HasSubstr("has no VM worker; did you mean workers?"));
  dir_.WriteFile("policies/off.hcl", absl::StrReplaceAll(kOnePolicy, {{"ENABLED", "false"},
                                                                      {"TARGET", "harvester"},
                                                                      {"\"workers\"", "\"off\""}}));
  EXPECT_THAT(Find({"status", "off"}).out, StartsWith("Pool:       default/off\n"));
  EXPECT_THAT(Find({"status", "--policy-name", "off"}).out,
              StartsWith("Pool:       default/off\n"));
  dir_.WriteFile("policies/twin.hcl",
                 absl::StrReplaceAll(kOnePolicy, {{"ENABLED", "true"},
                                                  {"TARGET", "harvester"},
                                                  {"scaling \"workers\"", "scaling \"twin\""}}));
  for (const std::string word : {"workers", "--all"}) {
    const Outcome shared = Find({"status", word});
    EXPECT_EQ(shared.exit_code, 4) << word << shared.out << shared.err;
    EXPECT_THAT(shared.out, HasSubstr("overwrite each other's count")) << word << shared.out;
  }
}

TEST_F(AgentsFilesOfAWorld, are_completed_by_hosts) {
  EXPECT_EQ(Find({"__complete", "evacuate", "h"}).out, "harvester-1\nharvester-2\nharvester-3\n");
  EXPECT_EQ(Find({"__complete", "evacuate", "--policy-name", "workers", "h"}).out,
            "harvester-1\nharvester-2\nharvester-3\n");
}

TEST_F(Commands, apm_is_started_by_the_agent) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"apm"}, std::vector<std::string>{"apm", "--help"},
        std::vector<std::string>{"help", "apm"}}) {
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("the agent starts apm"));
  }
}

TEST_F(Commands, P3_a_setting_whose_set_was_forgotten_is_not_repeated) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"dev", "auth_token=sesame-street"},
        std::vector<std::string>{"dev", "--auth_token=sesame-street"},
        std::vector<std::string>{"status", "--auth_token", "sesame-street"},
        std::vector<std::string>{"scale", "auth_token=sesame-street"},
        std::vector<std::string>{"scale", "3", "auth_token=sesame-street"}}) {
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("--set KEY=VALUE"), Not(HasSubstr("sesame"))));
  }
  EXPECT_THAT(Call({"dev", "--no-such-option=x"}).err, HasSubstr("--no-such-option"));
}

// An address of the right form, so that it is found at the end.
constexpr char kNowhere[] = "unix:/no/such/directory/socket";

TEST_F(Commands, an_address_that_cannot_be_served_is_1_with_a_log_line) {
  const Outcome outcome =
      Call({"dev", "--listen", kNowhere, "--set", "harvester_url=http://127.0.0.1:1"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("[ERROR] Cannot serve"), HasSubstr("error="),
                                 HasSubstr("/no/such/directory/socket: does its directory exist")));
}

TEST_F(Commands, an_address_of_a_wrong_form_is_a_usage_error_before_anything_starts) {
  for (const char* address : {"0.0.0.0:0", "10.0.0.1:80", "127.0.0.1", "127.0.0.1:x",
                              "127.0.0.1:70000", "127.0.0.1:-1", "[::]:0", "unix:", ":80"}) {
    const Outcome outcome = Call({"dev", "--simulate", "--listen", address});
    EXPECT_EQ(outcome.exit_code, 2) << address;
    EXPECT_THAT(outcome.out, IsEmpty()) << address;
    EXPECT_THAT(outcome.err, StartsWith("nomad-harvester dev: --listen: \"" + std::string(address)))
        << address;
  }
}

TEST_F(Commands, an_invalid_address_is_reported_with_the_valid_form) {
  const config::StringMap environment{{"HARVESTER_URL", "http://127.0.0.1:1"}};
  EXPECT_THAT(Call({"dev", "--listen", "harvester"}, environment).err,
              AllOf(HasSubstr("unix:/path"), HasSubstr("127.0.0.1:PORT")));
  EXPECT_THAT(Call({"dev", "--listen", "0.0.0.0:80"}, environment).err,
              HasSubstr("only this machine"));
}

TEST_F(Commands, dev_without_a_configuration_reports_what_is_missing_and_continues) {
  EXPECT_THAT(
      Call({"dev", "--listen", kNowhere}).err,
      AllOf(HasSubstr("[WARN]  Not configured by the environment"), HasSubstr("harvester_url")));
}

// Nobody may configure it there later.
TEST_F(Commands, dev_on_TCP_without_a_configuration_is_a_usage_error) {
  const Outcome outcome = Call({"dev", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, StartsWith("nomad-harvester dev: harvester_url: required"));
}

TEST_F(Commands, dev_is_configured_by_set) {
  const Outcome outcome =
      Call({"dev", "--listen", kNowhere, "--set", "harvester_url=http://127.0.0.1:1", "--set",
            "auth_token=sesame-street"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("[WARN]  auth_token: a secret given by --set is in the "
                                           "process list"),
                                 HasSubstr("HARVESTER_TOKEN"), Not(HasSubstr("sesame"))));
  for (const char* wrong :
       {"harvester_ulr=x", "node_class=x", "nonsense", "harvester_url=ftp://h"}) {
    const Outcome refused = Call({"dev", "--listen", kNowhere, "--set", wrong});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_THAT(refused.err, StartsWith("nomad-harvester dev: ")) << wrong;
  }
}

TEST_F(Commands, L10_a_pause_that_would_be_over_already_is_a_usage_error) {
  const std::vector<std::string> pause = {"pause",
                                          "--set",
                                          "harvester_url=http://127.0.0.1:1",
                                          "--set",
                                          "node_group_name=web",
                                          "--set",
                                          "node_class=web",
                                          "--until"};
  const auto until = [&](const std::string& time) {
    std::vector<std::string> arguments = pause;
    arguments.push_back(time);
    return Call(arguments);
  };
  const Outcome past = until("2020-02-29T08:00:00Z");
  EXPECT_EQ(past.exit_code, 2);
  EXPECT_EQ(past.err,
            "nomad-harvester pause: --until: 2020-02-29T08:00:00Z is not in the future\n");
  EXPECT_THAT(until("tomorrow").err, HasSubstr("or how long from now, such as 2h\n"));
  EXPECT_EQ(until("-2h").exit_code, 2);
  EXPECT_EQ(until("0s").exit_code, 2);
}

TEST_F(Commands, the_process_writes_no_core_file_and_nobody_may_trace_it) {
  Call({"version"});
  EXPECT_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
  rlimit core{};
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &core), 0);
  EXPECT_EQ(core.rlim_cur, 0U);
  EXPECT_EQ(core.rlim_max, 0U);
}

TEST_F(Commands, P3_the_process_writes_no_keys_of_tls_to_a_file) {
  setenv("SSLKEYLOGFILE", "/tmp/keys", 1);
  Call({"version"});
  EXPECT_EQ(getenv("SSLKEYLOGFILE"), nullptr);
}

TEST_F(Commands, dev_is_configured_by_its_environment) {
  const Outcome outcome =
      Call({"dev", "--listen", kNowhere},
           {{"HARVESTER_URL", "http://127.0.0.1:1"}, {"HARVESTER_TOKEN", "sesame"}});
  EXPECT_THAT(outcome.err, Not(HasSubstr("Not configured")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("sesame")));
}

// Scripts read the announced lines, so both systems must already listen.
TEST_F(Commands, dev_simulate_announces_its_systems_before_it_serves) {
  const Outcome outcome =
      Call({"dev", "--simulate", "--listen", kNowhere},
           {{"HARVESTER_TOKEN", "sesame"}, {"HARVESTER_TOKEN_FILE", "both are wrong"}});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("harvester_url http://127.0.0.1:[0-9]+\n"
                                                 "nomad_address http://127.0.0.1:[0-9]+\n"));
  EXPECT_THAT(outcome.err, HasSubstr("Cannot serve"));
}

// Threads that are started later inherit the mask.
TEST_F(Commands, SIGTERM_waits_for_the_thread_that_takes_it_and_SIGPIPE_is_ignored) {
  Call({"version"});
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  struct sigaction pipe {};
  sigaction(SIGPIPE, nullptr, &pipe);
  EXPECT_EQ(pipe.sa_handler, SIG_IGN);
}

TEST_F(Commands, dev_is_configured_by_the_agents_files) {
  const support::ScopedTempDir tmp;
  const std::string agent = tmp.WriteFile(
      "agent.hcl",
      "target \"harvester\" {\n  driver = \"harvester\"\n  config = {\n    harvester_url = "
      "\"ftp://a\"\n  }\n}\n");
  const Outcome outcome = Call({"dev", "--listen", kNowhere, "--agent-config", agent});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, AllOf(StartsWith("nomad-harvester dev: harvester_url: "),
                                 HasSubstr("(" + agent + ":4:5)")));
}

class ShellCompletion : public Commands {
 protected:
  // What the shell writes that completes by the script of `completion SHELL`, in the file
  // "completion", and then runs `program`. It runs twice, because the nomad-harvester that it asks
  // is this process: once to learn what it asks, and once with the answer.
  static std::string Ask(const std::string& shell, const std::string& program) {
    const support::ScopedTempDir tmp;
    tmp.WriteFile("completion", Call({"completion", shell}).out);
    tmp.WriteFile("test", program);
    tmp.WriteFile("answer", "");
    const std::string command = tmp.WriteFile(
        "nomad-harvester",
        "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >asked\ncat answer\n");
    chmod(command.c_str(), 0700);
    const std::string run = "cd " + tmp.path() + " && HOME=$PWD PATH=$PWD:$PATH " + shell + " " +
                            (shell == "bash" ? "-u " : "") + "./test >out";
    std::vector<std::string> asked;
    for (const char* const time : {"first", "second"}) {
      // The only way to ask a shell; all texts are this test's.
      if (std::system(run.c_str()) != 0) return shell + " failed the " + time + " time";  // NOLINT
      std::ifstream words(tmp.Path("asked"));
      asked.clear();
      for (std::string word; std::getline(words, word);) asked.push_back(word);
      if (asked.empty()) return shell + " asked nothing";
      tmp.WriteFile("answer", Call(asked).out);
    }
    std::ifstream out(tmp.Path("out"));
    std::string offered(std::istreambuf_iterator<char>(out), {});
    while (offered.ends_with('\n')) offered.pop_back();
    return offered;
  }
  // Of each, what is offered for the last word after "nomad-harvester".
  static std::string Bash(const std::string& words) {
    return Ask("bash", "source ./completion\nCOMP_WORDS=(nomad-harvester " + words +
                           ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_nomad_harvester\necho "
                           "\"${COMPREPLY[@]}\"\n");
  }
  static std::string Fish(const std::string& words) {
    return Ask("fish", "source completion\ncomplete -C'nomad-harvester " + words + "'\n");
  }
  // It completes on a terminal alone: what it would offer there is printed.
  static std::string Zsh(const std::string& words) {
    return Ask("zsh",
               "compdef() { : }\ncompset() { : }\n_files() { print FILES }\n"
               "_describe() { print -l -- ${(P)2} }\ncompadd() { shift 3; print -l -- $@ }\n"
               "source ./completion\nwords=(nomad-harvester " +
                   words + ")\nCURRENT=$#words\n_nomad-harvester || :\n");
  }
};

TEST_F(ShellCompletion, bash_completes_commands_options_values_and_keys) {
  EXPECT_EQ(Bash("stat"), "status");
  EXPECT_EQ(Bash("help stat"), "status");
  EXPECT_EQ(Bash("gc --dr"), "--dry-run");
  EXPECT_EQ(Bash("status --output ''"), "table wide json yaml");
  EXPECT_EQ(Bash("status --output = j"), "json");
  EXPECT_EQ(Bash("status --set node_cl"), "node_class=");
  EXPECT_EQ(Bash("plan --set dry-run ="), "true false");
  EXPECT_EQ(Bash("plan --set dry-run = t"), "true");
  EXPECT_EQ(Bash("plan --set = firmware = uefi-"), "uefi-secure");
  EXPECT_EQ(Bash("plan --set on_join_timeout = ''"), "delete keep");
  EXPECT_EQ(Bash("plan --set node_class = ''"), "") << "anything; no option";
  EXPECT_EQ(Bash("status --policy-name ''"), "");
  EXPECT_EQ(Bash("completion f"), "fish");
  EXPECT_EQ(Bash("status --policy comp"), "completion") << "a file";
  EXPECT_EQ(Bash("status --policy = comp"), "completion");
}

TEST_F(ShellCompletion, fish_completes_the_same_with_descriptions) {
  EXPECT_EQ(Fish("stat"), "status\tShow a pool");
  EXPECT_THAT(Fish("gc --dr"), StartsWith("--dry-run\t"));
  EXPECT_EQ(Fish("status --output j"), "json");
  EXPECT_EQ(Fish("status --output=j"), "--output=json");
  EXPECT_EQ(Fish("status --set node_cl"), "node_class=");
  EXPECT_EQ(Fish("plan --set dry-run=t"), "dry-run=true");
  EXPECT_EQ(Fish("plan --set node_class="), "");
  EXPECT_THAT(Fish("status --policy comp"), StartsWith("completion"));
  EXPECT_THAT(Fish("status --policy=comp"), StartsWith("--policy=completion"));
}

TEST_F(ShellCompletion, zsh_completes_the_same_with_descriptions) {
  EXPECT_EQ(Zsh("stat"), "status:Show a pool");
  EXPECT_THAT(Zsh("gc --dr"), StartsWith("--dry-run:"));
  EXPECT_EQ(Zsh("status --output j"), "json");
  EXPECT_EQ(Zsh("status --output=j"), "--output=json");
  EXPECT_EQ(Zsh("status --set node_cl"), "node_class=");
  EXPECT_EQ(Zsh("plan --set dry-run="), "dry-run=true\ndry-run=false");
  EXPECT_EQ(Zsh("plan --set node_class="), "");
  EXPECT_EQ(Zsh("status --policy ''"), "FILES");
}

TEST_F(Commands, completion_asks_for_the_names_of_policies_by_the_words_that_are_typed) {
  const support::ScopedTempDir tmp;
  const std::string policy = tmp.WriteFile(
      "p.hcl",
      "scaling \"web\" {\n  max = 1\n  policy {\n    target \"harvester\" {}\n  }\n}\n"
      "scaling \"db\" {\n  max = 1\n  policy {\n    target \"harvester\" {}\n  }\n}\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--policy", policy}, {"--policy", "=", policy}}) {
    std::vector<std::string> arguments = {"__complete", "status", "--watch"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.insert(arguments.end(), {"--policy-name", ""});
    const Outcome outcome = Call(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "web\ndb\n");
  }
  EXPECT_THAT(Call({"--help"}).out, Not(HasSubstr("__complete")));
  EXPECT_THAT(Call({"__complete", ""}).out, Not(HasSubstr("__complete"))) << "it is no command";
}

TEST_F(Commands, completion_and_each_manual_page_tell_every_option) {
  EXPECT_THAT(Call({"__complete", ""}).out, HasSubstr("status\t"));
  EXPECT_THAT(Call({"__complete", "gc", ""}).out, HasSubstr("--dry-run\t"));
  EXPECT_EQ(Call({"__complete", "status", "-o", ""}).out, "table\nwide\njson\nyaml\n");
  EXPECT_THAT(Call({"__complete", "status", "--set", ""}).out, HasSubstr("node_class=\n"));
  EXPECT_EQ(Call({"completion", "tcsh"}).exit_code, 2);
  EXPECT_THAT(Call({"manual"}).out,
              AllOf(StartsWith(".TH NOMAD-HARVESTER 1"), HasSubstr("\\fBstatus\\fR")));
  EXPECT_THAT(Call({"manual", "gc"}).out,
              AllOf(StartsWith(".TH NOMAD-HARVESTER-GC 1"), HasSubstr("\\fB\\-\\-dry\\-run\\fR"),
                    HasSubstr(".SH EXIT STATUS")));
  EXPECT_THAT(Call({"manual", "status"}).out, HasSubstr("\\fBstatus\\fR [OPTIONS] [POOL|VM]\n"));
  EXPECT_THAT(Call({"manual", "completion"}).out, HasSubstr("\\fR [OPTIONS] SHELL\n"));
  EXPECT_EQ(Call({"manual", "gcc"}).exit_code, 2);
}

// Runs the command against a system that accepts connections and does not reply, and sends the
// signal once it waits.
int ExitOfInterrupted(std::vector<std::string> command, int signal) {
  const support::Listener silent;
  sigset_t all;
  sigemptyset(&all);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&all, each);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::thread operator_thread([&] {
    const int connection = silent.Accept();
    kill(getpid(), signal);
    char byte = 0;
    while (read(connection, &byte, 1) > 0) continue;
    close(connection);
  });
  command.insert(command.end(), {"--set", "harvester_url=" + silent.url(), "--set",
                                 "nomad_address=" + silent.url(), "--set", "node_group_name=web",
                                 "--set", "node_class=web"});
  const int exit_code = Main(command, {{kAgentConfigVariable, ""}});
  operator_thread.join();
  return exit_code;
}

TEST_F(Commands, a_command_that_a_signal_ends_tells_it_by_its_exit_code) {
  const CapturedOutput output;
  EXPECT_EQ(ExitOfInterrupted({"status"}, SIGINT), 130);
  EXPECT_EQ(ExitOfInterrupted({"status"}, SIGTERM), 143);
  EXPECT_EQ(ExitOfInterrupted({"status"}, SIGHUP), 129) << "the terminal was closed";
  EXPECT_EQ(ExitOfInterrupted({"evacuate", "rack1-a", "--yes"}, SIGINT), 130);
  EXPECT_EQ(ExitOfInterrupted({"replace", "web-1", "--yes", "-o", "json"}, SIGINT), 130);
  EXPECT_THAT(output.Stderr(), HasSubstr("nomad-harvester status: "));
}

// Other shells than bash, and man's own check.
TEST_F(Commands, scripts_and_manual_pages_are_accepted_by_those_who_read_them) {
  const support::ScopedTempDir tmp;
  const auto run = [](const std::string& command) {
    return std::system(command.c_str());
  };  // NOLINT
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = tmp.WriteFile(shell, Call({"completion", shell}).out);
    EXPECT_EQ(run(shell + " -n " + script), 0) << shell;
  }
  const std::string warnings = tmp.Path("warnings");
  for (const std::string command : {"nomad-harvester", "dev", "status", "gc", "manual"}) {
    const std::string page = tmp.WriteFile(command, Call({"manual", command}).out);
    EXPECT_EQ(run("groff -ww -man -Tutf8 -z " + page + " 2>>" + warnings), 0) << command;
  }
  std::ifstream read(warnings);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(read), {}), "");
}

}  // namespace
}  // namespace nomad_harvester::cli
