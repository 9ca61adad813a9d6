// SPDX-License-Identifier: Apache-2.0
#include "drivers/resumption.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/lease_hold.h"

#include "drivers/replace_call.h"
#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

// The maximum age of the known template of new VMs.
constexpr base::Duration kTemplateGoodFor = std::chrono::minutes(10);
constexpr base::Duration kTemplateReadLimit = std::chrono::seconds(10);
// How long the Lease is held while the loop only waits for drains and deletions (rule S5).
constexpr base::Duration kHeldWhileWaiting = std::chrono::seconds(10);
// How long no other replacement is tried beside drains after one that did not begin.
constexpr base::Duration kDeclinedFor = std::chrono::minutes(1);
// The maximum number of VMs with nodes to read in search of one that may be replaced.
constexpr std::size_t kMaxTried = 64;

// Also true for a stopped roll-out: another template lets it continue (rule R5).
bool TemplateIsDue(const PoolSnapshot& snapshot, const PoolRecord& record,
                   const KnownTemplate& known, base::MonoTime now) {
  if (known.read_at.has_value() && now - *known.read_at < kTemplateGoodFor) return false;
  return ReplacesDrifted(*snapshot.policy) ||
         (record.replacement.has_value() && !snapshot.policy->dry_run &&
          !VmsToReplace(snapshot, known.current).empty());
}

// Logs once why nothing is replaced now; unset: something is. Waiting for a new VM to boot or start
// is normal. `refused`: Harvester refuses the new VM.
void LogBlocked(const PoolDependencies& deps, const Replaceable& next,
                const std::optional<std::string>& blocked_reason, const PoolSnapshot& snapshot,
                bool refused) {
  const auto last = std::exchange(deps.backlog.replacement_blocked_reason, blocked_reason);
  if (!blocked_reason.has_value() || last == blocked_reason) return;
  const bool boots =
      std::any_of(snapshot.vms().begin(), snapshot.vms().end(), [](const VmView* view) {
        const harvester::VirtualMachine& vm = view->vm;
        return vm.replaces.has_value() && !vm.has_mark && !harvester::WasReady(vm);
      });
  const bool has_stopped = HasStopped(deps.lease.record(), deps.backlog.new_vms.current);
  const bool waits_for_operator = has_stopped || next.hold == Replaceable::Hold::kFlips;
  deps.logger.Log(
      waits_for_operator || refused ? log::Level::kWarn
      : boots                       ? log::Level::kDebug
                                    : log::Level::kInfo,
      "Replacement is blocked",
      {{"vm", next.vm->vm->name}, {"wanted", Describe(next.reason)}, {"why", *blocked_reason}});
}

// Lists the VMs that this process may replace, and why not now. A Status does not ask for its own
// node.
ReplacementQueue QueueFor(const PoolSnapshot& snapshot, const PoolDependencies& deps) {
  ReplacementQueue queue =
      QueueOfReplacements(snapshot, deps.lease.record(), deps.backlog.new_vms.current);
  const absl::Status& problem = snapshot.observation().own_node_problem;
  if (!problem.ok()) queue.blocked_reason = base::Message(problem);
  return queue;
}

struct Begun {
  bool acted = false;
  bool is_unhealthy = false;  // the old VM is, so it is marked next
};

