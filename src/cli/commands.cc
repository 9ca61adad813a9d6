// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/cli/commands.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <openssl/crypto.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "absl/strings/strip.h"
#include "command.h"
#include "command_table.h"
#include "error_writer.h"
#include "nlohmann/json.hpp"
#include "runtime_parts.h"
#include "terminal.h"
#include "text.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kDescription[] =
    "The Harvester target plugin of the Nomad Autoscaler, and its commands. The agent starts it "
    "from its plugin_dir, for a target block that names it as driver.";

// Protects the secrets in the process' memory: no core file is written, and only root may read the
// memory or attach a debugger. OpenSSL loads no configuration: the host's openssl.cnf, or the file
// named by OPENSSL_CONF, could change the accepted protocols and load shared objects into a static
// executable. libcurl writes no TLS keys to the file named by SSLKEYLOGFILE, which would allow
// recorded traffic to be decrypted. Call it before any thread and any use of OpenSSL. If one of
// these cannot be set, the process is only as safe as when it was started.
void GuardProcess() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  // A shell's soft limit of 1024 is meant for programs that use select(); once descriptors run out,
  // gRPC's server never accepts a connection again.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // The first initialisation decides for the process; gRPC and libcurl later request the
  // configuration in vain (openssl/openssl:crypto/init.c, OPENSSL_init_crypto).
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  unsetenv("SSLKEYLOGFILE");  // NOLINT(concurrency-mt-unsafe): there is one thread
}

// Threads inherit the mask, so SIGTERM and SIGINT reach only the one thread that waits for them.
void PrepareSignals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

// `arguments`: the args of the agent's block.
int RunAsPlugin(const std::vector<std::string>& arguments, const config::StringMap& environment) {
  // The agent filters by its own level; the configuration's log_level may raise ours.
  RuntimeParts parts(log::MakeHclogSink(NOMAD_HARVESTER_PLUGIN_NAME), log::Level::kDebug,
                     environment);
  if (arguments == std::vector<std::string>{"apm"}) {
    const auto service = parts.MakeDemandService();
    return plugin::RunPlugin(*service, parts.Process());
  }
  const auto service = parts.MakeService();
  return plugin::RunPlugin(*service, parts.Process());
}

void AddVersionCommand(CLI::App& app) {
  const auto output = std::make_shared<std::string>(kForPeople);
  CLI::App* const command = app.add_subcommand("version", "Print version, commit and libraries");
  AddOutputOption(*command, *output);
  command->callback([output] {
    std::cout << (*output == kForPeople ? VersionText()
                                        : PrintableDocument(*output, VersionDocument()));
  });
}

// Adds the commands that describe the others. Call it last.
void AddDescriptions(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const completion = app.add_subcommand(
      "completion",
      "Print a completion script for a shell; bash: source <(nomad-harvester completion "
      "bash)");
  completion->add_option("SHELL", *shell, "The shell")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kShells), std::end(kShells))));
  completion->callback([shell] { std::cout << CompletionScript(*shell); });
  const auto command = std::make_shared<std::string>(kCommand);
  CLI::App* const manual = app.add_subcommand(
      "manual", "Print a manual page as roff; nomad-harvester manual status | man -l -");
  std::vector<std::string> names = {kCommand};
  for (const CLI::App* const each : app.get_subcommands({})) names.push_back(each->get_name());
  manual->add_option("COMMAND", *command, "The command; default: the program itself")
      ->check(CLI::IsMember(names));
  manual->callback([command, &app] { std::cout << ManualPage(*command, CommandTable(app)); });
}

void AddCommands(CLI::App& app, const Invocation& invocation) {
  AddDevCommand(app, invocation);
  AddInitCommand(app, invocation);
  AddCheckCommand(app, invocation);
  AddStatusCommand(app, invocation);
  AddDemandCommand(app, invocation);
  AddWhyCommand(app, invocation);
  AddGcCommand(app, invocation);
  AddAdoptCommand(app, invocation);
  AddPauseCommand(app, invocation);
  AddResumeCommand(app, invocation);
  AddReplaceCommand(app, invocation);
  AddEvacuateCommand(app, invocation);
  AddPlanCommand(app, invocation);
  AddScaleCommand(app, invocation);
  AddRenderCommand(app, invocation);
  AddVersionCommand(app);
  AddDescriptions(app);
  app.footer(
      "\"help COMMAND\" prints the help of one.\n"
      "Exit: 0 done, 1 failed, 2 wrong usage, 129, 130 and 143 after SIGHUP, Ctrl-C and SIGTERM "
      "(dev: 0); status also 3, not ready, and 4, ready with trouble.");
  app.set_version_flag(
      "--version", [] { return std::string(absl::StripSuffix(VersionText(), "\n")); },
      "Print what \"version\" prints");
}

