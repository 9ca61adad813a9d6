// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/snapshot.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/parse.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kDefaultAttribute[] = "unique.hostname";

std::vector<nodepool::VmIdentityHints> HintsOf(const std::vector<VmView>& vms, const Look& look) {
  std::vector<nodepool::VmIdentityHints> hints;
  hints.reserve(vms.size());
  for (const VmView& view : vms) {
    const harvester::VirtualMachine& vm = view.vm;
    const std::string attribute = vm.nodes.has_value() ? vm.nodes->node_attribute
                                  : look.policy_nodes.has_value()
                                      ? look.policy_nodes->node_attribute
                                      : kDefaultAttribute;
    hints.push_back({.name = vm.name,
                     .firmware_uuid = vm.firmware_uuid,
                     .addresses = view.addresses,
                     .node_attribute = attribute});
  }
  return hints;
}

bool HasOtherIdentifiers(const harvester::VirtualMachine& vm, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() && vm.nodes.has_value() &&
         IdentityOf(*vm.nodes) != IdentityOf(*snapshot.policy);
}

std::set<std::string> FindSharedClaims(const std::vector<VmView>& vms) {
  std::unordered_map<std::string_view, const VmView*> users;
  std::set<std::string> shared;
  for (const VmView& view : vms) {
    for (const std::string& claim : view.vm.claim_names) {
      const auto [user, is_new] = users.try_emplace(claim, &view);
      if (!is_new && user->second != &view) shared.insert(claim);
    }
  }
  return shared;
}

}  // namespace

Look LookFor(const std::string& region, const std::optional<config::PoolPolicy>& policy) {
  Look look;
  look.region = region;
  if (!policy.has_value()) return look;
  look.policy_nodes = harvester::NodesRecord{.region = region,
                                             .node_class = policy->node_class,
                                             .datacenter = policy->datacenter,
                                             .node_pool = policy->node_pool,
                                             .node_attribute = policy->node_attribute,
                                             .index = 0};
  return look;
}

void SetVms(std::vector<harvester::VirtualMachine> vms, Look* look) {
  look->vms.clear();
  look->vms.reserve(vms.size());
  for (harvester::VirtualMachine& vm : vms) {
    VmView& view = look->vms.emplace_back();
    view.member = harvester::IsMember(vm);
    view.vm = std::move(vm);
  }
}

void Link(Look* look) {
  look->linker.emplace(HintsOf(look->vms, *look), look->nodes);
  nodepool::Links links = look->linker->LinkAll(look->nodes);
  for (std::size_t i = 0; i < look->vms.size(); ++i) {
    look->vms[i].link = std::move(links.of_vm[i]);
  }
  look->node_is_linked = std::move(links.node_is_linked);
}

const nomad::Node* LinkedNode(const VmView& view, const Look& look) {
  if (view.link.state != nodepool::LinkState::kLinked) return nullptr;
  return view.link.node < look.nodes.size() ? &look.nodes[view.link.node] : nullptr;
}

bool IsOtherRegion(const harvester::VirtualMachine& vm, const std::string& region) {
  return vm.nodes.has_value() && !vm.nodes->region.empty() && !region.empty() &&
         vm.nodes->region != region;
}

std::optional<base::WallTime> JoinDeadline(const VmView& view, const Look& look) {
  // An annotation that an operator removed or made invalid must not shorten a VM's life.
  if (!view.vm.join_timeout.has_value() || view.vm.join_timeout->none) return std::nullopt;
  base::WallTime deadline = view.vm.created_at + view.vm.join_timeout->limit;
  const auto unreadable = look.nomad_unreadable_for.find(view.vm.name);
  if (unreadable != look.nomad_unreadable_for.end()) deadline += unreadable->second;
  return deadline;
}

namespace {

// Apart from its node.
bool MayBeUnhealthy(const VmView& view, const Look& look) {
  if (!look.nomad_readable || IsOtherRegion(view.vm, look.region)) return false;
  if (!view.member || !harvester::HasJoined(view.vm) || harvester::IsTerminating(view.vm)) {
    return false;
  }
  return !harvester::IsRunning(view.vm) && view.instance_runs != std::optional<bool>(true);
}

bool IsDownOrNone(const VmView& view, const nomad::Node* node) {
  return node == nullptr ? view.link.state == nodepool::LinkState::kNone
                         : node->status == nomad::NodeStatus::kDown;
}

}  // namespace

