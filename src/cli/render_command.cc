// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/scaling/rendering.h"

#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

std::string RenderingJson(const scaling::Rendering& rendering) {
  const nlohmann::json list = {{"apiVersion", "v1"},
                               {"kind", "List"},
                               {"items", {rendering.lease, rendering.secret, rendering.vm}}};
  return list.dump(2, ' ', true) + "\n";
}

// Prints the objects in the order of their creation.
std::string RenderingYaml(const scaling::Rendering& rendering, const config::PoolPolicy& policy) {
  std::string text = "# What a growth of pool " + policy.ns + "/" + policy.pool +
                     " creates, in this order; the Lease once.\n"
                     "# Samples, different for each VM: its name, which the names of its Secret "
                     "and volumes begin\n"
                     "# with; the action id; the firmware UUID.\n"
                     "# Samples of the Lease: its holder and its times.\n"
                     "# Set when it is created: Nomad's index in the VM's annotation \"nodes\"; "
                     "then the Secret's\n"
                     "# owner, the VM; on the Lease the annotation \"action\".\n"
                     "# Values of HARVESTER_TEMPLATE_ variables are REDACTED.\n";
  if (policy.zones.size() > 1 && policy.evenly_split_zones) {
    text += "# The zone is the first one of availability_zones: VMs are spread over all of them.\n";
  }
  if (rendering.intro_token) {
    text +=
        "# INTRODUCTION-TOKEN stands for Nomad's token of each VM, which the Secret also holds by\n"
        "# itself, with its end in an annotation.\n";
  }
  for (const nlohmann::json* object : {&rendering.lease, &rendering.secret, &rendering.vm}) {
    text += "---\n" + ToYaml(*object);
  }
  return text;
}

}  // namespace

int RenderPolicy(const CommandRun& run, const std::string& output) {
  const config::PoolPolicy& policy = *run.settings.policy;
  const auto rendering = run.maintenance.Render(run.context.WithTimeout(kOperatorBudget), policy);
  if (!rendering.ok()) return run.errors.Refuse(rendering.status(), kExitFailure);
  run.out << base::WithoutSecrets(output == "json" ? RenderingJson(*rendering)
                                                   : RenderingYaml(*rendering, policy))
          << std::flush;
  return kExitOk;
}

void AddRenderCommand(CLI::App& app, const Invocation& invocation) {
  const auto output = std::make_shared<std::string>("yaml");
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "render",
       .description =
           "Print the Lease, the Secret and the VM that a policy would create, without secrets. "
           "Only reads: image, networks and keys from Harvester.",
       .exit_codes =
           "Exit: 0 printed, 1 Harvester cannot be read or would not get such a VM, 2 usage, "
           "130 interrupted.",
       .use = PolicyUse::kWhole,
       .task = [output](const CommandRun& run) { return RenderPolicy(run, *output); }});
  AddOutputOption(*command, *output, {"yaml", "json"});
}

}  // namespace nomad_harvester::cli