std::vector<std::string> GivenTo(const CLI::App& command, const std::string& option) {
  const CLI::Option* const found = command.get_option_no_throw(option);
  return found == nullptr ? std::vector<std::string>() : found->results();
}

// A word that is no count is taken for the pool. Says that it is none, if the files show it.
std::string WhatIsNoPool(const CLI::App& command, const Invocation& invocation) {
  std::vector<std::string> words = GivenTo(command, "POOL");
  OperatorFiles files;
  files.agent_config = GivenTo(command, "--agent-config");
  for (const std::string& policy : GivenTo(command, "--policy")) files.policy = policy;
  files = FindAgentFiles(std::move(files), invocation.environment);
  TakePolicyName(&files, &words);
  if (words.empty()) return "";
  const std::string given = "; " + GivenWord(words.front());
  if (files.labels.empty()) return given + " is no count";
  return given + " is neither a count nor the pool of an enabled policy" +
         (files.hint.empty() ? "; there are " + FirstFew(files.labels) : files.hint);
}

// Suggests an example, which shows what a missing argument looks like.
std::string WhatToTry(const CLI::App& app, const CLI::ParseError& error,
                      const Invocation& invocation) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !parsed.empty()) {
    const std::vector<std::string> examples =
        ExamplesOf(parsed.front()->get_name(), invocation.error_style.program);
    const std::string no_pool = parsed.front()->get_option_no_throw("--count") == nullptr
                                    ? ""
                                    : WhatIsNoPool(*parsed.front(), invocation);
    const char* const so = no_pool.ends_with('?') ? " For example: " : "; for example: ";
    if (!examples.empty()) return no_pool + so + examples.front();
  }
  return "; run with --help for more information";
}

void RunCommand(const std::vector<std::string>& arguments, const Invocation& invocation) {
  CLI::App app(kDescription, invocation.error_style.program);
  // Subcommands inherit it when they are added.
  app.formatter(MakeHelpFormatter(TerminalOf(STDOUT_FILENO, invocation.environment).width));
  app.require_subcommand(1);
  AddCommands(app, invocation);
  if (arguments.front() == kCompleteCommand) {
    Invocation silent = invocation;
    silent.error_style.notes = false;
    invocation.exit_code =
        Complete({arguments.begin() + 1, arguments.end()}, CommandTable(app), silent);
    return;
  }
  const std::vector<std::string> words = WithoutHelp(arguments);
  if (const std::string problem = UnknownCommand(app, words.front()); !problem.empty()) {
    invocation.exit_code = invocation.Errors("").Refuse(problem, kExitUsage);
    return;
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  const auto refuse = [&](const std::string& problem) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    invocation.exit_code = invocation.Errors(parsed.empty() ? "" : parsed.front()->get_name())
                               .Refuse(problem, kExitUsage);
  };
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& help) {
    invocation.exit_code = app.exit(help);
  } catch (const CLI::ParseError& error) {
    // CLI11 may find a missing command first.
    const std::vector<std::string> unexpected = app.remaining(true);
    refuse(unexpected.empty() ? error.what() + WhatToTry(app, error, invocation)
                              : UnexpectedArguments(app, unexpected));
  }
}

}  // namespace

int Main(const std::vector<std::string>& arguments, const config::StringMap& environment,
         const std::string& called) {
  GuardProcess();
  PrepareSignals();
  if (plugin::StartedByHost(environment)) return RunAsPlugin(arguments, environment);
  OccupyStandardDescriptors();
  const std::string output_option = OutputOf(arguments);
  const ErrorStyle style{.json = output_option == "json",
                         .notes = output_option != "json" && output_option != "yaml",
                         .answers_by_exit_code = std::find(arguments.begin(), arguments.end(),
                                                           "--exit-code") != arguments.end(),
                         .width = TerminalOf(STDERR_FILENO, environment).width,
                         .program = called.empty() ? kCommand : called};
  const ErrorWriter errors("", style, std::cerr);
  if (arguments.empty() && environment.contains(plugin::kCookieKey)) {
    return errors.Refuse(
        plugin::kCookieKey + std::string(" does not have the value that the Nomad Autoscaler's "
                                         "agent sets: unset it to use the commands"),
        kExitFailure);
  }
  CheckedOutput output;
  int exit_code = kExitOk;
  // Without a command it prints the help, as kubectl does.
  RunCommand(arguments.empty() ? std::vector<std::string>{"help"} : arguments,
             {.environment = environment, .exit_code = exit_code, .error_style = style});
  const int error = output.Finish();
  if (error == 0) return exit_code;
  // The reader of the output has seen enough.
  if (error == EPIPE) return errors.ExitCode(kExitFailure);
  return errors.Refuse("cannot write the output: " + std::generic_category().message(error),
                       kExitFailure);
}

}  // namespace nomad_harvester::cli