// Replaces the first VM that may be replaced.
absl::Status ReplaceNext(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy, Reconciler& loop, bool may_begin,
                         Begun* begun) {
  const PoolSnapshot& snapshot = loop.last()->snapshot();
  KnownTemplate& known = deps.backlog.new_vms;
  if (TemplateIsDue(snapshot, deps.lease.record(), known, deps.clock.Now())) {
    UpdateCurrentTemplate(context.WithTimeout(kTemplateReadLimit), deps, policy);
    known.read_at = deps.clock.Now();  // a failure is retried as late
  }
  auto [vms, blocked_reason] = QueueFor(snapshot, deps);
  const std::optional<harvester::ErrorRecord> last = deps.lease.record().last_error;
  const bool was_refused = last.has_value() && !last->vm.empty();
  if (vms.empty()) {
    if (was_refused) deps.backlog.unrecorded.AddReplacement("", absl::OkStatus());
    return absl::OkStatus();
  }
  if (!blocked_reason.has_value() && !may_begin)
    blocked_reason = "the agent has stopped asking for a Status";
  if (blocked_reason.has_value()) {
    LogBlocked(deps, vms[0], blocked_reason, snapshot, false);
    return absl::OkStatus();
  }
  NH_RETURN_IF_ERROR(loop.StoreRecord(context));
  absl::Status kept;
  for (std::size_t i = 0; i < vms.size() && i < kMaxTried; ++i) {
    // The others wait until the pool is at rest.
    if (vms[i].is_unhealthy() != vms[0].is_unhealthy()) break;
    if (vms[i].hold != Replaceable::Hold::kNone) break;
    const std::string name = vms[i].vm->vm->name;
    ReplaceCall call(deps, policy, snapshot, vms[i]);
    const absl::Status fits = call.CheckOld(context);
    if (absl::IsFailedPrecondition(fits)) {
      kept.Update(fits);
      continue;
    }
    NH_RETURN_IF_ERROR(fits);
    const bool has_waited = LacksRoom(deps.lease.record());
    const absl::Status replaced =
        base::Annotate(call.Run(context), "the replacement of VM " + name);
    *begun = {.acted = call.acted(), .is_unhealthy = vms[i].is_unhealthy()};
    if (context.Done()) return replaced;
    // What the hosts have free changes with each try.
    if (!has_waited || !call.lacks_room()) {
      LogBlocked(deps, vms[i],
                 replaced.ok() ? std::nullopt : std::optional(base::Message(replaced)), snapshot,
                 true);
    }
    // What refuses it is seen by `status` only there (rule R2). It is stored before the loop names
    // further VMs on the Lease.
    absl::Status stored;
    if (!replaced.ok() || was_refused) {
      deps.backlog.unrecorded.AddReplacement(name, replaced);
      stored = loop.StoreRecord(context);
    }
    // What lacks room waits for its back-off, and not for a round (rule R5).
    if (!call.lacks_room()) stored.Update(replaced);
    return stored;
  }
  LogBlocked(deps, vms[0], base::Message(kept), snapshot, false);
  return absl::OkStatus();
}

