// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/status_report.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/base/text.h"
#include "nomad_harvester/scaling/facts.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/pending_reasons.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/str_join.h"

namespace nomad_harvester::scaling {
namespace {

// The maximum number of VMs that the log names as differing from the policy.
constexpr std::size_t kDriftNamed = 20;
// Like the SDK, the reason names the first nodes that block the pool.
constexpr std::size_t kNodesNamed = 10;

// The names of the pool's VMs, by state.
struct Tally {
  std::int64_t count = 0;
  std::map<VmState, std::vector<std::string>> by_state;
  // Only VMs that count; a stopped VM may also have lost its node.
  std::vector<std::string> stopped, lost, drifted;
  std::vector<std::string> drift;  // the first kDriftNamed drifted VMs, with the parts that differ

  std::vector<std::string>& In(VmState state) { return by_state[state]; }
};

bool IsLost(const VmView& view, const PoolSnapshot& snapshot) {
  if (!IsNodeKnown(view, snapshot.observation()) || !harvester::HasJoined(view.vm)) return false;
  const nomad::Node* node = LinkedNode(view, snapshot);
  return view.link.state == nodepool::LinkState::kNone ||
         (node != nullptr && node->status == nomad::NodeStatus::kDown);
}

// True if the node is initializing, and this process has seen that for less than kUnreadyFor.
bool StillInitializes(const nomad::Node& node, const PoolSnapshot& snapshot) {
  if (node.status != nomad::NodeStatus::kInitializing) return false;
  const std::map<std::string, base::Duration>& all = snapshot.observation().initializing_for;
  const auto known = all.find(node.id);
  return known == all.end() || known->second < kUnreadyFor;
}

// True for a VM that was never recorded as ready and is before its deadline.
bool IsNew(const VmView& view, const PoolSnapshot& snapshot) {
  if (harvester::WasReady(view.vm) || IsOtherNomad(view.vm, snapshot.observation())) return false;
  // While Nomad is unreadable the deadline does not apply, so the VM is still waited for.
  const Observation& observation = snapshot.observation();
  return JoinDeadline(view).has_value() &&
         (!observation.nomad.ok() || !IsPastJoinDeadline(view, observation));
}

// True for a VM that somebody waits for.
bool WaitsToBeReady(const VmView& view, const PoolSnapshot& snapshot) {
  return IsNew(view, snapshot) && !IsNodeReady(view, snapshot);
}

// True if the VM's node is not ready, for example disconnected. Not for VMs that have yet to become
// ready. An initializing node is given some time, because every restarted client initializes.
bool IsUnready(const VmView& view, const PoolSnapshot& snapshot) {
  const nomad::Node* const node = LinkedNode(view, snapshot);
  return node != nullptr && IsNodeKnown(view, snapshot.observation()) &&
         !IsNodeReady(view, snapshot) && !StillInitializes(*node, snapshot);
}

// True for a VM that is to take the place of another one and was ready, but is not any more.
bool WasReadyInPending(const VmView& view, const PoolSnapshot& snapshot) {
  return IsPendingReplacement(view, snapshot) && LooksUnhealthy(view, snapshot.observation());
}

Tally TallyOf(const PoolSnapshot& snapshot, const StatusInputs& inputs) {
  Tally tally;
  for (const VmView* view : snapshot.vms()) {
    const harvester::VirtualMachine& vm = view->vm;
    tally.In(StateOf(*view, snapshot)).push_back(vm.name);
    if (Counts(*view, snapshot)) {
      ++tally.count;
    } else if (!WasReadyInPending(*view, snapshot)) {
      continue;
    }
    const bool in_maintenance = harvester::IsInMaintenance(vm);
    if (harvester::HasJoined(vm) && harvester::IsStopped(vm) && !in_maintenance) {
      tally.stopped.push_back(vm.name);
    }
    if (IsLost(*view, snapshot) && !in_maintenance) tally.lost.push_back(vm.name);
    const auto parts = DriftOf(vm, inputs.current_template, snapshot.policy->drift_ignore);
    if (!parts.has_value()) continue;
    tally.drifted.push_back(vm.name);
    if (tally.drifted.size() > kDriftNamed) continue;
    tally.drift.push_back(parts->empty() ? vm.name
                                         : vm.name + " (" + absl::StrJoin(*parts, ", ") + ")");
  }
  return tally;
}

// The SDK's readiness check of the Nomad pool. Nodes of VMs that we remove do not block while no
// Scale is running, because growth may cancel their removal.
std::string NodesNotReady(const PoolSnapshot& snapshot) {
  const NodeSet& nodes = snapshot.seen->nodes();
  std::vector<bool> ours(nodes.all().size());
  for (const VmView& view : snapshot.observation().vms) {
    if (view.link.state != nodepool::LinkState::kLinked || !view.member) continue;
    // Until its deadline, a VM that was never ready is reported by name.
    const bool by_name = IsPoolMember(view, snapshot) && !harvester::WasReady(view.vm) &&
                         JoinDeadline(view).has_value();
    if (view.vm->has_mark || by_name) ours[view.link.node] = true;
  }
  // Nodes of VMs whose removal was rolled back do not block either, nor does the node of a deleted
  // VM, which will go down.
  for (const auto& [vm, index] : nodes.drained()) ours[index] = true;
  const std::string pool = snapshot.key.ToString();
  for (const OrphanedNode& gone : nodes.orphaned_nodes()) {
    if (gone.mark.pool == pool) ours[nodes.IndexOf(*gone.node)] = true;
  }
  const config::PoolPolicy& policy = *snapshot.policy;
  std::vector<std::string> blocking;
  for (std::size_t i = 0; i < nodes.all().size() && blocking.size() < kNodesNamed; ++i) {
    const nomad::Node& node = nodes.all()[i];
    const bool starts = !policy.filter_ignore_init && StillInitializes(node, snapshot);
    const bool drains = !policy.filter_ignore_drain && node.draining;
    if (ours[i] || (!starts && !drains) || !IdentityOf(policy).Contains(node)) continue;
    blocking.push_back("node " + node.id + (starts ? " is initializing" : " is draining"));
  }
  return absl::StrJoin(blocking, ", ");
}

// Names the VMs that have joined but are not ready yet, with the reasons.
std::string WaitingToBeReady(const PoolSnapshot& snapshot, Tally& tally) {
  std::vector<std::string> waiting;
  for (const std::string& name : tally.In(VmState::kRegistered)) {
    const VmView& view = *snapshot.seen->FindVm(name);
    const nomad::Node* node = LinkedNode(view, snapshot);
    const bool ignored = node != nullptr && node->status == nomad::NodeStatus::kInitializing &&
                         snapshot.policy->filter_ignore_init;
    if (ignored) continue;
    const std::string why =
        node == nullptr ? "its node is gone" : *WhyNotReady(view, *node, snapshot);
    waiting.push_back(name + " (" + why + ")");
  }
  return waiting.empty() ? "" : "waiting for Nomad nodes to be ready: " + base::FirstFew(waiting);
}

// Why the first of these VMs that tells it does not start, as far as it was read; empty: not known.
std::string WhyPending(const std::vector<std::string>& names, const PoolSnapshot& snapshot) {
  for (const std::string& name : names) {
    const VmView& view = *snapshot.seen->FindVm(name);
    const std::string& why = view.pod_message.empty() ? view.volume_warning : view.pod_message;
    if (!why.empty()) return "; " + name + " does not start: " + base::ToShortUtf8(why, 200);
  }
  return "";
}

// VMs that somebody else deletes: the removal of a marked VM has been planned for.
std::vector<std::string> DeletedByOthers(const PoolSnapshot& snapshot, Tally& tally) {
  std::vector<std::string> names = tally.In(VmState::kDeleting);
  std::erase_if(names,
                [&](const std::string& name) { return snapshot.seen->FindVm(name)->vm->has_mark; });
  return names;
}

// Says why the pool is not ready; empty if it is.
std::string NotReady(const PoolSnapshot& snapshot, const StatusInputs& inputs, Tally& tally) {
  if (inputs.scale_open) return "a Scale is open on the pool";
  if (inputs.paused.HoldsAt(snapshot.now())) return PausedText(snapshot.key, inputs.paused);
  if (const absl::Status nomad = CheckNomad(snapshot); !nomad.ok()) return base::Message(nomad);
  const std::vector<std::string>& pending = tally.In(VmState::kPending);
  if (!pending.empty()) {
    return "waiting to join Nomad: " + base::FirstFew(pending) + WhyPending(pending, snapshot);
  }
  if (std::string waiting = WaitingToBeReady(snapshot, tally); !waiting.empty()) return waiting;
  if (auto swapping = DescribeSwap(snapshot); swapping.has_value()) return *swapping;
  const std::vector<std::string> deleting = DeletedByOthers(snapshot, tally);
  if (!deleting.empty()) return "being deleted: " + base::FirstFew(deleting);
  const MassLoss& loss = snapshot.mass_loss();
  if (loss.alarming && inputs.mass_loss_for < kMassLossTimeout) {
    return std::to_string(loss.lost) + " of " + std::to_string(loss.of) +
           " running VMs have lost their Nomad node at once; nothing is removed";
  }
  return NodesNotReady(snapshot);
}

std::string Warning(Tally& tally, const MassLoss& loss) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += (text.empty() ? "" : "; ") + std::string(what) + ": " + absl::StrJoin(names, ", ");
  };
  add("stopped", tally.stopped);
  add("without a Nomad node", tally.lost);
  add("not ready", tally.In(VmState::kUnready));
  add("broken", tally.In(VmState::kBroken));
  add("stuck in deletion", tally.In(VmState::kStuck));
  if (loss.alarming) text += "; more than a fifth of the pool has lost its nodes";
  return text;
}

}  // namespace

