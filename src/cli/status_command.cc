// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "pool_status.h"
#include "status_view.h"
#include "terminal.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

bool IsForPrograms(const std::string& output) { return output == "json" || output == "yaml"; }

std::string NoSuchVm(const PoolStatus& status, const std::string& vm, const std::string& hint,
                     const std::string& note) {
  std::vector<std::string> names;
  names.reserve(status.vms.size());
  for (const VmStatus& known : status.vms) names.push_back(known.vm().name);
  std::string text = "pool " + status.inspection.snapshot.key.ToString() + " has no VM " + vm;
  // Like "kubectl get KIND NAME".
  if (vm == status.inspection.snapshot.key.pool) {
    return text + "; it is the pool's own name: without it, status shows the pool";
  }
  if (const auto nearest = base::NearestName(vm, names); nearest.has_value()) {
    text += DidYouMean(nearest);
  } else if (!hint.empty()) {
    text += ", and no enabled policy of the files has such a pool" + hint;
  } else if (!names.empty()) {
    text += "; it has " + FirstFew(names);
  } else if (!note.empty()) {
    text += "; " + note;
  }
  return text;
}

// A pool without a VM and a Lease may have a misspelt name. Unreadable systems prove nothing.
std::string WhatThereIs(const scaling::Maintenance& maintenance, const runtime::Context& context,
                        const scaling::Inspection& inspection) {
  const scaling::PoolKey& key = inspection.snapshot.key;
  if (!inspection.ns.has_value() || !inspection.ns->problem.empty()) return "";
  const auto pools = maintenance.FindPools(context, key.ns);
  if (pools.ok() && pools->contains(key)) {
    return "its VMs are gone, and something of them is left: nomad-harvester gc --dry-run says "
           "what";
  }
  if (inspection.is_claimed) return inspection.nothing_exists;
  if (!pools.ok()) return "";
  const std::string lease = inspection.lease.problem.empty() ? "" : ", but perhaps a Lease";
  return "there is nothing of this name in namespace " + key.ns + lease + "; " + PoolsText(*pools);
}

// Aligned with the texts of the lines.
constexpr std::size_t kIndent = 12;

std::string ForPeople(const std::string& text, const Terminal& terminal) {
  return Paint(Fold(text, terminal.width, kIndent),
               {{"Ready:      yes", Colour::kGreen},
                {"Ready:      no", Colour::kRed},
                {"Trouble:", Colour::kYellow}},
               terminal);
}

absl::StatusOr<PoolStatus> ReadStatus(const CommandRun& run, bool with_room) {
  const runtime::Context limited = run.context.WithTimeout(kOperatorBudget);
  NH_ASSIGN_OR_RETURN(scaling::Inspection inspection, InspectPool(run));
  if (with_room) run.maintenance.AddRoom(limited, &inspection);
  return DescribePool(std::move(inspection), run.settings.files.policy_name,
                      run.settings.files.SharedText(run.settings.environment));
}

// The removed VMs, or the one that is named.
Look LookAtHistory(const CommandRun& run, const StatusArguments& arguments) {
  const scaling::PoolKey key = KeyOf(run);
  const auto history = run.maintenance.ReadHistory(run.context.WithTimeout(kOperatorBudget), key);
  if (!history.ok()) {
    return {.exit_code = kExitFailure, .error = base::Message(history.status())};
  }
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "MADE", "JOINED", "REMOVED", "ACTION", "TEMPLATE", "WHY"}};
  nlohmann::ordered_json removed = nlohmann::ordered_json::array();
  for (const harvester::RemovedVm& vm : *history) {
    if (!arguments.vm.empty() && vm.name != arguments.vm) continue;
    const nlohmann::json entry = ToJson(vm);
    std::vector<std::string>& row = rows.emplace_back(1, vm.name);
    for (const char* const key_of_cell :
         {"made", "joined", "removed", "action", "template", "why"}) {
      row.push_back(base::GetString(entry, key_of_cell));
    }
    removed.push_back({{"name", vm.name}});
    removed.back().update(nlohmann::ordered_json(entry));
  }
  if (removed.empty() && !arguments.vm.empty()) {
    return {.exit_code = kExitFailure,
            .error = "the history of pool " + key.ToString() + " has no VM " + arguments.vm +
                     "; it keeps the last " + std::to_string(harvester::kMaxHistory) +
                     " that were removed"};
  }
  Look look;
  if (IsForPrograms(arguments.output)) {
    look.text = PrintableDocument(
        arguments.output,
        {{"namespace", key.ns}, {"node_group_name", key.pool}, {"removed", std::move(removed)}});
  } else {
    look.text = Table(rows, run.terminal.width);
  }
  look.state = look.text;
  return look;
}

