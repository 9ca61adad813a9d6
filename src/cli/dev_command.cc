#include "dev_command.h"

#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/plugin/plugin_process.h"

#include "runtime_parts.h"

namespace nomad_harvester::cli {
namespace {

// Tools read these lines: one key and one value each, on standard output.
void Announce(const std::string& key, const std::string& value) {
  std::cout << key << " " << value << std::endl;  // NOLINT(performance-avoid-endl): read by a pipe
}

// The configuration that the environment alone gives; a client may call SetConfig at any time.
void ConfigureFromEnvironment(scaling::TargetService& service, const log::Logger& logger,
                              const scaling::StringMap& values) {
  const absl::Status configured = service.SetConfig(values);
  if (!configured.ok()) {
    logger.Warn("Not configured by the environment; call SetConfig first", {{"error", configured}});
  }
}

}  // namespace

CLI::App* AddDevCommand(CLI::App& app, DevArguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "dev", "Serve the plugin's gRPC services without a host: plain-text log, reflection on");
  command->add_option("--listen", arguments->listen, "unix:/path or 127.0.0.1:PORT")
      ->capture_default_str();
  return command;
}

int RunDev(const DevArguments& arguments, const config::StringMap& environment) {
  RuntimeParts parts(log::MakePlainSink(), log::Level::kInfo, environment);
  const auto service = parts.MakeService();
  ConfigureFromEnvironment(*service, parts.logger(), {});
  plugin::DevOptions dev;
  dev.listen = arguments.listen;
  dev.on_listening = [](const std::string& address) { Announce("listening", address); };
  return plugin::RunDev(*service, parts.Process(), dev);
}

}  // namespace nomad_harvester::cli
