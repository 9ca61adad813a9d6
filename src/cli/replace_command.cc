// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/check.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/status_report.h"

#include "absl/strings/str_join.h"
#include "command.h"
#include "nlohmann/json.hpp"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

int ReadArguments(ReplaceArguments* arguments, const OperatorFiles& files,
                  const ErrorWriter& errors) {
  if (!arguments->older_than.empty()) {
    const auto age = base::ParseGoDuration(arguments->older_than);
    if (!age.ok()) {
      return errors.Refuse("--older-than: " + base::Message(age.status()), kExitUsage);
    }
    if (*age <= base::Duration::zero()) {
      return errors.Refuse(
          "--older-than: " + arguments->older_than + " is no age; write a duration such as 720h",
          kExitUsage);
    }
    arguments->age = *age;
  }
  if (!base::ParseGoBool(arguments->reason).value_or(!arguments->reason.empty())) {
    return errors.Refuse(
        "--reason: an empty one, and \"false\", mean that the VMs are not to be replaced; give a "
        "reason, or --cancel",
        kExitUsage);
  }
  if (arguments->reason.find('\n') != std::string::npos) {
    return errors.Refuse("--reason must be one line", kExitUsage);
  }
  if (arguments->cancel && arguments->names.empty()) return kExitOk;  // all requests
  const bool selects = arguments->drifted || arguments->age.has_value();
  if (arguments->names.empty() == !selects) {
    const std::string no_pool =
        selects && !files.labels.empty()
            ? absl::StrJoin(arguments->names, ", ") + ": no pool has such a name" +
                  (files.hint.empty() ? "; there are " + FirstFew(files.labels) + "; "
                                      : files.hint + " Else ")
            : "";
    return errors.Refuse(no_pool + "give either the names of VMs or --drifted or --older-than",
                         kExitUsage);
  }
  return kExitOk;
}

using Json = nlohmann::ordered_json;
using Views = std::vector<const scaling::VmView*>;

constexpr base::Duration kProgressEvery = std::chrono::seconds(5);

Views Select(const scaling::Inspection& inspection,
             const std::function<bool(const scaling::VmView&)>& selects) {
  Views selected;
  for (const scaling::VmView* view : inspection.snapshot.vms()) {
    if (!IsPoolMember(*view, inspection.snapshot) || harvester::IsTerminating(view->vm)) continue;
    if (selects(*view)) selected.push_back(view);
  }
  return selected;
}

// Returns the VMs that the arguments name or select. Fails if a name belongs to no VM of the pool.
absl::StatusOr<Views> Select(const scaling::Inspection& inspection,
                             const ReplaceArguments& arguments, const std::string& hint) {
  const scaling::PoolSnapshot& snapshot = inspection.snapshot;
  std::vector<std::string> unknown = arguments.names;
  const Views selected = Select(inspection, [&](const scaling::VmView& view) {
    const bool named = std::erase(unknown, view.vm->name) > 0;
    const bool drifted =
        arguments.drifted &&
        DriftOf(view.vm, inspection.current_template, snapshot.policy->drift_ignore).has_value();
    const bool old =
        arguments.age.has_value() && snapshot.now() - view.vm->created_at >= *arguments.age;
    // --cancel withdraws the requests for the named VMs, or all of them.
    const bool taken_back =
        arguments.cancel && arguments.names.empty() && !view.vm->replace_request.empty();
    return named || drifted || old || taken_back;
  });
  if (!unknown.empty()) {
    return base::NotFound("pool " + snapshot.key.ToString() + " has no VM " +
                          absl::StrJoin(unknown, ", ") + hint +
                          "; nomad-harvester status names its VMs");
  }
  return selected;
}

// Says why it will not be replaced for now; unset: no obstacle.
std::optional<std::string> Obstacle(const scaling::VmView& view,
                                    const scaling::PoolSnapshot& snapshot) {
  if (!snapshot.observation().nomad.ok()) return std::nullopt;
  return ObjectionToRemoval(view, LinkedNode(view, snapshot), snapshot);
}

// What keeps every VM of the pool from being replaced; empty: nothing.
std::string WhatWaits(const scaling::Inspection& inspection) {
  const scaling::PoolSnapshot& snapshot = inspection.snapshot;
  const scaling::LeaseView& lease = inspection.lease;
  if (snapshot.policy->dry_run) return scaling::kDryRunMeans;
  if (!lease.record.paused.HoldsAt(snapshot.now())) return "";
  return PausedText(snapshot.key, lease.record.paused) +
         (lease.misread_pause.empty() ? "" : "; " + lease.misread_pause);
}