std::set<std::string> JustBecameReady(const PoolSnapshot& snapshot) {
  std::set<std::string> uids;
  for (const VmView* view : snapshot.vms()) {
    const bool is_one =
        Counts(*view, snapshot) && IsNew(*view, snapshot) && IsNodeReady(*view, snapshot);
    if (is_one) uids.insert(view->vm->uid);
  }
  return uids;
}

StatusReport ReportStatus(const PoolSnapshot& snapshot, const StatusInputs& inputs) {
  Tally tally = TallyOf(snapshot, inputs);
  StatusReport report;
  report.reason = NotReady(snapshot, inputs, tally);
  const std::size_t pending =
      tally.In(VmState::kPending).size() + tally.In(VmState::kRegistered).size();
  report.expected = inputs.scale_open || (snapshot.observation().nomad.ok() && pending > 0) ||
                    DescribeSwap(snapshot).has_value();
  report.status.ready = report.reason.empty();
  report.status.count = tally.count;
  report.warning = Warning(tally, snapshot.mass_loss());
  report.drift = absl::StrJoin(tally.drift, ", ");
  report.drifted = static_cast<std::int64_t>(tally.drifted.size());
  if (tally.drifted.size() > tally.drift.size()) {
    report.drift += " and " + std::to_string(tally.drifted.size() - tally.drift.size()) + " more";
  }
  StringMap& meta = report.status.meta;
  const auto count = [&](const char* key, std::size_t value) { meta[key] = std::to_string(value); };
  count("harvester.pending", pending);
  count("harvester.draining", tally.In(VmState::kDraining).size());
  count("harvester.broken", tally.In(VmState::kBroken).size());
  count("harvester.stopped", tally.stopped.size());
  count("harvester.stuck", tally.In(VmState::kStuck).size());
  count("harvester.drifted", tally.drifted.size());
  count("harvester.leftovers", static_cast<std::size_t>(inputs.leftovers));
  count("harvester.unmanaged", tally.In(VmState::kUnmanaged).size());
  if (snapshot.observation().nomad.ok()) {
    count("harvester.lost", tally.lost.size());
    count("harvester.unready", tally.In(VmState::kUnready).size());
    count("harvester.unlinked", UnlinkedNodes(snapshot).size());
  }
  if (inputs.last_event.has_value()) {
    meta["nomad_autoscaler.last_event"] =
        std::to_string(inputs.last_event->time_since_epoch().count());
  }
  return report;
}