int ExitCodeOf(const PoolStatus& status) {
  if (!status.inspection.snapshot.observation().nomad.ok()) return kExitFailure;
  if (!status.inspection.report.status.ready) return kExitNotReady;
  return status.troubles.empty() ? kExitOk : kExitTrouble;
}

// The exit code of several pools: not read, not ready, trouble, well.
int Worse(int one, int other) {
  for (const int code : {kExitFailure, kExitNotReady, kExitTrouble}) {
    if (one == code || other == code) return code;
  }
  return kExitOk;
}

Look LookAt(const CommandRun& run, const StatusArguments& arguments) {
  if (arguments.history) return LookAtHistory(run, arguments);
  const runtime::Context limited = run.context.WithTimeout(kOperatorBudget);
  const auto read = ReadStatus(run, !arguments.watch.watch);
  if (!read.ok()) return {.exit_code = kExitFailure, .error = base::Message(read.status())};
  const PoolStatus& status = *read;
  const auto vm = std::find_if(status.vms.begin(), status.vms.end(), [&](const VmStatus& each) {
    return each.vm().name == arguments.vm;
  });
  const std::string note = WhatThereIs(run.maintenance, limited, status.inspection);
  const bool of_vm = !arguments.vm.empty();
  if (of_vm && vm == status.vms.end()) {
    return {.exit_code = kExitFailure,
            .error = NoSuchVm(status, arguments.vm, run.settings.files.hint, note)};
  }
  scaling::EventsView events;
  if (of_vm) {
    events = run.maintenance.EventsOf(limited, run.settings.policy->ns, arguments.vm);
  }
  const std::string& output = arguments.output;
  const StatusDetail detail = output == "wide" ? StatusDetail::kWide : StatusDetail::kUsual;
  Look look{.exit_code = ExitCodeOf(status), .state = StateWithoutTimes(status, events)};
  if (IsForPrograms(output)) {
    look.text = PrintableDocument(output, of_vm ? VmDocument(*vm, events) : StatusDocument(status));
  } else {
    look.text = ForPeople(of_vm ? VmStory(status, *vm, events)
                                : StatusTable(status, detail, run.terminal.width, note),
                          run.terminal);
  }
  return look;
}

// The one-line summary: why the pool is not ready, else its first trouble, else what is under way.
std::string Remark(const PoolStatus& status) {
  const scaling::StatusReport& report = status.inspection.report;
  if (!report.status.ready) return report.reason;
  const std::vector<Finding>& said = status.troubles.empty() ? status.under_way : status.troubles;
  if (said.empty()) return status.inspection.nothing_exists;
  const std::size_t more = said.size() - 1;
  return FindingText(said.front()) +
         (more == 0 ? "" : " (and " + std::to_string(more) + " more: status of this pool)");
}

// If one pool cannot be read, the others are still shown.
Look LookAtAll(const std::vector<CommandRun>& runs, const std::vector<UnreadPolicy>& unread,
               const StatusArguments& arguments) {
  std::vector<std::vector<std::string>> rows = {
      {"POOL", "POLICY", "READY", "COUNT", "OTHERS", "WHY"}};
  nlohmann::ordered_json pools = nlohmann::ordered_json::array();
  std::string whole;
  Look all;
  const bool with_room = !arguments.watch.watch && arguments.output != kForPeople;
  for (const CommandRun& run : runs) {
    const scaling::PoolKey key = KeyOf(run);
    const std::string pool = key.ToString();
    const std::string& policy = run.settings.files.policy_name;
    const auto read = ReadStatus(run, with_room);
    if (!read.ok()) {
      const std::string why = base::Message(read.status());
      rows.push_back({pool, policy, "unknown", "", "", why});
      pools.push_back({{"namespace", key.ns},
                       {"node_group_name", key.pool},
                       {"policy", policy},
                       {"error", why}});
      whole += "Pool:       " + pool + "\nError:      " + Printable(why) + "\n\n";
      all.state += pool + " cannot be read\n";
      all.exit_code = kExitFailure;
      continue;
    }
    const PoolStatus& status = *read;
    const scaling::TargetStatus& report = status.inspection.report.status;
    rows.push_back({pool, policy, report.ready ? "yes" : "no", std::to_string(report.count),
                    CountersText(status), Remark(status)});
    pools.push_back(StatusDocument(status));
    whole += StatusTable(status, StatusDetail::kWide, run.terminal.width) + "\n";
    all.state += StateWithoutTimes(status);
    all.exit_code = Worse(all.exit_code, ExitCodeOf(status));
  }
  for (const UnreadPolicy& each : unread) {
    rows.push_back(
        {"", each.label.empty() ? each.Name() : each.label, "unknown", "", "", each.Text()});
    pools.push_back(UnreadDocument(each));
    all.exit_code = kExitFailure;
  }
  whole += UnreadText(unread);
  const Terminal& terminal = runs.front().terminal;
  if (arguments.output == "wide") {
    all.text = ForPeople(whole, terminal);
  } else if (arguments.output == kForPeople) {
    all.text = Fold(Table(rows, terminal.width), terminal.width, kIndent);
  } else {
    all.text = PrintableDocument(arguments.output, {{"pools", std::move(pools)}});
  }
  return all;
}

