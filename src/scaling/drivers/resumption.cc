// SPDX-License-Identifier: Apache-2.0
#include "drivers/resumption.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/scaling/lease_hold.h"

#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

// The maximum age of the known template of new VMs.
constexpr base::Duration kTemplateGoodFor = std::chrono::minutes(10);
constexpr base::Duration kTemplateReadLimit = std::chrono::seconds(10);
// The maximum number of VMs with nodes to read in search of one that may be replaced.
constexpr std::size_t kMaxTried = 64;

// Also true for a stopped roll-out: another template lets it continue (rule R5).
bool TemplateIsDue(const PoolSnapshot& snapshot, const PoolRecord& record,
                   const ScaleMemory& memory, base::MonoTime now) {
  if (memory.template_read_at.has_value() && now - *memory.template_read_at < kTemplateGoodFor) {
    return false;
  }
  return ReplacesDrifted(*snapshot.policy) ||
         (record.replacement.has_value() && !snapshot.policy->dry_run &&
          !VmsToReplace(snapshot, memory.current_template).empty());
}

// A creation that failed waits longer each time, like that of a Scale (rule C12).
absl::Status RecordFailedReplacement(const runtime::Context& context, const PoolDependencies& deps,
                                     const PoolSnapshot& snapshot) {
  PoolRecord record = deps.lease.record();
  RecordFailure(&record.back_off, std::string(cause::kCreate), snapshot.now(), deps.lease.used());
  return deps.lease.Store(context, record, "");
}

// Logs once why nothing is replaced now. Waiting for a new VM to boot or start is normal.
void LogRest(const PoolDependencies& deps, const Replaceable& next, const std::string& rests,
             const PoolSnapshot& snapshot, ScaleMemory* memory) {
  if (std::exchange(memory->replacement_rests, rests) == rests || rests.empty()) return;
  const bool boots =
      std::any_of(snapshot.vms().begin(), snapshot.vms().end(), [](const VmView* view) {
        const harvester::VirtualMachine& vm = view->vm;
        return vm.replaces.has_value() && !vm.has_mark && !harvester::WasReady(vm);
      });
  const bool has_stopped = HasStopped(deps.lease.record(), memory->current_template);
  const bool waits_for_operator = has_stopped || next.hold == Replaceable::Hold::kFlips;
  deps.logger.Log(waits_for_operator ? log::Level::kWarn
                  : boots            ? log::Level::kDebug
                                     : log::Level::kInfo,
                  "Replacement is blocked",
                  {{"vm", next.vm->vm->name}, {"wanted", next.reason}, {"why", rests}});
}

// Lists the VMs that this process may replace, and why not now. A Status does not ask for its own
// node.
ReplacementQueue QueueFor(const PoolSnapshot& snapshot, const PoolDependencies& deps,
                          const ScaleMemory& memory) {
  if (!deps.lease.used()) return {};  // rule R2
  ReplacementQueue queue =
      QueueOfReplacements(snapshot, deps.lease.record(), memory.current_template);
  const absl::Status& problem = snapshot.look().own_node_problem;
  if (!problem.ok()) queue.rests = base::Message(problem);
  return queue;
}

struct Begun {
  bool acted = false;
  bool is_unhealthy = false;  // the old VM is, so it is marked next
};

// Replaces the first VM that may be replaced.
absl::Status ReplaceNext(const runtime::Context& context, const PoolDependencies& deps,
                         const config::PoolPolicy& policy, Reconciler& loop, ScaleMemory* memory,
                         Begun* begun) {
  const PoolSnapshot& snapshot = loop.last()->snapshot();
  if (!deps.lease.used()) return absl::OkStatus();  // rule R2
  if (TemplateIsDue(snapshot, deps.lease.record(), *memory, deps.clock.Now())) {
    UpdateCurrentTemplate(context.WithTimeout(kTemplateReadLimit), deps, policy,
                          &memory->current_template);
    memory->template_read_at = deps.clock.Now();  // a failure is tried again as late
  }
  const auto [vms, rests] = QueueFor(snapshot, deps, *memory);
  if (vms.empty()) return absl::OkStatus();
  LogRest(deps, vms[0], rests, snapshot, memory);
  if (!rests.empty()) return absl::OkStatus();
  if (const auto closed = loop.TakeClosedRecord(); closed.has_value()) {
    NH_RETURN_IF_ERROR(deps.lease.Store(context, *closed, ""));
  }
  absl::Status kept;
  for (std::size_t i = 0; i < vms.size() && i < kMaxTried; ++i) {
    // The others wait until the pool is at rest.
    if (vms[i].is_unhealthy() != vms[0].is_unhealthy()) break;
    if (vms[i].hold != Replaceable::Hold::kNone) break;
    const std::string name = vms[i].vm->vm->name;
    ScaleCall call(deps, policy,
                   {.reason = "replacement of VM " + name + ": " + vms[i].reason,
                    .old_goes_first = OldGoesFirst(policy)},
                   memory);
    const absl::Status fits = call.CheckReplaced(context, snapshot, vms[i]);
    if (absl::IsFailedPrecondition(fits)) {
      kept.Update(fits);
      continue;
    }
    NH_RETURN_IF_ERROR(fits);
    absl::Status replaced = call.Replace(context, snapshot, vms[i]);
    *begun = {.acted = call.facts().acted, .is_unhealthy = vms[i].is_unhealthy()};
    if (!replaced.ok() && call.facts().acted && !context.Done()) {
      NH_RETURN_IF_ERROR(RecordFailedReplacement(context, deps, snapshot));
    }
    return base::Annotate(replaced, "the replacement of VM " + name);
  }
  LogRest(deps, vms[0], base::Message(kept), snapshot, memory);
  return absl::OkStatus();
}

}  // namespace

