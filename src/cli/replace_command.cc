// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

int ReadArguments(ReplaceArguments* arguments, const ErrorWriter& errors) {
  if (!arguments->older_than.empty()) {
    const auto age = base::ParseGoDuration(arguments->older_than);
    if (!age.ok()) {
      return errors.Refuse(
          "--older-than: " + base::Message(age.status()) + "; write a duration such as 720h",
          kExitUsage);
    }
    if (*age <= base::Duration::zero()) {
      return errors.Refuse(
          "--older-than: " + arguments->older_than + " is no age; write a duration such as 720h",
          kExitUsage);
    }
    arguments->age = *age;
  }
  if (arguments->cancel && arguments->names.empty()) return kExitOk;  // all requests
  const bool selects = arguments->drifted || arguments->age.has_value();
  if (arguments->names.empty() == !selects) {
    return errors.Refuse(
        "name the VMs, or select them by --drifted or --older-than, not both; with both of these, "
        "VMs of either kind are selected",
        kExitUsage);
  }
  return kExitOk;
}

using Views = std::vector<const scaling::VmView*>;

// The VMs that the arguments name or select. An error: a name is that of no VM of the pool.
absl::StatusOr<Views> Select(const scaling::Inspection& inspection,
                             const ReplaceArguments& arguments) {
  const scaling::PoolSnapshot& snapshot = inspection.snapshot;
  Views selected;
  std::vector<std::string> unknown = arguments.names;
  for (const scaling::VmView* view : snapshot.vms()) {
    if (!IsPoolMember(*view, snapshot) || harvester::IsTerminating(view->vm)) continue;
    const bool named = std::erase(unknown, view->vm->name) > 0;
    const bool drifted =
        arguments.drifted &&
        DriftOf(view->vm, inspection.current_template, snapshot.policy->drift_ignore).has_value();
    const bool old =
        arguments.age.has_value() && snapshot.now() - view->vm->created_at >= *arguments.age;
    // Of what was asked for, --cancel takes back what is named, or everything.
    const bool taken_back =
        arguments.cancel && arguments.names.empty() && !view->vm->replace_request.empty();
    if (named || drifted || old || taken_back) selected.push_back(view);
  }
  if (!unknown.empty()) {
    return base::NotFound("pool " + snapshot.key.ToString() + " has no VM " +
                          absl::StrJoin(unknown, ", ") + "; nomad-harvester status names its VMs");
  }
  return selected;
}

// Why it will not be replaced for now; empty: nothing is in the way.
std::string Obstacle(const scaling::VmView& view, const scaling::PoolSnapshot& snapshot) {
  if (!snapshot.look().nomad_readable) return "";
  return ObjectionTo(view, LinkedNode(view, snapshot), snapshot,
                     {.own_node_id = snapshot.look().own_node_id});
}

}  // namespace

int ReplaceVms(const CommandRun& run, const ReplaceArguments& arguments) {
  const config::PoolPolicy& policy = *run.settings.policy;
  const auto inspection = run.maintenance.Inspect(run.context.WithTimeout(kOperatorBudget), policy,
                                                  run.settings.tells_vms);
  if (!inspection.ok()) return run.errors.Refuse(inspection.status(), kExitFailure);
  if (arguments.drifted && inspection->current_template.hash.empty()) {
    return run.errors.Refuse(
        base::FailedPrecondition("--drifted: which VMs have drifted is not known: " +
                                 (inspection->growth_problem.empty()
                                      ? "give the policy that describes the VMs"
                                      : inspection->growth_problem)),
        kExitFailure);
  }
  const auto selected = Select(*inspection, arguments);
  if (!selected.ok()) return run.errors.Refuse(selected.status(), kExitFailure);
  if (selected->empty()) {
    run.out << "no VM is like that: nothing to do\n";
    return kExitOk;
  }
  const std::string act = arguments.cancel ? "keep" : "replace";
  for (const scaling::VmView* view : *selected) {
    const std::string obstacle = Obstacle(*view, inspection->snapshot);
    run.out << Printable(view->vm->name) << ": "
            << (arguments.cancel ? "to be kept" : "to be replaced")
            << (obstacle.empty() || arguments.cancel ? ""
                                                     : ", but not for now: " + Printable(obstacle))
            << "\n";
  }
  const std::string question = act + " " + std::to_string(selected->size()) +
                               (selected->size() == 1 ? " VM" : " VMs") + " of pool " +
                               inspection->snapshot.key.ToString();
  if (const int answer = Confirm(run, arguments.yes, question); answer != kExitOk) return answer;
  const auto reason = arguments.cancel ? std::nullopt : std::optional(arguments.reason);
  for (const scaling::VmView* view : *selected) {
    const absl::Status asked = run.maintenance.RequestReplacement(
        run.context.WithTimeout(kOperatorBudget), view->vm, reason);
    if (!asked.ok()) return run.errors.Refuse(asked, kExitFailure);
  }
  run.out << (arguments.cancel
                  ? "done; a replacement that has begun goes on\n"
                  : "The agent's plugin replaces them, one at a time, while the pool is at rest; "
                    "nomad-harvester status -w shows it\n");
  return kExitOk;
}

void AddReplaceCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<ReplaceArguments>();
  const ErrorWriter errors = invocation.Errors("replace");
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "replace",
       .description =
           "Ask for VMs to be replaced by new ones: each is drained and removed once the VM that "
           "takes its place is ready. The count of the pool stays as it is. It sets the annotation "
           "`replace`, and the plugin of the pool's agent does the work.",
       .exit_codes = "Exit: 0 asked for, 1 something was not done, 2 usage.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return ReplaceVms(run, *arguments); },
       .check = [arguments, errors] { return ReadArguments(arguments.get(), errors); }});
  command->add_option("VM", arguments->names, "The VMs");
  command->add_flag("--drifted", arguments->drifted,
                    "All that were made of something else than the policy describes now");
  command->add_option("--older-than", arguments->older_than, "All that are older, such as 720h")
      ->type_name("DURATION");
  command->add_option("--reason", arguments->reason, "What the Events and the status say")
      ->type_name("TEXT");
  command->add_flag("--cancel", arguments->cancel, "Ask for it no longer");
  command->add_flag("--yes", arguments->yes, "Do not ask");
}

}  // namespace nomad_harvester::cli
