// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <iostream>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "command.h"
#include "output.h"
#include "runtime_parts.h"
#include "system_waits.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Ctrl-C, SIGTERM and a closed terminal end a command gracefully: waiting requests end, and Leases
// are released. The second Ctrl-C or SIGTERM ends the process; SIGHUP does not count, because both
// the kernel and the shell send it when a terminal closes. Blocks the signals in the calling thread
// and in threads that it starts afterwards: create it before any other thread. They stay blocked.
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

  // From now on, the first signal cancels `work`. Call once.
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

// State shared by the commands' runs, and their connections. Create it before any thread.
class Connections {
 public:
  Connections(const ErrorWriter& errors, const config::StringMap& environment)
      : errors_(errors),
        environment_(environment),
        interrupt_(errors),
        parts_(log::MakePlainSink(), log::Level::kWarn, environment),
        work_(
            std::make_shared<runtime::CancelSource>(runtime::Context::Background(parts_.clock()))),
        context_(work_->context()),
        waits_(parts_.clock(), &HasPrinted, std::cerr) {}

  // Connects to both systems of the settings. Warns once about their oddities.
  absl::Status Connect(Settings given, PolicyUse use) {
    const Settings& settings = settings_.emplace_back(std::move(given));
    const auto config = std::make_shared<const config::PluginConfig>(settings.plugin);
    auto transports = scaling::MakeCurlTransports(*config);
    NH_RETURN_IF_ERROR(transports.status());
    const scaling::MaintenanceOptions options = parts_.MakeMaintenance(*config);
    std::vector<std::string> warnings = config->warnings;
    // `check` has its own line for each, with the cure.
    const std::vector<std::string>& missing = config->missing_token_files;
    if (use != PolicyUse::kChecked) warnings.insert(warnings.end(), missing.begin(), missing.end());
    warnings.insert(warnings.end(), transports->warnings.begin(), transports->warnings.end());
    if (settings.policy.has_value()) {
      warnings.insert(warnings.end(), settings.policy->warnings.begin(),
                      settings.policy->warnings.end());
    }
    for (const std::string& warning : warnings) {
      if (warned_.insert(warning).second) options.logger.Warn(warning);
    }
    maintenances_.emplace_back(
        options, scaling::MakeClients(config, waits_.Limit(*transports, *config), parts_.random(),
                                      options.logger));
    return absl::OkStatus();
  }

  // Returns the runs in the order of Connect, under a context that a signal cancels from now on.
  // Call once.
  std::vector<CommandRun> Runs() {
    interrupt_.Cancels(work_);
    std::vector<CommandRun> runs;
    auto maintenance = maintenances_.begin();
    for (const Settings& settings : settings_) {
      runs.push_back({.maintenance = *maintenance++,
                      .context = context_,
                      .settings = settings,
                      .out = std::cout,
                      .err = std::cerr,
                      .errors = errors_,
                      .terminal = TerminalOf(STDOUT_FILENO, environment_),
                      .prompter = AskOnTerminal()});
    }
    return runs;
  }

 private:
  const ErrorWriter& errors_;
  const config::StringMap& environment_;
  Interrupt interrupt_;
  RuntimeParts parts_;
  const std::shared_ptr<runtime::CancelSource> work_;
  const runtime::Context context_;
  SystemWaits waits_;
  std::list<Settings> settings_;
  std::list<scaling::Maintenance> maintenances_;
  std::set<std::string> warned_;
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
                  "nomad. Of a directory, its files *.hcl and *.json, as the agent reads them. May "
                  "be given several times, as the agent's -config")
      ->type_name("FILE|DIR")
      ->allow_extra_args(false);
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

std::vector<std::string> PairsOf(const SettingArguments& arguments) {
  std::vector<std::string> pairs = arguments.pairs;
  if (!arguments.ns.empty()) pairs.push_back("namespace=" + arguments.ns);
  if (!arguments.kubeconfig.empty()) {
    pairs.push_back("harvester_kubeconfig=" + arguments.kubeconfig);
  }
  return pairs;
}