// What one hold of the Lease does. Returns true if the loop then only waits, and must go on.
// `replaces`: whether a replacement should begin meanwhile; `may_begin`: as in ResumePool;
// `declined_at`: when none began although one should.
bool ResumeUnderLease(const LeaseHold& hold, const PoolDependencies& deps,
                      const SharedPolicy& policy,
                      const std::function<bool(const PoolSnapshot&)>& replaces,
                      const std::function<bool()>& may_begin, Reconciler& loop,
                      std::optional<base::MonoTime>* declined_at, Resumed* resumed) {
  const ShowLeaseHeld shown(deps.metrics());
  const bool may_replace = may_begin && policy.has_value();
  if (may_replace && EvacuatesHosts(*policy)) {
    // Usually a Status reads the hosts, but it may be long ago.
    deps.hosts.List(hold.context().WithTimeout(kHostsLimit), deps.key.ns);
    deps.hosts.ListCordoned(hold.context().WithTimeout(kHostsLimit));
  }
  const bool several = may_replace && MostAtATime(*policy) > 1;
  bool only_waits = false;
  std::shared_ptr<const Snapshot> used;  // the snapshot in which the last one began
  for (bool again = true; again;) {
    bool has_left = false;
    resumed->outcome = loop.RunResumption(hold.context(),
                                          [&](const PoolSnapshot& snapshot, base::Duration waited) {
                                            has_left = replaces(snapshot);
                                            only_waits = !has_left && waited >= kHeldWhileWaiting;
                                            return has_left || only_waits;
                                          });
    // Trouble with another object does not delay it (rule L1).
    const bool is_seen = loop.last().has_value() && hold.context().Check().ok();
    if (!is_seen || !may_replace || only_waits) break;
    // If the pool has not been readable since, the last Observation does not contain the new VM.
    if (loop.last()->snapshot().seen == used) break;
    used = loop.last()->snapshot().seen;
    Begun begun;
    resumed->outcome.Update(ReplaceNext(hold.context(), deps, *policy, loop, may_begin(), &begun));
    resumed->replacing = OpenReplacements(loop.last()->snapshot());
    if (begun.acted) resumed->replacing += "one that has just begun\n";
    if (has_left && !begun.acted) *declined_at = deps.clock.Now();
    again = has_left || (begun.acted && (several || begun.is_unhealthy));
  }
  if (!only_waits || !resumed->outcome.ok()) return false;
  loop.CloseAction(loop.last()->snapshot());
  return true;
}

}  // namespace

Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   const SharedPolicy& policy, const std::function<bool()>& may_begin) {
  Resumed resumed;
  Reconciler loop(deps, policy);
  std::optional<base::MonoTime> declined_at;
  // A drain takes long; another replacement may begin meanwhile, and the loop continues afterwards.
  // Replacing an unhealthy VM waits for no drain.
  const auto replaces = [&](const PoolSnapshot& snapshot) {
    if (!may_begin || !policy.has_value() || !may_begin()) return false;
    if (declined_at.has_value() && deps.clock.Now() - *declined_at < kDeclinedFor) return false;
    const ReplacementQueue queue = QueueFor(snapshot, deps);
    return !queue.vms.empty() && !queue.blocked_reason.has_value() &&
           (MostAtATime(*policy) > 1 || queue.vms[0].is_unhealthy());
  };
  for (bool waits = true; waits;) {
    const auto hold = LeaseHold::Acquire(deps.lease, context, LeaseUser::kResumption);
    resumed.lease = hold.status();
    if (!hold.ok()) return resumed;
    waits =
        ResumeUnderLease(**hold, deps, policy, replaces, may_begin, loop, &declined_at, &resumed);
    resumed.interrupted = (*hold)->context().cancel_reason() != runtime::CancelReason::kNone;
    resumed.last = loop.last();
    if (!loop.Release(**hold) && resumed.outcome.ok()) {
      resumed.outcome = base::Unavailable("the action on the pool's Lease could not be closed");
      waits = false;
    }
    if (!waits) break;
    resumed.outcome = loop.AwaitWork(context, replaces);
    resumed.interrupted = context.cancel_reason() != runtime::CancelReason::kNone;
    waits = resumed.outcome.ok();
  }
  return resumed;
}

std::string ReplacementWork(const PoolSnapshot& snapshot, const PoolRecord& record,
                            const KnownTemplate& known, base::MonoTime now) {
  if (!snapshot.policy.has_value()) return "";
  if (TemplateIsDue(snapshot, record, known, now)) return "what new VMs are made of\n";
  const auto [vms, blocked_reason] = QueueOfReplacements(snapshot, record, known.current);
  if (vms.empty()) return "";
  if (!blocked_reason.has_value()) {
    // Each end of a wait for room is new work: it waits for no round (rule R5).
    const auto room = record.back_off.find(std::string(cause::kRoom));
    return "replace " + vms[0].vm->vm->uid +
           (room == record.back_off.end() ? "" : base::FormatRfc3339(room->second.retry_at)) + "\n";
  }
  // An operator may have lifted the stop on the Lease, which is read again in rounds (rule R5).
  PoolRecord resumed = record;
  resumed.replacement.reset();
  const bool has_stopped =
      record.replacement.has_value() &&
      !ReplacementBlockedReason(vms[0], snapshot, resumed, known.current).has_value();
  return has_stopped ? "a replacement that has stopped\n" : "";
}

}  // namespace nomad_harvester::scaling
