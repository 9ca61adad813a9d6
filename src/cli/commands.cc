// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/cli/commands.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <openssl/crypto.h>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "command.h"
#include "runtime_parts.h"
#include "text.h"
#include "version.h"

namespace nomad_harvester::cli {
namespace {

constexpr char kSentence[] =
    "harvester is the Harvester target plugin of the Nomad Autoscaler: put it into the agent's "
    "plugin_dir and name it as driver of a target block, or run \"harvester dev --simulate\" to "
    "try it, \"harvester --help\" for its commands.\n";

// Protects the secrets in the memory of the process: it is written to no core file, and only root
// may read it or attach a debugger. OpenSSL loads no configuration: the host's openssl.cnf, or the
// file of OPENSSL_CONF, could change the protocols that are accepted, and load shared objects into
// a static executable. To be called before any thread and any use of OpenSSL. Whichever of these
// cannot be set leaves the process as safe as it was started.
void GuardProcess() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  // A shell's soft limit of 1024 is for programs that select(); when none is left, gRPC's server
  // accepts no connection ever again.
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  // The first initialisation decides for the process; gRPC and libcurl ask for the configuration
  // later, in vain (openssl/openssl:crypto/init.c, OPENSSL_init_crypto).
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

// Threads inherit the mask, so SIGTERM and SIGINT reach only the one thread that waits for them.
void PrepareSignals() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

// Only the names of options are repeated: the rest may be a secret whose --set was forgotten.
std::string Unexpected(const std::vector<std::string>& arguments) {
  std::string options;
  for (const std::string& argument : arguments) {
    if (argument.starts_with('-')) options += " " + argument.substr(0, argument.find('='));
  }
  return "harvester: " + std::to_string(arguments.size()) + " unexpected argument(s)" +
         (options.empty() ? "" : ", among them" + options) +
         "; a setting is given as --set KEY=VALUE. Run with --help for more information.";
}

// What to say of a first argument that is no command; empty: it is one, or an option. It is
// repeated only if it is nearly a command, for it may be a secret.
std::string UnknownCommand(const CLI::App& app, const std::string& argument) {
  const std::vector<const CLI::App*> commands = app.get_subcommands({});
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CLI::App* const command : commands) names.push_back(command->get_name());
  if (argument.starts_with('-') || std::find(names.begin(), names.end(), argument) != names.end()) {
    return "";
  }
  const std::optional<std::string> nearest = base::NearestName(argument, names);
  return nearest.has_value()
             ? "harvester: there is no command \"" + argument + "\"; did you mean " + *nearest + "?"
             : "harvester: the first argument is no command; the commands are " +
                   absl::StrJoin(names, ", ");
}

// "help COMMAND" as "COMMAND --help".
std::vector<std::string> WithoutHelp(std::vector<std::string> arguments) {
  if (arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

int RunAsPlugin(const config::StringMap& environment) {
  // The agent filters by its own level; the configuration's log_level may raise ours.
  RuntimeParts parts(log::MakeHclogSink(NOMAD_HARVESTER_PLUGIN_NAME), log::Level::kDebug,
                     environment);
  const auto service = parts.MakeService();
  return plugin::RunPlugin(*service, parts.Process());
}

}  // namespace

int Main(const std::vector<std::string>& arguments, const config::StringMap& environment) {
  GuardProcess();
  PrepareSignals();
  if (plugin::StartedByHost(LookUpIn(environment))) return RunAsPlugin(environment);
  if (arguments.empty()) {
    std::cerr << kSentence;
    return 1;
  }

  CLI::App app("The Harvester target plugin of the Nomad Autoscaler.", NOMAD_HARVESTER_PLUGIN_NAME);
  app.require_subcommand(1);
  int exit_code = kExitOk;
  const Invocation invocation{.environment = environment, .exit_code = exit_code};
  AddDevCommand(app, invocation);
  AddCheckCommand(app, invocation);
  AddStatusCommand(app, invocation);
  AddGcCommand(app, invocation);
  AddPauseCommand(app, invocation);
  AddResumeCommand(app, invocation);
  app.add_subcommand("version", "Print version, commit and libraries")->callback([] {
    std::cout << VersionText();
  });
  app.footer("\"harvester help COMMAND\" prints the help of one.");
  app.set_version_flag(
      "--version", [] { return std::string(absl::StripSuffix(VersionText(), "\n")); },
      "Print what \"version\" prints");
  const std::vector<std::string> words = WithoutHelp(arguments);
  if (const std::string problem = UnknownCommand(app, words.front()); !problem.empty()) {
    std::cerr << Printable(problem) << "\n";
    return kExitUsage;
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ExtrasError&) {
    std::cerr << Printable(Unexpected(app.remaining(true))) << "\n";
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace nomad_harvester::cli