Resumed ResumePool(const runtime::Context& context, const PoolDependencies& deps,
                   const SharedPolicy& policy, ScaleMemory* memory) {
  Resumed resumed;
  const auto hold = LeaseHold::Acquire(deps.lease, context, LeaseUser::kResumption);
  resumed.lease = hold.status();
  if (!hold.ok()) return resumed;
  const ShowLeaseHeld shown(deps.metrics(), deps.lease.used());
  if (memory != nullptr && policy.has_value() && EvacuatesHosts(*policy)) {
    // Usually a Status reads the hosts, but there may be none.
    deps.hosts.List((*hold)->context().WithTimeout(kHostsLimit), deps.key.ns);
    deps.hosts.ListCordoned((*hold)->context().WithTimeout(kHostsLimit));
  }
  Reconciler loop(deps, policy);
  const bool may_replace = memory != nullptr && policy.has_value();
  const bool several = may_replace && MostAtATime(*policy) > 1;
  // A drain takes long; another replacement may begin meanwhile, and the loop continues afterwards.
  // Replacing an unhealthy VM waits for no drain.
  bool may_leave = may_replace;
  std::shared_ptr<const Snapshot> used;  // the snapshot in which the last one began
  for (bool again = true; again;) {
    bool has_left = false;
    resumed.outcome = loop.RunResumption((*hold)->context(), [&](const PoolSnapshot& snapshot) {
      if (!may_leave) return false;
      const ReplacementQueue queue = QueueFor(snapshot, deps, *memory);
      has_left =
          !queue.vms.empty() && queue.rests.empty() && (several || queue.vms[0].is_unhealthy());
      return has_left;
    });
    // Trouble with another object does not delay it (rule L1).
    const bool is_seen = loop.last().has_value() && (*hold)->context().Check().ok();
    if (!is_seen || !may_replace) break;
    // If the pool has not been readable since, the last Look does not contain the new VM.
    if (loop.last()->snapshot().seen == used) break;
    used = loop.last()->snapshot().seen;
    Begun begun;
    resumed.outcome.Update(ReplaceNext((*hold)->context(), deps, *policy, loop, memory, &begun));
    resumed.replacing = OpenReplacements(loop.last()->snapshot());
    if (begun.acted) resumed.replacing += "one that has just begun\n";
    may_leave = begun.acted;
    again = has_left || (begun.acted && (several || begun.is_unhealthy));
  }
  resumed.interrupted = (*hold)->context().cancel_reason() != runtime::CancelReason::kNone;
  resumed.last_event = loop.last_event();
  resumed.last = loop.last();
  if (!(*hold)->Release(loop.closed_record()) && resumed.outcome.ok()) {
    resumed.outcome = base::Unavailable("the action on the pool's Lease could not be closed");
  }
  return resumed;
}

std::string ReplacementWork(const PoolSnapshot& snapshot, const PoolRecord& record,
                            const ScaleMemory& memory, base::MonoTime now) {
  if (!snapshot.policy.has_value()) return "";
  if (TemplateIsDue(snapshot, record, memory, now)) return "what new VMs are made of\n";
  const auto [vms, rests] = QueueOfReplacements(snapshot, record, memory.current_template);
  if (vms.empty()) return "";
  if (rests.empty()) return "replace " + vms[0].vm->vm->uid + "\n";
  // An operator may have lifted the stop on the Lease, which is read again in rounds (rule R5).
  PoolRecord resumed = record;
  resumed.replacement.reset();
  const bool has_stopped =
      record.replacement.has_value() &&
      ReplacementBlockedReason(vms[0], snapshot, resumed, memory.current_template).empty();
  return has_stopped ? "a replacement that has stopped\n" : "";
}

}  // namespace nomad_harvester::scaling
