// SPDX-License-Identifier: Apache-2.0
#include "pool_status.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/scaling/check.h"
#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/replacement.h"
#include "nomad_harvester/scaling/step_spec.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace nomad_harvester::cli {
namespace {

using scaling::Inspection;
using scaling::PoolSnapshot;
using scaling::VmState;
using scaling::VmView;

// Reduces a text to what two VMs have in common: removes names, times, addresses and numbers.
std::string Kind(const std::string& text, const VmStatus& vm) {
  std::vector<std::string> words = absl::StrSplit(text, ' ');
  for (std::string& word : words) {
    const bool varies = std::any_of(word.begin(), word.end(),
                                    [](unsigned char c) { return absl::ascii_isdigit(c); }) ||
                        word == vm.vm().name || (vm.node != nullptr && word == vm.node->name);
    if (varies) word = "#";
  }
  return absl::StrJoin(words, " ");
}

// Describes what an operator, or a refusal, has left on the VM; empty: nothing.
std::string TroubleOfAnnotations(const harvester::VirtualMachine& vm, base::WallTime now) {
  for (const char* const key : {harvester::kProtectAnnotation, harvester::kDeleteFirstAnnotation}) {
    if (std::string misread = scaling::Misread(vm.annotations, key); !misread.empty()) {
      return misread;
    }
  }
  if (vm.has_mark && !vm.mark.has_value()) {
    return "its mark cannot be read, and is removed; it is not the plugin's spelling";
  }
  if (!vm.has_mark && scaling::WasRecentlyRolledBack(vm, now)) {
    const harvester::CancelledRemoval& undone = *vm.removal_undone;
    if (undone.why == scaling::kNeededByGrowth) return "";
    return "its removal was undone at " + base::FormatRfc3339(undone.at) +
           (undone.why.empty() ? "; the plugin's log says why" : ": " + undone.why);
  }
  return "";
}

// For a VM that has joined; null: it links to no node.
std::string WhyLost(const VmView& view, const nomad::Node* node) {
  if (!view.link.explanation.empty()) return view.link.explanation;
  if (node != nullptr)
    return "node " + node->id + " is " + std::string(NodeStatusName(node->status));
  if (view.vm->joined_node_id.empty()) return "Nomad lists no node of its name";
  return "Nomad does not list its node " + view.vm->joined_node_id + " any more";
}

// Returns the trouble of one VM; empty: none.
std::string TroubleOf(const VmStatus& vm, const PoolSnapshot& snapshot) {
  const bool readable = snapshot.observation().nomad.ok();
  const VmView& view = *vm.view;
  const nomad::Node* const node = vm.node;
  if (node != nullptr && view.member && snapshot.policy.has_value() &&
      !scaling::IdentityOf(*snapshot.policy).Contains(*node)) {
    return "its node is not one of the policy's: " + WrongPool(*node, snapshot);
  }
  if (view.member && IsOtherCluster(view.vm, snapshot.observation())) {
    // If all VMs are, that is the reason why the pool is not ready.
    return CheckCluster(snapshot).ok()
               ? "it belongs to another Nomad cluster than its pool: it is counted, and not touched"
               : "";
  }
  const bool ambiguous = view.link.state == nodepool::LinkState::kAmbiguous ||
                         view.link.state == nodepool::LinkState::kContradicted;
  if (readable && view.member && ambiguous) {
    return "which node it has is not certain: " + view.link.explanation;
  }
  if (readable && view.member && node != nullptr) {
    for (const std::size_t other : view.link.others) {
      const nomad::Node& namesake = snapshot.nodes()[other];
      if (namesake.status != nomad::NodeStatus::kReady || nodepool::IsDeclaredForeign(namesake)) {
        continue;
      }
      return "its node is " + node->id + ", but node " + namesake.id +
             ", which is ready, has its name too: rename that machine, or give it "
             "meta.harvester_vm_uuid = \"none\"";
    }
  }
  switch (vm.state) {
    case VmState::kStopped:
      return "it is stopped, and counts; start it, or delete it";
    case VmState::kLost:
      return readable ? "it has joined, and has no live node: " + WhyLost(view, node) : "";
    case VmState::kUnready:
      return "its node " + node->id + " is not ready: " + vm.not_ready;
    case VmState::kPending:
    case VmState::kRegistered:
      return readable && vm.age >= kJoinsWithin ? vm.step.reason : "";
    case VmState::kStuck:
      return "it is stuck in its deletion: its finalizers are Harvester's to remove";
    case VmState::kBroken:
      return readable || view.start_failure.has_value() ? vm.step.reason : "";
    case VmState::kUnmanaged:
      return "it has the pool's label and is no member: a clone, or a restored copy";
    case VmState::kDraining:
      if (vm.step.is_held && vm.step.kind != scaling::StepKind::kWait) return vm.step.reason;
      break;
    case VmState::kDeleting:
    case VmState::kReady:
    case VmState::kCreated:
    case VmState::kReplacement:
    case VmState::kMaintenance:
      break;
  }
  if (vm.step.kind == scaling::StepKind::kReport) return vm.step.reason;
  return TroubleOfAnnotations(vm.vm(), snapshot.now());
}

// "2026-03-01T11:10:00Z, action act: …".
std::string ErrorText(const harvester::ErrorRecord& error) {
  return base::FormatRfc3339(error.at) + (error.action.empty() ? "" : ", action " + error.action) +
         ": " + error.text;
}

void AddPools(const Inspection& inspection, std::vector<Finding>* troubles) {
  const base::WallTime now = inspection.snapshot.now();
  const scaling::LeaseView& lease = inspection.lease;
  const std::string& reason = inspection.report.reason;
  const auto add = [&](const std::string& text) {
    if (reason.find(text) == std::string::npos) troubles->push_back({.text = text, .vms = {}});
  };
  const bool no_namespace = inspection.ns.has_value() && !inspection.ns->problem.empty();
  // A pool that is not used yet is none, unless its name may be wrong.
  if (!inspection.nothing_exists.empty() && (no_namespace || !inspection.is_claimed)) {
    add(inspection.nothing_exists);
  }
  // Nothing more can be said about a pool in a namespace that cannot be used.
  if (no_namespace) return;
  if (!lease.problem.empty()) {
    add("the pool's Lease cannot be read, so that no Scale can begin and a pause is not seen: " +
        lease.problem);
  }
  if (lease.record.paused.HoldsAt(now)) {
    add(PausedText(inspection.snapshot.key, lease.record.paused));
  }
  if (!lease.misread_pause.empty()) add("the pool's Lease: " + lease.misread_pause);
  if (inspection.snapshot.policy.has_value() && inspection.snapshot.policy->dry_run) {
    add(scaling::kDryRunMeans);
  }
  if (const std::string text = DeadHolderText(lease); !text.empty()) add(text);
  if (lease.record.last_error.has_value()) {
    add("the last action failed at " + ErrorText(*lease.record.last_error));
  }
  if (scaling::HasStopped(lease.record, inspection.current_template)) {
    add("the replacement of VMs has stopped, because " +
        scaling::WhyItStopped(*lease.record.replacement));
  }
  for (const auto& [cause, entry] : lease.record.back_off) {
    if (scaling::MustWait(cause, entry, now)) add(BackOffText(cause, entry, now));
  }
  if (!inspection.growth_problem.empty()) {
    add("a growth would be refused: " + inspection.growth_problem);
  }
  if (!inspection.snapshot.observation().nomad.ok()) {
    add("Nomad cannot be read: " + base::Message(inspection.snapshot.observation().nomad));
    return;
  }
  const scaling::MassLoss loss = inspection.snapshot.mass_loss();
  if (loss.alarming) {
    add(std::to_string(loss.lost) + " of " + std::to_string(loss.of) +
        " running VMs have lost their Nomad node at once");
  }
  std::string nodes;
  for (const nomad::Node* node : UnlinkedNodes(inspection.snapshot)) {
    // The node of a removed VM, which Nomad forgets after some hours.
    if (nodepool::ParseDrainMark(*node).has_value()) continue;
    if (inspection.foreign_nodes.contains(node->id)) continue;
    nodes += (nodes.empty() ? "" : ", ") + node->name;
  }
  if (!nodes.empty()) add("nodes of the pool without a VM of ours: " + nodes);
}

// Returns what is done with one VM that is not of the count, and needs nobody; empty: nothing.
std::string UnderWayOf(const VmStatus& vm, const PoolSnapshot& snapshot) {
  const harvester::VirtualMachine& object = vm.vm();
  switch (vm.state) {
    case VmState::kReplacement:
      if (!object.replaces.has_value()) return "";
      return "it takes the place of " + object.replaces->vm + " (" +
             Describe(object.replaces->reason) + ") once it is ready";
    case VmState::kDraining:
    case VmState::kDeleting:
      break;
    default:
      return "";
  }
  if (!object.mark.has_value()) return object.has_mark ? "" : "being deleted";
  std::string text =
      "removal (" + std::string(harvester::MarkReasonName(object.mark->reason)) + ")";
  for (const VmView* const other : snapshot.vms()) {
    const auto& replaces = other->vm->replaces;
    if (!replaces.has_value() || replaces->uid != object.uid) continue;
    text = "replacement by " + other->vm->name + " (" + Describe(replaces->reason) + ")";
  }
  if (vm.state == VmState::kDeleting) return text + ": being deleted";
  text += IsRepair(vm.step.kind) ? " is undone: " : ": ";
  text += vm.step.reason;
  // How long the plugin has counted is not known here (rule C18).
  const bool is_estimate = vm.step.is_held && vm.view->held_for > base::Duration::zero();
  return text + (is_estimate ? "; a restart of the plugin begins that time anew" : "");
}

// Adds what `find` says of the VMs, one finding for those with the same reason.
template <typename Find>
void AddVms(const PoolStatus& status, const Find& find, std::vector<Finding>* findings) {
  std::map<std::string, std::size_t> by_kind;  // index into findings
  for (const VmStatus& vm : status.vms) {
    const std::string text = find(vm, status.inspection.snapshot);
    if (text.empty()) continue;
    const auto [known, is_new] = by_kind.try_emplace(Kind(text, vm), findings->size());
    if (is_new) findings->push_back({.text = text, .vms = {}});
    Finding& finding = (*findings)[known->second];
    finding.varies |= text != finding.text;
    finding.vms.push_back(vm.vm().name);
  }
}

// Maps the member "harvester.pending" of Status' meta to "pending".
std::map<std::string, std::int64_t> CountersOf(const scaling::StringMap& meta) {
  constexpr std::string_view kPrefix = "harvester.";
  std::map<std::string, std::int64_t> counters;
  for (const auto& [key, value] : meta) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string name = key.substr(kPrefix.size());
    if (name == "leftovers") continue;  // only the plugin's process knows
    if (const auto number = base::ParseInt(value); number.ok()) counters[name] = *number;
  }
  return counters;
}