// Says who does what the annotations ask for. Nothing but an agent's plugin does.
std::string WhoText(const scaling::Inspection& inspection, const FileSettings& files) {
  const scaling::LeaseView& lease = inspection.lease;
  const std::optional<harvester::PolicyRecord>& last = lease.record.policy;
  std::string text;
  if (!lease.problem.empty()) {
    text = "Whether an agent acts on the pool is not known: its Lease cannot be read: " +
           lease.problem;
  } else if (!last.has_value()) {
    text =
        "No agent has scaled this pool: nothing is replaced before an agent runs with a policy for "
        "it; nomad-harvester gc and scale replace nothing";
  } else {
    text =
        "The agent's plugin replaces them, as many at a time as max_surge or max_unavailable "
        "allows; nomad-harvester status -w shows it. An agent last scaled this pool at " +
        base::FormatRfc3339(last->at) + ", by policy " +
        files.PolicyOf(inspection.snapshot.key, last->id) +
        ": if it does not run any more, nothing is replaced";
  }
  const std::string waits = WhatWaits(inspection);
  return Printable(text + (waits.empty() ? "" : ". They wait: " + waits)) + "\n";
}

// `reason` unset: they are to be kept.
Json DocumentOf(const scaling::Inspection& inspection, const Views& selected,
                const std::optional<std::string>& reason) {
  const scaling::PoolSnapshot& snapshot = inspection.snapshot;
  const std::optional<harvester::PolicyRecord>& last = inspection.lease.record.policy;
  Json vms = Json::array();
  for (const scaling::VmView* view : selected) {
    const scaling::VmView* const next = snapshot.seen->ReplacementOf(view->vm->uid);
    vms.push_back({{"vm", view->vm->name},
                   {"written", false},
                   {"replacement", next == nullptr ? "" : next->vm->name},
                   {"obstacle", reason.has_value() ? Obstacle(*view, snapshot).value_or("") : ""}});
  }
  Json policy;
  if (last.has_value()) policy = {{"id", last->id}, {"at", base::FormatRfc3339(last->at)}};
  return {{"namespace", snapshot.key.ns},
          {"node_group_name", snapshot.key.pool},
          {"reason", reason.has_value() ? Json(*reason) : Json()},
          {"vms", std::move(vms)},
          {"agents_policy", std::move(policy)},
          {"waits", WhatWaits(inspection)},
          {"error", Json()}};
}

// Shows which VMs are to be replaced (`reason` unset: no longer), asks for confirmation, and writes
// the request to them, which it notes in their document. Returns the exit code.
int AskFor(const CommandRun& run, const scaling::Inspection& inspection, const Views& selected,
           const std::optional<std::string>& reason, bool yes, Json* document) {
  for (const scaling::VmView* view : selected) {
    run.out << Printable(view->vm->name);
    if (!reason.has_value()) {
      const scaling::VmView* const next = inspection.snapshot.seen->ReplacementOf(view->vm->uid);
      run.out << (next != nullptr
                      ? ": VM " + Printable(next->vm->name) + " takes its place, and that goes on\n"
                  : yes ? ": to be kept\n"
                        : ": would be kept\n");
      continue;
    }
    const auto obstacle = Obstacle(*view, inspection.snapshot);
    run.out << (yes ? ": to be replaced" : ": would be replaced")
            << (obstacle.has_value() ? ", but not for now: " + Printable(*obstacle) : "") << "\n";
  }
  const std::string question = (reason.has_value() ? "replace " : "keep ") +
                               Counted(static_cast<std::int64_t>(selected.size()), "VM") +
                               " of pool " + inspection.snapshot.key.ToString();
  if (const int answer = Confirm(run, yes, question); answer != kExitOk) {
    (*document)["error"] = "nobody has agreed to it";
    return answer;
  }
  std::size_t written = 0;
  for (const scaling::VmView* view : selected) {
    const absl::Status asked = run.maintenance.RequestReplacement(
        run.context.WithTimeout(kOperatorBudget), view->vm, reason);
    if (!asked.ok()) {
      const absl::Status problem =
          base::Annotate(asked, "after " + std::to_string(written) + " of " +
                                    std::to_string(selected.size()) + " VMs were written");
      (*document)["error"] = base::Message(problem);
      return run.errors.Refuse(problem, kExitFailure);
    }
    (*document)["vms"][written++]["written"] = true;
  }
  return kExitOk;
}

