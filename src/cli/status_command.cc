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

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "pool_status.h"
#include "status_document.h"
#include "status_view.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// Clears the terminal from its first line on, without a trace in what scrolls.
constexpr char kRedraw[] = "\x1b[H\x1b[J";

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

class StatusRun {
 public:
  StatusRun(const CommandRun& run, const StatusArguments& arguments)
      : run_(run), arguments_(arguments) {}

  int Once() {
    const Settings& settings = run_.settings;
    const runtime::Context limited = run_.context.WithTimeout(kOperatorBudget);
    auto inspection =
        run_.maintenance.Inspect(limited, *settings.policy, settings.tells_vms, settings.claimed);
    if (!inspection.ok()) return Refuse(base::Message(inspection.status()));
    const PoolStatus status = DescribePool(*std::move(inspection));
    const auto vm =
        std::find_if(status.vms.begin(), status.vms.end(),
                     [this](const VmStatus& each) { return each.vm().name == arguments_.vm; });
    const bool of_vm = !arguments_.vm.empty();
    if (of_vm && vm == status.vms.end()) return Refuse(NoSuchVm(status, arguments_.vm));
    scaling::EventsView events;
    if (of_vm) events = run_.maintenance.EventsOf(limited, settings.policy->ns, arguments_.vm);
    const std::string& output = arguments_.output;
    const std::size_t width = run_.terminal.width;
    std::string text = Shown(status, of_vm ? &*vm : nullptr, events, output, width);
    // A break within a text would be part of what another program reads.
    if (output != "json" && output != "yaml") {
      if (!of_vm) text += WhatThereIs(run_.maintenance, limited, status.inspection);
      text = Fold(text, width, kIndent);
    }
    Print(text, StateWithoutTimes(status, events));
    if (!status.inspection.snapshot.look().nomad_readable) return kExitFailure;
    return status.inspection.report.status.ready ? kExitOk : kExitNotReady;
  }

  // Until the context ends, or nobody reads any more.
  int Watch() {
    for (;;) {
      const int exit_code = Once();
      if (!run_.context.Sleep(arguments_.interval).ok() || !run_.out.good()) return exit_code;
    }
  }

 private:
  // Below the texts of the lines.
  static constexpr std::size_t kIndent = 12;

  // The age of a VM is no change.
  void Print(const std::string& text, const std::string& state) {
    last_error_.clear();
    if (arguments_.watch && run_.terminal.redraws) {
      run_.out << kRedraw;
    } else if (arguments_.watch && state == last_state_) {
      return;
    } else if (!last_state_.empty()) {
      run_.out << "\n";
    }
    run_.out << text << std::flush;
    last_state_ = state;
  }

  // The same error is told once: it differs in no more than how long something was waited for.
  int Refuse(const std::string& problem) {
    std::string error = problem;
    std::replace_if(
        error.begin(), error.end(), [](unsigned char c) { return absl::ascii_isdigit(c); }, '#');
    if (error == last_error_) return run_.errors.ExitCode(kExitFailure);
    last_error_ = error;
    last_state_ = problem;  // once it is gone the pool is shown again
    return run_.errors.Refuse(problem, kExitFailure);
  }

  const CommandRun& run_;
  const StatusArguments& arguments_;
  std::string last_state_;
  std::string last_error_;
};

}  // namespace

int ShowStatus(const CommandRun& run, const StatusArguments& arguments) {
  StatusRun status(run, arguments);
  return arguments.watch ? status.Watch() : status.Once();
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
               arguments->interval = *parsed;
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
  command->add_flag("--watch", arguments->watch,
                    "Repeat until Ctrl-C: on a terminal in place, else whenever something changes");
  command->add_option("--interval", *interval, "Between two of these, at least 1s")
      ->type_name("DURATION")
      ->needs("--watch")
      ->capture_default_str();
}

}  // namespace nomad_harvester::cli
