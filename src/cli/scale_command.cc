// SPDX-License-Identifier: Apache-2.0
#include "scale_command.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/observer.h"

#include "nlohmann/json.hpp"
#include "plan_view.h"
#include "progress.h"
#include "runtime_parts.h"
#include "scale_watch.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using Json = nlohmann::ordered_json;

// How long an ending process may take to release the pool's Lease.
constexpr base::Duration kStopBudget = std::chrono::seconds(2);
// How long it may take before that to send pending Kubernetes Events.
constexpr base::Duration kFlushBudget = std::chrono::seconds(5);
// How long it may take to report the state at the end.
constexpr base::Duration kLookBudget = std::chrono::seconds(5);

// The block as sent by the agent, except for keys about its own process: the metrics port belongs
// to the agent's plugin, and its log_level is for a log that the agent filters.
config::StringMap PluginBlock(const Settings& settings) {
  config::StringMap block = settings.plugin_block;
  block.erase("metrics_address");
  block.erase("log_level");
  return block;
}

// Warns that a running agent will set its policy's count at its next tick. Empty: no agent has
// scaled the pool, or its count stays as it is.
std::string AgentText(const scaling::Proposal& proposal, const FileSettings& files) {
  if (!proposal.agents_policy.has_value()) return "";
  if (proposal.plan.direction == scaling::Direction::kNone) return "";
  return "warning: an agent scaled this pool at " +
         base::FormatRfc3339(proposal.agents_policy->at) + ", by policy " +
         Printable(files.PolicyOf(proposal.snapshot.key, proposal.agents_policy->id)) +
         ", and may scale it back: to stop that, set enabled = false in the policy and restart the "
         "agent\n";
}

class Scaling {
 public:
  Scaling(const CommandRun& run, const ScaleArguments& arguments, const MakeService& make_service,
          Json* document)
      : run_(run), arguments_(arguments), make_service_(make_service), document_(*document) {}

  int Scale() {
    const absl::Status outside = CheckCountOf(run_.settings, arguments_.count);
    if (!outside.ok()) return run_.errors.Refuse(outside, kExitUsage);
    const auto proposal = run_.maintenance.Plan(run_.context.WithTimeout(kOperatorBudget),
                                                *run_.settings.policy, arguments_.count);
    if (!proposal.ok()) return Fail(proposal.status());
    run_.out << PlanText(*proposal, run_.terminal.width) << std::flush;
    document_ = PlanDocument(*proposal);
    document_["outcome"] = "not_done";
    document_["error"] = Json();
    document_["now"] = Json();
    if (!proposal->refusal.ok() && !MayRecord(*proposal)) return Fail(proposal->refusal);
    if (run_.settings.policy->dry_run) {
      return Fail(base::FailedPrecondition(
          "nothing was done: the policy sets dry-run; give --set dry-run=false to act"));
    }
    run_.out << AgentText(*proposal, run_.settings.files) << std::flush;
    if (const int answer = Confirm(*proposal); answer != kExitOk) {
      document_["error"] = "nobody has agreed to the removals";
      return answer;
    }
    return Act(*proposal);
  }

 private:
  // A growth that would be refused is tried nevertheless: the refusal is then on the Lease, where
  // `status` finds it, and a pool without a VM is known to exist.
  bool MayRecord(const scaling::Proposal& proposal) const {
    return proposal.plan.direction == scaling::Direction::kOut && proposal.replaced.empty() &&
           !run_.settings.policy->dry_run;
  }

  int Confirm(const scaling::Proposal& proposal) {
    const std::size_t removals = proposal.plan.remove.size() + proposal.replaced.size();
    if (removals == 0) return kExitOk;
    return cli::Confirm(run_, arguments_.yes,
                        "remove " + Counted(static_cast<std::int64_t>(removals), "VM"));
  }

  // If nobody was asked, the Scale may do whatever it plans when it begins.
  std::optional<scaling::RemovalConsent> ConsentTo(const scaling::ScalePlan& plan) const {
    if (arguments_.yes) return std::nullopt;
    scaling::RemovalConsent consent;
    for (const scaling::PlannedRemoval& removal : plan.remove) consent.vms.insert(removal.vm);
    for (const scaling::PlannedRemoval& removal : plan.reserve) consent.reserve.insert(removal.vm);
    return consent;
  }

