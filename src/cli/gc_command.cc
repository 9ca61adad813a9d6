// SPDX-License-Identifier: Apache-2.0
#include "gc_command.h"

#include <iostream>
#include <set>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command_run.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Collection;
using scaling::PoolKey;
using scaling::ReconcileEvent;
using scaling::StepKind;

class Gc {
 public:
  Gc(const scaling::Maintenance& maintenance, const runtime::Context& context,
     const Settings& settings, bool dry_run, std::ostream& out, std::ostream& err)
      : maintenance_(maintenance),
        context_(context),
        settings_(settings),
        dry_run_(dry_run),
        out_(out),
        err_(err) {}

  int Run() {
    const auto found = maintenance_.FindPools(context_, settings_.ns);
    if (!found.ok()) return Fail(settings_.ns, found.status());
    std::set<PoolKey> pools = *found;
    if (!settings_.pool.empty()) {
      const PoolKey wanted{.ns = settings_.ns, .pool = settings_.pool};
      const bool exists = pools.contains(wanted);
      pools.clear();
      if (exists) pools.insert(wanted);
    }
    if (pools.empty()) {
      out_ << "nothing of " << (settings_.pool.empty() ? "the plugin" : "pool " + settings_.pool)
           << " was found in namespace " << settings_.ns << "\n";
    }
    int worst = kExitOk;
    for (const PoolKey& pool : pools) {
      worst = std::max(worst, RunPool(pool));
      if (context_.Done()) break;
    }
    return worst;
  }

 private:
  int RunPool(const PoolKey& pool) {
    int printed = 0;
    const auto print_event = [&](const ReconcileEvent& event) {
      // What had to be left alone is printed at the end.
      const bool is_report =
          event.kind == ReconcileEvent::Kind::kStep && event.step.kind == StepKind::kReport;
      if (is_report && !dry_run_) return;
      Print(event.outcome.ok() ? out_ : err_, pool, EventLine(event, dry_run_));
      ++printed;
    };
    const Collection collection =
        dry_run_ ? maintenance_.Preview(context_, pool, settings_.policy, print_event)
                 : maintenance_.Collect(context_, pool, settings_.policy, print_event);
    if (!collection.outcome.ok()) return Fail(pool.ToString(), collection.outcome);
    for (const scaling::Unfinished& unfinished : collection.unfinished) {
      Print(err_, pool, unfinished.vm + ": not done: " + unfinished.why);
    }
    if (!collection.unfinished.empty()) return kExitFailure;
    Print(out_, pool, !dry_run_ ? "clean" : printed == 0 ? "nothing to do" : "nothing was changed");
    return kExitOk;
  }

  int Fail(const std::string& what, const absl::Status& why) {
    if (absl::IsAborted(why)) {
      err_ << what << ": skipped: " << Printable(base::Message(why)) << "\n";
    } else if (absl::IsCancelled(why)) {
      err_ << what << ": interrupted; the plugin's next Status or the next gc continues\n";
    } else {
      err_ << what << ": not done: " << Printable(base::Message(why)) << "\n";
    }
    return kExitFailure;
  }

  static void Print(std::ostream& to, const PoolKey& pool, const std::string& text) {
    to << pool.ToString() << ": " << Printable(text) << "\n" << std::flush;
  }

  const scaling::Maintenance& maintenance_;
  const runtime::Context& context_;
  const Settings& settings_;
  const bool dry_run_;
  std::ostream& out_;
  std::ostream& err_;
};

}  // namespace

CLI::App* AddGcCommand(CLI::App& app, GcArguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "gc",
      "Clean up after an interrupted action: marks, drains, partially created VMs, volumes, "
      "Secrets, "
      "nodes to purge; of one pool (node_group_name), or of every pool of the namespace.");
  AddSettings(*command, &arguments->settings);
  command->add_flag("--dry-run", arguments->dry_run,
                    "Only print what would be done first, and why; takes no Lease");
  command->footer("Exit: 0 clean, 1 something was not done, 2 usage.");
  return command;
}

int CollectGarbage(const scaling::Maintenance& maintenance, const runtime::Context& context,
                   const Settings& settings, bool dry_run, std::ostream& out, std::ostream& err) {
  return Gc(maintenance, context, settings, dry_run, out, err).Run();
}

int RunGc(const GcArguments& arguments, const config::StringMap& environment) {
  return RunWithMaintenance("gc", arguments.settings, PolicyUse::kOptional, environment,
                            [&](const scaling::Maintenance& maintenance,
                                const runtime::Context& context, const Settings& settings) {
                              return CollectGarbage(maintenance, context, settings,
                                                    arguments.dry_run, std::cout, std::cerr);
                            });
}

}  // namespace nomad_harvester::cli
