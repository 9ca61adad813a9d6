// SPDX-License-Identifier: Apache-2.0
#include "invariants.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "nomad_harvester/base/json.h"
#include "nomad_harvester/harvester/metadata.h"

#include "nlohmann/json.hpp"
#include "vm_facts.h"

namespace nomad_harvester::scenario {
namespace {

using nlohmann::json;
using simulator::Actor;
using simulator::Event;
using simulator::EventKind;

// A failing start counts after 60 s of one process' own observation (C3); after that every process
// has noticed it.
constexpr base::Duration kFailingForGood = std::chrono::seconds(60);
constexpr base::Duration kSurely = std::chrono::minutes(35);
// How long a node must be down while its VM runs (C5).
constexpr base::Duration kDownForGood = std::chrono::minutes(2);
// What a node became so long before a write, the reads before that write may have missed.
constexpr base::Duration kReadBefore = std::chrono::seconds(15);

bool IsOfVm(EventKind kind) { return kind <= EventKind::kVmAnnotated; }

// A pool's name in kNamespace; one of another namespace never has the name of one of ours.
std::string PoolIn(const std::string& ns, const json& object) {
  return ns == kNamespace ? PoolOf(object) : ns + "/" + PoolOf(object);
}

}  // namespace

Invariants::Invariants(const runtime::Clock& clock, simulator::Cluster& cluster)
    : clock_(clock), cluster_(cluster) {
  cluster_.SetObserver([this](const Event& event) { Check(event); });
}

Invariants::~Invariants() { cluster_.SetObserver(nullptr); }

Invariants::Scale::Scale(Invariants& invariants, std::string pool, std::int64_t wanted)
    : invariants_(invariants) {
  invariants.last_wanted_[pool] = wanted;
  auto& [least_asked, most_asked] =
      invariants.asked_.try_emplace(pool, wanted, wanted).first->second;
  least_asked = std::min(least_asked, wanted);
  most_asked = std::max(most_asked, wanted);
  const std::int64_t least = invariants.Standing(pool, Broken::kPerhaps);
  const std::int64_t most = invariants.Standing(pool, Broken::kSurely);
  invariants.open_.push_back({std::move(pool), wanted, least, most});
}

Invariants::Scale::~Scale() { invariants_.open_.pop_back(); }

void Invariants::Scale::SetAccepted() const { invariants_.open_.back().accepted = true; }

void Invariants::Scale::CheckDone() const {
  const OpenScale& scale = invariants_.open_.back();
  invariants_.CheckDelivery(scale);
  invariants_.CheckVictims(scale);
}

void Invariants::Violate(const Event& event, const std::string& text) {
  violations_.push_back(text + " (" + simulator::Describe(event) + ")");
}

bool Invariants::IsReady(const json& node) const {
  if (base::GetString(node, "Status") != "ready") return false;
  const json* was = base::FindPath(node, {"LastDrain", "Meta", "was"});
  const bool was_eligible = !LastDrainStatus(node).empty() &&
                            !(IsOurDrain(node) && was != nullptr && *was == "ineligible");
  if (!IsEligible(node) && !was_eligible) return false;
  return std::all_of(drivers_.begin(), drivers_.end(), [&](const std::string& name) {
    const json* driver = base::FindPath(node, {"Drivers", name});
    return driver != nullptr && base::GetBool(*driver, "Detected") &&
           base::GetBool(*driver, "Healthy");
  });
}

void Invariants::NoteNode(const Event& event) {
  Readiness& known = nodes_[event.id];
  const bool ready = event.kind != EventKind::kPurged && IsReady(*event.node);
  if (ready == known.now) return;
  known = {.now = ready, .since = event.time, .ever = known.ever || ready};
}

Invariants::Readiness Invariants::ReadinessOf(const std::string& node_id) const {
  const auto found = nodes_.find(node_id);
  return found == nodes_.end() ? Readiness{} : found->second;
}

bool Invariants::IsReadyForGood(const std::string& node_id) const {
  const Readiness readiness = ReadinessOf(node_id);
  return readiness.now && clock_.WallNow() - readiness.since > kReadBefore;
}

Invariants::Broken Invariants::ClassifyBroken(const std::string& uid, const Vm& vm) const {
  // A node that has registered may lack a driver.
  if (vm.ready) return Broken::kNo;
  const json node = cluster_.Node(cluster_.NodeIdOfVm(uid));
  if (!vm.registered && !node.is_null()) return Broken::kNo;
  const base::WallTime now = clock_.WallNow();
  Broken verdict = Broken::kNo;
  if (!vm.failing.empty()) {
    verdict = now - vm.failing_since > 2 * kFailingForGood ? Broken::kSurely : Broken::kPerhaps;
  }
  if (vm.join_deadline.has_value() && now >= *vm.join_deadline) {
    verdict =
        std::max(verdict, now >= *vm.join_deadline + kSurely ? Broken::kSurely : Broken::kPerhaps);
  }
  return verdict;
}

std::int64_t Invariants::Standing(const std::string& pool, Broken but) const {
  return std::count_if(vms_.begin(), vms_.end(), [&](const auto& entry) {
    const auto& [uid, vm] = entry;
    return vm.pool == pool && vm.member && !vm.marked && !vm.terminating &&
           !IsPendingReplacement(vm) && ClassifyBroken(uid, vm) < but;
  });
}

bool Invariants::IsPendingReplacement(const Vm& vm) const {
  const auto old = vms_.find(vm.replaces);
  return old != vms_.end() && old->second.member && !old->second.marked &&
         !old->second.terminating && old->second.kept_since < vm.created;
}

void Invariants::Remember(const Event& event) {
  if (event.kind == EventKind::kVmGone) {
    gone_names_.insert(event.name);
    if (!vms_[event.id].ready) never_ready_[vms_[event.id].pool].insert(event.id);
    vms_.erase(event.id);
    return;
  }
  const json& object = *event.object;
  Vm& vm = vms_[event.id];
  vm.name = event.name;
  vm.pool = PoolIn(event.ns, object);
  vm.action = AnnotationOf(object, Key("action-id"));
  vm.member = IsMember(object);
  if (vm.member) {
    named_.insert(vm.name);
    for (const std::string& claim : RestoredClaimsOf(object)) restored_[claim] = vm.name;
  }
  vm.marked = IsMarked(object);
  vm.terminating = IsTerminating(object);
  vm.registered = !AnnotationOf(object, Key("joined-at")).empty();
  const bool was_ready = std::exchange(
      vm.ready, vm.registered && AnnotationOf(object, Key("ready-at")) != harvester::kNotReadyYet);
  if (vm.ready && !was_ready && event.before != nullptr) CheckReady(event, vm);
  vm.is_protected = !AnnotationOf(object, Key("protect")).empty();
  const auto undone = harvester::ParseUndoneRemoval(AnnotationOf(object, Key("removal-undone")));
  vm.goes_last = undone.ok();
  vm.kept_since = undone.ok() ? undone->at : base::WallTime{};
  const auto replaces = harvester::ParseReplaces(AnnotationOf(object, Key("replaces")));
  vm.replaces = replaces.ok() ? replaces->uid : "";
  const bool waited = std::exchange(vm.waits, replaces.ok() && !replaces->start.empty());
  if (waited && !vm.waits) CheckStart(event, vm);
  if (event.kind == EventKind::kVmCreated) vm.created = event.time;
  vm.join_deadline = JoinDeadlineOf(object);
  if (event.kind == EventKind::kMarked) vm.marked_by_hand = event.actor == Actor::kOperator;
  if (event.kind == EventKind::kVmFailing) {
    if (vm.failing.empty()) vm.failing_since = event.time;
    vm.failing = PrintableStatus(object);
  }
  if (event.kind == EventKind::kVmRunning) vm.failing.clear();
}

// C17: what is recorded as ready was so.
void Invariants::CheckReady(const Event& event, const Vm& vm) {
  if (event.actor != Actor::kApi) return;
  if (!ReadinessOf(AnnotationOf(*event.object, Key("nomad-node-id"))).ever) {
    Violate(event, "C17: " + vm.name + " is recorded as ready, and its node never was");
  }
}

// C3: its new VMs were delivered.
void Invariants::CheckDelivery(const OpenScale& scale) {
  for (const auto& [uid, vm] : vms_) {
    if (vm.action != scale.action || vm.pool != scale.pool || !vm.member || vm.marked) continue;
    if (!vm.terminating && !vm.ready) {
      violations_.push_back("C3: " + vm.name + " was delivered before it was ready");
    }
  }
}

// C8: a VM that is not ready goes before those that are.
void Invariants::CheckVictims(const OpenScale& scale) {
  const auto action = actions_.find(scale.action);
  if (action == actions_.end() || action->second.ready_victim.empty() || refusals_) return;
  for (const auto& [uid, vm] : vms_) {
    if (vm.pool != scale.pool || !vm.member || vm.marked || vm.terminating) continue;
    if (vm.is_protected || vm.goes_last || !vm.registered) continue;
    const json node = cluster_.Node(cluster_.NodeIdOfVm(uid));
    // One that is down or disconnected has rules of its own, and so has one that was drained.
    const std::string status = node.is_object() ? base::GetString(node, "Status") : "";
    const bool was_drained = !LastDrainStatus(node).empty();
    if ((status != "initializing" && status != "ready") || was_drained) continue;
    const Readiness readiness = ReadinessOf(base::GetString(node, "ID"));
    if (!readiness.now && action->second.stored - readiness.since > kReadBefore) {
      violations_.push_back("C8: " + action->second.ready_victim +
                            ", which was ready, was removed before " + vm.name + ", which was not");
    }
  }
}

// Its node belongs to another pool of nodes: ready or not, its creation has failed (C15).
bool Invariants::IsElsewhere(const std::string& uid, const Vm& vm) const {
  const auto nodes = harvester::ParseNodesRecord(AnnotationOf(cluster_.Vm(vm.name), Key("nodes")));
  const json node = cluster_.Node(cluster_.NodeIdOfVm(uid));
  return nodes.ok() && node.is_object() && nodes->node_class.has_value() &&
         base::GetString(node, "NodeClass") != *nodes->node_class;
}

// C12: each VM that was never ready is counted once at most.
void Invariants::NoteBackOff(const Event& event) {
  if (event.actor != Actor::kApi) return;
  const auto count = [](const std::shared_ptr<const json>& lease, const char* cause) {
    if (lease == nullptr) return std::int64_t{0};
    const auto back_off = harvester::ParseBackOff(AnnotationOf(*lease, Key("back-off")));
    if (!back_off.ok() || !back_off->contains(cause)) return std::int64_t{0};
    return back_off->at(cause).failures;
  };
  const std::string pool = PoolIn(event.ns, *event.object);
  for (const char* cause : {"room", "start", "join"}) {
    const std::int64_t more = count(event.object, cause) - count(event.before, cause);
    if (more <= 0) continue;
    // What a quota or the hosts had no room for has made no VM (C2).
    const std::string error = AnnotationOf(*event.object, Key("last-error"));
    const bool is_forecast = error.find(" VMs fit ") != std::string::npos ||
                             error.find("no host could hold a VM") != std::string::npos;
    if (cause == std::string_view("room") && is_forecast) continue;
    failures_[pool] += more;
    std::set<std::string>& never_ready = never_ready_[pool];
    for (const auto& [uid, vm] : vms_) {
      if (vm.pool == pool && (!vm.ready || IsElsewhere(uid, vm))) never_ready.insert(uid);
    }
    // One that was killed between its count and the mark leaves the VM to another process.
    const std::size_t times = late_requests_ ? 2 : 1;
    if (std::cmp_greater(failures_[pool], times * never_ready.size())) {
      Violate(event, "C12: a VM that was never ready was counted more than once");
    }
  }
}

// What the action that was just stored may do.
void Invariants::NoteLease(const Event& event) {
  const std::string text = AnnotationOf(*event.object, kActionKey);
  if (std::exchange(lease_text_[event.name], text) == text || text.empty()) return;
  const auto parsed = base::ParseJson(text, "action");
  const std::string id = parsed.ok() ? base::GetString(*parsed, "id") : "";
  if (id.empty() || event.actor != Actor::kApi || actions_.contains(id)) return;
  const std::string pool = PoolIn(event.ns, *event.object);
  const auto scale = std::find_if(open_.rbegin(), open_.rend(), [&](const OpenScale& open) {
    return open.pool == pool && !open.accepted;
  });
  Action& action = actions_[id];
  action.stored = event.time;
  if (scale != open_.rend()) scale->action = id;
  if (late_requests_) return NoteLateAction(event, pool, *parsed, &action);
  // Without a Scale an action may only replace VMs; growth may use a name that it leaves over.
  if (scale == open_.rend()) {
    if (const json* names = base::FindPath(*parsed, {"create"}); names != nullptr) {
      action.creations = static_cast<std::int64_t>(names->size());
    }
    return;
  }
  action.wanted = scale->wanted;
  action.removals = std::max<std::int64_t>(0, scale->most - scale->wanted);
  action.creations = std::max<std::int64_t>(0, scale->wanted - scale->least);
}

// The action may be stored long after its Scale was cancelled: only its own record describes it,
// and that must be within the counts ever requested.
void Invariants::NoteLateAction(const Event& event, const std::string& pool, const json& text,
                                Action* action) {
  const std::int64_t from = base::GetInt(text, "from");
  action->wanted = base::GetInt(text, "to");
  action->removals = std::max<std::int64_t>(0, from - action->wanted);
  action->creations = std::max<std::int64_t>(0, action->wanted - from);
  const auto asked = asked_.find(pool);
  if (action->wanted == from) {  // it replaces; growth may use the name that it leaves over
    const json* names = base::FindPath(text, {"create"});
    if (names != nullptr) action->creations = static_cast<std::int64_t>(names->size());
    return;
  }
  // A limit may have reduced it below the requested count.
  const bool beyond =
      asked == asked_.end() || (action->wanted > from ? action->wanted > asked->second.second
                                                      : action->wanted < asked->second.first);
  if (beyond) {
    Violate(event, "I2: an action goes beyond what was ever asked for");
  }
}

void Invariants::CheckBrokenMark(const Event& event, const Vm& vm) {
  if (vm.waits) return;  // its start is refused (R8)
  const json node = cluster_.Node(cluster_.NodeIdOfVm(event.id));
  const bool ready = node.is_object() && base::GetString(node, "Status") == "ready" &&
                     base::GetString(node, "Name") == vm.name;
  const bool for_good = IsReadyForGood(cluster_.NodeIdOfVm(event.id));
  if (vm.ready || ((for_good || (ready && !vm.registered)) && !late_requests_)) {
    Violate(event, "C17: " + vm.name + " was called broken although it is ready");
  }
  // A condition's times are whole seconds.
  const base::Duration failing_for =
      clock_.WallNow() - std::chrono::floor<std::chrono::seconds>(vm.failing_since);
  const bool failing =
      !vm.failing.empty() && (vm.failing == "Stopped" || failing_for >= kFailingForGood);
  const bool overdue = vm.join_deadline.has_value() && clock_.WallNow() >= *vm.join_deadline;
  if (!failing && !overdue) {
    Violate(event, "C15: " + vm.name + " was called broken before its time");
  }
}

void Invariants::CheckUnhealthyMark(const Event& event, const Vm& vm) {
  const std::string node_id = cluster_.NodeIdOfVm(event.id);
  const json node = cluster_.Node(node_id);
  const bool ready = node.is_object() && base::GetString(node, "Status") == "ready" &&
                     (!late_requests_ || IsReadyForGood(node_id));
  const std::string status = PrintableStatus(*event.object);
  if (ready || status == "Paused" || status == "Migrating") {
    Violate(event, "C17: " + vm.name + " was called unhealthy although it is not");
  }
}

// R3: what takes its place was ready. R8: or waits for its end.
void Invariants::CheckReplacedMark(const Event& event, const Vm& vm) {
  const bool succeeded = std::any_of(vms_.begin(), vms_.end(), [&](const auto& entry) {
    const Vm& other = entry.second;
    if (other.replaces != event.id || !other.member) return false;
    return other.waits || (other.ready && ReadinessOf(cluster_.NodeIdOfVm(entry.first)).ever);
  });
  const auto old = vms_.find(vm.replaces);
  const bool not_needed = vm.waits && old != vms_.end() && old->second.goes_last;
  if (!succeeded && !not_needed) {
    Violate(event, "R3: " + vm.name + " was marked as replaced, and no ready VM takes its place");
  }
}

// R8: the two never run at the same time, unless a Scale has let the new one count (R4).
void Invariants::CheckStart(const Event& event, const Vm& vm) {
  if (event.actor != Actor::kApi || vm.replaces.empty()) return;
  const bool was_halted =
      event.before != nullptr && event.before->at("spec").value("runStrategy", "") == "Halted";
  const auto old = vms_.find(vm.replaces);
  if (was_halted && old != vms_.end() && old->second.member && old->second.pool == vm.pool &&
      !old->second.terminating) {
    Violate(event, "R8: " + vm.name + " was started beside " + old->second.name);
  }
}

// R1: one VM replaces one that stands.
void Invariants::CheckReplacement(const Event& event, const Vm& vm) {
  const auto others = std::count_if(vms_.begin(), vms_.end(), [&](const auto& entry) {
    const Vm& other = entry.second;
    return other.replaces == vm.replaces && other.member && !other.terminating;
  });
  if (others > 1) Violate(event, "R1: " + vm.name + " replaces a VM that another one replaces");
}

void Invariants::CheckMark(const Event& event) {
  if (event.actor != Actor::kApi) return;
  const Vm& vm = vms_.at(event.id);
  if (!vm.member) Violate(event, "I1: " + vm.name + ", which is not a member, was marked");
  if (vm.is_protected) Violate(event, "C7: " + vm.name + ", which is protected, was marked");
  const json mark = MarkOf(*event.object);
  if (base::GetString(mark, "vm_uid") != event.id) {
    Violate(event, "I1: the mark of " + vm.name + " names another VM");
  }
  const std::string reason = base::GetString(mark, "reason");
  if (reason == "broken") return CheckBrokenMark(event, vm);
  if (reason == "unhealthy") return CheckUnhealthyMark(event, vm);
  if (reason == "replace") return CheckReplacedMark(event, vm);
  const auto action = actions_.find(base::GetString(mark, "action"));
  if (action == actions_.end()) {
    Violate(event, "I2: " + vm.name + " was marked by an action that was never stored");
    return;
  }
  action->second.marked.insert(event.id);
  const bool goes_first = !AnnotationOf(*event.object, Key("delete-first")).empty();
  if (IsReadyForGood(cluster_.NodeIdOfVm(event.id)) && Runs(*event.object) && !goes_first) {
    action->second.ready_victim = vm.name;
  }
  if (std::cmp_greater(action->second.marked.size(), action->second.removals)) {
    Violate(event, "I2: " + vm.name + " is one removal too many");
  }
}

// I1, of the node that the guest of a deleted VM runs.
void Invariants::CheckNodeOfDeleted(const Event& event, const json& mark) {
  const json& node = *event.node;
  const json& vm = *event.object;
  const std::string node_id = base::GetString(node, "ID");
  if (TouchedLately(node_id) || RegisteredLately(node_id)) return;
  // Down for good; a drained node may go down earlier.
  const bool down = base::GetString(node, "Status") == "down";
  const base::WallTime since{std::chrono::seconds(base::GetInt(node, "StatusUpdatedAt"))};
  // A paused guest sends no heartbeats, and goes on later.
  const bool for_good = !IsPaused(vm) && clock_.WallNow() - since >= kDownForGood;
  if (down && (!Runs(vm) || for_good)) return;
  // Nothing was ever placed there (C17).
  const bool never_ready = AnnotationOf(vm, Key("ready-at")) == harvester::kNotReadyYet &&
                           base::GetString(node, "Status") == "initializing";
  const bool idle = std::none_of(event.allocations.begin(), event.allocations.end(),
                                 [](const auto& allocation) { return IsActive(*allocation); });
  if (base::GetString(mark, "reason") == "broken" && never_ready && idle) return;
  const std::optional<json> drain = DrainFor(node, event.id);
  if (!drain.has_value() || base::GetString(*drain, "action") != base::GetString(mark, "action")) {
    Violate(event, "I1: " + event.name + " was deleted with a node that we did not drain");
    return;
  }
  // The deadline rule (C5): the drain is ours and past its deadline and grace.
  const std::string status = LastDrainStatus(node);
  if (base::GetBool(mark, "force") && IsLate(mark, clock_.WallNow()) && status != "canceled") {
    return;
  }
  if (IsDraining(node) || status != "complete") {
    Violate(event, "I1: " + event.name + " was deleted before its node was drained");
  }
  if (IsEligible(node)) {
    Violate(event, "I1: " + event.name + " was deleted although its node was enabled again");
  }
  for (const auto& allocation : event.allocations) {
    const json* job = base::FindMember(*allocation, "Job");
    const bool system = job != nullptr && base::GetString(*job, "Type") == "system";
    if (system && base::GetBool(mark, "ignore_system")) continue;
    if (IsActive(*allocation)) {
      Violate(event, "I1: " + event.name + " was deleted with work on it");
    }
  }
}

// I1: only a marked VM is deleted, and only if its node is drained by us, down for good, or absent.
void Invariants::CheckDeletion(const Event& event) {
  if (event.actor != Actor::kApi || !removed_.insert(event.id).second) return;
  const json& object = *event.object;
  const Vm& vm = vms_.at(event.id);
  if (!vm.member) Violate(event, "I1: " + vm.name + ", which is not a member, was deleted");
  if (!vm.marked) Violate(event, "I1: " + vm.name + " was deleted without a mark");
  const json mark = MarkOf(object);
  if (event.node != nullptr) CheckNodeOfDeleted(event, mark);
  if (base::GetString(mark, "reason") != "scale-in" || vm.marked_by_hand) return;
  const auto action = actions_.find(base::GetString(mark, "action"));
  if (action == actions_.end() || !action->second.marked.contains(event.id)) {
    Violate(event, "I2: " + vm.name + " was removed by no action's mark");
  }
}

// I3. A name that an earlier action left over is created under that action's id.
void Invariants::CheckCreation(const Event& event) {
  if (event.actor != Actor::kApi) return;
  const Vm& vm = vms_.at(event.id);
  const auto action = actions_.find(vm.action);
  if (action == actions_.end()) {
    Violate(event, "I3: " + vm.name + " was created by an action that was never stored");
    return;
  }
  // A POST that lands long after its sender lost the Lease, when its VM has come and gone: no order
  // of requests prevents it (docs/operations.md).
  if (late_requests_ && gone_names_.contains(event.name)) return;
  if (!vm.replaces.empty()) return CheckReplacement(event, vm);
  // A VM that an operator deleted may be created again under its name, if every process was killed
  // before it could remove the name from the Lease.
  action->second.created.insert(operator_slack_.has_value() ? event.name : event.id);
  if (std::cmp_greater(action->second.created.size(), action->second.creations)) {
    Violate(event, "I3: " + vm.name + " is one VM too many of its action");
  }
  const std::int64_t wanted = std::max(action->second.wanted, last_wanted_[vm.pool]);
  if (!operator_slack_.has_value() && Standing(vm.pool, Broken::kPerhaps) > wanted) {
    Violate(event, "I3: " + vm.name + " is one VM too many");
  }
}

bool Invariants::TouchedLately(const std::string& node_id) const {
  const auto found = touched_.find(node_id);
  return found != touched_.end() && operator_slack_.has_value() &&
         clock_.WallNow() - found->second <= *operator_slack_;
}

// Where requests are delayed, a client may have registered between the last read and the DELETE.
bool Invariants::RegisteredLately(const std::string& node_id) const {
  const auto found = registered_.find(node_id);
  return found != registered_.end() && operator_slack_.has_value() &&
         clock_.WallNow() - found->second <= kReadBefore;
}

// Also of one that was restored: its drain names the VM that it was.
bool Invariants::IsNodeOfVm(const std::string& node_id) const {
  return std::any_of(vms_.begin(), vms_.end(), [&](const auto& entry) {
    return cluster_.NodeIdOfVm(entry.first) == node_id;
  });
}

bool Invariants::IsMarkedNow(const std::string& uid) const {
  const auto vm = vms_.find(uid);
  return vm != vms_.end() && vm->second.marked;
}

// The mark is written before the drain starts. Otherwise a process that is killed in between leaves
// a drain without a mark, and another process rolls it back while this one continues.
void Invariants::CheckDrain(const Event& event) {
  // Between the last read and the request, an operator may have removed the mark.
  if (event.actor != Actor::kApi || late_requests_ || operator_slack_.has_value()) return;
  const auto uid = event.meta.find("vm_uid");
  if (uid == event.meta.end() || !IsMarkedNow(uid->second)) {
    Violate(event, "C4: a node is drained whose VM is not marked");
  } else if (vms_.at(uid->second).name != event.name) {
    Violate(event, "C6: the node of another VM is drained for " + vms_.at(uid->second).name);
  } else if (const json mark = MarkOf(cluster_.Vm(event.name));
             base::GetString(mark, "reason") == "broken" && IsReadyForGood(event.id)) {
    Violate(event, "C17: " + event.name + " has become ready, and is drained for being broken");
  }
}

// Only nodes of our VMs change their eligibility, and only back.
void Invariants::CheckEligibility(const Event& event) {
  if (event.actor != Actor::kApi || late_requests_ || TouchedLately(event.id)) return;
  if (event.kind == EventKind::kMadeIneligible) {
    Violate(event, "C2: a node is made ineligible other than by a drain");
    return;
  }
  const auto uid = event.meta.find("vm_uid");
  if (event.node == nullptr || !IsOurDrain(*event.node) || uid == event.meta.end()) {
    Violate(event, "C9: a node is changed whose last drain is not ours");
  } else if (!operator_slack_.has_value() && !vms_.contains(uid->second) && !IsNodeOfVm(event.id)) {
    Violate(event, "I4: a node is enabled whose VM does not exist");
  }
}

// Only of a VM that is gone, and only if the drain said so.
void Invariants::CheckPurge(const Event& event) {
  if (event.actor != Actor::kApi) return;
  const auto meta = [&](const char* key) {
    const auto found = event.meta.find(key);
    return found == event.meta.end() ? std::string() : found->second;
  };
  if (!IsOurDrain(*event.node) || !meta("pool").starts_with(std::string(kNamespace) + "/")) {
    Violate(event, "C4: a node is purged that no drain of ours named");
  } else if (meta("purge") != "true") {
    Violate(event, "C4: a node is purged although its drain said not to");
  } else if (vms_.contains(meta("vm_uid"))) {
    Violate(event, "C4: the node of " + meta("vm") + " is purged while the VM exists");
  }
  if (base::GetString(*event.node, "Status") == "ready" && !TouchedLately(event.id)) {
    Violate(event, "C4: a node is purged that is ready");
  }
}

// Volumes and Secrets, whether a request deleted them or a controller because of one.
void Invariants::CheckLeftover(const Event& event) {
  if (event.actor == Actor::kOperator) return;
  const auto restored = restored_.find(event.name);
  const std::string vm =
      restored != restored_.end() ? restored->second : VmOfLeftover(*event.object);
  if (!IsManaged(*event.object) && !named_.contains(vm)) {
    Violate(event, "C10: " + event.name + " is deleted, which belongs to no VM of ours");
    return;
  }
  const bool stands = std::any_of(vms_.begin(), vms_.end(), [&](const auto& entry) {
    return entry.second.name == vm && !entry.second.terminating;
  });
  if (stands) Violate(event, "C10: " + event.name + " is deleted while its VM stands");
}

// The mark is removed before the drain is rolled back. Otherwise work is placed on a node while the
// deletion of its VM may still be under way, with a current resourceVersion.
void Invariants::CheckUndoing(const Event& event) {
  if (event.actor != Actor::kApi || late_requests_ || operator_slack_.has_value()) return;
  if (event.node == nullptr || !IsOurDrain(*event.node)) return;
  const json* uid = base::FindPath(*event.node, {"LastDrain", "Meta", "vm_uid"});
  if (uid != nullptr && uid->is_string() && IsMarkedNow(uid->get<std::string>())) {
    Violate(event, "C14: a drain is undone whose VM is still marked");
  }
}

base::WallTime Invariants::LastChangeBeside(const std::string& name) const {
  base::WallTime last{};
  for (const auto& [vm, time] : changed_) {
    if (vm != name) last = std::max(last, time);
  }
  return last;
}

void Invariants::NoteChange(const Event& event) {
  switch (event.kind) {
    case EventKind::kLeaseWritten:
    case EventKind::kEventRecorded:
    case EventKind::kAllocationPlaced:
    case EventKind::kAllocationRunning:
      return;
    case EventKind::kAllocationStopping:
    case EventKind::kAllocationStopped:
    case EventKind::kAllocationIdle:
    case EventKind::kAllocationLost:
      changed_[base::GetString(*event.object, "NodeName")] = event.time;
      return;
    case EventKind::kSecretCreated:
    case EventKind::kSecretOwned:
    case EventKind::kSecretGone:
    case EventKind::kClaimCreated:
    case EventKind::kClaimGone:
      changed_[VmOfLeftover(*event.object)] = event.time;
      return;
    default:
      // Nodes have the names of their VMs.
      changed_[event.name] = event.time;
  }
}

void Invariants::Check(const Event& event) {
  ++checks_;
  if (event.actor == Actor::kApi && !event.ns.empty() && event.ns != kNamespace &&
      event.kind != EventKind::kLeaseWritten) {
    Violate(event, "I1: an object of another namespace is changed");
  }
  NoteChange(event);
  if (event.actor == Actor::kOperator && event.node != nullptr) touched_[event.id] = event.time;
  if (event.kind == EventKind::kNodeRegistered) registered_[event.id] = event.time;
  if (event.node != nullptr && !IsOfVm(event.kind)) NoteNode(event);
  if (IsOfVm(event.kind)) {
    Remember(event);
    for (OpenScale& scale : open_) {
      scale.least = std::min(scale.least, Standing(scale.pool, Broken::kPerhaps));
      scale.most = std::max(scale.most, Standing(scale.pool, Broken::kSurely));
    }
  }
  switch (event.kind) {
    case EventKind::kLeaseWritten:
      NoteBackOff(event);
      return NoteLease(event);
    case EventKind::kMarked:
      return CheckMark(event);
    case EventKind::kVmDeleteRequested:
      return CheckDeletion(event);
    case EventKind::kVmCreated:
      return CheckCreation(event);
    case EventKind::kDrainStarted:
      return CheckDrain(event);
    case EventKind::kDrainCancelled:
    case EventKind::kEnabled:
    case EventKind::kMadeIneligible:
      CheckEligibility(event);
      return CheckUndoing(event);
    case EventKind::kPurged:
      return CheckPurge(event);
    case EventKind::kSecretGone:
    case EventKind::kClaimGone:
      return CheckLeftover(event);
    case EventKind::kDrainUpdated:
      if (event.actor == Actor::kApi && !late_requests_) {
        Violate(event, "C9: a drain that runs was posted again");
      }
      return;
    default:
      return;
  }
}

void Invariants::CheckVmAtRest(const json& vm, const Rest& rest,
                               std::vector<std::string>* problems) const {
  if (!IsMember(vm)) return;
  if (IsMarked(vm)) problems->push_back("I5: " + NameOf(vm) + " is still marked");
  if (IsTerminating(vm)) problems->push_back("I5: " + NameOf(vm) + " is still terminating");
  const std::string uid = UidOf(vm);
  for (const json& node : cluster_.Nodes()) {
    // Its own node also if it was drained for the VM that this one was restored from.
    const bool own = base::GetString(node, "ID") == cluster_.NodeIdOfVm(uid) && IsOurDrain(node);
    const std::optional<json> drain =
        own ? std::optional<json>(node["LastDrain"]["Meta"]) : DrainFor(node, uid);
    if (!drain.has_value() || IsEligible(node)) continue;
    // It was ineligible before, or was made so after we had rolled back our drain.
    const bool was = base::GetString(*drain, "was") == "ineligible";
    const std::string marker =
        base::GetString(*drain, "action") + "@" + base::GetString(node["LastDrain"], "StartedAt");
    if (was || LastDrainStatus(node) == "canceled" ||
        AnnotationOf(vm, Key("rolled-back")) == marker) {
      continue;
    }
    problems->push_back("I4: the node of " + NameOf(vm) + " was left ineligible by us");
  }
  const auto known = vms_.find(uid);
  if (!rest.keeps_broken && known != vms_.end() &&
      ClassifyBroken(uid, known->second) != Broken::kNo) {
    problems->push_back("I5: " + NameOf(vm) + " is broken and still there");
  }
}

void Invariants::CheckNodesAtRest(const std::set<std::string>& uids,
                                  std::vector<std::string>* problems) const {
  for (const json& node : cluster_.Nodes()) {
    if (!IsOurDrain(node)) continue;
    const std::string name = base::GetString(node, "Name");
    const json& meta = node["LastDrain"]["Meta"];
    if (IsDraining(node)) problems->push_back("I5: node " + name + " still drains");
    if (!uids.contains(base::GetString(meta, "vm_uid")) && LastDrainStatus(node) == "complete" &&
        base::GetString(meta, "purge") == "true" && base::GetString(node, "Status") == "down" &&
        base::GetString(meta, "pool").starts_with(std::string(kNamespace) + "/")) {
      problems->push_back("I5: node " + name + " was not purged");
    }
  }
}

void Invariants::CheckStorageAtRest(const std::map<std::string, bool>& vms,
                                    std::vector<std::string>* problems) const {
  for (const json& secret : cluster_.Secrets()) {
    if (!IsManaged(secret)) continue;
    if (!vms.contains(VmOfLeftover(secret))) {
      problems->push_back("I5: Secret " + NameOf(secret) + " was left over");
    }
    if (base::FindPath(secret, {"metadata", "ownerReferences"}) == nullptr) {
      problems->push_back("I5: Secret " + NameOf(secret) + " has no owner");
    }
  }
  for (const json& claim : cluster_.Claims()) {
    const auto vm = vms.find(VmOfLeftover(claim));
    if (vm != vms.end()) {
      if (IsTerminating(claim) && !vm->second) {
        problems->push_back("I5: volume " + NameOf(claim) + " of a VM that stands is deleted");
      }
    } else if (IsManaged(claim) || named_.contains(VmOfLeftover(claim))) {
      problems->push_back("I5: volume " + NameOf(claim) + " was left over");
    }
  }
}

std::vector<std::string> Invariants::AtRest(const Rest& rest) const {
  std::vector<std::string> problems = violations_;
  std::map<std::string, bool> names;  // whether it is terminating
  std::set<std::string> uids;
  std::int64_t count = 0;
  for (const json& vm : cluster_.Vms()) {
    names.emplace(NameOf(vm), IsTerminating(vm));
    uids.insert(UidOf(vm));
    if (PoolIn(NamespaceOf(vm), vm) != rest.pool) continue;
    const auto known = vms_.find(UidOf(vm));
    const bool broken =
        known != vms_.end() && ClassifyBroken(known->first, known->second) != Broken::kNo;
    if (IsMember(vm) && !broken) ++count;
    CheckVmAtRest(vm, rest, &problems);
  }
  if (count != rest.count) {
    problems.push_back("I5: " + std::to_string(count) + " VMs of pool " + rest.pool +
                       " stand, wanted " + std::to_string(rest.count));
  }
  CheckStorageAtRest(names, &problems);
  CheckNodesAtRest(uids, &problems);
  for (const json& lease : cluster_.Leases()) {
    // A release may be lost or refused: the Lease then expires.
    const std::string holder = HolderOf(lease);
    if (holder.starts_with("test_") && IsLive(lease, clock_.WallNow())) {
      problems.push_back("I5: Lease " + NameOf(lease) + " is still held by " + holder);
    }
  }
  return problems;
}

}  // namespace nomad_harvester::scenario