void AddOutputOption(CLI::App& command, std::string& output,
                     const std::vector<std::string>& names) {
  command
      .add_option(
          "-o,--output", output,
          "json and yaml are for programs" +
              std::string(names.size() > std::size(kOutputs) ? "; wide has more columns" : ""))
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

void AddWatchOptions(CLI::App& command, WatchArguments& watch) {
  command.add_flag("-w,--watch", watch.watch,
                   "Repeat until Ctrl-C: on a terminal's alternate screen, else whenever something "
                   "changes");
  const auto read = [&watch](const std::string& text) {
    const auto parsed = base::ParseGoDuration(text);
    if (!parsed.ok() || *parsed < std::chrono::seconds(1)) {
      return GivenWord(text) + " is not a duration of at least 1s; give one such as 5s or 1m";
    }
    watch.interval = *parsed;
    return std::string();
  };
  command
      .add_option_function<std::string>(
          "--interval", [](const std::string& /*text*/) {},
          "How long from one look to the next, at least 1s")
      ->check(read)
      ->type_name("DURATION")
      ->needs("--watch")
      ->default_str(base::FormatGoDuration(watch.interval));
}

int RunConnected(const ErrorWriter& errors, const SettingArguments& arguments, PolicyUse use,
                 const config::StringMap& environment, const Task& task) {
  Connections connections(errors, environment);
  const std::vector<std::string> pairs = PairsOf(arguments);
  OperatorFiles named = arguments.files;
  named.needs_policy = use != PolicyUse::kOptional && !NamesPool(pairs);
  const auto files = ReadOperatorFiles(named);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  auto settings = ReadSettings(pairs, *files, use, environment);
  if (!settings.ok()) return errors.Refuse(settings.status(), kExitUsage);
  const absl::Status connected = connections.Connect(*std::move(settings), use);
  if (!connected.ok()) return errors.Refuse(connected, kExitUsage);
  return errors.ExitCode(task(connections.Runs().front()));
}

int RunConnectedToAll(const ErrorWriter& errors, const SettingArguments& arguments,
                      const config::StringMap& environment, const TaskOfAll& task) {
  Connections connections(errors, environment);
  SettingArguments shared = arguments;
  shared.ns.clear();  // it only selects the pools
  const std::vector<std::string> pairs = PairsOf(shared);
  const auto files = ReadFilesOfAll(arguments.files);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  for (const FileSettings& of_policy : *files) {
    auto settings = ReadSettings(pairs, of_policy, PolicyUse::kRequired, environment);
    if (!settings.ok()) return errors.Refuse(settings.status(), kExitUsage);
    if (!arguments.ns.empty() && settings->ns != arguments.ns) continue;
    const absl::Status connected = connections.Connect(*std::move(settings), PolicyUse::kRequired);
    if (!connected.ok()) return errors.Refuse(connected, kExitUsage);
  }
  const std::vector<CommandRun> runs = connections.Runs();
  if (runs.empty()) {
    return errors.Refuse("no enabled policy of the files has a pool of this plugin" +
                             (arguments.ns.empty() ? "" : " in namespace " + arguments.ns),
                         kExitUsage);
  }
  return errors.ExitCode(task(runs));
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
  added->add_option("-n,--namespace", arguments->ns, "Short for --set namespace=NAMESPACE")
      ->type_name("NAMESPACE");
  added
      ->add_option("--kubeconfig", arguments->kubeconfig,
                   "Short for --set harvester_kubeconfig=FILE: connects to Harvester with it, "
                   "whatever URL, CA and token the files have")
      ->type_name("FILE");
  added->footer(command.exit_codes);
  added->callback([command, arguments, invocation] {
    invocation.exit_code = command.check == nullptr ? kExitOk : command.check();
    if (invocation.exit_code != kExitOk) return;
    const ErrorWriter errors = invocation.Errors(command.name);
    if (command.is_for_all != nullptr && command.is_for_all()) {
      invocation.exit_code =
          RunConnectedToAll(errors, *arguments, invocation.environment, command.task_of_all);
      return;
    }
    invocation.exit_code =
        RunConnected(errors, *arguments, command.use, invocation.environment, command.task);
  });
  return added;
}

}  // namespace nomad_harvester::cli