bool LooksUnhealthy(const VmView& view, const Look& look) {
  return MayBeUnhealthy(view, look) && IsDownOrNone(view, LinkedNode(view, look));
}

namespace {

std::vector<nomad::Node> TakeLinkedNodes(Look* look) {
  if (!look->linker.has_value()) Link(look);
  return std::move(look->nodes);
}

}  // namespace

NodeSet::NodeSet(Look* look)
    : nodes_(TakeLinkedNodes(look)),
      linker_(*std::move(look->linker)),
      is_linked_(std::move(look->node_is_linked)),
      drains_(nodes_.size()) {
  by_id_.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const nomad::Node& node = nodes_[i];
    by_id_.emplace(node.id, i);
    if (!is_linked_[i] && node.status == nomad::NodeStatus::kReady) unlinked_ready_.push_back(i);
    if (!node.last_drain.has_value()) continue;
    drains_[i] = nodepool::ParseDrainMark(node);
    if (!drains_[i].has_value()) continue;
    drained_.push_back(i);
    drained_for_[drains_[i]->vm_uid].push_back(i);
  }
}

std::optional<std::size_t> NodeSet::Find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<std::size_t>& NodeSet::DrainedFor(std::string_view vm_uid) const {
  static const std::vector<std::size_t> kNone;
  const auto found = drained_for_.find(vm_uid);
  return found == drained_for_.end() ? kNone : found->second;
}

Snapshot::Snapshot(Look look) : look_(std::move(look)), nodes_(&look_) {
  by_name_.reserve(look_.vms.size());
  by_uid_.reserve(look_.vms.size());
  by_firmware_.reserve(look_.vms.size());
  for (const VmView& view : look_.vms) {
    by_name_.emplace(view.vm.name, &view);
    by_uid_.emplace(view.vm.uid, &view);
    if (!view.vm.firmware_uuid.empty()) by_firmware_.emplace(view.vm.firmware_uuid, &view);
    by_pool_[view.vm.pool].push_back(&view);
  }
  shared_claims_ = FindSharedClaims(look_.vms);
}

const VmView* Snapshot::Find(const Index& index, std::string_view key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : found->second;
}

const VmView* Snapshot::FindVm(std::string_view name) const { return Find(by_name_, name); }
const VmView* Snapshot::FindVmByUid(std::string_view uid) const { return Find(by_uid_, uid); }
bool Snapshot::IsFirmwareOfAnother(std::string_view uuid, std::string_view vm_uid) const {
  const auto [first, last] = by_firmware_.equal_range(uuid);
  return std::any_of(first, last,
                     [&](const auto& entry) { return entry.second->vm.uid != vm_uid; });
}

const std::vector<const VmView*>& Snapshot::VmsOfPool(std::string_view pool) const {
  static const std::vector<const VmView*> kNone;
  const auto found = by_pool_.find(pool);
  return found == by_pool_.end() ? kNone : found->second;
}

VmView& Overlay::MutableView() {
  if (!vm_.has_value()) vm_ = base_;
  return *vm_;
}

std::size_t Overlay::VmIndex() const {
  return static_cast<std::size_t>(&base_ - snapshot_.look().vms.data());
}

void Overlay::SetVm(harvester::VirtualMachine vm, std::optional<base::WallTime> now) {
  VmView& view = MutableView();
  view.vm = std::move(vm);
  view.member = harvester::IsMember(view.vm);
  if (now.has_value()) now_ = now;
}

void Overlay::SetInstance(bool runs) { MutableView().instance_runs = runs; }
void Overlay::SetMarksNodeGone(bool gone) { MutableView().node_gone = gone; }

