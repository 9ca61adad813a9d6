// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/status_report.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "nomad_harvester/harvester/template_hash.h"
#include "nomad_harvester/scaling/facts.h"
#include "nomad_harvester/scaling/observer.h"
#include "nomad_harvester/scaling/step_spec.h"

namespace nomad_harvester::scaling {
namespace {

// Of so many VMs that differ from the policy the log has the names.
constexpr std::size_t kDriftNamed = 20;

// The names of the pool's VMs.
struct Tally {
  std::int64_t count = 0;
  std::map<VmState, std::vector<std::string>> by_state;
  // Of those that count; a stopped VM may also have lost its node.
  std::vector<std::string> stopped, lost, drifted;
  std::vector<std::string> drift;  // of the first ones that drifted, with the parts

  std::vector<std::string>& In(VmState state) { return by_state[state]; }
};

bool IsLost(const VmView& view, const PoolSnapshot& snapshot) {
  if (!IsReadable(view, snapshot.look()) || !harvester::HasJoined(view.vm)) return false;
  if (IsOtherRegion(view.vm, snapshot.look().region)) return false;
  const nomad::Node* node = LinkedNode(view, snapshot);
  return view.link.state == nodepool::LinkState::kNone ||
         (node != nullptr && node->status == nomad::NodeStatus::kDown);
}

bool WaitsToJoin(const VmView& view, const PoolSnapshot& snapshot) {
  if (harvester::HasJoined(view.vm) || IsOtherRegion(view.vm, snapshot.look().region)) return false;
  // While Nomad is unreadable the deadline does not apply, and the VM is still waited for.
  const std::optional<base::WallTime> deadline = JoinDeadline(view, snapshot.look());
  return deadline.has_value() && (!snapshot.look().nomad_readable || snapshot.now() < *deadline);
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Tally TallyOf(const PoolSnapshot& snapshot, const StatusInputs& inputs) {
  Tally tally;
  for (const VmView* view : snapshot.vms()) {
    const harvester::VirtualMachine& vm = view->vm;
    tally.In(StateOf(*view, snapshot)).push_back(vm.name);
    if (!Counts(*view, snapshot)) continue;
    ++tally.count;
    if (harvester::HasJoined(vm) && harvester::IsStopped(vm)) tally.stopped.push_back(vm.name);
    if (IsLost(*view, snapshot)) tally.lost.push_back(vm.name);
    const auto parts = DriftOf(vm, inputs.template_hash, inputs.template_parts);
    if (!parts.has_value()) continue;
    tally.drifted.push_back(vm.name);
    if (tally.drifted.size() > kDriftNamed) continue;
    tally.drift.push_back(parts->empty() ? vm.name : vm.name + " (" + Join(*parts) + ")");
  }
  return tally;
}

// The SDK's readiness check of the Nomad pool, without the nodes of VMs that we remove ourselves:
// those do not block while no Scale is open, because growth may cancel their removal.
std::string NodesNotReady(const PoolSnapshot& snapshot) {
  const NodeSet& nodes = snapshot.seen->nodes();
  std::vector<bool> ours(nodes.all().size());
  for (const VmView& view : snapshot.look().vms) {
    const bool linked = view.link.state == nodepool::LinkState::kLinked;
    if (linked && view.member && view.vm->has_mark) ours[view.link.node] = true;
  }
  // Nor do those of VMs whose removal was rolled back, and that of a deleted VM, which will go
  // down.
  for (const auto& [vm, index] : nodes.drained()) ours[index] = true;
  const std::string pool = snapshot.key.ToString();
  for (const NodeOfGoneVm& gone : nodes.of_gone_vms()) {
    if (gone.mark.pool == pool) ours[nodes.IndexOf(*gone.node)] = true;
  }
  std::vector<const nomad::Node*> others;
  for (std::size_t i = 0; i < nodes.all().size(); ++i) {
    const nomad::Node& node = nodes.all()[i];
    const bool may_block = node.draining || node.status != nomad::NodeStatus::kReady;
    if (may_block && !ours[i]) others.push_back(&node);
  }
  const config::PoolPolicy& policy = *snapshot.policy;
  return Join(nodepool::FilterNodes(
      others, IdentityOf(policy),
      {.ignore_init = policy.filter_ignore_init, .ignore_drain = policy.filter_ignore_drain}));
}

// Why the pool is not ready; empty if it is.
std::string NotReady(const PoolSnapshot& snapshot, const StatusInputs& inputs, Tally& tally) {
  if (inputs.scale_open) return "a Scale is open on the pool";
  if (inputs.paused.HoldsAt(snapshot.now())) return PausedText(snapshot.key, inputs.paused);
  if (!snapshot.look().nomad_readable)
    return "Nomad cannot be read: " + snapshot.look().nomad_problem;
  const std::vector<std::string>& pending = tally.In(VmState::kPending);
  if (!pending.empty()) return "waiting to join Nomad: " + Join(pending);
  const std::vector<std::string>& deleting = tally.In(VmState::kDeleting);
  if (!deleting.empty()) return "being deleted: " + Join(deleting);
  const MassLoss& loss = FindMassLoss(snapshot);
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
    text += (text.empty() ? "" : "; ") + std::string(what) + ": " + Join(names);
  };
  add("stopped", tally.stopped);
  add("without a Nomad node", tally.lost);
  add("broken", tally.In(VmState::kBroken));
  add("stuck in deletion", tally.In(VmState::kStuck));
  if (loss.alarming) text += "; more than a fifth of the pool has lost its nodes";
  return text;
}

}  // namespace

StatusReport ReportStatus(const PoolSnapshot& snapshot, const StatusInputs& inputs) {
  Tally tally = TallyOf(snapshot, inputs);
  StatusReport report;
  report.reason = NotReady(snapshot, inputs, tally);
  report.expected =
      inputs.scale_open || (snapshot.look().nomad_readable && !tally.In(VmState::kPending).empty());
  report.status.ready = report.reason.empty();
  report.status.count = tally.count;
  report.warning = Warning(tally, FindMassLoss(snapshot));
  report.drift = Join(tally.drift);
  report.drifted = static_cast<std::int64_t>(tally.drifted.size());
  if (tally.drifted.size() > tally.drift.size()) {
    report.drift += " and " + std::to_string(tally.drifted.size() - tally.drift.size()) + " more";
  }
  StringMap& meta = report.status.meta;
  const auto count = [&](const char* key, std::size_t value) { meta[key] = std::to_string(value); };
  count("harvester.pending", tally.In(VmState::kPending).size());
  count("harvester.draining", tally.In(VmState::kDraining).size());
  count("harvester.broken", tally.In(VmState::kBroken).size());
  count("harvester.stopped", tally.stopped.size());
  count("harvester.stuck", tally.In(VmState::kStuck).size());
  count("harvester.drifted", tally.drifted.size());
  count("harvester.leftovers", static_cast<std::size_t>(inputs.leftovers));
  count("harvester.unmanaged", tally.In(VmState::kUnmanaged).size());
  if (snapshot.look().nomad_readable) {
    count("harvester.lost", tally.lost.size());
    count("harvester.unlinked", UnlinkedNodes(snapshot).size());
  }
  if (inputs.last_event.has_value()) {
    meta["nomad_autoscaler.last_event"] =
        std::to_string(inputs.last_event->time_since_epoch().count());
  }
  return report;
}

std::optional<std::vector<std::string>> DriftOf(const harvester::VirtualMachine& vm,
                                                const std::string& template_hash,
                                                const std::string& template_parts) {
  if (template_hash.empty()) return std::nullopt;
  const auto hash = vm.annotations.find(harvester::kTemplateHashAnnotation);
  if (hash == vm.annotations.end() || !harvester::IsDrift(hash->second, template_hash)) {
    return std::nullopt;
  }
  const auto stored = vm.annotations.find(harvester::kTemplatePartsAnnotation);
  if (stored == vm.annotations.end()) return std::vector<std::string>{};
  return harvester::DriftedParts(stored->second, template_parts);
}

std::string PausedText(const PoolKey& key, const harvester::Hold& paused) {
  return "pool " + key.ToString() + " is paused" +
         (paused.always ? std::string() : " until " + base::FormatRfc3339(*paused.until)) +
         " (annotation " + harvester::kLeasePausedAnnotation +
         " of its Lease); harvester resume ends that";
}

VmState StateOf(const VmView& view, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& vm = view.vm;
  if (!view.member) return VmState::kUnmanaged;
  if (harvester::IsTerminating(vm)) {
    return IsStuckInDeletion(vm, snapshot.now()) ? VmState::kStuck : VmState::kDeleting;
  }
  if (vm.has_mark) return VmState::kDraining;
  if (IsBroken(view, snapshot)) return VmState::kBroken;
  if (WaitsToJoin(view, snapshot)) return VmState::kPending;
  if (!harvester::HasJoined(vm)) return VmState::kCreated;
  if (harvester::IsStopped(vm)) return VmState::kStopped;
  return IsLost(view, snapshot) ? VmState::kLost : VmState::kJoined;
}

std::string_view VmStateName(VmState state) {
  static constexpr std::array<std::string_view, kVmStates> kNames = {
      "unmanaged", "deleting", "stuck", "draining", "broken",
      "pending",   "stopped",  "lost",  "joined",   "created"};
  return kNames.at(static_cast<std::size_t>(state));
}

bool NeedsResumption(const Decisions& decisions, bool paused) {
  const PoolSnapshot& snapshot = decisions.snapshot();
  const Look& look = snapshot.look();
  bool someone_lacks_a_node = false;
  for (const auto& [view, step] : decisions.all()) {
    if (!view->member || IsStuckInDeletion(view->vm, look.now)) continue;
    if (view->vm->has_mark && !IsOtherRegion(view->vm, look.region)) return true;
    // The name may never be used again: it leaves the Lease before an operator can delete the VM.
    if (snapshot.action.has_value() && snapshot.action->create.contains(view->vm->name))
      return true;
    if (IsAct(step.kind) && !(paused && IsUpkeep(step.kind))) return true;
    someone_lacks_a_node = someone_lacks_a_node || view->link.state == nodepool::LinkState::kNone ||
                           view->link.state == nodepool::LinkState::kTwoReady;
  }
  if (!look.nomad_readable) return false;
  if (someone_lacks_a_node && !NodesToReadInFull(look, snapshot.nodes()).empty()) return true;
  return !decisions.to_purge().empty();
}

}  // namespace nomad_harvester::scaling
