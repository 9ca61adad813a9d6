// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/readiness.h"
#include "nomad_harvester/scaling/facts.h"
#include "nomad_harvester/scaling/observer.h"

namespace nomad_harvester::scaling {
namespace {

// How often to read what holds a drain.
constexpr base::Duration kDrainWorkInterval = std::chrono::minutes(1);
// ErrorUnschedulable and ErrorPvcNotFound are normal for some seconds (rule C3).
constexpr base::Duration kFailingForGood = std::chrono::seconds(60);
// More time than this between two observations of a changing node is a gap.
constexpr base::Duration kMaxGap = std::chrono::minutes(2);
// How long to wait before a node that could not be read in full is read again.
constexpr base::Duration kFirstRetryOfRead = std::chrono::seconds(1);
constexpr base::Duration kMaxRetryOfRead = std::chrono::minutes(1);

}  // namespace

void ObserverMemory::OfVm::Pause(base::Duration passed) {
  if (unhealthy.has_value()) unhealthy->since += passed;
  if (drain_known.has_value()) drain_known->since += passed;
  if (drained.has_value()) drained->since += passed;
  if (awaiting_since.has_value()) *awaiting_since += passed;
  if (held_since.has_value()) *held_since += passed;
}

void ObserverMemory::ApplyStartFailure(base::MonoTime now, base::WallTime wall_now, bool seeds,
                                       OfVm* known, VmView* view) {
  const harvester::VirtualMachine& vm = view->vm;
  std::optional<harvester::StartFailure> failure;
  if (!harvester::HasJoined(vm)) failure = harvester::FindStartFailure(vm, view->pod_message);
  if (!failure.has_value()) {
    known->failing_since.reset();
    return;
  }
  if (!known->failing_since.has_value()) {
    // The object's time may be earlier than the start of this process.
    const base::WallTime since =
        seeds ? std::max(failure->since.value_or(wall_now), vm.created_at) : wall_now;
    known->failing_since = now - std::max<base::Duration>(wall_now - since, {});
  }
  if (failure->only_at_join_timeout) {
    // Such a state may last until the join timeout, which is checked separately. Its time does not
    // count towards a later failure, although the object's condition has been False all the time.
    known->failing_since = now;
    return;
  }
  const base::Duration lasted = now - *known->failing_since;
  if (failure->immediate || lasted >= kFailingForGood) view->start_failure = *std::move(failure);
}

base::Duration ObserverMemory::For(std::optional<NodeSince>* known, const nomad::Node& node,
                                   base::MonoTime now) {
  // The index of an initializing node is ignored: it changes whenever the client finds something.
  const bool changes = node.status == nomad::NodeStatus::kInitializing;
  const std::uint64_t index = changes ? 0 : node.modify_index;
  if (!known->has_value() || (*known)->modify_index != index) *known = NodeSince{now, index};
  return now - (*known)->since;
}

void ObserverMemory::ApplyDrain(base::MonoTime now, const nomad::Node* node, OfVm* known,
                                VmView* view) {
  const std::optional<harvester::Mark>& mark = view->vm->mark;
  if (node == nullptr || !mark.has_value() ||
      !nodepool::IsDrainOf(*node, mark->action, view->vm->uid)) {
    known->drain_known.reset();
    known->drained.reset();
    known->drain_held_by.clear();
    return;
  }
  view->drain_held_by = known->drain_held_by;
  if (!known->drain_known.has_value() || known->drain_known->action != mark->action) {
    known->drain_known = DrainSince{mark->action, now};
  }
  view->drain_known_for = now - known->drain_known->since;
  if (node->draining) {
    known->drained.reset();
  } else {
    view->node_drained_for = For(&known->drained, *node, now);
  }
}

void ObserverMemory::ApplyLostNodes(base::MonoTime now, Observation* observation) {
  std::unordered_map<std::string_view, const nomad::Node*> down;
  for (const nomad::Node& node : observation->nodes()) {
    if (node.status == nomad::NodeStatus::kDown) down.emplace(node.id, &node);
  }
  if (down.empty()) return;
  bool any = false;
  for (VmView& view : observation->vms) {
    const auto node = down.find(view.vm->joined_node_id);
    if (node == down.end() || !view.member) continue;
    const base::Duration down_for = For(&down_since_[node->second->id], *node->second, now);
    view.node_is_lost = down_for >= kDownForGood && MayHaveInstance(view) &&
                        !harvester::IsPausedOrMigrating(view.vm);
    any |= view.node_is_lost;
  }
  if (any) Link(observation);
}

void ObserverMemory::ApplyUnhealthy(base::MonoTime now, const Observation& observation, OfVm* known,
                                    VmView* view) {
  if (!LooksUnhealthy(*view, observation)) {
    known->unhealthy.reset();
    return;
  }
  // A flapping node changes but remains not ready. After a gap it may have been ready meanwhile,
  // unless its index shows that nothing changed.
  const nomad::Node* const node = LinkedNode(*view, observation);
  const std::uint64_t index = node == nullptr ? 0 : node->modify_index;
  if (!known->unhealthy.has_value()) known->unhealthy = UnhealthySince{now, now, index};
  UnhealthySince& unhealthy = *known->unhealthy;
  const bool unchanged = index == unhealthy.modify_index;
  if (!unchanged && now - unhealthy.last_seen > kMaxGap) unhealthy.since = now;
  unhealthy.last_seen = now;
  unhealthy.modify_index = index;
  view->unhealthy_for = now - unhealthy.since;
}

void ObserverMemory::RecordAwaiting(base::MonoTime now, const std::set<std::string>& unhealthy,
                                    const std::set<std::string>& held) {
  const auto record = [now](bool waits, std::optional<base::MonoTime>* since) {
    if (!waits) {
      since->reset();
    } else if (!since->has_value()) {
      *since = now;
    }
  };
  const base::MutexLock lock(mutex_);
  for (auto& [uid, known] : of_vm_) {
    record(unhealthy.contains(uid), &known.awaiting_since);
    record(held.contains(uid), &known.held_since);
  }
}

bool ObserverMemory::TakeDrainWorkIsDue(base::MonoTime now, const std::string& uid) {
  const base::MutexLock lock(mutex_);
  base::MonoTime& next = of_vm_[uid].drain_work_next;
  if (now < next) return false;
  next = now + kDrainWorkInterval;
  return true;
}

void ObserverMemory::RecordDrainWork(const std::string& uid, std::string held_by) {
  const base::MutexLock lock(mutex_);
  of_vm_[uid].drain_held_by = std::move(held_by);
}

void ObserverMemory::RecordStaying(const std::set<std::string>& uids) {
  const base::MutexLock lock(mutex_);
  for (auto& [uid, known] : of_vm_) known.stays = uids.contains(uid);
}

void ObserverMemory::ApplyInitializing(base::MonoTime now, Observation* observation) {
  std::map<std::string, base::MonoTime> since;
  for (const nomad::Node& node : observation->nodes()) {
    if (node.status != nomad::NodeStatus::kInitializing) continue;
    const auto known = initializing_since_.find(node.id);
    const base::MonoTime first = known == initializing_since_.end() ? now : known->second;
    since.emplace(node.id, first);
    observation->initializing_for.emplace(node.id, now - first);
  }
  initializing_since_ = std::move(since);
}

void ObserverMemory::CorrectNow(base::MonoTime now, Observation* observation) {
  const bool is_first = !last_now_.has_value();
  if (!is_first) {
    const base::WallTime expected = last_now_->first + (now - last_now_->second);
    const base::Duration off = observation->now - expected;
    if (off > kUsualSkew || off < -kUsualSkew) {
      const auto [low, high] = std::minmax(observation->now, expected);
      observation->now = std::clamp(observation->own_now, low, high);
    }
  }
  last_now_.emplace(observation->now, now);
}

void ObserverMemory::RecordTokenOf(const std::string& vm_uid, base::MonoTime look_after_at) {
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

void ObserverMemory::SetHarvester(std::optional<std::string> uid) {
  const base::MutexLock lock(mutex_);
  harvester_ = std::move(uid);
}

void ObserverMemory::Apply(base::MonoTime now, Observation* observation) {
  // Pod messages influence how a start failure is classified, so they are also applied to an
  // Observation that reads no pods. With KubeVirt's message of the first attempt instead, the
  // failure's duration would restart.
  pending_reasons_.ApplyPods(observation);
  base::MutexLock lock(mutex_);
  const bool is_first = !last_now_.has_value();
  const base::Duration passed = is_first ? base::Duration::zero() : now - last_now_->second;
  CorrectNow(now, observation);
  observation->harvester = harvester_.value_or("");
  observation->own_node_id = own_node_;
  observation->own_node_problem = own_node_problem_;
  if (unreadable_since_.has_value()) {
    unreadable_total_ += now - *unreadable_since_;
    unreadable_since_.reset();
  }
  if (!observation->nomad.ok()) unreadable_since_ = now;

  ApplyLostNodes(now, observation);
  for (VmView& view : observation->vms) {
    const auto [entry, is_new] = of_vm_.try_emplace(view.vm->uid);
    OfVm& known = entry->second;
    if (is_new) {
      known = {.known_since = now, .unreadable_before = unreadable_total_, .seen_new = !is_first};
    }
    view.known_for = now - known.known_since;
    view.seen_new = known.seen_new;
    const bool deleting = harvester::IsTerminating(view.vm);
    if (deleting && !is_new && !known.deleting_since.has_value()) known.deleting_since = now;
    if (known.deleting_since.has_value()) view.deleting_for = now - *known.deleting_since;
    view.nomad_unreadable_for = unreadable_total_ - known.unreadable_before;
    ApplyStartFailure(now, std::min(observation->now, observation->own_now), is_new, &known, &view);
    const nomad::Node* const node = LinkedNode(view, *observation);
    if (node != nullptr && nodepool::IsSilent(*node)) {
      view.node_down_for = For(&down_since_[node->id], *node, now);
    }
    if (observation->nomad.ok()) {
      ApplyDrain(now, node, &known, &view);
      ApplyUnhealthy(now, *observation, &known, &view);
    } else {
      known.Pause(passed);
    }
    if (known.awaiting_since.has_value()) view.awaited_for = now - *known.awaiting_since;
    if (known.held_since.has_value()) view.held_for = now - *known.held_since;
    view.stays_unrecorded = known.stays;
    const auto token = tokens_.find(view.vm->uid);
    if (token != tokens_.end()) view.token_check_in = token->second - now;
  }
  if (of_vm_.size() >
      observation->vms.size()) {  // it has every VM of the observation, so some are gone
    std::unordered_set<std::string_view> uids;
    for (const VmView& view : observation->vms) uids.insert(view.vm->uid);
    const auto is_gone = [&](const auto& entry) { return !uids.contains(entry.first); };
    std::erase_if(of_vm_, is_gone);
    std::erase_if(tokens_, is_gone);
  }
  if (!observation->nomad.ok()) return;
  ApplyInitializing(now, observation);
  if (down_since_.empty()) return;
  std::unordered_set<std::string_view> down;
  for (const nomad::Node& node : observation->nodes()) {
    if (nodepool::IsSilent(node)) down.insert(node.id);
  }
  std::erase_if(down_since_, [&](const auto& entry) { return !down.contains(entry.first); });
}

std::map<std::string, std::string> ObserverMemory::UnreadUntil(base::MonoTime now) const {
  const base::MutexLock lock(mutex_);
  std::map<std::string, std::string> waiting;
  for (const auto& [id, unread] : unread_) {
    if (unread.next > now) waiting.emplace(id, unread.why);
  }
  return waiting;
}

void ObserverMemory::RecordUnread(base::MonoTime now,
                                  const std::map<std::string, std::string>& failed,
                                  const std::map<std::string, std::string>& unread,
                                  const log::Logger& logger) {
  std::vector<std::string> begun;
  {
    const base::MutexLock lock(mutex_);
    std::erase_if(unread_, [&](const auto& entry) { return !unread.contains(entry.first); });
    for (const auto& [id, why] : failed) {
      const auto [entry, is_new] = unread_.try_emplace(id);
      Unread& node = entry->second;
      node.why = why;
      node.wait = is_new ? kFirstRetryOfRead : std::min(2 * node.wait, kMaxRetryOfRead);
      node.next = now + node.wait;
      if (is_new) begun.push_back(id);
    }
  }
  for (const std::string& id : begun) {
    logger.Warn("Could not read a node; VMs that may own it are left alone",
                {{"node_id", id}, {"error", failed.at(id)}});
  }
}

bool ObserverMemory::SetAllocationsUnread(bool unread) {
  const base::MutexLock lock(mutex_);
  return std::exchange(allocations_unread_, unread);
}

}  // namespace nomad_harvester::scaling