// OK: no more VMs will start on the host.
absl::Status CheckToBeLeft(const scaling::Inspection& inspection, const std::string& name) {
  if (!inspection.hosts.ok()) {
    return base::Annotate(inspection.hosts.status(),
                          "whether host " + name +
                              " is cordoned, and which VMs are on it, is not known (the optional "
                              "ClusterRole in examples/rbac.yaml grants list of nodes; "
                              "nomad-harvester replace works without it)");
  }
  const auto& cordoned = inspection.cordoned_hosts;
  if (std::any_of(cordoned.begin(), cordoned.end(),
                  [&](const auto& host) { return host.name == name; })) {
    return absl::OkStatus();
  }
  const std::vector<std::string>& hosts = *inspection.hosts;
  if (std::find(hosts.begin(), hosts.end(), name) == hosts.end()) {
    return base::NotFound("there is no host " + name +
                          "; there are: " + absl::StrJoin(hosts, ", "));
  }
  return base::FailedPrecondition("host " + name +
                                  " is not cordoned, so that new VMs could go there: run kubectl "
                                  "cordon " +
                                  name + " first");
}

// "web-1 (web-7 boots)".
std::string LeavingText(const scaling::VmView& view, const scaling::PoolSnapshot& snapshot) {
  const scaling::VmView* next = snapshot.seen->ReplacementOf(view.vm->uid);
  const auto obstacle = Obstacle(view, snapshot);
  std::string what = "waits";
  if (view.vm->has_mark || harvester::IsTerminating(view.vm)) {
    what = "is being removed";
  } else if (next != nullptr) {
    what = next->vm->name + " is to take its place";
  } else if (obstacle.has_value()) {
    what = "stays: " + *obstacle;
  }
  return view.vm->name + " (" + what + ")";
}

int Replace(const CommandRun& run, const ReplaceArguments& arguments, Json* document) {
  const auto inspection = InspectPool(run);
  if (!inspection.ok()) return run.errors.Refuse(inspection.status(), kExitFailure);
  if (arguments.drifted && inspection->current_template.hash.empty()) {
    return run.errors.Refuse(
        base::FailedPrecondition("--drifted: which VMs have drifted is not known: " +
                                 (inspection->growth_problem.empty()
                                      ? "give the policy that describes the VMs"
                                      : inspection->growth_problem)),
        kExitFailure);
  }
  const auto selected = Select(*inspection, arguments, run.settings.files.hint);
  if (!selected.ok()) return run.errors.Refuse(selected.status(), kExitFailure);
  const auto reason = arguments.cancel ? std::nullopt : std::optional(arguments.reason);
  *document = DocumentOf(*inspection, *selected, reason);
  if (selected->empty()) {
    run.out << "no VM is like that: nothing to do\n";
    return kExitOk;
  }
  if (const int asked = AskFor(run, *inspection, *selected, reason, arguments.yes, document);
      asked != kExitOk) {
    return asked;
  }
  run.out << (arguments.cancel ? "done; a replacement that has begun goes on\n"
                               : WhoText(*inspection, run.settings.files));
  return kExitOk;
}

