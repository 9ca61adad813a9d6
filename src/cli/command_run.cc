// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"

#include "command.h"
#include "runtime_parts.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Ctrl-C and SIGTERM end a command gracefully: waiting requests end, and Leases are released.
// Blocks both signals in the calling thread and in those that it starts afterwards: create it
// before any other thread. They stay blocked.
class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
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

  // The first signal from now on cancels `work`, which must outlive this object. Call once.
  void Cancels(const runtime::CancelSource& work) {
    watcher_ = std::thread([this, &work] {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (!ended_) work.Cancel(runtime::CancelReason::kShutdown);
    });
  }

 private:
  sigset_t signals_{};
  std::atomic<bool> ended_ = false;
  std::thread watcher_;
};

}  // namespace

int Refuse(const std::string& command, const absl::Status& problems, int exit_code) {
  std::istringstream lines(base::Message(problems));
  for (std::string line; std::getline(lines, line);) {
    std::cerr << "harvester " << command << ": " << Printable(line) << "\n";
  }
  return exit_code;
}

CLI::Option* AddSetOption(CLI::App& command, std::vector<std::string>& settings,
                          const std::string& description) {
  return command.add_option("--set", settings, description)
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

int RunWithMaintenance(const std::string& command, const std::vector<std::string>& pairs,
                       PolicyUse use, const config::StringMap& environment,
                       const MaintenanceTask& task) {
  Interrupt interrupt;
  RuntimeParts parts(log::MakePlainSink(), log::Level::kWarn, environment);
  const auto settings =
      ReadSettings(pairs, use, LookUpIn(environment), config::TemplateVariablesOf(environment));
  if (!settings.ok()) return Refuse(command, settings.status(), kExitUsage);
  const auto config = std::make_shared<const config::PluginConfig>(settings->plugin);
  auto transports = scaling::MakeCurlTransports(*config);
  if (!transports.ok()) return Refuse(command, transports.status(), kExitUsage);
  const scaling::MaintenanceOptions options = parts.MakeMaintenance(*config);
  for (const std::string& warning : config->warnings) options.logger.Warn(warning);
  for (const std::string& warning : transports->warnings) options.logger.Warn(warning);
  const scaling::Maintenance maintenance(
      options,
      scaling::MakeClients(config, *std::move(transports), parts.random(), options.logger));
  const runtime::CancelSource work(runtime::Context::Background(parts.clock()));
  interrupt.Cancels(work);
  return task(maintenance, work.context(), *settings);
}

CLI::App* AddMaintenanceCommand(CLI::App& app, const Invocation& invocation,
                                const MaintenanceCommand& command) {
  CLI::App* added = app.add_subcommand(command.name, command.description);
  const auto settings = std::make_shared<std::vector<std::string>>();
  AddSetOption(*added, *settings,
               "KEY=VALUE of the plugin's block or of the policy's target block; repeatable. "
               "The environment is read as by the plugin (HARVESTER_URL, NOMAD_ADDR, ...)");
  added->footer(command.exit_codes);
  added->callback([command, settings, invocation] {
    invocation.exit_code = command.check == nullptr ? kExitOk : command.check();
    if (invocation.exit_code != kExitOk) return;
    invocation.exit_code = RunWithMaintenance(command.name, *settings, command.use,
                                              invocation.environment, command.task);
  });
  return added;
}

}  // namespace nomad_harvester::cli
