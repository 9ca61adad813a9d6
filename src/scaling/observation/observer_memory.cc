// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/readiness.h"
#include "nomad_harvester/scaling/observer.h"

namespace nomad_harvester::scaling {
namespace {

// ErrorUnschedulable and ErrorPvcNotFound are normal for some seconds (rule C3).
constexpr base::Duration kFailingForGood = std::chrono::seconds(60);
// A longer time between two observations of a node that changes is a gap.
constexpr base::Duration kLongestGap = std::chrono::minutes(2);

template <typename Map>
void EraseUnless(Map* map, const std::unordered_set<std::string_view>& keep) {
  std::erase_if(*map, [&](const auto& entry) { return !keep.contains(entry.first); });
}

}  // namespace

void ObserverMemory::ApplyStartFailure(base::MonoTime now, base::WallTime wall_now, VmView* view) {
  const harvester::VirtualMachine& vm = view->vm;
  std::optional<harvester::StartFailure> failure;
  if (!harvester::HasJoined(vm)) failure = harvester::FindStartFailure(vm, view->pod_message);
  if (!failure.has_value()) {
    failing_.erase(vm.uid);
    return;
  }
  const auto [entry, added] = failing_.try_emplace(vm.uid, Failing{failure->reason, now});
  // The object's time may be earlier than the start of this process.
  if (added && failure->since.has_value() && *failure->since < wall_now) {
    entry->second.since = now - (wall_now - *failure->since);
  }
  if (failure->only_at_join_timeout) {
    // Such a state may last until the join timeout, which is checked separately. Its time does not
    // count towards a later failure, although the object's condition has been False all the time.
    entry->second.since = now;
    return;
  }
  const base::Duration lasted = now - entry->second.since;
  if (failure->immediate || lasted >= kFailingForGood) view->start_failure = *std::move(failure);
}

base::Duration ObserverMemory::For(std::map<std::string, NodeSince>* all, const std::string& key,
                                   const nomad::Node* node, base::MonoTime now) {
  // The index of an initializing node is ignored: it changes whenever the client finds something.
  const bool changes = node == nullptr || node->status == nomad::NodeStatus::kInitializing;
  const std::uint64_t index = changes ? 0 : node->modify_index;
  const auto [entry, added] = all->try_emplace(key, NodeSince{now, index});
  if (entry->second.modify_index != index) entry->second = {now, index};
  return now - entry->second.since;
}

void ObserverMemory::ApplyDrain(base::MonoTime now, const nomad::Node* node, VmView* view) {
  const std::string& uid = view->vm->uid;
  const std::optional<harvester::Mark>& mark = view->vm->mark;
  if (node == nullptr || !mark.has_value() || !nodepool::IsDrainOf(*node, mark->action, uid)) {
    drain_known_since_.erase(uid);
    drained_since_.erase(uid);
    return;
  }
  const auto known = drain_known_since_.try_emplace(uid, DrainSince{mark->action, now}).first;
  if (known->second.action != mark->action) known->second = {mark->action, now};
  view->drain_known_for = now - known->second.since;
  if (node->draining) {
    drained_since_.erase(uid);
  } else {
    view->node_drained_for = For(&drained_since_, uid, node, now);
  }
}

void ObserverMemory::ApplyNode(base::MonoTime now, const Look& look, VmView* view) {
  const nomad::Node* node = LinkedNode(*view, look);
  if (node != nullptr && nodepool::IsSilent(*node)) {
    view->node_down_for = For(&down_since_, node->id, node, now);
  }
  ApplyDrain(now, node, view);
}

void ObserverMemory::ApplyUnhealthy(base::MonoTime now, const Look& look, VmView* view) {
  if (!LooksUnhealthy(*view, look)) {
    unhealthy_since_.erase(view->vm->uid);
    return;
  }
  // A node that flaps changes, but remains not ready. After a gap it may have been ready meanwhile,
  // unless its index shows that nothing changed.
  const nomad::Node* const node = LinkedNode(*view, look);
  const std::uint64_t index = node == nullptr ? 0 : node->modify_index;
  UnhealthySince& known =
      unhealthy_since_.try_emplace(view->vm->uid, UnhealthySince{now, now, index}).first->second;
  const bool unchanged = index == known.modify_index;
  if (!unchanged && now - known.last_seen > kLongestGap) known.since = now;
  known.last_seen = now;
  known.modify_index = index;
  view->unhealthy_for = now - known.since;
}

void ObserverMemory::ApplyAwaiting(base::MonoTime now, VmView* view) const {
  const auto since = awaiting_since_.find(view->vm->uid);
  if (since != awaiting_since_.end()) view->awaited_for = now - since->second;
}

void ObserverMemory::RecordAwaiting(base::MonoTime now, const std::set<std::string>& uids) {
  const base::MutexLock lock(mutex_);
  std::erase_if(awaiting_since_, [&](const auto& entry) { return !uids.contains(entry.first); });
  for (const std::string& uid : uids) awaiting_since_.try_emplace(uid, now);
}

void ObserverMemory::RecordStaying(std::set<std::string> uids) {
  const base::MutexLock lock(mutex_);
  staying_ = std::move(uids);
}

void ObserverMemory::ApplyInitializing(base::MonoTime now, Look* look) {
  std::map<std::string, base::MonoTime> since;
  for (const nomad::Node& node : look->nodes()) {
    if (node.status != nomad::NodeStatus::kInitializing) continue;
    const auto known = initializing_since_.find(node.id);
    const base::MonoTime first = known == initializing_since_.end() ? now : known->second;
    since.emplace(node.id, first);
    look->initializing_for.emplace(node.id, now - first);
  }
  initializing_since_ = std::move(since);
}

void ObserverMemory::RecordTokenOf(const std::string& vm_uid, base::WallTime look_after_at) {
  base::MutexLock lock(mutex_);
  tokens_[vm_uid] = look_after_at;
}

bool ObserverMemory::KnowsHarvester() const {
  const base::MutexLock lock(mutex_);
  return harvester_.has_value();
}

void ObserverMemory::SetOwnNode(const absl::StatusOr<std::string>& id) {
  const base::MutexLock lock(mutex_);
  own_node_problem_ = id.status();
  if (id.ok()) own_node_ = *id;
}

void ObserverMemory::SetHarvester(std::string uid) {
  const base::MutexLock lock(mutex_);
  harvester_ = std::move(uid);
}

void ObserverMemory::Apply(base::MonoTime now, Look* look) {
  // Pod messages decide how a start fails, so they are also applied to a look that reads no pods.
  // With KubeVirt's message of the first attempt instead, the time for which the start has failed
  // would begin anew.
  pending_reasons_.ApplyPods(look);
  base::MutexLock lock(mutex_);
  look->harvester = harvester_.value_or("");
  look->own_node_id = own_node_;
  look->own_node_problem = own_node_problem_;
  if (unreadable_since_.has_value()) {
    unreadable_total_ += now - *unreadable_since_;
    unreadable_since_.reset();
  }
  if (!look->nomad_readable) unreadable_since_ = now;

  for (VmView& view : look->vms) {
    const Known& known =
        known_.try_emplace(view.vm->uid, Known{now, unreadable_total_}).first->second;
    view.known_for = now - known.since;
    const base::Duration unreadable = unreadable_total_ - known.unreadable_before;
    if (unreadable > base::Duration::zero()) {
      look->nomad_unreadable_for[view.vm->name] = unreadable;
    }
    ApplyStartFailure(now, look->now, &view);
    ApplyNode(now, *look, &view);
    ApplyUnhealthy(now, *look, &view);
    ApplyAwaiting(now, &view);
    view.stays_unrecorded = staying_.contains(view.vm->uid);
    const auto token = tokens_.find(view.vm->uid);
    if (token != tokens_.end()) view.look_after_token_at = token->second;
  }
  if (known_.size() > look->vms.size()) {  // it has every VM of the look, so some are gone
    std::unordered_set<std::string_view> uids;
    for (const VmView& view : look->vms) uids.insert(view.vm->uid);
    EraseUnless(&known_, uids);
    EraseUnless(&unhealthy_since_, uids);
    EraseUnless(&failing_, uids);
    EraseUnless(&drain_known_since_, uids);
    EraseUnless(&drained_since_, uids);
    EraseUnless(&tokens_, uids);
  }
  if (!look->nomad_readable) return;
  ApplyInitializing(now, look);
  if (down_since_.empty()) return;
  std::unordered_set<std::string_view> down;
  for (const nomad::Node& node : look->nodes()) {
    if (nodepool::IsSilent(node)) down.insert(node.id);
  }
  EraseUnless(&down_since_, down);
}

bool ObserverMemory::SetAllocationsUnread(bool unread) {
  const base::MutexLock lock(mutex_);
  return std::exchange(allocations_unread_, unread);
}

}  // namespace nomad_harvester::scaling
