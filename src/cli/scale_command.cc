// SPDX-License-Identifier: Apache-2.0
#include "scale_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/mutex.h"
#include "nomad_harvester/base/status.h"

#include "absl/strings/str_join.h"
#include "plan_view.h"
#include "runtime_parts.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

// A process that ends has so long to release the pool's Lease.
constexpr base::Duration kStopBudget = std::chrono::seconds(2);
// And before that so long to send the Kubernetes Events that still wait.
constexpr base::Duration kFlushBudget = std::chrono::seconds(5);

std::string TextOf(const log::Record& record, std::string_view key) {
  for (const log::Field& field : record.fields) {
    if (field.key != key) continue;
    if (const auto* text = std::get_if<std::string>(&field.value)) return *text;
  }
  return "";
}

class ProgressSink final : public log::Sink {
 public:
  ProgressSink(std::ostream& out, std::ostream& err, std::vector<std::string> said)
      : said_(std::move(said)), out_(out), err_(err) {}

  void Write(const log::Record& record) override {
    std::string line = TextOf(record, "vm");
    const bool is_trouble = record.level >= log::Level::kWarn;
    // The command shows the plan and the outcome itself: what else is done is done with a VM.
    const bool is_wait = record.message == scaling::kWaitsForLease;
    const bool is_step = record.message == "Next step";
    // A drain may take an hour: who waits, and for what, is told once.
    const bool waits = is_step && record.level < log::Level::kInfo;
    if ((record.level < log::Level::kInfo && !waits) || (line.empty() && !is_trouble && !is_wait) ||
        IsSaid(record)) {
      return;
    }
    if (!line.empty()) line += ": ";
    line += waits ? "waits" : is_step ? TextOf(record, "step") : record.message;
    for (const char* const key : {"what", "why", "left", "error", "holder", "until"}) {
      if (const std::string text = TextOf(record, key); !text.empty()) line += ": " + text;
    }
    const base::MutexLock lock(mutex_);
    (is_trouble ? err_ : out_) << Printable(line) << "\n" << std::flush;
  }

 private:
  bool IsSaid(const log::Record& record) const {
    return record.message == "Scaled" || record.message == "Scale refused" ||
           std::find(said_.begin(), said_.end(), record.message) != said_.end();
  }

  const std::vector<std::string> said_;
  base::Mutex mutex_;
  std::ostream& out_;
  std::ostream& err_;
};

std::string VmsText(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " VM" : " VMs");
}

// As the agent sends it, except for what concerns its own process: the port of the metrics is that
// of the agent's plugin, and its log_level is for a log that the agent filters.
config::StringMap PluginBlock(const Settings& settings) {
  config::StringMap block = settings.plugin_block;
  block.erase("metrics_address");
  block.erase("log_level");
  return block;
}

class Scaling {
 public:
  Scaling(const CommandRun& run, const ScaleArguments& arguments, const MakeService& make_service)
      : run_(run), arguments_(arguments), make_service_(make_service) {}

  int Scale() {
    const absl::Status outside = CheckCountOf(run_.settings, arguments_.count);
    if (!outside.ok()) return run_.errors.Refuse(outside, kExitUsage);
    const auto proposal = run_.maintenance.Plan(run_.context.WithTimeout(kOperatorBudget),
                                                *run_.settings.policy, arguments_.count);
    if (!proposal.ok()) return Fail(proposal.status());
    run_.out << PlanText(*proposal, run_.terminal.width) << std::flush;
    if (!proposal->refusal.ok()) return Fail(proposal->refusal);
    if (run_.settings.policy->dry_run) {
      return run_.errors.Refuse(
          "nothing was done: the policy says dry-run = \"true\"; give --set dry-run=false to act",
          kExitFailure);
    }
    if (const int answer = Confirm(*proposal); answer != kExitOk) return answer;
    const int outcome = Act(*proposal);
    return outcome == kExitOk ? Finish(*proposal) : outcome;
  }

 private:
  int Confirm(const scaling::Proposal& proposal) {
    const std::size_t removals = proposal.plan.remove.size() + proposal.replaced.size();
    if (removals == 0) return kExitOk;
    return cli::Confirm(run_, arguments_.yes, "remove " + VmsText(removals));
  }

  // Without a question, whatever is planned when the Scale begins.
  std::optional<scaling::RemovalConsent> ConsentTo(const scaling::ScalePlan& plan) const {
    if (arguments_.yes) return std::nullopt;
    scaling::RemovalConsent consent;
    for (const scaling::PlannedRemoval& removal : plan.remove) consent.vms.insert(removal.vm);
    for (const scaling::PlannedRemoval& removal : plan.reserve) consent.reserve.insert(removal.vm);
    return consent;
  }

