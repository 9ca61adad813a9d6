// SPDX-License-Identifier: Apache-2.0
#include "dev_command.h"

#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "runtime_parts.h"
#include "simulated_world.h"

namespace nomad_harvester::cli {
namespace {

// For scripts: one key and one value per line, on standard output.
void Announce(const std::string& key, const std::string& value) {
  std::cout << key << " " << value
            << std::endl;  // NOLINT(performance-avoid-endl): read through a pipe
}

// A client may call SetConfig at any time.
void ConfigureFromEnvironment(scaling::TargetService& service, const log::Logger& logger) {
  const absl::Status configured = service.SetConfig({});
  if (!configured.ok()) {
    logger.Warn("Not configured by the environment; call SetConfig first", {{"error", configured}});
  }
}

int Serve(scaling::TargetService& service, RuntimeParts& parts, const DevArguments& arguments) {
  plugin::DevOptions dev;
  dev.listen = arguments.listen;
  dev.on_listening = [](const std::string& address) { Announce("listening", address); };
  return plugin::RunDev(service, parts.Process(), dev);
}

int RunSimulated(const DevArguments& arguments, const config::StringMap& environment) {
  // Declared before the service, which uses it until its destruction.
  SimulatedWorld world;
  absl::Status ready = world.Start();
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, world.Shield(environment));
  const auto service = parts.MakeService();
  if (ready.ok()) ready = service->SetConfig(world.Config());
  if (!ready.ok()) {
    std::cerr << "harvester dev --simulate: " << base::Message(ready) << "\n";
    return 1;
  }
  Announce("harvester_url", world.harvester_url());
  Announce("nomad_address", world.nomad_address());
  return Serve(*service, parts, arguments);
}

}  // namespace

CLI::App* AddDevCommand(CLI::App& app, DevArguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "dev", "Serve the plugin's gRPC services without a host: plain-text log, reflection on");
  command->add_option("--listen", arguments->listen, "unix:/path or 127.0.0.1:PORT")
      ->capture_default_str();
  command->add_flag("--simulate", arguments->simulate,
                    "Start a simulated Harvester and Nomad, and configure the plugin for them");
  return command;
}

int RunDev(const DevArguments& arguments, const config::StringMap& environment) {
  if (arguments.simulate) return RunSimulated(arguments, environment);
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, environment);
  const auto service = parts.MakeService();
  ConfigureFromEnvironment(*service, parts.logger());
  return Serve(*service, parts, arguments);
}

}  // namespace nomad_harvester::cli
