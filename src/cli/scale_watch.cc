// SPDX-License-Identifier: Apache-2.0
#include "scale_watch.h"

#include <chrono>
#include <utility>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/status_report.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::cli {
namespace {

using scaling::VmState;

constexpr base::Duration kLookEvery = std::chrono::seconds(2);
constexpr base::Duration kRemindEvery = std::chrono::minutes(1);
// Beyond the time limits of the policy.
constexpr base::Duration kSpare = std::chrono::minutes(10);

bool IsReplaced(const harvester::VirtualMachine& vm) {
  return vm.mark.has_value() && vm.mark->reason == harvester::MarkReason::kReplace;
}

bool IsOpen(VmState state, scaling::StepKind next) {
  switch (state) {
    case VmState::kPending:
    case VmState::kRegistered:
    case VmState::kDraining:
    case VmState::kDeleting:
      return true;
    case VmState::kBroken:
      return scaling::IsAct(next);  // on_join_timeout may keep it
    default:
      return scaling::IsRepair(next) || scaling::IsJoin(next);
  }
}

std::string WithReason(const WatchedVm& vm) {
  return vm.state + (vm.why.empty() ? "" : ": " + vm.why);
}

}  // namespace

WatchedPool WatchedPoolOf(const scaling::PoolSnapshot& snapshot) {
  WatchedPool pool;
  const scaling::Decisions decisions(snapshot);
  // The action is on the Lease until its outcome is known.
  if (snapshot.action.has_value()) {
    for (const std::string& name : snapshot.action->names) {
      // A VM that was not made waits for the next growth.
      if (snapshot.action->create.contains(name)) continue;
      pool[name] = {.state = "gone", .why = "what is left of it is removed", .open = true};
    }
  }
  for (const scaling::OrphanedNode& gone : decisions.to_purge()) {
    pool[std::string(gone.mark.vm)] = {
        .state = "gone", .why = "its node " + gone.node->id + " is to be purged", .open = true};
  }
  for (const scaling::Decisions::Entry& entry : decisions.all()) {
    const VmState state = StateOf(*entry.view, snapshot);
    if (state == VmState::kUnmanaged) continue;
    const harvester::VirtualMachine& vm = entry.view->vm;
    const bool other = IsReplaced(vm) || IsOtherNomad(vm, snapshot.observation());
    WatchedVm& watched = pool[vm.name];
    watched = {.state = std::string(VmStateName(state)),
               .why = entry.step.reason,
               .open = !other && (watched.open || IsOpen(state, entry.step.kind))};
    const bool is_ready = state == VmState::kReady && scaling::IsJoin(entry.step.kind);
    if (!watched.open || is_ready) watched.why.clear();
  }
  return pool;
}

std::vector<std::string> ChangesBetween(const WatchedPool& before, const WatchedPool& now) {
  std::vector<std::string> lines;
  for (const auto& [name, vm] : now) {
    const auto known = before.find(name);
    if (known != before.end() && known->second.state == vm.state) continue;
    lines.push_back(name + ": " + WithReason(vm));
  }
  for (const auto& [name, vm] : before) {
    if (!now.contains(name) && vm.state != "gone") lines.push_back(name + ": gone");
  }
  return lines;
}

std::string OpenText(const WatchedPool& pool) {
  std::vector<std::string> open;
  for (const auto& [name, vm] : pool) {
    if (vm.open) open.push_back(name + " (" + WithReason(vm) + ")");
  }
  return open.empty() ? "" : base::FirstFew(open);
}

std::optional<base::Duration> WatchLimit(const config::PoolPolicy& policy,
                                         scaling::Direction direction) {
  if (direction == scaling::Direction::kOut) return policy.join_timeout + kSpare;
  if (policy.drain_deadline == base::Duration::zero()) return std::nullopt;
  return std::max(policy.drain_deadline, base::Duration::zero()) + policy.drain_grace +
         policy.hold_timeout + kSpare;
}

absl::StatusOr<scaling::Inspection> WatchUntilEnded(const runtime::Context& context,
                                                    WatchedPool before, const Watch& watch) {
  std::string open;
  std::string told;  // why the pool cannot be seen
  base::MonoTime last_line = context.clock().Now();
  do {
    absl::StatusOr<scaling::Inspection> seen = watch.look();
    if (context.Done()) break;
    std::vector<std::string> lines;
    std::string problem = base::Message(seen.ok() ? CheckNomad(seen->snapshot) : seen.status());
    if (problem.empty()) {
      WatchedPool now = WatchedPoolOf(seen->snapshot);
      lines = ChangesBetween(before, now);
      before = std::move(now);
      open = OpenText(before);
    } else if (problem != told) {
      lines = {problem};
    }
    told = std::move(problem);
    const bool is_due = context.clock().Now() - last_line >= kRemindEvery;
    if (lines.empty() && is_due) lines = {"waits for " + (told.empty() ? open : told)};
    for (const std::string& line : lines) watch.say(line);
    if (!lines.empty()) last_line = context.clock().Now();
    if (told.empty() && open.empty()) return seen;
    watch.wake();
  } while (context.Sleep(kLookEvery).ok());
  return base::MakeStatus(
      absl::StatusCode::kDeadlineExceeded,
      "it was accepted, and has not ended in time; still open: " + (told.empty() ? open : told));
}

}  // namespace nomad_harvester::cli