  int Act(const scaling::Proposal& proposal) {
    const runtime::Context background = runtime::Context::Background(run_.context.clock());
    const auto progress = std::make_shared<Progress>(run_);
    const std::unique_ptr<scaling::TargetService> service = make_service_(progress);
    bool has_begun = false;
    absl::Status outcome = service->SetConfig(PluginBlock(run_.settings));
    if (outcome.ok()) {
      outcome = service->Scale(run_.context,
                               {.count = arguments_.count,
                                .reason = "nomad-harvester scale",
                                .meta_json = "",
                                .consent = ConsentTo(proposal.plan),
                                .goes_on = !arguments_.no_wait,
                                .has_begun = &has_begun},
                               run_.settings.policy_block);
    }
    // A part of it may be refused, and the rest has yet to end.
    const bool goes_on = outcome.ok() || (has_begun && !scaling::IsRetryable(outcome));
    if (goes_on && !arguments_.no_wait) {
      progress->Say(std::string(outcome.ok() ? "accepted" : "accepted in part") +
                    ": Ctrl-C ends the waiting; the agent or nomad-harvester gc goes on");
      outcome.Update(Watch(*service, *progress, proposal));
    }
    service->Flush(background.WithTimeout(kFlushBudget));
    service->Stop(background.WithTimeout(kStopBudget));
    int exit_code = kExitOk;
    document_["outcome"] = !outcome.ok() ? "failed" : arguments_.no_wait ? "accepted" : "done";
    if (outcome.ok()) {
      const std::string limit = LimitText(proposal);
      run_.out << (arguments_.no_wait ? "accepted; the agent or nomad-harvester gc goes on"
                                      : "done in " + progress->Elapsed())
               << (limit.empty() ? "" : ", as far as one action goes (" + limit + "): repeat it")
               << "\n";
    } else {
      exit_code = Fail(outcome);
    }
    // Runs even after Ctrl-C, which has ended the command's own context.
    const auto left = run_.maintenance.Inspect(background.WithTimeout(kLookBudget),
                                               *run_.settings.policy, /*defines_vms=*/false);
    run_.out << NowText(left) << std::flush;
    if (left.ok()) document_["now"] = NowDocument(*left);
    return exit_code;
  }

  // Waits until a Scale that has begun has ended. Fails with what the Lease says of it.
  absl::Status Watch(scaling::TargetService& service, Progress& progress,
                     const scaling::Proposal& proposal) const {
    const config::PoolPolicy& policy = *run_.settings.policy;
    const auto limit = WatchLimit(policy, proposal.plan.direction);
    const runtime::CancelSource reading(run_.context);  // ends once nobody reads
    const runtime::Context context =
        limit ? reading.context().WithTimeout(*limit) : reading.context();
    const auto last = WatchUntilEnded(
        context, WatchedPoolOf(proposal.snapshot),
        {.look =
             [&] {
               return run_.maintenance.Inspect(context.WithTimeout(kOperatorBudget), policy,
                                               /*defines_vms=*/false);
             },
         .wake =
             [&] {
               if (!run_.has_reader()) return reading.Cancel(runtime::CancelReason::kClient);
               service.Status(context.WithTimeout(kOperatorBudget), run_.settings.policy_block)
                   .IgnoreError();
             },
         .say = [&](const std::string& line) { progress.Say(line); }});
    if (!run_.has_reader()) {
      return absl::CancelledError(
          "nobody reads the output any more; the agent or nomad-harvester gc goes on");
    }
    NH_RETURN_IF_ERROR(last.status());
    // Both are times of the same server, whose replies have whole seconds.
    const auto began = std::chrono::floor<std::chrono::seconds>(proposal.snapshot.now());
    const std::optional<harvester::ErrorRecord>& error = last->lease.record.last_error;
    if (error.has_value() && error->at >= began) return base::Internal(error->text);
    const std::int64_t count = last->report.status.count;
    const auto& plan = proposal.plan;
    if (count == plan.to) return absl::OkStatus();
    const bool as_planned = plan.missing_victims > 0 && count == plan.to + plan.missing_victims;
    std::vector<std::string> others;
    for (const auto& [vm, state] : NotCounted(*last)) {
      const scaling::VmView& view = *last->snapshot.seen->FindVm(vm);
      others.push_back(vm + " is " + state + ": " + NextStep(view, last->snapshot).reason);
    }
    return base::Internal(
        "the count is " + std::to_string(count) + " and not " + std::to_string(plan.to) + ": " +
        (as_planned ? "no other VM may be removed; nomad-harvester plan shows why"
                    : "another process or an operator has changed the pool, or a broken VM is "
                      "kept; nomad-harvester status shows it") +
        (others.empty() ? "" : "; not counted: " + base::FirstFew(others)));
  }