std::string PausedText(const PoolKey& key, const base::Hold& paused) {
  return "pool " + key.ToString() + " is paused" +
         (paused.always ? std::string() : " until " + base::FormatRfc3339(*paused.until)) +
         " (annotation " + harvester::kLeasePausedAnnotation +
         " of its Lease); nomad-harvester resume ends that";
}

VmState StateOf(const VmView& view, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = view.vm;
  if (!view.member) return VmState::kUnmanaged;
  if (harvester::IsTerminating(vm)) {
    return IsStuckInDeletion(view, snapshot.now()) ? VmState::kStuck : VmState::kDeleting;
  }
  if (vm.has_mark) return VmState::kDraining;
  if (IsBroken(view, snapshot)) return VmState::kBroken;
  const bool waits = WaitsToBeReady(view, snapshot);
  // Nobody waits for one that takes another's place, even if it counts already (rule R3).
  const bool takes_place = IsPendingReplacement(view, snapshot) || harvester::WaitsToStart(vm) ||
                           (waits && vm.replaces.has_value());
  if (takes_place && !WasReadyInPending(view, snapshot)) return VmState::kReplacement;
  const bool joined = harvester::HasJoined(vm);
  if (waits) return joined ? VmState::kRegistered : VmState::kPending;
  if (!joined && !IsNodeReady(view, snapshot)) return VmState::kCreated;
  if (harvester::IsInMaintenance(vm)) return VmState::kMaintenance;
  if (harvester::IsStopped(vm)) return VmState::kStopped;
  if (IsLost(view, snapshot)) return VmState::kLost;
  return IsUnready(view, snapshot) ? VmState::kUnready : VmState::kReady;
}

