// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command.h"
#include "confirm.h"
#include "text.h"

namespace nomad_harvester::cli {

int AdoptPool(const scaling::Maintenance& maintenance, const runtime::Context& context,
              const config::PoolPolicy& policy, bool dry_run, const Asking& asking,
              const ErrorWriter& errors) {
  const scaling::PoolKey key{.ns = policy.ns, .pool = policy.pool};
  const auto adoption = maintenance.FindAdoption(context.WithTimeout(kOperatorBudget), key);
  if (!adoption.ok()) return errors.Refuse(base::Message(adoption.status()), kExitFailure);
  for (const scaling::SharedVm& vm : adoption->vms) {
    asking.out << Printable(vm->name) << ": "
               << (vm->nomad_cluster.empty() ? "made at a higher index than this Nomad has"
                                             : "recorded keys " + Printable(vm->nomad_cluster))
               << "\n";
  }
  if (!adoption->lease_cluster.empty()) {
    asking.out << "its Lease: recorded keys " << Printable(adoption->lease_cluster) << "\n";
  }
  if (!adoption->IsNeeded()) {
    asking.out << "pool " << key.ToString() << " belongs to this Nomad cluster\n";
    return kExitOk;
  }
  asking.out << "this Nomad cluster has keys " << Printable(adoption->cluster) << "\n";
  if (dry_run) return kExitOk;
  const std::string act = "record this Nomad cluster in " + std::to_string(adoption->vms.size()) +
                          " VMs" + (adoption->lease_cluster.empty() ? "" : " and on the Lease") +
                          " of pool " + key.ToString();
  if (const int answer = Confirm(context, asking, act, errors); answer != kExitOk) return answer;
  const absl::Status written = maintenance.Adopt(context, *adoption);
  if (!written.ok()) return errors.Refuse(base::Message(written), kExitFailure);
  asking.out << "pool " << key.ToString() << " belongs to this Nomad cluster now\n";
  return kExitOk;
}

void AddAdoptCommand(CLI::App& app, const Invocation& invocation) {
  const auto dry_run = std::make_shared<bool>(false);
  const auto yes = std::make_shared<bool>(false);
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "adopt",
       .description =
           "After Nomad was rebuilt or restored: record the Nomad cluster that answers now in the "
           "VMs of a pool and on its Lease. While they name another one, the pool is not ready.",
       .exit_codes = "Exit: 0 the pool belongs to this cluster, 1 something was not done, 2 usage.",
       .use = PolicyUse::kRequired,
       .task = [dry_run, yes, invocation](const scaling::Maintenance& maintenance,
                                          const runtime::Context& context,
                                          const Settings& settings) {
         return AdoptPool(
             maintenance, context, *settings.policy, *dry_run,
             {.yes = *yes, .interactive = IsInteractive(), .read_line = ReadLine, .out = std::cout},
             invocation.Errors("adopt"));
       }});
  command->add_flag("--dry-run", *dry_run, "Only print what belongs to another cluster");
  command->add_flag("--yes", *yes, "Do not ask");
}

}  // namespace nomad_harvester::cli
