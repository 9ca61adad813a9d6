// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command.h"

namespace nomad_harvester::cli {
namespace {

// Nothing in `hold` resumes.
int SetPaused(const scaling::Maintenance& maintenance, const runtime::Context& context,
              const config::PoolPolicy& policy, const std::optional<harvester::Hold>& hold,
              const ErrorWriter& errors) {
  const scaling::PoolKey key{.ns = policy.ns, .pool = policy.pool};
  const absl::StatusOr<bool> written =
      maintenance.Pause(context.WithTimeout(kOperatorBudget), key, hold);
  if (!written.ok()) {
    return errors.Refuse(base::Annotate(written.status(), "the Lease of pool " + key.ToString() +
                                                              " could not be written"),
                         kExitFailure);
  }
  std::cout << "pool " << key.ToString() << " is "
            << (!hold.has_value() ? "not paused"
                : hold->always    ? "paused until harvester resume"
                                  : "paused until " + base::FormatRfc3339(*hold->until))
            << "\n";
  if (!*written) {
    std::cout << "Note: it had no Lease, so that no process has scaled it yet; \"harvester "
                 "status\" names "
                 "the pools of the namespace\n";
  }
  return kExitOk;
}

// RFC 3339; empty: until harvester resume.
int ReadUntil(const std::string& text, harvester::Hold* hold, const ErrorWriter& errors) {
  hold->always = text.empty();
  if (hold->always) return kExitOk;
  const auto until = base::ParseRfc3339(text);
  if (!until.ok()) {
    return errors.Refuse(
        "--until: " + base::Message(until.status()) + "; write a time such as 2026-03-01T08:00:00Z",
        kExitUsage);
  }
  if (*until <= std::chrono::system_clock::now()) {
    return errors.Refuse("--until: " + text + " is not in the future", kExitUsage);
  }
  hold->until = *until;
  return kExitOk;
}

}  // namespace

void AddPauseCommand(CLI::App& app, const Invocation& invocation) {
  const auto until = std::make_shared<std::string>();
  const auto hold = std::make_shared<harvester::Hold>();
  const ErrorWriter errors = invocation.Errors("pause");
  AddMaintenanceCommand(
      app, invocation,
      {.name = "pause",
       .description =
           "Stop scaling a pool: every Scale is refused and nothing is removed; roll-backs and "
           "clean-ups go on. A Scale that is open ends what it has begun.",
       .exit_codes = "Exit: 0 paused, 1 the pool's Lease could not be written, 2 usage.",
       .use = PolicyUse::kRequired,
       .task =
           [hold, errors](const scaling::Maintenance& maintenance, const runtime::Context& context,
                          const Settings& settings) {
             return SetPaused(maintenance, context, *settings.policy, *hold, errors);
           },
       .check = [until, hold, errors] { return ReadUntil(*until, hold.get(), errors); }})
      ->add_option("--until", *until, "End by itself at this time, such as 2026-03-01T08:00:00Z")
      ->type_name("TIME");
}

void AddResumeCommand(CLI::App& app, const Invocation& invocation) {
  AddMaintenanceCommand(
      app, invocation,
      {.name = "resume",
       .description = "End a pause of a pool.",
       .exit_codes = "Exit: 0 not paused, 1 the pool's Lease could not be written, 2 usage.",
       .use = PolicyUse::kRequired,
       .task = [errors = invocation.Errors("resume")](const scaling::Maintenance& maintenance,
                                                      const runtime::Context& context,
                                                      const Settings& settings) {
         return SetPaused(maintenance, context, *settings.policy, std::nullopt, errors);
       }});
}

}  // namespace nomad_harvester::cli
