// SPDX-License-Identifier: Apache-2.0
#include "command_run.h"

#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/log/sinks.h"

#include "interrupt.h"
#include "runtime_parts.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

int UsageError(const std::string& command, const absl::Status& problems) {
  std::istringstream lines(base::Message(problems));
  for (std::string line; std::getline(lines, line);) {
    std::cerr << "harvester " << command << ": " << Printable(line) << "\n";
  }
  return kExitUsage;
}

}  // namespace

void AddSettings(CLI::App& command, std::vector<std::string>* settings) {
  command
      .add_option("--set", *settings,
                  "KEY=VALUE of the plugin's block or of the policy's target block; repeatable. "
                  "The environment is read as by the plugin (HARVESTER_URL, NOMAD_ADDR, ...)")
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
  if (!settings.ok()) return UsageError(command, settings.status());
  const auto config = std::make_shared<const config::PluginConfig>(settings->plugin);
  auto transports = scaling::MakeCurlTransports(*config);
  if (!transports.ok()) return UsageError(command, transports.status());
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

}  // namespace nomad_harvester::cli
