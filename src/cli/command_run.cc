// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "command.h"
#include "runtime_parts.h"

namespace nomad_harvester::cli {
namespace {

// Ctrl-C, SIGTERM and a closed terminal end a command gracefully: waiting requests end, and Leases
// are released. The second Ctrl-C or SIGTERM ends the process; both the kernel and the shell send
// SIGHUP when a terminal closes.
// Blocks the signals in the calling thread and in those that it starts afterwards: create it
// before any other thread. They stay blocked.
class Interrupt {
 public:
  explicit Interrupt(const ErrorWriter& errors) : errors_(errors) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    if (!plugin::IsIgnored(SIGHUP)) sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~Interrupt() {
    if (!watcher_.joinable()) return;
    ended_ = true;
    pthread_kill(watcher_.native_handle(), SIGINT);  // ends its wait
    watcher_.join();
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The first signal from now on cancels `work`. Call once.
  void Cancels(const std::shared_ptr<runtime::CancelSource>& work) {
    watcher_ = std::thread([this, work] {
      const int first = Wait();
      if (ended_) return;
      errors_.Interrupt(kExitSignal + first);
      work->Cancel(runtime::CancelReason::kShutdown);
      int second = Wait();
      while (second == SIGHUP) second = Wait();
      if (!ended_) _exit(kExitSignal + second);
    });
  }

 private:
  int Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

  const ErrorWriter errors_;
  sigset_t signals_{};
  std::atomic<bool> ended_ = false;
  std::thread watcher_;
};

}  // namespace

ErrorWriter Invocation::Errors(const std::string& command) const {
  return ErrorWriter(command, error_style, std::cerr);
}

CLI::Option* AddSetOption(CLI::App& command, std::vector<std::string>& settings,
                          const std::string& description) {
  return command.add_option("--set", settings, description)
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

CLI::Option* AddAgentConfigOption(CLI::App& command, OperatorFiles& files) {
  return command
      .add_option("--agent-config", files.agent_config,
                  "The agent's configuration: the target block with driver harvester, and block "
                  "nomad. Of a directory, its files *.hcl and *.json, as the agent reads them")
      ->type_name("FILE|DIR");
}

void AddFileOptions(CLI::App& command, OperatorFiles& files) {
  AddAgentConfigOption(command, files);
  command
      .add_option("--policy", files.policy,
                  "The scaling policy in the agent's policy directory, or that directory; default: "
                  "policy.dir of --agent-config, for a command that needs a policy")
      ->type_name("FILE|DIR");
  command
      .add_option("--policy-name", files.policy_name,
                  "Which one, if there are several: the label of its scaling block")
      ->type_name("NAME");
}

int RunConnected(const ErrorWriter& errors, const SettingArguments& arguments, PolicyUse use,
                 const config::StringMap& environment, const Task& task) {
  Interrupt interrupt(errors);
  RuntimeParts parts(log::MakePlainSink(), log::Level::kWarn, environment);
  OperatorFiles named = arguments.files;
  named.needs_policy = use != PolicyUse::kOptional && !NamesPool(arguments.pairs);
  const auto files = ReadOperatorFiles(named);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  const auto settings = ReadSettings(arguments.pairs, *files, use, environment);
  if (!settings.ok()) return errors.Refuse(settings.status(), kExitUsage);
  const auto config = std::make_shared<const config::PluginConfig>(settings->plugin);
  auto transports = scaling::MakeCurlTransports(*config);
  if (!transports.ok()) return errors.Refuse(transports.status(), kExitUsage);
  const scaling::MaintenanceOptions options = parts.MakeMaintenance(*config);
  std::vector<std::string> warnings = config->warnings;
  // `check` has a line for each, with the cure.
  const std::vector<std::string>& missing = config->missing_token_files;
  if (use != PolicyUse::kChecked) warnings.insert(warnings.end(), missing.begin(), missing.end());
  warnings.insert(warnings.end(), transports->warnings.begin(), transports->warnings.end());
  for (const std::string& warning : warnings) options.logger.Warn(warning);
  const scaling::Maintenance maintenance(
      options,
      scaling::MakeClients(config, *std::move(transports), parts.random(), options.logger));
  const auto work =
      std::make_shared<runtime::CancelSource>(runtime::Context::Background(parts.clock()));
  interrupt.Cancels(work);
  const runtime::Context context = work->context();
  return errors.ExitCode(task({.maintenance = maintenance,
                               .context = context,
                               .settings = *settings,
                               .out = std::cout,
                               .err = std::cerr,
                               .errors = errors,
                               .terminal = TerminalOf(STDOUT_FILENO, environment),
                               .asking = AskOnTerminal()}));
}

CLI::App* AddMaintenanceCommand(CLI::App& app, const Invocation& invocation,
                                const MaintenanceCommand& command) {
  CLI::App* added = app.add_subcommand(command.name, command.description);
  const auto arguments = std::make_shared<SettingArguments>();
  AddFileOptions(*added, arguments->files);
  AddSetOption(*added, arguments->pairs,
               "KEY=VALUE of the plugin's block or of the policy's target block; repeatable, the "
               "last one of a key counts; takes precedence over the environment (HARVESTER_URL, "
               "NOMAD_ADDR, ...) and over the files");
  added->footer(command.exit_codes);
  added->callback([command, arguments, invocation] {
    invocation.exit_code = command.check == nullptr ? kExitOk : command.check();
    if (invocation.exit_code != kExitOk) return;
    invocation.exit_code = RunConnected(invocation.Errors(command.name), *arguments, command.use,
                                        invocation.environment, command.task);
  });
  return added;
}

}  // namespace nomad_harvester::cli
