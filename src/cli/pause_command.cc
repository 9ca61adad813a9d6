// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "nomad_harvester/base/status.h"

#include "command.h"

namespace nomad_harvester::cli {
namespace {

// Says why the pool must not be paused: nothing in its namespace has this name, and no policy of a
// file does. Its new Lease would turn a mistyped name into a pool. Empty: something exists, or that
// is unknown, because a pause is not refused when a system does not answer.
std::string WhyMistyped(const CommandRun& run, const scaling::PoolKey& key) {
  constexpr base::Duration kLimit = std::chrono::seconds(5);
  if (run.settings.pools_of_files.contains(key)) return "";
  const auto pools = run.maintenance.FindPools(run.context.WithTimeout(kLimit), key.ns);
  if (!pools.ok() || pools->contains(key)) return "";
  return "nothing was paused: no VM and no Lease of pool " + key.ToString() + " exist; " +
         PoolsText(*pools) +
         ". To pause a pool before its first Scale, name its enabled policy with --policy";
}

constexpr char kNoLeaseYet[] =
    "Note: no process has scaled it yet; nomad-harvester status names the pools of the namespace\n";

int Resume(const CommandRun& run) {
  const auto was_paused =
      run.maintenance.Resume(run.context.WithTimeout(kOperatorBudget), KeyOf(run));
  if (!was_paused.ok()) return run.errors.Refuse(was_paused.status(), kExitFailure);
  using scaling::WasHeld;
  const bool has_lease = *was_paused != WasHeld::kNoLease;
  run.out << "pool " << KeyOf(run).ToString()
          << (*was_paused == WasHeld::kYes ? " resumed" : " was not paused")
          << (*was_paused == WasHeld::kEnded ? " any more: its pause had ended" : "")
          << (has_lease ? "\n" : ": it has no Lease\n") << (has_lease ? "" : kNoLeaseYet);
  return kExitOk;
}

int ResumeReplacement(const CommandRun& run) {
  const auto had_stopped =
      run.maintenance.ResumeReplacement(run.context.WithTimeout(kOperatorBudget), KeyOf(run));
  if (!had_stopped.ok()) return run.errors.Refuse(had_stopped.status(), kExitFailure);
  run.out << "pool " << KeyOf(run).ToString()
          << (*had_stopped == scaling::WasHeld::kYes
                  ? ": the replacement of VMs goes on\n"
                  : ": the replacement of VMs had not stopped\n");
  return kExitOk;
}

// Reads an RFC 3339 time or a duration from now; empty: until nomad-harvester resume.
int ReadUntil(const std::string& text, base::Hold* hold, const ErrorWriter& errors) {
  hold->always = text.empty();
  if (hold->always) return kExitOk;
  const base::WallTime now = std::chrono::system_clock::now();
  absl::StatusOr<base::WallTime> until = base::ParseRfc3339(text);
  if (const auto from_now = base::ParseGoDuration(text); from_now.ok()) {
    until = now + *from_now;
  }
  if (!until.ok()) {
    return errors.Refuse("--until: " + base::Message(until.status()) +
                             "; write a time such as 2026-03-01T08:00:00Z, or how long from now, "
                             "such as 2h",
                         kExitUsage);
  }
  if (*until <= now) {
    return errors.Refuse("--until: " + text + " is not in the future", kExitUsage);
  }
  hold->until = std::chrono::ceil<std::chrono::seconds>(*until);
  return kExitOk;
}

}  // namespace

int PausePool(const CommandRun& run, const base::Hold& hold) {
  const scaling::PoolKey key = KeyOf(run);
  const std::string mistyped = WhyMistyped(run, key);
  if (!mistyped.empty()) return run.errors.Refuse(mistyped, kExitFailure);
  const absl::StatusOr<bool> written =
      run.maintenance.Pause(run.context.WithTimeout(kOperatorBudget), key, hold);
  if (!written.ok()) {
    const bool no_answer =
        absl::IsUnavailable(written.status()) || absl::IsDeadlineExceeded(written.status());
    return run.errors.Refuse(
        base::Message(written.status()) +
            (no_answer ? "\na pause is kept in Harvester: without it, stop the agent, which stops "
                         "every pool: no VM is made or deleted, and drains that run go on in Nomad"
                       : ""),
        kExitFailure);
  }
  run.out << "pool " << key.ToString() << " is paused until "
          << (hold.always ? "nomad-harvester resume" : base::FormatRfc3339(*hold.until)) << "\n"
          << (*written ? "" : kNoLeaseYet);
  return kExitOk;
}

void AddPauseCommand(CLI::App& app, const Invocation& invocation) {
  const auto until = std::make_shared<std::string>();
  const auto hold = std::make_shared<base::Hold>();
  const ErrorWriter errors = invocation.Errors("pause");
  AddMaintenanceCommand(
      app, invocation,
      {.name = "pause",
       .description =
           "Stop scaling a pool: every Scale is refused and nothing is removed; roll-backs and "
           "clean-ups go on. A Scale that is under way is accepted first, within a minute.",
       .exit_codes = "Exit: 0 paused, 1 not paused, or it is not known, 2 usage, 130 interrupted.",
       .use = PolicyUse::kPool,
       .task = [hold](const CommandRun& run) { return PausePool(run, *hold); },
       .check =
           [until, hold, errors](const OperatorFiles& /*files*/) {
             return ReadUntil(*until, hold.get(), errors);
           }})
      ->add_option("--until", *until,
                   "When the pause ends by itself: at 2026-03-01T08:00:00Z, or after 2h")
      ->type_name("TIME|DURATION");
}

void AddResumeCommand(CLI::App& app, const Invocation& invocation) {
  const auto replacement = std::make_shared<bool>(false);
  AddMaintenanceCommand(
      app, invocation,
      {.name = "resume",
       .description = "End a pause of a pool, or let the replacement of its VMs go on.",
       .exit_codes = "Exit: 0 resumed, or it was not paused; 1 not resumed, or it is not known, 2 "
                     "usage, 130 interrupted.",
       .use = PolicyUse::kPool,
       .task =
           [replacement](const CommandRun& run) {
             return *replacement ? ResumeReplacement(run) : Resume(run);
           }})
      ->add_flag("--replacement", *replacement,
                 "Replace VMs again after a new one was not ready in time; ends no pause");
}

}  // namespace nomad_harvester::cli