  // The state of each, by name: a removal that was interrupted does not keep the pool from being
  // ready.
  static std::map<std::string, std::string> NotCounted(const scaling::Inspection& left) {
    std::map<std::string, std::string> vms;
    for (const scaling::VmView* const view : left.snapshot.vms()) {
      if (Counts(*view, left.snapshot)) continue;
      vms[view->vm->name] = VmStateName(StateOf(*view, left.snapshot));
    }
    return vms;
  }

  static Json NowDocument(const scaling::Inspection& left) {
    return {{"count", left.report.status.count},
            {"ready", left.report.status.ready},
            {"reason", left.report.reason},
            {"not_counted", NotCounted(left)}};
  }

  // Returns the last line: the state when the command ends.
  std::string NowText(const absl::StatusOr<scaling::Inspection>& left) const {
    if (!left.ok()) {
      return "now: not known: " + Printable(base::Message(left.status())) +
             "; nomad-harvester status shows it once that is gone\n";
    }
    const scaling::StatusReport& report = left->report;
    std::string others;
    for (const auto& [vm, state] : NotCounted(*left)) {
      others += (others.empty() ? "" : ", ") + vm + " is " + state;
    }
    return "now: pool " + left->snapshot.key.ToString() + " has " +
           Counted(report.status.count, "VM") +
           (report.status.ready ? " and is ready"
                                : " and is not ready: " + Printable(report.reason)) +
           (others.empty() ? "" : "; not counted: " + Printable(others)) + "\n";
  }

  int Fail(const absl::Status& why) {
    std::string text = base::Message(why);
    if (run_.context.Done()) {
      text = "interrupted; the agent or nomad-harvester gc finishes or undoes what was begun";
    } else if (absl::IsAborted(why)) {
      text +=
          "\nnothing was done: repeat it in ten seconds; if that process is dead, it then waits "
          "until the Lease has expired";
    }
    if (!document_.is_null()) document_["error"] = text;
    return run_.errors.Refuse(text, kExitFailure);
  }

  const CommandRun& run_;
  const ScaleArguments& arguments_;
  const MakeService& make_service_;
  Json& document_;  // null until there is a plan
};

}  // namespace

int ScalePool(const CommandRun& run, const ScaleArguments& arguments,
              const MakeService& make_service) {
  return DoForOutput(run, arguments.output, [&](const CommandRun& own, Json* document) {
    return Scaling(own, arguments, make_service, document).Scale();
  });
}

void AddScaleCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<ScaleArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "scale",
       .description =
           "Scale a pool to a count, as the agent would: shows the plan, asks before it removes "
           "VMs, and prints what changes until it has ended, and the final state. Ctrl-C ends it; "
           "the agent's plugin then goes on.",
       .exit_codes = "Exit: 0 done (--no-wait: accepted), possibly only up to a limit, which the "
                     "output names; 1 not or partly done, 2 usage, 130 interrupted.",
       .use = PolicyUse::kWhole,
       .task =
           [arguments](const CommandRun& run) {
             std::unique_ptr<RuntimeParts> parts;
             return ScalePool(run, *arguments, [&](const std::shared_ptr<log::Sink>& progress) {
               parts = std::make_unique<RuntimeParts>(progress, log::Level::kDebug,
                                                      run.settings.environment);
               return parts->MakeService(/*replaces=*/false);
             });
           },
       .add_arguments = [arguments](CLI::App& own) { AddCountOption(own, arguments->count); }});
  command->add_flag("--yes", arguments->yes, "Remove VMs without asking");
  command->add_flag("--no-wait", arguments->no_wait, "Return once it is accepted");
  AddOutputOption(*command, arguments->output);
}

}  // namespace nomad_harvester::cli
