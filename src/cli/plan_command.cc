// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/secret.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/rendering.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "plan_view.h"
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

// For --exit-code. What the background replaces is no part of the Scale.
int ExitCodeOf(const scaling::Proposal& proposal) {
  if (!proposal.refusal.ok()) return kExitFailure;
  const bool changes = proposal.plan.direction != scaling::Direction::kNone ||
                       !proposal.plan.cancel_removals.empty() || !proposal.roll_backs.empty() ||
                       !proposal.replaced.empty();
  return changes ? kExitChanges : kExitOk;
}

}  // namespace

std::string ProblemOfCount(const std::string& text) {
  const auto number = base::ParseInt(text);
  // CLI11 reads a number that begins with 0 as octal.
  const bool is_octal = text.size() > 1 && text.starts_with('0');
  if (number.ok() && *number >= 0 && !is_octal) return "";
  return "must be a whole number without leading zeros, such as 3" + Got(text) +
         (text.find('=') == std::string::npos ? "" : kHowToSet);
}

void AddCountOption(CLI::App& command, std::int64_t& count) {
  command.add_option("--count,COUNT", count, "How many VMs the pool shall have: 3, or --count 3")
      ->required()
      ->check(&ProblemOfCount);
}

absl::Status CheckCountOf(const Settings& settings, std::int64_t count) {
  if (!settings.files.refusals.empty()) {
    return base::InvalidArgument("the agent does not scale by this policy:\n" +
                                 absl::StrJoin(settings.files.refusals, "\n"));
  }
  if (!settings.files.limits.has_value()) return absl::OkStatus();
  const CountLimits& limits = *settings.files.limits;
  const bool too_many = count > limits.max;
  if (!too_many && count >= limits.min) return absl::OkStatus();
  return base::InvalidArgument(
      "--count: " + std::to_string(count) + " is " +
      (too_many ? "more than max" : "less than min") + " of " + limits.policy + ", " +
      std::to_string(too_many ? limits.max : limits.min) +
      ", to which the agent would scale back; give a count from " + std::to_string(limits.min) +
      " to " + std::to_string(limits.max) + ", or change the policy");
}

int ShowPlan(const CommandRun& run, const PlanArguments& arguments) {
  const absl::Status outside = CheckCountOf(run.settings, arguments.count);
  if (!outside.ok()) return run.errors.Refuse(outside, kExitUsage);
  const config::PoolPolicy& policy = *run.settings.policy;
  const auto look = [&]() -> Look {
    const auto proposal =
        run.maintenance.Plan(run.context.WithTimeout(kOperatorBudget), policy, arguments.count);
    if (!proposal.ok()) {
      const absl::Status why =
          run.context.Done() ? base::Annotate(proposal.status(), "interrupted; nothing was changed")
                             : proposal.status();
      return {.exit_code = kExitFailure, .error = base::Message(why)};
    }
    const std::size_t width = run.terminal.width;
    std::string text = arguments.output == kForPeople
                           ? PlanText(*proposal, width) + ReplacementText(*proposal, width) +
                                 RefusalText(*proposal, width)
                           : PrintableDocument(arguments.output, PlanDocument(*proposal));
    return {.exit_code = arguments.exit_code ? ExitCodeOf(*proposal) : kExitOk,
            .text = text,
            .state = text};
  };
  return ShowLooks(run, arguments.watch, "plan of pool " + KeyOf(run).ToString(), look);
}

void AddPlanCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "plan",
       .description =
           "Show what a Scale to a count would do now: the VMs it adds or removes and why, "
           "alternatives (RESERVE), VMs that must stay (PASSED OVER), limits, what would refuse "
           "it, and what the background replaces (REPLACE). Only reads.",
       .exit_codes =
           "Exit: 0 planned, also if it would be refused; 1 a system cannot be read, 2 usage; with "
           "--exit-code 0 nothing would change, 2 something would, 1 it would be refused or an "
           "error, 130 interrupted.",
       .use = PolicyUse::kWhole,
       .task = [arguments](const CommandRun& run) { return ShowPlan(run, *arguments); },
       .add_arguments = [arguments](CLI::App& own) { AddCountOption(own, arguments->count); }});
  AddOutputOption(*command, arguments->output);
  command->add_flag(
      "--exit-code", arguments->exit_code,
      "Answer by the exit code: 0 nothing would change, 2 something would, 1 it would "
      "be refused, or an error");
  AddWatchOptions(*command, arguments->watch);
}

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