void Overlay::SetNodes(std::vector<nomad::Node> nodes) {
  Look look;
  look.nodes = std::move(nodes);
  look.linker.emplace(HintsOf(snapshot_.look().vms, snapshot_.look()), look.nodes);
  nodepool::Links links = look.linker->LinkAll(look.nodes);
  look.node_is_linked = std::move(links.node_is_linked);
  list_link_ = links.of_vm[VmIndex()];
  MutableView().link = std::move(links.of_vm[VmIndex()]);
  read_nodes_ = std::make_unique<const NodeSet>(&look);
  nodes_ = read_nodes_.get();
  replaced_.reset();
  node_.reset();
}

void Overlay::SetNode(const std::string& id, std::optional<nomad::Node> node) {
  const std::optional<std::size_t> index = nodes_->Find(id);
  if (!index.has_value()) return;
  replaced_ = index;
  node_ = std::move(node);
  node_drain_ = node_.has_value() ? nodepool::ParseDrainMark(*node_) : std::nullopt;
  MutableView().link = nodes_->linker().LinkWith(VmIndex(), nodes_->all(), *replaced_,
                                                 node_.has_value() ? &*node_ : nullptr);
}

void Overlay::SetAllocations(const std::string& node_id, Allocations allocations) {
  allocations_[node_id] = std::move(allocations);
}

const nomad::Node* Overlay::At(std::size_t index) const {
  if (replaced_ != index) return &nodes_->all()[index];
  return node_.has_value() ? &*node_ : nullptr;
}

const nomad::Node* Overlay::node() const {
  const nodepool::Link& link = view().link;
  return link.state == nodepool::LinkState::kLinked ? At(link.node) : nullptr;
}

const nodepool::DrainMark* Overlay::DrainOf(const nomad::Node& node) const {
  if (node_.has_value() && &node == &*node_) {
    return node_drain_.has_value() ? &*node_drain_ : nullptr;
  }
  const auto index = static_cast<std::size_t>(&node - nodes_->all().data());
  const std::optional<nodepool::DrainMark>& drain = nodes_->drain(index);
  return drain.has_value() ? &*drain : nullptr;
}

std::vector<const nomad::Node*> Overlay::NodesDrainedForIt() const {
  const std::string& uid = view().vm.uid;
  std::vector<const nomad::Node*> drained;
  for (const std::size_t index : nodes_->DrainedFor(uid)) {
    if (replaced_ != index) drained.push_back(&nodes_->all()[index]);
  }
  if (node_drain_.has_value() && node_.has_value() && node_drain_->vm_uid == uid) {
    drained.push_back(&*node_);
  }
  return drained;
}

// Whether a node that no VM has could be this VM under another name.
bool Overlay::CouldBeIt(const nomad::Node& node) const {
  const std::optional<harvester::NodesRecord>& record = view().vm.nodes;
  if (node.status != nomad::NodeStatus::kReady) return false;
  if (node.create_index <= (record.has_value() ? record->index : 0)) return false;
  const bool of_pool =
      (record.has_value() && IdentityOf(*record).Contains(node)) ||
      (snapshot_.policy.has_value() && IdentityOf(*snapshot_.policy).Contains(node));
  if (!of_pool || nodepool::IsDeclaredForeign(node)) return false;
  const auto hint = node.meta.find("harvester_vm_uuid");
  if (hint == node.meta.end() || hint->second.empty()) return true;
  return !snapshot_.seen->IsFirmwareOfAnother(base::AsciiLower(hint->second), view().vm.uid);
}

const nomad::Node* Overlay::Candidate() const {
  for (const std::size_t index : nodes_->unlinked_ready()) {
    if (replaced_ != index && CouldBeIt(nodes_->all()[index])) return &nodes_->all()[index];
  }
  // A node that was read again keeps the VM that it had, unless that was this one.
  const bool was_linked = replaced_.has_value() && nodes_->IsLinked(*replaced_);
  const nodepool::Link& link = list_link_.has_value() ? *list_link_ : base_.link;
  const bool of_this_vm =
      was_linked && link.state == nodepool::LinkState::kLinked && link.node == *replaced_;
  if (node_.has_value() && (!was_linked || of_this_vm) && node() == nullptr && CouldBeIt(*node_)) {
    return &*node_;
  }
  return nullptr;
}