int Evacuate(const CommandRun& run, const EvacuateArguments& arguments, Json* document) {
  const auto inspection = InspectPool(run);
  if (!inspection.ok()) return run.errors.Refuse(inspection.status(), kExitFailure);
  if (const absl::Status is_left = CheckToBeLeft(*inspection, arguments.host); !is_left.ok()) {
    return run.errors.Refuse(is_left, kExitFailure);
  }
  const Views selected = Select(*inspection, [&](const scaling::VmView& view) {
    return view.host == arguments.host && (arguments.all || harvester::CannotMigrate(view.vm));
  });
  const std::string reason = "host " + arguments.host + " is to be left";
  *document = DocumentOf(*inspection, selected, reason);
  (*document)["host"] = arguments.host;
  (*document)["left"] = Json();
  if (selected.empty()) {
    run.out << "no VM of pool " << inspection->snapshot.key.ToString() << " on host "
            << Printable(arguments.host)
            << (arguments.all
                    ? "\n"
                    : " is one that cannot migrate: Harvester moves the others, if there "
                      "are any, when maintenance mode is enabled (--all: replace them)\n");
    return kExitOk;
  }
  if (const int asked = AskFor(run, *inspection, selected, reason, arguments.yes, document);
      asked != kExitOk) {
    return asked;
  }
  std::set<std::string> leaving;
  for (const scaling::VmView* view : selected) leaving.insert(view->vm->uid);
  run.out << WhoText(*inspection, run.settings.files);
  std::string told;
  if (arguments.no_wait) return kExitOk;
  while (run.IsRead()) {
    const auto now = InspectPool(run);
    std::vector<std::string> left;
    Json& names = (*document)["left"] = Json();
    if (now.ok()) {
      names = Json::array();
      for (const scaling::VmView* view : now->snapshot.vms()) {
        if (!leaving.contains(view->vm->uid)) continue;
        left.push_back(LeavingText(*view, now->snapshot));
        names.push_back(view->vm->name);
      }
      if (left.empty()) {
        run.out << "none of them is on host " << Printable(arguments.host) << " any more\n";
        return kExitOk;
      }
    }
    std::string text = "it is not known how many are left: " + base::Message(now.status());
    if (now.ok()) {
      const auto blocked_reason =
          scaling::QueueOfReplacements(now->snapshot, now->lease.record, now->current_template)
              .blocked_reason;
      text = std::to_string(left.size()) + " of " + std::to_string(leaving.size()) +
             " are left: " + absl::StrJoin(left, ", ") +
             (blocked_reason.has_value() ? "; the next one waits: " + *blocked_reason : "");
    }
    if (text != std::exchange(told, text)) run.out << Printable(text) << std::endl;
    if (!run.context.Sleep(kProgressEvery).ok()) {
      run.out << "what was asked for stays: nomad-harvester status shows how far it is, and "
                 "nomad-harvester replace --cancel takes it back\n";
      (*document)["error"] = "interrupted; what was asked for stays";
      return kExitFailure;
    }
  }
  (*document)["error"] = "nobody reads the output any more; what was asked for stays";
  return kExitFailure;
}

}  // namespace

int ReplaceVms(const CommandRun& run, const ReplaceArguments& arguments) {
  return DoForOutput(run, arguments.output, [&](const CommandRun& own, Json* document) {
    return Replace(own, arguments, document);
  });
}

int EvacuateHost(const CommandRun& run, const EvacuateArguments& arguments) {
  return DoForOutput(run, arguments.output, [&](const CommandRun& own, Json* document) {
    return Evacuate(own, arguments, document);
  });
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
       .exit_codes = "Exit: 0 asked for, 1 something was not done, 2 usage, 130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return ReplaceVms(run, *arguments); },
       .check =
           [arguments, errors](const OperatorFiles& files) {
             return ReadArguments(arguments.get(), files, errors);
           },
       .words = &arguments->names});
  command->add_option("POOL|VM", arguments->names,
                      "The VMs, and the pool: the label of its policy, its name or NAMESPACE/NAME");
  command->add_flag("--drifted", arguments->drifted,
                    "All VMs that differ from what the policy describes now");
  command
      ->add_option("--older-than", arguments->older_than, "All VMs older than this, such as 720h")
      ->type_name("DURATION");
  command->add_option("--reason", arguments->reason, "Why; Events and status show it")
      ->type_name("TEXT");
  command->add_flag("--cancel", arguments->cancel,
                    "Cancel the request, of all VMs if none is named; a replacement that has begun "
                    "goes on");
  command->add_flag("--yes", arguments->yes, "Do not ask");
  AddOutputOption(*command, arguments->output);
}

void AddEvacuateCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<EvacuateArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "evacuate",
       .description =
           "Replace the pool's VMs on a cordoned Harvester host by new ones on other hosts, one at "
           "a time, and wait until none is left; Ctrl-C ends the waiting. VMs that can migrate "
           "stay: "
           "Harvester moves them when the host's maintenance mode is enabled.",
       .exit_codes = "Exit: 0 none is left (--no-wait: asked for), 1 something was not done, 2 "
                     "usage, 130 interrupted.",
       .use = PolicyUse::kRequired,
       .task = [arguments](const CommandRun& run) { return EvacuateHost(run, *arguments); },
       .add_arguments =
           [arguments](CLI::App& own) {
             own.add_option("HOST", arguments->host, "The host, as Harvester names it")->required();
           }});
  command->add_flag("--all", arguments->all, "Also VMs that can migrate");
  command->add_flag("--no-wait", arguments->no_wait, "Do not wait until they have left");
  command->add_flag("--yes", arguments->yes, "Do not ask");
  AddOutputOption(*command, arguments->output);
}

}  // namespace nomad_harvester::cli