// The words without the pool's name.
int ReadWords(StatusArguments* arguments, const std::string& hint, const ErrorWriter& errors) {
  // Two options that --all excludes have no fixed order in the help.
  if (arguments->all && arguments->history) {
    return errors.Refuse("--history is that of one pool: name it, without --all", kExitUsage);
  }
  const std::vector<std::string>& words = arguments->words;
  if (words.size() > 1) {
    return errors.Refuse("it takes a pool and a VM, and none of these is a pool of the files: " +
                             absl::StrJoin(words, ", ") + hint,
                         kExitUsage);
  }
  if (!words.empty()) arguments->vm = words.front();
  return kExitOk;
}

}  // namespace

int ShowStatus(const CommandRun& run, const StatusArguments& arguments) {
  const std::string title = "status of " +
                            (arguments.vm.empty() ? "" : "VM " + arguments.vm + " of ") + "pool " +
                            KeyOf(run).ToString();
  return ShowLooks(run, arguments.watch, title, [&] { return LookAt(run, arguments); });
}

int ShowStatusOfAll(const std::vector<CommandRun>& runs, const std::vector<UnreadPolicy>& unread,
                    const StatusArguments& arguments) {
  return ShowLooks(runs.front(), arguments.watch,
                   "status of " + std::to_string(runs.size()) + " pools",
                   [&] { return LookAtAll(runs, unread, arguments); });
}

void AddStatusCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<StatusArguments>();
  const ErrorWriter errors = invocation.Errors("status");
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "status",
       .description = "Show a pool: problems and what stops the agent from scaling it, then VMs, "
                      "their nodes and "
                      "pending removals; or everything about one VM. Only reads.",
       .exit_codes =
           "Exit: 0 ready, 3 not ready, 4 ready with trouble, 1 cannot be read, 2 usage or wrong "
           "settings, 130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return ShowStatus(run, *arguments); },
       .check =
           [arguments, errors](const OperatorFiles& files) {
             return ReadWords(arguments.get(), files.hint, errors);
           },
       .words = &arguments->words,
       .is_for_all = [arguments] { return arguments->all; },
       .task_of_all =
           [arguments](const std::vector<CommandRun>& runs,
                       const std::vector<UnreadPolicy>& unread) {
             return ShowStatusOfAll(runs, unread, *arguments);
           }});
  CLI::Option* const words = command->add_option(
      "POOL|VM", arguments->words,
      "The pool, by the label of its enabled policy, its name or NAMESPACE/NAME; any other name is "
      "a VM of the pool, of which it shows everything");
  CLI::Option* const all = command->add_flag(
      "--all", arguments->all,
      "The pools of all enabled policies of the files, one line each; with -n, those of the "
      "namespace");
  all->excludes(words);
  command->add_flag("--history", arguments->history,
                    "The pool's removed VMs, the last one first: what each was made of, and why "
                    "it was removed. Needs the optional right to read ConfigMaps. Not with --all");
  AddOutputOption(*command, arguments->output, {kForPeople, "wide", "json", "yaml"});
  AddWatchOptions(*command, arguments->watch);
}

}  // namespace nomad_harvester::cli
