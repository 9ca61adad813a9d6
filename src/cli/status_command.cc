// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command.h"
#include "status_view.h"
#include "text.h"

namespace nomad_harvester::cli {

int ShowStatus(const scaling::Maintenance& maintenance, const runtime::Context& context,
               const Settings& settings, const std::string& output, std::ostream& out,
               std::ostream& err) {
  const auto inspection = maintenance.Inspect(context.WithTimeout(kOperatorBudget),
                                              *settings.policy, settings.tells_vms);
  if (!inspection.ok()) {
    err << "harvester status: " << Printable(base::Message(inspection.status())) << "\n";
    return kExitFailure;
  }
  out << (output == "json" ? StatusJson(*inspection) : StatusTable(*inspection)) << std::flush;
  if (!inspection->snapshot.look().nomad_readable) return kExitFailure;
  return inspection->report.status.ready ? kExitOk : kExitNotReady;
}

void AddStatusCommand(CLI::App& app, const Invocation& invocation) {
  const auto output = std::make_shared<std::string>("table");
  AddMaintenanceCommand(
      app, invocation,
      {.name = "status",
       .description =
           "Show a pool: VMs, nodes, links, marks, and why the agent may not scale it. Only reads.",
       .exit_codes = "Exit: 0 ready, 3 not ready, 1 cannot be read, 2 usage.",
       .use = PolicyUse::kRequired,
       .task =
           [output](const scaling::Maintenance& maintenance, const runtime::Context& context,
                    const Settings& settings) {
             return ShowStatus(maintenance, context, settings, *output, std::cout, std::cerr);
           }})
      ->add_option("--output", *output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

}  // namespace nomad_harvester::cli
