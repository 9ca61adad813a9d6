// SPDX-License-Identifier: Apache-2.0
#include "pause_command.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command_run.h"
#include "text.h"

namespace nomad_harvester::cli {
namespace {

int Run(const std::string& command, const PauseArguments& arguments,
        const std::optional<harvester::Hold>& hold, const config::StringMap& environment) {
  return RunWithMaintenance(command, arguments.settings, PolicyUse::kRequired, environment,
                            [&](const scaling::Maintenance& maintenance,
                                const runtime::Context& context, const Settings& settings) {
                              return SetPaused(
                                  maintenance, context.WithTimeout(kOperatorBudget),
                                  {.ns = settings.policy->ns, .pool = settings.policy->pool}, hold,
                                  std::cout, std::cerr);
                            });
}

}  // namespace

CLI::App* AddPauseCommand(CLI::App& app, PauseArguments* arguments) {
  CLI::App* command = app.add_subcommand(
      "pause",
      "Stop scaling a pool: every Scale is refused and nothing is removed; roll-backs and "
      "clean-ups go on. A Scale that is open ends what it has begun.");
  AddSettings(*command, &arguments->settings);
  command->add_option("--until", arguments->until,
                      "End by itself at this time, such as 2026-03-01T08:00:00Z");
  command->footer("Exit: 0 paused, 1 the pool's Lease could not be written, 2 usage.");
  return command;
}

CLI::App* AddResumeCommand(CLI::App& app, PauseArguments* arguments) {
  CLI::App* command = app.add_subcommand("resume", "End a pause of a pool.");
  AddSettings(*command, &arguments->settings);
  command->footer("Exit: 0 not paused, 1 the pool's Lease could not be written, 2 usage.");
  return command;
}

int SetPaused(const scaling::Maintenance& maintenance, const runtime::Context& context,
              const scaling::PoolKey& key, const std::optional<harvester::Hold>& hold,
              std::ostream& out, std::ostream& err) {
  const absl::Status written = maintenance.Pause(context, key, hold);
  if (!written.ok()) {
    err << "harvester " << (hold.has_value() ? "pause" : "resume") << ": the Lease of pool "
        << key.ToString() << " could not be written: " << Printable(base::Message(written)) << "\n";
    return kExitFailure;
  }
  out << "pool " << key.ToString() << " is "
      << (!hold.has_value() ? "not paused"
          : hold->always    ? "paused until harvester resume"
                            : "paused until " + base::FormatRfc3339(*hold->until))
      << "\n";
  return kExitOk;
}

int RunPause(const PauseArguments& arguments, const config::StringMap& environment) {
  harvester::Hold hold{.always = arguments.until.empty()};
  if (!hold.always) {
    const auto until = base::ParseRfc3339(arguments.until);
    if (!until.ok()) {
      std::cerr << "harvester pause: --until: " << Printable(base::Message(until.status()))
                << "; write a time such as 2026-03-01T08:00:00Z\n";
      return kExitUsage;
    }
    hold.until = *until;
  }
  return Run("pause", arguments, hold, environment);
}

int RunResume(const PauseArguments& arguments, const config::StringMap& environment) {
  return Run("resume", arguments, std::nullopt, environment);
}

}  // namespace nomad_harvester::cli