std::string_view LinkName(nodepool::LinkState state) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "linked", "ambiguous",
                                                      "contradicted"};
  return kNames[static_cast<std::size_t>(state)];
}

// A listed node has meta only if it was read in full.
std::string ProtectedBy(const VmStatus& vm, base::WallTime now) {
  if (vm.is_protected) {
    const std::optional<base::WallTime>& until = vm.vm().protect.until;
    return "its annotation" +
           (until.has_value() ? ", until " + base::FormatRfc3339(*until) : std::string());
  }
  const bool by_node = vm.node != nullptr && nodepool::IsProtected(*vm.node, now);
  return by_node ? "its node's meta harvester_protect" : "";
}

VmStatus DescribeVm(const VmView& view, const Inspection& inspection) {
  const PoolSnapshot& snapshot = inspection.snapshot;
  const harvester::VirtualMachine& vm = view.vm;
  // Some of Nomad's data may have been read nevertheless.
  const bool readable = snapshot.observation().nomad.ok();
  VmStatus status{
      .view = &view,
      .node = readable ? LinkedNode(view, snapshot) : nullptr,
      .state = StateOf(view, snapshot),
      .counts = Counts(view, snapshot),
      .age = snapshot.now() - vm.created_at,
      .host = view.host,
      .link = readable ? LinkName(view.link.state) : "unknown",
      .link_explanation = readable ? view.link.explanation : "",
      .is_protected = vm.protect.HoldsAt(snapshot.now()),
      .drift = scaling::DriftOf(vm, inspection.current_template, snapshot.policy->drift_ignore),
      .step = NextStep(view, snapshot)};
  status.protected_by = ProtectedBy(status, snapshot.now());
  if (status.node != nullptr) {
    status.not_ready = WhyNotReady(view, *status.node, snapshot).value_or("");
  }
  if (!harvester::WasReady(vm)) status.ready_by = JoinDeadline(view);
  return status;
}

}  // namespace

