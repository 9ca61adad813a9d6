// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "plan_view.h"
#include "text.h"
#include "watch.h"

namespace nomad_harvester::cli {

void AddCountOption(CLI::App& command, std::int64_t& count) {
  command.add_option("--count,COUNT", count, "How many VMs the pool shall have: 3, or --count 3")
      ->required()
      ->check([](const std::string& text) {
        const auto number = base::ParseInt(text);
        // CLI11 reads a number that begins with 0 as octal.
        const bool is_octal = text.size() > 1 && text.starts_with('0');
        if (number.ok() && *number >= 0 && !is_octal) return std::string();
        return GivenWord(text) +
               " is not a count of VMs; give a whole number without leading zeros, such as 3" +
               (text.find('=') == std::string::npos ? "" : kHowToSet);
      });
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
    return {.text = text, .state = text};
  };
  return ShowLooks(run, arguments.watch, "plan of pool " + policy.ns + "/" + policy.pool, look);
}

void AddPlanCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<PlanArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "plan",
       .description =
           "Show what a Scale to a count would do now: which VMs and nodes, why, who goes instead "
           "if "
           "one of them may not (RESERVE), who is passed over, what is limited, and what would "
           "refuse it; and what is replaced besides (REPLACE). Only reads.",
       .exit_codes =
           "Exit: 0 planned, also if it would be refused; 1 a system cannot be read, 2 usage, "
           "130 interrupted.",
       .use = PolicyUse::kWhole,
       .task = [arguments](const CommandRun& run) { return ShowPlan(run, *arguments); }});
  AddCountOption(*command, arguments->count);
  AddOutputOption(*command, arguments->output);
  AddWatchOptions(*command, arguments->watch);
}

}  // namespace nomad_harvester::cli
