// SPDX-License-Identifier: Apache-2.0
#include "status_command.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command_run.h"
#include "status_view.h"
#include "text.h"

namespace nomad_harvester::cli {
CLI::App* AddStatusCommand(CLI::App& app, StatusArguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "status",
      "Show a pool: VMs, nodes, links, marks, and why the agent may not scale it. Only reads.");
  AddSettings(*command, &arguments->settings);
  command->add_option("--output", arguments->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->footer("Exit: 0 ready, 3 not ready, 1 cannot be read, 2 usage.");
  return command;
}

int ShowStatus(const scaling::Maintenance& maintenance, const runtime::Context& context,
               const config::PoolPolicy& policy, const std::string& output, std::ostream& out,
               std::ostream& err) {
  const auto inspection = maintenance.Inspect(context.WithTimeout(kOperatorBudget), policy);
  if (!inspection.ok()) {
    err << "harvester status: " << Printable(base::Message(inspection.status())) << "\n";
    return kExitFailure;
  }
  out << (output == "json" ? StatusJson(*inspection) : StatusTable(*inspection)) << std::flush;
  if (!inspection->snapshot.look().nomad_readable) return kExitFailure;
  return inspection->report.status.ready ? kExitOk : kExitNotReady;
}

int RunStatus(const StatusArguments& arguments, const config::StringMap& environment) {
  return RunWithMaintenance("status", arguments.settings, PolicyUse::kRequired, environment,
                            [&](const scaling::Maintenance& maintenance,
                                const runtime::Context& context, const Settings& settings) {
                              return ShowStatus(maintenance, context, *settings.policy,
                                                arguments.output, std::cout, std::cerr);
                            });
}

}  // namespace nomad_harvester::cli