PoolStatus DescribePool(Inspection inspection, const std::string& policy,
                        const std::string& shared) {
  PoolStatus status{.inspection = std::move(inspection), .policy = policy};
  const PoolSnapshot& snapshot = status.inspection.snapshot;
  status.time = snapshot.now();
  status.counters = CountersOf(status.inspection.report.status.meta);
  for (const VmView* const view : snapshot.vms()) {
    status.vms.push_back(DescribeVm(*view, status.inspection));
  }
  std::sort(status.vms.begin(), status.vms.end(),
            [](const auto& a, const auto& b) { return a.vm().name < b.vm().name; });
  for (const scaling::Replaceable& each :
       scaling::VmsToReplace(snapshot, status.inspection.current_template)) {
    for (VmStatus& vm : status.vms) {
      if (vm.view == each.vm) vm.to_be_replaced = Describe(each.reason);
    }
  }
  if (snapshot.observation().nomad.ok()) status.unlinked = UnlinkedNodes(snapshot);
  std::sort(status.unlinked.begin(), status.unlinked.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  if (!shared.empty()) status.troubles.push_back({.text = shared, .vms = {}});
  AddPools(status.inspection, &status.troubles);
  AddVms(status, &TroubleOf, &status.troubles);
  AddVms(status, &UnderWayOf, &status.under_way);
  return status;
}

std::string_view NodeStatusName(nomad::NodeStatus status) {
  if (status == nomad::NodeStatus::kUnknown) return "unknown";
  return nomad::kNodeStatusNames[static_cast<std::size_t>(status)];
}

std::string UnclaimedCure(const scaling::PoolKey& pool) {
  return "unless an agent has a policy for it, finish it with nomad-harvester gc --set namespace=" +
         pool.ns + " --set node_group_name=" + pool.pool;
}

std::string BackOffText(const std::string& cause, const harvester::BackOffEntry& entry,
                        base::WallTime now) {
  static const std::map<std::string, std::string> kWhat = {
      {"create", "creating VMs failed"}, {"room", "finding room for VMs failed"},
      {"start", "starting VMs failed"},  {"join", "joining Nomad failed"},
      {"remove", "removing VMs failed"}, {"refused", "removing VMs was refused"}};
  const auto what = kWhat.find(cause);
  return (what == kWhat.end() ? cause + " failed" : what->second) + " " +
         std::to_string(entry.failures) + (entry.failures == 1 ? " time" : " times in a row") +
         (scaling::MustWait(cause, entry, now)
              ? "; next try at " + base::FormatRfc3339(entry.retry_at)
              : "; may be retried");
}

}  // namespace nomad_harvester::cli
