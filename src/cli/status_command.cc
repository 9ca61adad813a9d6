// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "pool_status.h"
#include "status_document.h"
#include "status_view.h"
#include "terminal.h"
#include "text.h"
#include "watch.h"

namespace nomad_harvester::cli {
namespace {

std::string Shown(const PoolStatus& status, const VmStatus* vm, const scaling::EventsView& events,
                  const std::string& output, std::size_t width) {
  if (output == "json" || output == "yaml") {
    const auto document = vm == nullptr ? StatusDocument(status) : VmDocument(*vm, events);
    return output == "json" ? PrintableJson(document) : PrintableYaml(document);
  }
  if (vm != nullptr) return VmStory(status, *vm, events);
  return StatusTable(status, output == "wide" ? StatusDetail::kWide : StatusDetail::kUsual, width);
}

std::string NoSuchVm(const PoolStatus& status, const std::string& vm) {
  std::vector<std::string> names;
  names.reserve(status.vms.size());
  for (const VmStatus& known : status.vms) names.push_back(known.vm().name);
  std::string text = "pool " + status.inspection.snapshot.key.ToString() + " has no VM " + vm;
  if (const auto nearest = base::NearestName(vm, names); nearest.has_value()) {
    text += "; did you mean " + *nearest + "?";
  } else if (!names.empty()) {
    text += "; it has " + FirstFew(names);
  }
  return text;
}

// A pool without a VM and a Lease may be a name that is spelt wrong. What cannot be read says
// nothing.
std::string WhatThereIs(const scaling::Maintenance& maintenance, const runtime::Context& context,
                        const scaling::Inspection& inspection) {
  const scaling::PoolKey& key = inspection.snapshot.key;
  if (!inspection.ns.has_value() || !inspection.ns->problem.empty()) return "";
  const auto pools = maintenance.FindPools(context, key.ns);
  if (!pools.ok()) return "";
  if (pools->contains(key)) {
    return "Note:       its VMs are gone, and something of them is left: harvester gc --dry-run "
           "says what\n";
  }
  std::vector<std::string> names;
  names.reserve(pools->size());
  for (const scaling::PoolKey& pool : *pools) names.push_back(pool.pool);
  const std::string lease = inspection.lease.problem.empty() ? "" : ", but perhaps a Lease";
  return "Note:       there is nothing of this name in namespace " + key.ns + lease + "; " +
         (names.empty() ? "there is no pool"
                        : "pools here: " + Printable(absl::StrJoin(names, ", "))) +
         "\n";
}

// Below the texts of the lines.
constexpr std::size_t kIndent = 12;

Look LookAt(const CommandRun& run, const StatusArguments& arguments) {
  const Settings& settings = run.settings;
  const runtime::Context limited = run.context.WithTimeout(kOperatorBudget);
  auto inspection =
      run.maintenance.Inspect(limited, *settings.policy, settings.tells_vms, settings.claimed);
  if (!inspection.ok()) {
    return {.exit_code = kExitFailure, .error = base::Message(inspection.status())};
  }
  const PoolStatus status = DescribePool(*std::move(inspection));
  const auto vm =
      std::find_if(status.vms.begin(), status.vms.end(),
                   [&](const VmStatus& each) { return each.vm().name == arguments.vm; });
  const bool of_vm = !arguments.vm.empty();
  if (of_vm && vm == status.vms.end()) {
    return {.exit_code = kExitFailure, .error = NoSuchVm(status, arguments.vm)};
  }
  scaling::EventsView events;
  if (of_vm) events = run.maintenance.EventsOf(limited, settings.policy->ns, arguments.vm);
  const std::string& output = arguments.output;
  const std::size_t width = run.terminal.width;
  const bool is_ready = status.inspection.report.status.ready;
  Look look{.exit_code = is_ready ? kExitOk : kExitNotReady,
            .text = Shown(status, of_vm ? &*vm : nullptr, events, output, width),
            .state = StateWithoutTimes(status, events)};
  // A break or a colour within a text would be part of what another program reads.
  if (output != "json" && output != "yaml") {
    if (!of_vm) look.text += WhatThereIs(run.maintenance, limited, status.inspection);
    look.text = Paint(Fold(look.text, width, kIndent),
                      {{"Ready:      yes", Colour::kGreen},
                       {"Ready:      no", Colour::kRed},
                       {"Trouble:", Colour::kYellow}},
                      run.terminal);
  }
  if (!status.inspection.snapshot.look().nomad_readable) look.exit_code = kExitFailure;
  return look;
}

}  // namespace

int ShowStatus(const CommandRun& run, const StatusArguments& arguments) {
  const config::PoolPolicy& policy = *run.settings.policy;
  const std::string title =
      "status of " +
      (arguments.vm.empty() ? "" : "VM " + arguments.vm + " of ") + "pool " + policy.ns + "/" +
      policy.pool;
  return ShowLooks(run, arguments.watch, title, [&] { return LookAt(run, arguments); });
}

void AddStatusCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<StatusArguments>();
  const auto interval = std::make_shared<std::string>("2s");
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "status",
       .description =
           "Show a pool: what is wrong, VMs, nodes, links, marks, and why the agent may not scale "
           "it; or everything about one VM. Only reads.",
       .exit_codes = "Exit: 0 ready, 3 not ready, 1 cannot be read, 2 usage, 130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return ShowStatus(run, *arguments); },
       .check =
           [arguments, interval, invocation] {
             const auto parsed = base::ParseGoDuration(*interval);
             if (parsed.ok() && *parsed >= std::chrono::seconds(1)) {
               arguments->watch.interval = *parsed;
               return kExitOk;
             }
             return invocation.Errors("status").Refuse(
                 "--interval: " + *interval + " is not a duration of at least 1s, such as 5s",
                 kExitUsage);
           }});
  command->add_option("VM", arguments->vm, "Everything about this VM of the pool");
  command
      ->add_option("-o,--output", arguments->output,
                   "table, wide (more columns), or for programs json or yaml")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml"}))
      ->capture_default_str();
  command->add_flag("--watch", arguments->watch.watch,
                    "Repeat until Ctrl-C: on a terminal's alternate screen, else whenever something "
                    "changes");
  command->add_option("--interval", *interval, "Between two of these, at least 1s")
      ->type_name("DURATION")
      ->needs("--watch")
      ->capture_default_str();
}

}  // namespace nomad_harvester::cli
