// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "command.h"
#include "runtime_parts.h"
#include "settings.h"
#include "simulated_world.h"

namespace nomad_harvester::cli {
namespace {

// For scripts: one key and one value per line, on standard output.
void Announce(const std::string& key, const std::string& value) {
  std::cout << key << " " << value
            << std::endl;  // NOLINT(performance-avoid-endl): read through a pipe
}

struct DevArguments {
  std::string listen;
  bool simulate = false;
  OperatorFiles files;  // agent_config alone
  std::vector<std::string> settings;
};

int Serve(scaling::TargetService& service, RuntimeParts& parts, const DevArguments& arguments) {
  plugin::DevOptions dev;
  dev.listen = arguments.listen;
  dev.on_listening = [](const std::string& address) { Announce("listening", address); };
  return plugin::RunDev(service, parts.Process(), dev);
}

int RunSimulated(const DevArguments& arguments, const config::StringMap& environment,
                 const ErrorWriter& errors) {
  // Declared before the service, which uses it until its destruction.
  SimulatedWorld world;
  absl::Status ready = world.Start();
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, world.Shield(environment));
  const auto service = parts.MakeService();
  if (ready.ok()) ready = service->SetConfig(world.Config());
  if (!ready.ok()) return errors.Refuse(ready, kExitFailure);
  Announce("harvester_url", world.harvester_url());
  Announce("nomad_address", world.nomad_address());
  return Serve(*service, parts, arguments);
}

int RunReal(const DevArguments& arguments, const config::StringMap& environment,
            const ErrorWriter& errors) {
  const auto files = ReadOperatorFiles(arguments.files);
  if (!files.ok()) return errors.Refuse(files.status(), kExitUsage);
  const absl::StatusOr<PluginSettings> given =
      ReadPluginSettings(arguments.settings, *files, environment);
  if (!given.ok()) return errors.Refuse(given.status(), kExitUsage);
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, given->environment);
  for (const std::string& warning : given->warnings) parts.logger().Warn(warning);
  const auto service = parts.MakeService();
  if (const absl::Status configured = service->SetConfig(given->block); !configured.ok()) {
    // On TCP no client may configure it later.
    const bool on_tcp = !arguments.listen.empty() && !arguments.listen.starts_with("unix:");
    if (on_tcp || !given->block.empty()) {
      return errors.Refuse(WithOrigins(base::Message(configured), given->origins), kExitUsage);
    }
    parts.logger().Warn("Not configured by the environment; call SetConfig first",
                        {{"error", configured}});
  }
  return Serve(*service, parts, arguments);
}

}  // namespace

void AddDevCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<DevArguments>();
  CLI::App* command = app.add_subcommand(
      "dev", "Serve the plugin's gRPC services without a host: plain-text log, reflection on");
  command->footer("Exit: 0 stopped, 1 it cannot serve, 2 usage.");
  command
      ->add_option("--listen", arguments->listen,
                   "unix:/path, or 127.0.0.1:PORT, where any user of this machine may call and "
                   "SetConfig is refused; default: a Unix socket in a new private directory")
      ->type_name("ADDRESS");
  CLI::Option* const simulate =
      command->add_flag("--simulate", arguments->simulate,
                        "Start a simulated Harvester and Nomad, and configure the plugin for them");
  AddAgentConfigOption(*command, arguments->files)->excludes(simulate);
  AddSetOption(*command, arguments->settings, "KEY=VALUE of the plugin's block; repeatable")
      ->excludes(simulate);
  command->callback([arguments, invocation] {
    const ErrorWriter errors = invocation.Errors("dev");
    if (const absl::Status address = plugin::CheckDevAddress(arguments->listen); !address.ok()) {
      invocation.exit_code = errors.Refuse(base::Annotate(address, "--listen"), kExitUsage);
      return;
    }
    const auto run = arguments->simulate ? RunSimulated : RunReal;
    invocation.exit_code = run(*arguments, invocation.environment, errors);
  });
}

}  // namespace nomad_harvester::cli