const Allocations* Overlay::AllocationsOf(const std::string& node_id) const {
  if (const auto read = allocations_.find(node_id); read != allocations_.end()) {
    return &read->second;
  }
  const std::map<std::string, Allocations>& known = snapshot_.look().allocations;
  const auto found = known.find(node_id);
  return found == known.end() ? nullptr : &found->second;
}

nodepool::PoolIdentity IdentityOf(const harvester::NodesRecord& nodes) {
  return {
      .node_class = nodes.node_class, .datacenter = nodes.datacenter, .node_pool = nodes.node_pool};
}

nodepool::PoolIdentity IdentityOf(const config::PoolPolicy& policy) {
  return {.node_class = policy.node_class,
          .datacenter = policy.datacenter,
          .node_pool = policy.node_pool};
}

bool IsBroken(const VmView& view, const PoolSnapshot& snapshot) {
  const Look& look = snapshot.look();
  if (!look.nomad_readable || IsOtherRegion(view.vm, look.region)) return false;
  if (HasOtherIdentifiers(view.vm, snapshot)) return false;
  if (harvester::HasJoined(view.vm) || view.link.state != nodepool::LinkState::kNone) return false;
  if (view.start_failure.has_value()) return true;
  const std::optional<base::WallTime> deadline = JoinDeadline(view, look);
  return deadline.has_value() && look.now >= *deadline;
}

base::Duration DeletionTimeout(const harvester::VirtualMachine& vm) {
  return vm.termination_grace + std::chrono::minutes(10);
}

bool IsStuckInDeletion(const harvester::VirtualMachine& vm, base::WallTime now) {
  return vm.deleted_at.has_value() && now - *vm.deleted_at >= DeletionTimeout(vm);
}

bool IsUnhealthy(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() && snapshot.policy->replace_unhealthy_after.has_value() &&
         view.unhealthy_for >= *snapshot.policy->replace_unhealthy_after &&
         MayBeUnhealthy(view, snapshot.look()) && IsDownOrNone(view, node);
}

bool IsUnhealthy(const VmView& view, const PoolSnapshot& snapshot) {
  return IsUnhealthy(view, LinkedNode(view, snapshot), snapshot);
}

bool IsPoolMember(const VmView& view, const PoolSnapshot& snapshot) {
  return view.member && view.vm.ns == snapshot.key.ns && view.vm.pool == snapshot.key.pool;
}

bool Counts(const VmView& view, const PoolSnapshot& snapshot) {
  return IsPoolMember(view, snapshot) && !view.vm.has_mark && !harvester::IsTerminating(view.vm) &&
         !IsBroken(view, snapshot);
}

std::int64_t CountOf(const PoolSnapshot& snapshot) {
  return std::count_if(snapshot.vms().begin(), snapshot.vms().end(),
                       [&](const VmView* view) { return Counts(*view, snapshot); });
}

const nomad::Node* LinkedNode(const VmView& view, const PoolSnapshot& snapshot) {
  if (view.link.state != nodepool::LinkState::kLinked) return nullptr;
  return view.link.node < snapshot.nodes().size() ? &snapshot.nodes()[view.link.node] : nullptr;
}

std::vector<NodeOfGoneVm> NodesOfGoneVms(const PoolSnapshot& snapshot) {
  const NodeSet& nodes = snapshot.seen->nodes();
  std::vector<NodeOfGoneVm> gone;
  for (const std::size_t index : nodes.drained()) {
    const nodepool::DrainMark& mark = *nodes.drain(index);
    if (snapshot.seen->FindVmByUid(mark.vm_uid) == nullptr) {
      gone.push_back({&nodes.all()[index], &mark});
    }
  }
  return gone;
}

std::vector<const nomad::Node*> UnlinkedNodes(const PoolSnapshot& snapshot) {
  const nodepool::PoolIdentity identity = IdentityOf(*snapshot.policy);
  const NodeSet& nodes = snapshot.seen->nodes();
  std::vector<const nomad::Node*> unlinked;
  for (std::size_t i = 0; i < nodes.all().size(); ++i) {
    if (!nodes.IsLinked(i) && identity.Contains(nodes.all()[i]))
      unlinked.push_back(&nodes.all()[i]);
  }
  return unlinked;
}

}  // namespace nomad_harvester::scaling