  int Act(const scaling::Proposal& proposal) {
    const runtime::Context background = runtime::Context::Background(run_.context.clock());
    const std::unique_ptr<scaling::TargetService> service = make_service_();
    absl::Status outcome = service->SetConfig(PluginBlock(run_.settings));
    if (outcome.ok()) {
      outcome = service->Scale(run_.context,
                               {.count = arguments_.count,
                                .reason = "harvester scale",
                                .meta_json = "",
                                .consent = ConsentTo(proposal.plan),
                                .of_command = true},
                               run_.settings.policy_block);
    }
    service->Flush(background.WithTimeout(kFlushBudget));
    service->Stop(background.WithTimeout(kStopBudget));
    return outcome.ok() ? kExitOk : Fail(outcome);
  }

  // A Scale is done with its own VMs: those that an interrupted one has marked may still drain.
  int Finish(const scaling::Proposal& proposal) {
    const auto left = run_.maintenance.Inspect(run_.context.WithTimeout(kOperatorBudget),
                                               *run_.settings.policy, /*tells_vms=*/false);
    if (!left.ok()) return Fail(base::Annotate(left.status(), "whether it is done is not known"));
    std::vector<std::string> marked;
    for (const scaling::VmView* const view : left->snapshot.vms()) {
      if (view->vm->has_mark && IsPoolMember(*view, left->snapshot)) {
        marked.push_back(view->vm->name);
      }
    }
    const std::string names = absl::StrJoin(marked, ", ");
    constexpr char kWhoGoesOn[] = "; the plugin's Status goes on with that, or harvester gc";
    if (!marked.empty() && run_.settings.policy->scale_in_wait) {
      return run_.errors.Refuse("the count is reached, but an earlier action has not ended: " +
                                    names + " still to be removed" + kWhoGoesOn,
                                kExitFailure);
    }
    const std::string limit = LimitText(proposal);
    run_.out << (marked.empty() ? "done" : "draining: " + Printable(names) + kWhoGoesOn)
             << (limit.empty() ? "" : ", as far as one action goes (" + limit + "): repeat it")
             << "\n"
             << std::flush;
    return kExitOk;
  }

  int Fail(const absl::Status& why) {
    if (run_.context.Done()) {
      return run_.errors.Refuse(
          "interrupted; what was begun is finished or undone by the plugin's next Status, or by "
          "harvester gc",
          kExitFailure);
    }
    std::string text = base::Message(why);
    if (absl::IsAborted(why)) {
      text +=
          "\nnothing was done: repeat it when that process has ended its action; ten seconds "
          "after a process was killed it is not waited for any more";
    }
    return run_.errors.Refuse(text, kExitFailure);
  }

  const CommandRun& run_;
  const ScaleArguments& arguments_;
  const MakeService& make_service_;
};

}  // namespace

std::shared_ptr<log::Sink> MakeProgressSink(std::ostream& out, std::ostream& err,
                                            const Settings& settings) {
  std::vector<std::string> said = settings.plugin.warnings;
  const std::vector<std::string>& missing = settings.plugin.missing_token_files;
  said.insert(said.end(), missing.begin(), missing.end());
  const std::vector<std::string>& of_policy = settings.policy->warnings;
  said.insert(said.end(), of_policy.begin(), of_policy.end());
  return std::make_shared<ProgressSink>(out, err, std::move(said));
}

int ScalePool(const CommandRun& run, const ScaleArguments& arguments,
              const MakeService& make_service) {
  return Scaling(run, arguments, make_service).Scale();
}

void AddScaleCommand(CLI::App& app, const Invocation& invocation) {
  const auto arguments = std::make_shared<ScaleArguments>();
  CLI::App* const command = AddMaintenanceCommand(
      app, invocation,
      {.name = "scale",
       .description =
           "Scale a pool to a count, as the agent would: shows the plan, asks before it removes "
           "VMs, and prints a line for each thing done and for what a VM waits. Ctrl-C stops it.",
       .exit_codes = "Exit: 0 done, or done as far as one action goes, which the last line says; 1 "
                     "not or partly done, 2 usage, 130 interrupted.",
       .use = PolicyUse::kWhole,
       .task = [arguments](const CommandRun& run) {
         RuntimeParts runtime(MakeProgressSink(run.out, run.err, run.settings), log::Level::kDebug,
                              run.settings.environment);
         return ScalePool(run, *arguments, [&runtime] { return runtime.MakeService(); });
       }});
  AddCountOption(*command, arguments->count);
  command->add_flag("--yes", arguments->yes, "Remove VMs without asking");
}

}  // namespace nomad_harvester::cli
