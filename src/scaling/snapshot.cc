// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/snapshot.h"

#include <utility>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::scaling {
namespace {

bool HasOtherIdentifiers(const harvester::VirtualMachine& vm, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() && vm.nodes.has_value() &&
         IdentityOf(*vm.nodes) != IdentityOf(*snapshot.policy);
}

// Whether an identity hint identifies the node as another VM, or as no VM.
bool BelongsElsewhere(const nomad::Node& node, const harvester::VirtualMachine& vm,
                      const PoolSnapshot& snapshot) {
  if (nodepool::IsDeclaredForeign(node)) return true;
  const auto hint = node.meta.find("harvester_vm_uuid");
  if (hint == node.meta.end() || hint->second.empty()) return false;
  for (const VmView& other : snapshot.vms) {
    if (other.vm.uid != vm.uid && base::EqualsIgnoreCase(other.vm.firmware_uuid, hint->second)) {
      return true;
    }
  }
  return false;
}

}  // namespace

nodepool::PoolIdentity IdentityOf(const harvester::NodesRecord& nodes) {
  return {
      .node_class = nodes.node_class, .datacenter = nodes.datacenter, .node_pool = nodes.node_pool};
}

nodepool::PoolIdentity IdentityOf(const config::PoolPolicy& policy) {
  return {.node_class = policy.node_class,
          .datacenter = policy.datacenter,
          .node_pool = policy.node_pool};
}

bool IsOtherRegion(const harvester::VirtualMachine& vm, const std::string& region) {
  return vm.nodes.has_value() && !vm.nodes->region.empty() && !region.empty() &&
         vm.nodes->region != region;
}

std::optional<base::WallTime> JoinDeadline(const VmView& view, const PoolSnapshot& snapshot) {
  // An annotation that an operator removed or made invalid must not shorten a VM's life.
  if (!view.vm.join_timeout.has_value() || view.vm.join_timeout->none) return std::nullopt;
  base::WallTime deadline = view.vm.created_at + view.vm.join_timeout->limit;
  const auto unreadable = snapshot.nomad_unreadable_for.find(view.vm.name);
  if (unreadable != snapshot.nomad_unreadable_for.end()) deadline += unreadable->second;
  return deadline;
}

bool IsBroken(const VmView& view, const PoolSnapshot& snapshot) {
  if (!snapshot.nomad_readable || IsOtherRegion(view.vm, snapshot.region)) return false;
  if (HasOtherIdentifiers(view.vm, snapshot)) return false;
  if (harvester::HasJoined(view.vm) || view.link.state != nodepool::LinkState::kNone) return false;
  if (view.start_failure.has_value()) return true;
  const std::optional<base::WallTime> deadline = JoinDeadline(view, snapshot);
  return deadline.has_value() && snapshot.now >= *deadline;
}

base::Duration DeletionTimeout(const harvester::VirtualMachine& vm) {
  return vm.termination_grace + std::chrono::minutes(10);
}

bool IsStuckInDeletion(const harvester::VirtualMachine& vm, base::WallTime now) {
  return vm.deleted_at.has_value() && now - *vm.deleted_at >= DeletionTimeout(vm);
}

bool LooksUnhealthy(const VmView& view, const PoolSnapshot& snapshot) {
  if (!snapshot.nomad_readable || IsOtherRegion(view.vm, snapshot.region)) return false;
  if (!view.member || !harvester::HasJoined(view.vm) || harvester::IsTerminating(view.vm)) {
    return false;
  }
  if (harvester::IsRunning(view.vm) || view.instance_runs == std::optional<bool>(true)) {
    return false;
  }
  const nomad::Node* node = LinkedNode(view, snapshot);
  return node == nullptr ? view.link.state == nodepool::LinkState::kNone
                         : node->status == nomad::NodeStatus::kDown;
}

bool IsUnhealthy(const VmView& view, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() && snapshot.policy->replace_unhealthy_after.has_value() &&
         view.unhealthy_for >= *snapshot.policy->replace_unhealthy_after &&
         LooksUnhealthy(view, snapshot);
}

bool IsPoolMember(const VmView& view, const PoolSnapshot& snapshot) {
  return view.member && view.vm.ns == snapshot.key.ns && view.vm.pool == snapshot.key.pool;
}

bool Counts(const VmView& view, const PoolSnapshot& snapshot) {
  return IsPoolMember(view, snapshot) && !view.vm.has_mark && !harvester::IsTerminating(view.vm) &&
         !IsBroken(view, snapshot);
}

const nomad::Node* LinkedNode(const VmView& view, const PoolSnapshot& snapshot) {
  if (view.link.state != nodepool::LinkState::kLinked) return nullptr;
  if (view.link.node >= snapshot.nodes.size()) return nullptr;
  return &snapshot.nodes[view.link.node];
}

const nomad::Node* UnlinkedCandidate(const VmView& view, const PoolSnapshot& snapshot) {
  const std::uint64_t born = view.vm.nodes.has_value() ? view.vm.nodes->index : 0;
  std::optional<nodepool::PoolIdentity> own;
  if (view.vm.nodes.has_value()) own = IdentityOf(*view.vm.nodes);
  std::optional<nodepool::PoolIdentity> wanted;
  if (snapshot.policy.has_value()) wanted = IdentityOf(*snapshot.policy);
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const nomad::Node& node = snapshot.nodes[i];
    if (node.status != nomad::NodeStatus::kReady || node.create_index <= born) continue;
    if (i < snapshot.node_is_linked.size() && snapshot.node_is_linked[i]) continue;
    const bool of_pool =
        (own.has_value() && own->Contains(node)) || (wanted.has_value() && wanted->Contains(node));
    if (!of_pool || BelongsElsewhere(node, view.vm, snapshot)) continue;
    return &node;
  }
  return nullptr;
}

std::vector<const nomad::Node*> NodesDrainedFor(const VmView& view, const PoolSnapshot& snapshot) {
  std::vector<const nomad::Node*> result;
  for (const nomad::Node& node : snapshot.nodes) {
    if (nodepool::IsDrainOfVm(node, view.vm.uid)) result.push_back(&node);
  }
  return result;
}

std::vector<NodeOfGoneVm> NodesOfGoneVms(const PoolSnapshot& snapshot) {
  std::set<std::string> uids;
  for (const VmView& view : snapshot.vms) uids.insert(view.vm.uid);
  std::vector<NodeOfGoneVm> gone;
  for (const nomad::Node& node : snapshot.nodes) {
    auto mark = nodepool::ParseDrainMark(node);
    if (mark.has_value() && !uids.contains(mark->vm_uid)) gone.push_back({&node, *std::move(mark)});
  }
  return gone;
}

std::vector<const nomad::Node*> UnlinkedNodes(const PoolSnapshot& snapshot) {
  const nodepool::PoolIdentity identity = IdentityOf(*snapshot.policy);
  std::vector<const nomad::Node*> unlinked;
  for (std::size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const bool linked = i < snapshot.node_is_linked.size() && snapshot.node_is_linked[i];
    if (!linked && identity.Contains(snapshot.nodes[i])) unlinked.push_back(&snapshot.nodes[i]);
  }
  return unlinked;
}

}  // namespace nomad_harvester::scaling
