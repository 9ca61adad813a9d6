// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {

int AdoptPool(const CommandRun& run, const RepairArguments& arguments) {
  const config::PoolPolicy& policy = *run.settings.policy;
  const scaling::PoolKey key{.ns = policy.ns, .pool = policy.pool};
  const auto adoption = run.maintenance.FindAdoption(run.context.WithTimeout(kOperatorBudget), key);
  if (!adoption.ok()) return run.errors.Refuse(adoption.status(), kExitFailure);
  for (const scaling::SharedVm& vm : adoption->vms) {
    const bool newer = vm->nodes.has_value() && vm->nodes->index > adoption->index;
    run.out << Printable(vm->name) << ": "
            << (newer ? "made at a higher index than this Nomad has"
                      : "recorded keys " + Printable(vm->nomad_cluster))
            << "\n";
  }
  if (!adoption->lease_cluster.empty()) {
    run.out << "its Lease: recorded keys " << Printable(adoption->lease_cluster) << "\n";
  }
  if (!adoption->IsNeeded()) {
    run.out << "pool " << key.ToString() << " belongs to this Nomad cluster\n";
    return kExitOk;
  }
  run.out << "this Nomad cluster has keys " << Printable(adoption->cluster) << "\n"
          << "of the " << adoption->joined << " VMs that had a node, it knows the nodes of "
          << adoption->known << "\n";
  if (adoption->joined > 0 && adoption->known == 0 && !arguments.without_nodes) {
    return run.errors.Refuse(
        base::FailedPrecondition(
            "this Nomad knows no node of the pool: once it is adopted, the next scale-ins would "
            "delete its VMs without a drain. Check nomad_address; after a rebuild wait until the "
            "clients have registered (nomad node status); if none of them will, give "
            "--without-nodes"),
        kExitFailure);
  }
  if (arguments.dry_run) return kExitOk;
  const std::string act = "record this Nomad cluster in " + std::to_string(adoption->vms.size()) +
                          " VMs" + (adoption->lease_cluster.empty() ? "" : " and on the Lease") +
                          " of pool " + key.ToString();
  if (const int answer = Confirm(run, arguments.yes, act); answer != kExitOk) return answer;
  const absl::Status written = run.maintenance.Adopt(run.context, *adoption);
  if (!written.ok()) return run.errors.Refuse(written, kExitFailure);
  run.out << "pool " << key.ToString() << " belongs to this Nomad cluster now\n";
  return kExitOk;
}

void AddAdoptCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<RepairArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "adopt",
       .description =
           "After Nomad was rebuilt or restored: record the Nomad cluster that answers now in the "
           "VMs of a pool and on its Lease. While they name another one, the pool is not ready.",
       .exit_codes = "Exit: 0 the pool belongs to this cluster, 1 something was not done, 2 usage, "
                     "130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return AdoptPool(run, *arguments); }});
  command->add_flag("--dry-run", arguments->dry_run, "Only print what belongs to another cluster");
  command->add_flag("--yes", arguments->yes, "Do not ask");
  command->add_flag("--without-nodes", arguments->without_nodes,
                    "Also if this Nomad knows no node of the pool's VMs");
}

}  // namespace nomad_harvester::cli
