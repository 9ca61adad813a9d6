// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/replacement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "nomad_harvester/base/encoding.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/scaling/plan.h"

#include "absl/strings/str_join.h"
#include "rules/back_off.h"

namespace nomad_harvester::scaling {
namespace {

// At which age the VM expires: up to a tenth earlier than the policy says, so that VMs that were
// made together do not all go together.
base::Duration ExpiresAt(const harvester::VirtualMachine& vm, base::Duration expire_after) {
  const std::uint64_t place =
      std::stoul(base::StableHash("expiry/" + vm.uid).substr(0, 2), nullptr, 16);
  return expire_after - expire_after / 10 * place / 256;
}

// A template may tolerate the cordon, so that the replacement lands on the same host again, or on
// another cordoned one.
bool ComesFromAHost(const VmView& view, base::Duration age) {
  const std::optional<harvester::Replaces>& replaces = view.vm->replaces;
  return replaces.has_value() && replaces->reason.kind == ReplaceKind::kHost &&
         (replaces->reason.detail == view.host_to_leave || age < kYoungestToReplace);
}

// True if the table finds the VM unhealthy and not kept (rule C17). `pool` is made on first use.
bool AwaitsReplacement(const VmView& view, const PoolSnapshot& snapshot,
                       std::optional<PoolFacts>* pool) {
  if (!IsUnhealthy(view, snapshot)) return false;
  if (!pool->has_value()) pool->emplace(snapshot);
  const Overlay seen(snapshot, view);
  return Decide(FactsOf(seen, &**pool)).row == Row::kUnmarkedUnhealthyWaits;
}

// After this many changes back and forth, made in close succession, a place keeps its VM. An
// operator who reverts a roll-out and repeats it makes two.
constexpr std::int64_t kMaxFlips = 4;
constexpr base::Duration kFlipsWithin = std::chrono::hours(24);

// What the place was made of before `vm`, and until when, within the last day.
std::map<std::string, std::string> FormerTemplates(const harvester::VirtualMachine& vm,
                                                   base::WallTime now) {
  if (!vm.replaces.has_value()) return {};
  std::map<std::string, std::string> former = vm.replaces->had;
  if (!vm.replaces->was.empty()) former[vm.replaces->was] = base::FormatRfc3339(vm.created_at);
  std::erase_if(former, [&](const auto& entry) {
    const auto until = base::ParseRfc3339(entry.second);
    return !until.ok() || !IsWithin(*until, kFlipsWithin, now);
  });
  return former;
}

// How often in a row the place has changed back to what it was within the last day, if the new VM
// is made from `current`.
std::int64_t FlipsWith(const CurrentTemplate& current, const harvester::VirtualMachine& old,
                       base::WallTime now) {
  const auto former = FormerTemplates(old, now);
  const bool changes_back = std::any_of(former.begin(), former.end(), [&](const auto& entry) {
    return IsSameTemplate(entry.first, current.hash);
  });
  return changes_back ? old.replaces->flips + 1 : 0;
}

// Whether, why and how urgently the VM is to be replaced, whatever keeps it.
std::optional<Replaceable> ReplaceableOf(const VmView& view, const PoolSnapshot& snapshot,
                                         const CurrentTemplate& current,
                                         std::optional<PoolFacts>* pool) {
  const config::PoolPolicy& policy = *snapshot.policy;
  const harvester::VirtualMachine& vm = view.vm;
  if (AwaitsReplacement(view, snapshot, pool)) {
    return Replaceable{&view, {ReplaceKind::kUnhealthy}};
  }
  if (!harvester::WasReady(vm)) return std::nullopt;
  if (!vm.replace_request.empty()) {
    return Replaceable{&view, {ReplaceKind::kRequested, vm.replace_request}};
  }
  const base::Duration age = snapshot.now() - vm.created_at;
  if (!view.host_to_leave.empty() && !ComesFromAHost(view, age)) {
    return Replaceable{&view, {ReplaceKind::kHost, view.host_to_leave}};
  }
  if (age < kYoungestToReplace) return std::nullopt;
  if (policy.replace_drifted == config::ReplaceDrifted::kRolling) {
    const auto parts = DriftOf(vm, current, policy.drift_ignore);
    if (parts.has_value()) {
      const bool alternates = FlipsWith(current, vm, snapshot.now()) >= kMaxFlips;
      return Replaceable{&view,
                         {ReplaceKind::kDrifted, absl::StrJoin(*parts, ", ")},
                         alternates ? Replaceable::Hold::kFlips : Replaceable::Hold::kNone};
    }
  }
  if (policy.expire_after.has_value() && age >= ExpiresAt(vm, *policy.expire_after)) {
    return Replaceable{&view, {ReplaceKind::kExpired}};
  }
  return std::nullopt;
}

// A place with two VMs, or with a new one that was never ready.
struct OpenPlace {
  const VmView* fresh = nullptr;
  const VmView* old = nullptr;  // null: it is gone
};

std::vector<OpenPlace> OpenPlaces(const PoolSnapshot& snapshot) {
  std::vector<OpenPlace> open;
  for (const VmView* view : snapshot.vms()) {
    const harvester::VirtualMachine& vm = view->vm;
    if (!IsPoolMember(*view, snapshot) || !vm.replaces.has_value()) continue;
    if (vm.has_mark || harvester::IsTerminating(vm)) continue;
    const VmView* old = snapshot.seen->FindVmByUid(vm.replaces->uid);
    if (old != nullptr && (!IsPoolMember(*old, snapshot) || StaysBeside(*old, *view)))
      old = nullptr;
    if (old != nullptr || !harvester::WasReady(vm)) open.push_back({view, old});
  }
  return open;
}

// Says what is missing until a VM is ready and alone in its place; unset: nothing.
std::optional<std::string> ReplacementProblem(const VmView& view, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = view.vm;
  if (harvester::IsTerminating(vm)) return "VM " + vm.name + " is being deleted";
  if (vm.has_mark) return "VM " + vm.name + " is being removed";
  if (IsBroken(view, snapshot)) return "VM " + vm.name + " is broken";
  if (harvester::WaitsToStart(vm)) {
    return "VM " + vm.name + " starts once VM " + vm.replaces->vm + " is gone";
  }
  if (!harvester::WasReady(vm) || !IsNodeReady(view, snapshot)) {
    return "VM " + vm.name + " is not ready";
  }
  if (IsPendingReplacement(view, snapshot)) {
    return "VM " + vm.name + " has yet to take the place of " + vm.replaces->vm;
  }
  // Regardless of age, because with every further one the pool would grow.
  if (!vm.replaces.has_value()) return std::nullopt;
  const VmView* old = snapshot.seen->FindVmByUid(vm.replaces->uid);
  if (old != nullptr && StaysBeside(*old, view)) {
    const auto& undone = old->vm->removal_undone;
    return "VM " + old->vm->name + " stays beside " + vm.name + ", which was to replace it (" +
           (undone.has_value() ? undone->why : "its writes are refused") +
           "): remove one of them, or the annotation " + harvester::kReplacesAnnotation + " of " +
           vm.name;
  }
  return std::nullopt;
}

// How long it stays proven that new VMs of a spec become ready.
constexpr base::Duration kProvenFor = std::chrono::hours(1);

// True if a VM of the same spec became ready recently.
bool IsProven(const harvester::VirtualMachine& fresh, const PoolSnapshot& snapshot) {
  return std::any_of(snapshot.vms().begin(), snapshot.vms().end(), [&](const VmView* view) {
    const std::optional<base::WallTime>& ready_at = view->vm->ready_at;
    return IsPoolMember(*view, snapshot) && ready_at.has_value() &&
           IsWithin(*ready_at, kProvenFor, snapshot.now()) &&
           IsSameTemplate(view->vm->template_hash, fresh.template_hash);
  });
}

// Says why no further VM may be replaced in addition to the current ones; unset: one may.
// Everything that is not part of a replacement must be at rest.
std::optional<std::string> ReplacementProblem(const PoolSnapshot& snapshot) {
  const std::vector<OpenPlace> open = OpenPlaces(snapshot);
  std::set<const VmView*> in_open_place;
  for (const OpenPlace& place : open) {
    in_open_place.insert(place.fresh);
    const bool goes = place.old != nullptr &&
                      (place.old->vm->has_mark || harvester::IsTerminating(place.old->vm));
    if (goes) in_open_place.insert(place.old);
  }
  for (const VmView* view : snapshot.vms()) {
    if (!IsPoolMember(*view, snapshot)) continue;
    const bool may_go_on = in_open_place.contains(view) && !IsBroken(*view, snapshot);
    if (may_go_on) continue;
    if (auto what = ReplacementProblem(*view, snapshot); what.has_value()) return what;
  }
  const bool is_full = static_cast<std::int64_t>(open.size()) >= MostAtATime(*snapshot.policy);
  for (const OpenPlace& place : open) {
    auto what = ReplacementProblem(*place.fresh, snapshot);
    if (!what.has_value() && place.old != nullptr) what = ReplacementProblem(*place.old, snapshot);
    if (!what.has_value()) {
      what = "VM " + place.fresh->vm->name + " has yet to be alone in its place";
    }
    if (is_full) return what;
    if (!IsProven(place.fresh->vm, snapshot)) return *what + ", and is the first one of its spec";
  }
  return std::nullopt;
}

// Begins the reason why no VM is replaced after a new one has lacked room.
std::string RoomLackedText(const harvester::StoppedReplacement& last) {
  const std::string of_vm = last.vm.empty() ? "" : "VM " + last.vm + ": ";
  return "there has been no room for a new VM since " + base::FormatRfc3339(last.at) + " (" +
         of_vm + last.why + "); ";
}

// True if a new VM of the same template has failed.
bool HasFailed(const PoolRecord& record, const CurrentTemplate& current) {
  // Unknown after a start whose first read failed.
  return record.replacement.has_value() &&
         (current.hash.empty() || IsSameTemplate(record.replacement->template_hash, current.hash));
}

}  // namespace

bool OldGoesFirst(const config::PoolPolicy& policy) { return policy.max_surge == 0; }

std::int64_t MostAtATime(const config::PoolPolicy& policy) {
  return std::max(policy.max_surge, policy.max_unavailable);
}

std::string OpenReplacements(const PoolSnapshot& snapshot) {
  std::string uids;
  for (const OpenPlace& place : OpenPlaces(snapshot)) uids += place.fresh->vm->uid + "\n";
  return uids;
}

bool ReplacesDrifted(const config::PoolPolicy& policy) {
  return !policy.dry_run && policy.replace_drifted == config::ReplaceDrifted::kRolling;
}

bool EvacuatesHosts(const config::PoolPolicy& policy) {
  return !policy.dry_run && policy.on_host_maintenance == config::HostMaintenance::kEvacuate;
}

std::vector<Replaceable> VmsToReplace(const PoolSnapshot& snapshot,
                                      const CurrentTemplate& current) {
  std::vector<Replaceable> vms;
  std::optional<PoolFacts> pool;
  if (!snapshot.policy.has_value()) return {};
  const std::optional<config::CronWindow>& window = snapshot.policy->replacement_window;
  const bool is_closed = window.has_value() && !window->IsOpen(snapshot.now());
  for (const VmView* view : snapshot.vms()) {
    // Each Status asks, and of most VMs this says no at once.
    auto replaceable = ReplaceableOf(*view, snapshot, current, &pool);
    if (!replaceable.has_value()) continue;
    if (!Counts(*view, snapshot)) continue;
    if (snapshot.seen->ReplacementOf(view->vm->uid) != nullptr) continue;
    // However far ahead its time is: beside one of the future, a new VM would not be needed.
    const auto& undone = view->vm->removal_undone;
    if (undone.has_value() && snapshot.now() - undone->at < kVictimCooldown) continue;
    const nomad::Node* node = LinkedNode(*view, snapshot);
    const bool stays = node == nullptr || ObjectionToRemoval(*view, node, snapshot).has_value();
    if (stays && !replaceable->is_unhealthy()) continue;
    Replaceable::Hold& hold = replaceable->hold;
    const bool waits = is_closed && replaceable->reason.kind >= ReplaceKind::kDrifted;
    if (waits && hold == Replaceable::Hold::kNone) hold = Replaceable::Hold::kWindow;
    vms.push_back(*std::move(replaceable));
  }
  std::sort(vms.begin(), vms.end(), [](const Replaceable& a, const Replaceable& b) {
    if (a.reason.kind != b.reason.kind) return a.reason.kind < b.reason.kind;
    const harvester::VirtualMachine& one = a.vm->vm;
    const harvester::VirtualMachine& other = b.vm->vm;
    if (one.created_at != other.created_at) return one.created_at < other.created_at;
    return one.name < other.name;
  });
  std::stable_partition(vms.begin(), vms.end(),
                        [](const Replaceable& vm) { return vm.hold == Replaceable::Hold::kNone; });
  return vms;
}

std::set<std::string> AwaitingReplacement(const Decisions& decisions) {
  std::set<std::string> uids;
  for (const auto& [view, step] : decisions.all()) {
    if (step.row == Row::kUnmarkedUnhealthyWaits || step.kind == StepKind::kMarkUnhealthy) {
      uids.insert(view->vm->uid);
    }
  }
  return uids;
}

bool HasStopped(const PoolRecord& record, const CurrentTemplate& current) {
  return HasFailed(record, current) && !record.replacement->lacks_room;
}

std::string WhyItStopped(const harvester::StoppedReplacement& stopped) {
  return "VM " + stopped.vm + " was not ready in time: " + stopped.why +
         "; it goes on with another VM spec, or after nomad-harvester resume --replacement";
}

std::optional<std::string> ReplacementBlockedReason(const Replaceable& next,
                                                    const PoolSnapshot& snapshot,
                                                    const PoolRecord& record,
                                                    const CurrentTemplate& current) {
  if (snapshot.policy->dry_run) return "the policy is in dry run";
  if (record.paused.HoldsAt(snapshot.now())) return "the pool is paused";
  if (const absl::Status nomad = CheckNomad(snapshot); !nomad.ok()) return base::Message(nomad);
  if (snapshot.mass_loss().alarming) return "too many VMs have lost their Nomad nodes at once";
  // That counts for new VMs of a roll-out; those of unhealthy ones have the back-off.
  if (!next.is_unhealthy() && HasStopped(record, current)) {
    return "it has stopped, because " + WhyItStopped(*record.replacement);
  }
  // Checked before conditions that pass sooner, so that the log does not report each of their
  // changes.
  if (next.hold == Replaceable::Hold::kFlips) {
    return "VM " + next.vm->vm->name +
           " would become again what its place was before, for the fourth time: two policies of "
           "this pool describe different VMs; make them the same, and then run nomad-harvester "
           "replace --drifted";
  }
  if (next.hold == Replaceable::Hold::kWindow) {
    return "outside of replacement_window, which opens at " +
           base::FormatRfc3339(snapshot.policy->replacement_window->OpenFrom(snapshot.now()));
  }
  const bool lacked_room = !next.is_unhealthy() && HasFailed(record, current);
  const std::string lacked = lacked_room ? RoomLackedText(*record.replacement) : "";
  if (const absl::Status waits = CheckCreation(record.back_off, snapshot.now()); !waits.ok()) {
    return lacked + base::Message(waits);
  }
  // Each try would cost one more VM (rule R8).
  if (lacked_room && OldGoesFirst(*snapshot.policy) && !record.replacement->vm.empty()) {
    return lacked +
           "it goes on once a new VM is ready, or after nomad-harvester resume --replacement";
  }
  const auto problem = next.is_unhealthy() ? std::nullopt : ReplacementProblem(snapshot);
  if (lacked_room && problem.has_value()) return lacked + *problem;
  if (const absl::Status grows = CheckGrowth(snapshot); !grows.ok()) return base::Message(grows);
  return problem;
}

ReplacementQueue QueueOfReplacements(const PoolSnapshot& snapshot, const PoolRecord& record,
                                     const CurrentTemplate& current) {
  ReplacementQueue queue{.vms = VmsToReplace(snapshot, current), .blocked_reason = {}};
  if (!queue.vms.empty()) {
    queue.blocked_reason = ReplacementBlockedReason(queue.vms[0], snapshot, record, current);
  }
  return queue;
}

harvester::Replaces ReplacesOf(const Replaceable& old, const CurrentTemplate& current,
                               base::WallTime now) {
  const harvester::VirtualMachine& vm = old.vm->vm;
  return {.vm = vm.name,
          .uid = vm.uid,
          .reason = old.reason,
          .was = vm.template_hash,
          .had = FormerTemplates(vm, now),
          .flips = FlipsWith(current, vm, now)};
}

std::optional<std::string> DescribeSwap(const PoolSnapshot& snapshot) {
  const auto takes_work = [&](const VmView& view) {
    return IsNodeReady(view, snapshot) && LinkedNode(view, snapshot)->eligible;
  };
  for (const VmView* view : snapshot.vms()) {
    const harvester::VirtualMachine& vm = view->vm;
    if (IsPendingReplacement(*view, snapshot) && takes_work(*view) &&
        !IsPastJoinDeadline(*view, snapshot.observation()) &&
        BelongsToPool(*LinkedNode(*view, snapshot), *view, snapshot.policy) &&
        (!vm.ready_at.has_value() || IsWithin(*vm.ready_at, kSwapLimit, snapshot.now()))) {
      return "VM " + vm.name + " takes the place of " + vm.replaces->vm;
    }
    const bool goes = vm.mark.has_value() && vm.mark->reason == harvester::MarkReason::kReplace &&
                      !harvester::IsTerminating(vm) && IsPoolMember(*view, snapshot);
    if (goes && takes_work(*view) && IsWithin(vm.mark->marked_at, kSwapLimit, snapshot.now())) {
      return "VM " + vm.name + " gives way to the one that replaces it";
    }
  }
  return std::nullopt;
}

std::vector<const VmView*> PendingReplacements(const PoolSnapshot& snapshot) {
  std::vector<const VmView*> pending;
  for (const VmView* view : snapshot.vms()) {
    if (IsPendingReplacement(*view, snapshot)) pending.push_back(view);
  }
  return pending;
}

std::vector<const VmView*> ReplacementsToCount(const PoolSnapshot& snapshot, std::int64_t desired) {
  const std::int64_t counted = CountOf(snapshot);
  std::vector<const VmView*> pending = PendingReplacements(snapshot);
  if (desired < counted) return pending;
  std::int64_t wanted = desired - counted;
  if (snapshot.policy->max_scale_out) wanted = std::min(wanted, *snapshot.policy->max_scale_out);
  std::stable_partition(pending.begin(), pending.end(), [&](const VmView* view) {
    return harvester::WasReady(view->vm) && !LooksUnhealthy(*view, snapshot.observation());
  });
  if (std::cmp_less(wanted, pending.size())) pending.resize(static_cast<std::size_t>(wanted));
  return pending;
}

PoolSnapshot WithoutReplacements(const PoolSnapshot& snapshot,
                                 const std::vector<const VmView*>& pending) {
  if (pending.empty()) return snapshot;
  Observation observation = snapshot.observation();
  for (const VmView* view : pending) {
    observation.vms[snapshot.seen->IndexOf(*view)].vm.Change().replaces.reset();
  }
  PoolSnapshot without = snapshot;
  without.seen = std::make_shared<const Snapshot>(std::move(observation));
  return without;
}

}  // namespace nomad_harvester::scaling