std::string_view VmStateName(VmState state) {
  static constexpr std::array<std::string_view, kVmStates> kNames = {
      "unmanaged", "deleting", "stuck",   "draining", "broken",  "pending",     "registered",
      "stopped",   "lost",     "unready", "ready",    "created", "replacement", "maintenance"};
  return kNames.at(static_cast<std::size_t>(state));
}

namespace {

std::optional<base::WallTime> DrainedAt(const nomad::Node& node) {
  if (!node.last_drain.has_value()) return std::nullopt;
  return base::ToOptional(base::ParseRfc3339(node.last_drain->started_at));
}

UnfinishedRemoval UnfinishedOf(const Decisions::Entry& entry, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = entry.view->vm;
  UnfinishedRemoval removal{.vm = vm.name, .what = "marked for removal", .since = std::nullopt};
  if (vm.mark.has_value()) {
    removal.since = vm.mark->marked_at;
  } else if (vm.has_mark) {
    removal.what = "its mark cannot be read";
  } else {
    removal.what = entry.step.reason;
    const std::optional<std::size_t> node = snapshot.seen->nodes().Find(entry.step.node_id);
    if (node.has_value()) removal.since = DrainedAt(snapshot.nodes()[*node]);
  }
  return removal;
}

std::vector<UnfinishedRemoval> UnfinishedRemovals(const Decisions& decisions) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  std::vector<UnfinishedRemoval> removals;
  for (const Decisions::Entry& entry : decisions.all()) {
    // VMs of another Nomad belong to another agent.
    if (!entry.view->member || IsOtherNomad(entry.view->vm, snapshot.observation())) continue;
    if (!entry.view->vm->has_mark && !IsRepair(entry.step.kind)) continue;
    removals.push_back(UnfinishedOf(entry, snapshot));
  }
  for (const OrphanedNode& gone : decisions.to_purge()) {
    removals.push_back({.vm = std::string(gone.mark.vm),
                        .what = "it is gone, and its node " + gone.node->id + " is to be purged",
                        .since = DrainedAt(*gone.node)});
  }
  return removals;
}

}  // namespace

std::map<PoolKey, std::vector<UnfinishedRemoval>> UnclaimedRemovals(
    const PoolSnapshot& snapshot, const std::set<PoolKey>& claimed) {
  std::set<PoolKey> pools;
  const std::string& ns = snapshot.key.ns;
  for (const VmView& view : snapshot.observation().vms) {
    if (view.member) pools.insert({.ns = ns, .pool = view.vm->pool});
  }
  for (const OrphanedNode& gone : snapshot.orphaned_nodes()) {
    if (!gone.mark.pool.starts_with(ns + "/")) continue;
    pools.insert({.ns = ns, .pool = std::string(gone.mark.pool.substr(ns.size() + 1))});
  }
  std::map<PoolKey, std::vector<UnfinishedRemoval>> unclaimed;
  for (const PoolKey& key : pools) {
    if (claimed.contains(key)) continue;
    auto removals = UnfinishedRemovals(Decisions({.key = key, .seen = snapshot.seen}));
    if (!removals.empty()) unclaimed.emplace(key, std::move(removals));
  }
  return unclaimed;
}

bool NeedsResumption(const Decisions& decisions, bool paused) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  const Observation& observation = snapshot.observation();
  bool someone_lacks_a_node = false;
  for (const auto& [view, step] : decisions.all()) {
    if (!view->member) continue;
    if (IsStuckInDeletion(*view, observation.now) && !IsAct(step.kind)) continue;
    if (view->vm->has_mark && !IsOtherNomad(view->vm, observation)) return true;
    // The name must never be used again, so it must leave the Lease before an operator can delete
    // the VM.
    if (snapshot.action.has_value() && snapshot.action->create.contains(view->vm->name))
      return true;
    if (IsAct(step.kind) && !(paused && IsUpkeep(step.kind))) return true;
    if (NeedsPodMessage(*view, observation)) return true;
    someone_lacks_a_node = someone_lacks_a_node || view->link.state == nodepool::LinkState::kNone ||
                           view->link.state == nodepool::LinkState::kAmbiguous;
  }
  if (!observation.nomad.ok()) return false;
  if (someone_lacks_a_node && !NodesToReadInFull(observation).empty()) return true;
  return !decisions.to_purge().empty();
}

}  // namespace nomad_harvester::scaling
