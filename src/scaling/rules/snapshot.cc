// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/scaling/snapshot.h"

#include <algorithm>
#include <utility>

#include "nomad_harvester/base/parse.h"
#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/readiness.h"

#include "absl/strings/str_split.h"

namespace nomad_harvester::scaling {
namespace {

constexpr char kDefaultAttribute[] = "unique.hostname";

std::vector<nodepool::VmIdentityHints> HintsOf(const Observation& observation) {
  std::vector<nodepool::VmIdentityHints> hints;
  hints.reserve(observation.vms.size());
  for (const VmView& view : observation.vms) {
    const harvester::VirtualMachine& vm = view.vm;
    const std::string attribute = vm.nodes.has_value() ? vm.nodes->node_attribute
                                  : observation.policy.has_value()
                                      ? observation.policy->node_attribute
                                      : kDefaultAttribute;
    hints.push_back({.name = vm.name,
                     .firmware_uuid = vm.firmware_uuid,
                     .addresses = view.addresses,
                     .node_attribute = attribute,
                     .node_id = view.member ? vm.joined_node_id : "",
                     .node_is_lost = view.node_is_lost});
  }
  return hints;
}

bool HasOtherIdentifiers(const harvester::VirtualMachine& vm, const PoolSnapshot& snapshot) {
  return snapshot.policy.has_value() && vm.nodes.has_value() &&
         IdentityOf(*vm.nodes) != IdentityOf(*snapshot.policy);
}

const NodeList& NoNodes() {
  static const auto* const kNone = new NodeList(std::make_shared<std::vector<nomad::Node>>());
  return *kNone;
}

// Links the nodes of `observation` to the VMs of `vms`; returns a link for each VM.
std::vector<nodepool::Link> LinkNodes(const Observation& vms, Observation* observation) {
  observation->linker.emplace(HintsOf(vms), observation->nodes());
  nodepool::Links links = observation->linker->LinkAll(observation->nodes());
  observation->node_is_linked = std::move(links.node_is_linked);
  return std::move(links.of_vm);
}

}  // namespace

Observation EmptyObservation(const std::string& region, const std::string& pool,
                             const SharedPolicy& policy) {
  Observation observation;
  observation.region = region;
  observation.pool = pool;
  observation.policy = policy;
  return observation;
}

const std::vector<nomad::Node>& Observation::nodes() const {
  return node_list != nullptr ? *node_list : *NoNodes();
}

SharedVm::SharedVm() {
  static const auto* const kNone = new auto(std::make_shared<const harvester::VirtualMachine>());
  vm_ = *kNone;
}

SharedVm::SharedVm(harvester::VirtualMachine vm)
    : vm_(std::make_shared<const harvester::VirtualMachine>(std::move(vm))) {}

harvester::VirtualMachine& SharedVm::Change() {
  auto own = std::make_shared<harvester::VirtualMachine>(*vm_);
  harvester::VirtualMachine& changed = *own;
  vm_ = std::move(own);
  return changed;
}

void SetVms(const VmList& vms, Observation* observation) {
  observation->vms.clear();
  observation->vms.reserve(vms->size());
  for (const harvester::VirtualMachine& vm : *vms) {
    VmView& view = observation->vms.emplace_back();
    view.member = harvester::IsMember(vm);
    view.vm = SharedVm({vms, &vm});
  }
}

void Link(Observation* observation) {
  std::vector<nodepool::Link> links = LinkNodes(*observation, observation);
  for (std::size_t i = 0; i < links.size(); ++i) observation->vms[i].link = std::move(links[i]);
}

const nomad::Node* LinkedNode(const VmView& view, const Observation& observation) {
  if (view.link.state != nodepool::LinkState::kLinked) return nullptr;
  return view.link.node < observation.nodes().size() ? &observation.nodes()[view.link.node]
                                                     : nullptr;
}

namespace {

std::set<std::string> KeysIn(std::string_view text) {
  return absl::StrSplit(base::ToAbsl(text), ',', absl::SkipEmpty());
}

bool LacksKey(std::string_view record, std::string_view cluster) {
  if (record == cluster) return false;
  const std::set<std::string> recorded = KeysIn(record);
  const std::set<std::string> keys = KeysIn(cluster);
  return !std::includes(recorded.begin(), recorded.end(), keys.begin(), keys.end());
}

bool IsOtherRegion(const harvester::VirtualMachine& vm, const Observation& observation) {
  return vm.nodes.has_value() && !vm.nodes->region.empty() && !observation.region.empty() &&
         vm.nodes->region != observation.region;
}

}  // namespace

bool IsSameCluster(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const std::set<std::string> keys = KeysIn(a);
  const std::set<std::string> others = KeysIn(b);
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return others.contains(key); });
}

bool IsOtherCluster(std::string_view record, const Observation& observation) {
  return !record.empty() && observation.nomad_cluster.ok() &&
         !IsSameCluster(record, *observation.nomad_cluster);
}

bool IsOtherCluster(const harvester::VirtualMachine& vm, const Observation& observation) {
  return !IsOtherRegion(vm, observation) && IsOtherCluster(vm.nomad_cluster, observation);
}

bool ShouldRecordCluster(const harvester::VirtualMachine& vm, bool has_node,
                         const Observation& observation) {
  const bool proven = has_node || !vm.nomad_cluster.empty();
  if (!proven || IsOtherCluster(vm, observation)) return false;
  return observation.nomad_cluster.ok() && LacksKey(vm.nomad_cluster, *observation.nomad_cluster);
}

bool IsOtherNomad(const harvester::VirtualMachine& vm, const Observation& observation) {
  return IsOtherRegion(vm, observation) || IsOtherCluster(vm, observation);
}

bool MayHaveInstance(const VmView& view) {
  return view.vm->instance_exists || view.instance_runs == std::optional<bool>(true);
}

std::optional<base::WallTime> JoinDeadline(const VmView& view) {
  // An annotation that an operator removed or made invalid must not shorten a VM's life.
  if (!view.vm->join_timeout.has_value() || view.vm->join_timeout->none) return std::nullopt;
  return view.vm->created_at + view.vm->join_timeout->limit + view.nomad_unreadable_for;
}

base::WallTime EndByTwoClocks(base::WallTime end, base::Duration limit, base::Duration observed_for,
                              base::WallTime now) {
  return std::max<base::WallTime>(end, now + (limit - observed_for));
}

bool HasPassed(base::WallTime end, base::Duration limit, const VmView& view,
               const Observation& observation) {
  return observation.now >= end && (observation.own_now >= end || view.known_for >= limit);
}

namespace {

// A process may see a new VM this much later than it was created.
constexpr base::Duration kSeenWithin = std::chrono::minutes(1);

}  // namespace

bool IsPastJoinDeadline(const VmView& view, const Observation& observation) {
  const std::optional<base::WallTime> deadline = JoinDeadline(view);
  if (!deadline.has_value()) return false;
  const base::Duration limit = *deadline - view.vm->created_at;
  if (!view.seen_new) return HasPassed(*deadline, limit, view, observation);
  return observation.now >=
         EndByTwoClocks(*deadline, limit - kSeenWithin, view.known_for, observation.now);
}

bool IsReadable(const VmView& view, const Observation& observation) {
  return observation.nomad.ok() && view.unread_node.empty();
}

bool IsNodeKnown(const VmView& view, const Observation& observation) {
  return IsReadable(view, observation) && !IsOtherNomad(view.vm, observation);
}

namespace {

// True if the VM may be unhealthy, judging by everything but its node's state.
bool MayBeUnhealthy(const VmView& view, const Observation& observation) {
  if (!IsNodeKnown(view, observation)) return false;
  if (!view.member || harvester::IsTerminating(view.vm)) return false;
  if (harvester::IsPausedOrMigrating(view.vm)) return false;
  // Until the VM was ready, its join deadline decides.
  return harvester::WasReady(view.vm) ||
         (harvester::HasJoined(view.vm) && !JoinDeadline(view).has_value());
}

bool IsUnhealthyNode(const VmView& view, const nomad::Node* node) {
  if (node == nullptr) return view.link.state == nodepool::LinkState::kNone;
  return node->status != nomad::NodeStatus::kReady && node->status != nomad::NodeStatus::kUnknown;
}

}  // namespace

bool IsOfThisHarvester(const nodepool::DrainMark& drain, const Observation& observation) {
  return drain.harvester.empty() || drain.harvester == observation.harvester ||
         (observation.harvester.empty() && !observation.harvester_unread);
}

bool LooksUnhealthy(const VmView& view, const Observation& observation) {
  return MayBeUnhealthy(view, observation) && IsUnhealthyNode(view, LinkedNode(view, observation));
}

namespace {

// True if the drain was for the VM that had this name and pool before it was restored.
bool IsForPredecessor(const nodepool::DrainMark& mark, const harvester::VirtualMachine& vm,
                      const Observation& observation) {
  return mark.vm == vm.name && mark.vm_uid != vm.uid && mark.pool == vm.ns + "/" + vm.pool &&
         IsOfThisHarvester(mark, observation);
}

}  // namespace

NodeSet::NodeSet(const Observation& observation, const Snapshot& vms)
    : nodes_(observation.node_list != nullptr ? observation.node_list : NoNodes()),
      linker_(*observation.linker),
      is_linked_(observation.node_is_linked) {
  for (std::size_t i = 0; i < all().size(); ++i) {
    const nomad::Node& node = all()[i];
    if (!is_linked_[i] && node.status == nomad::NodeStatus::kReady) {
      unlinked_ready_.push_back(i);
      ++uuids_[nodepool::MachineUuidOf(node)];
    }
    if (!node.last_drain.has_value()) continue;
    const auto mark = nodepool::ParseDrainMark(node);
    if (!mark.has_value()) continue;
    const VmView* vm = vms.FindVmByUid(mark->vm_uid);
    if (vm == nullptr) {
      const VmView* named = vms.FindVm(mark->vm);
      if (named != nullptr && IsForPredecessor(*mark, named->vm, observation)) vm = named;
    }
    if (vm != nullptr) {
      drained_.emplace_back(vms.IndexOf(*vm), i);
    } else {
      orphaned_nodes_.push_back({&node, *mark});
    }
  }
  std::sort(drained_.begin(), drained_.end());
}

std::optional<std::size_t> NodeSet::Find(std::string_view id) const {
  const auto found = std::find_if(all().begin(), all().end(),
                                  [id](const nomad::Node& node) { return node.id == id; });
  if (found == all().end()) return std::nullopt;
  return static_cast<std::size_t>(found - all().begin());
}

bool NodeSet::IsSharedUuid(std::string_view uuid) const {
  const auto found = uuids_.find(uuid);
  return found != uuids_.end() && found->second > 1;
}

std::span<const NodeSet::Drained::value_type> NodeSet::DrainedFor(std::size_t vm) const {
  const auto first = std::lower_bound(drained_.begin(), drained_.end(),
                                      Drained::value_type(static_cast<std::uint32_t>(vm), 0));
  const auto last =
      std::find_if(first, drained_.end(), [vm](const auto& entry) { return entry.first != vm; });
  return {first, last};
}

Snapshot::Snapshot(Observation observation) : observation_(std::move(observation)) {
  if (!observation_.linker.has_value()) Link(&observation_);
  for (auto* index : {&by_name_, &by_uid_}) index->reserve(observation_.vms.size());
  Index<const VmView*> by_claim;
  by_claim.reserve(observation_.vms.size());
  for (const VmView& view : observation_.vms) {
    Add(view);
    for (const std::string& claim : view.vm->claim_names) {
      const auto [user, is_new] = by_claim.try_emplace(claim, &view);
      if (!is_new && user->second != &view) shared_claims_.insert(claim);
    }
  }
  for (const VmView& view : observation_.vms) AddReplacement(view);
  for (auto& [name, pool] : by_pool_) {
    // More than max(1, 20 %) of them.
    pool.loss.alarming = pool.loss.lost > 1 && pool.loss.lost * 5 > pool.loss.of;
  }
  nodes_.emplace(observation_, *this);
}

void Snapshot::Add(const VmView& view) {
  const harvester::VirtualMachine& vm = view.vm;
  by_name_.emplace(vm.name, &view);
  by_uid_.emplace(vm.uid, &view);
  PoolVms& pool = by_pool_[vm.pool];
  pool.vms.push_back(&view);
  if (!IsNodeKnown(view, observation_) || !view.member || harvester::IsTerminating(vm)) return;
  if (!harvester::WasReady(vm) || !vm.ready) return;
  const nomad::Node* const node = LinkedNode(view, observation_);
  if (vm.has_mark && (node == nullptr || !nodepool::IsDrainOfVm(*node, vm.uid))) return;
  ++pool.loss.of;
  if (IsUnhealthyNode(view, node)) ++pool.loss.lost;
}

// If two VMs replace the same one, the first keeps the place and the other counts on its own.
void Snapshot::AddReplacement(const VmView& view) {
  const harvester::VirtualMachine& vm = view.vm;
  if (!vm.replaces.has_value() || !view.member || harvester::IsTerminating(vm)) return;
  if (vm.has_mark && !vm.mark.has_value()) return;
  if (vm.mark.has_value() && harvester::IsElective(vm.mark->reason)) return;
  const VmView* const old = FindVmByUid(vm.replaces->uid);
  if (old == nullptr || !old->member || old->vm->pool != vm.pool) return;
  if (old->vm->has_mark || harvester::IsTerminating(old->vm)) return;
  if (StaysBeside(*old, view) && !harvester::WaitsToStart(vm)) return;
  by_replaced_uid_.emplace(old->vm->uid, &view);
}

const VmView* Snapshot::Find(const Index<const VmView*>& index, std::string_view key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : found->second;
}

const Snapshot::PoolVms& Snapshot::PoolNamed(std::string_view pool) const {
  static const PoolVms kNone;
  const auto found = by_pool_.find(pool);
  return found == by_pool_.end() ? kNone : found->second;
}

VmView& Overlay::MutableView() {
  if (!vm_.has_value()) vm_ = base_;
  return *vm_;
}

void Overlay::SetVm(harvester::VirtualMachine vm) {
  VmView& view = MutableView();
  view.vm = std::move(vm);
  view.member = harvester::IsMember(view.vm);
}

void Overlay::SetInstance(bool runs) { MutableView().instance_runs = runs; }
void Overlay::SetMarksNodeGone(bool gone) { MutableView().node_gone = gone; }

void Overlay::SetNodes(NodeList nodes) {
  Observation observation;
  observation.node_list = std::move(nodes);
  std::vector<nodepool::Link> links = LinkNodes(snapshot_.observation(), &observation);
  list_link_ = MutableView().link = std::move(links[snapshot_.seen->IndexOf(base_)]);
  read_nodes_ = std::make_unique<const NodeSet>(observation, *snapshot_.seen);
  nodes_ = read_nodes_.get();
  replaced_.reset();
  node_.reset();
}

void Overlay::SetNode(const std::string& id, std::optional<nomad::Node> node) {
  const nodepool::Link& link = list_link_.has_value() ? *list_link_ : base_.link;
  const bool is_linked =
      link.state == nodepool::LinkState::kLinked && nodes_->all()[link.node].id == id;
  const std::optional<std::size_t> index = is_linked ? link.node : nodes_->Find(id);
  if (!index.has_value()) return;
  replaced_ = index;
  node_ = std::move(node);
  MutableView().link = nodes_->linker().LinkWith(snapshot_.seen->IndexOf(base_), nodes_->all(),
                                                 *replaced_, node_.has_value() ? &*node_ : nullptr);
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

std::vector<const nomad::Node*> Overlay::NodesDrainedForIt() const {
  std::vector<const nomad::Node*> drained;
  for (const auto& [vm, index] : nodes_->DrainedFor(snapshot_.seen->IndexOf(base_))) {
    if (replaced_ != index) drained.push_back(&nodes_->all()[index]);
  }
  const auto mark = node_.has_value() ? nodepool::ParseDrainMark(*node_) : std::nullopt;
  if (mark.has_value() && (mark->vm_uid == view().vm->uid ||
                           IsForPredecessor(*mark, view().vm, snapshot_.observation()))) {
    drained.push_back(&*node_);
  }
  return drained;
}

// True if an unlinked node might be this VM's, registered under another name.
bool Overlay::CouldBeIt(const nomad::Node& node) const {
  const std::optional<harvester::NodesRecord>& record = view().vm->nodes;
  if (node.status != nomad::NodeStatus::kReady) return false;
  if (node.create_index <= (record.has_value() ? record->index : 0)) return false;
  if (!BelongsToPool(node, view(), snapshot_.policy)) return false;
  if (nodepool::IsDeclaredForeign(node)) return false;
  const std::string_view uuid = nodepool::MachineUuidOf(node);
  if (uuid.empty()) return true;
  if (nodes_->linker().IsUuidOfAnother(uuid, snapshot_.seen->IndexOf(base_))) return false;
  // One that several nodes have, such as that of the machine on which the image was made, names
  // none of them.
  const std::string& own = view().vm->firmware_uuid;
  return own.empty() || !nodepool::HasUuidForm(uuid) || base::EqualsIgnoreCase(uuid, own) ||
         nodes_->IsSharedUuid(uuid);
}

const nomad::Node* Overlay::Candidate() const {
  // Without a guest there is no client, and deleting the VM stops no work.
  if (!MayHaveInstance(view())) return nullptr;
  for (const std::size_t index : nodes_->unlinked_ready()) {
    if (replaced_ != index && CouldBeIt(nodes_->all()[index])) return &nodes_->all()[index];
  }
  // A node that was read again still belongs to the VM to which it was linked. It is a candidate
  // only if that was this VM, or none.
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
  const std::map<std::string, Allocations>& known = snapshot_.observation().allocations;
  const auto found = known.find(node_id);
  return found == known.end() ? nullptr : &found->second;
}

harvester::NodesRecord NodesRecordOf(const config::PoolPolicy& policy, const std::string& region,
                                     std::uint64_t index) {
  return {.region = region,
          .node_class = policy.node_class,
          .datacenter = policy.datacenter,
          .node_pool = policy.node_pool,
          .node_attribute = policy.node_attribute,
          .index = index};
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

bool BelongsToPool(const nomad::Node& node, const VmView& view, const SharedPolicy& policy) {
  return (view.vm->nodes.has_value() && IdentityOf(*view.vm->nodes).Contains(node)) ||
         (policy.has_value() && IdentityOf(*policy).Contains(node));
}

bool IsBroken(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot) {
  const Observation& observation = snapshot.observation();
  if (!IsNodeKnown(view, observation)) return false;
  if (HasOtherIdentifiers(view.vm, snapshot) || harvester::WasReady(view.vm)) return false;
  if (node != nullptr) {
    // While a guest is paused or migrates, a silent node is no evidence.
    if (nodepool::IsSilent(*node) && harvester::IsPausedOrMigrating(view.vm)) return false;
    // Its join must be recorded before it can be broken.
    if (!harvester::HasJoined(view.vm) || !WhyNotReady(view, *node, snapshot).has_value())
      return false;
  } else if (view.link.state != nodepool::LinkState::kNone) {
    return false;
  }
  return view.start_failure.has_value() || !view.start_refusal.ok() ||
         IsPastJoinDeadline(view, observation);
}

bool IsBroken(const VmView& view, const PoolSnapshot& snapshot) {
  return IsBroken(view, LinkedNode(view, snapshot), snapshot);
}

std::optional<std::string> WhyNotReady(const VmView& view, const nomad::Node& node,
                                       const PoolSnapshot& snapshot) {
  if (harvester::WasReady(view.vm)) {
    if (node.status == nomad::NodeStatus::kReady) return std::nullopt;
    return "it is " + nodepool::StatusText(node);
  }
  static const auto* const kNone = new std::vector<std::string>();
  return nodepool::WhyNotReady(
      node, snapshot.policy.has_value() ? snapshot.policy->ready_drivers : *kNone);
}

bool IsNodeReady(const VmView& view, const PoolSnapshot& snapshot) {
  const nomad::Node* const node = LinkedNode(view, snapshot);
  return node != nullptr && !WhyNotReady(view, *node, snapshot).has_value();
}

bool IsStuckInDeletion(const VmView& view, base::WallTime now) {
  const base::Duration limit = view.vm->termination_grace + std::chrono::minutes(10);
  return view.vm->deleted_at.has_value() &&
         now >= EndByTwoClocks(*view.vm->deleted_at + limit, limit, view.deleting_for, now);
}

std::optional<base::Duration> UnhealthyLimit(const harvester::VirtualMachine& vm,
                                             const config::PoolPolicy& policy, bool is_pending) {
  std::optional<base::Duration> limit = policy.replace_unhealthy_after;
  if (is_pending) limit = std::min(limit.value_or(policy.join_timeout), policy.join_timeout);
  if (limit.has_value() && harvester::IsInMaintenance(vm)) {
    limit = std::max(*limit, kMaintenanceLimit);
  }
  return limit;
}

bool IsUnhealthy(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot) {
  if (!snapshot.policy.has_value()) return false;
  const auto limit =
      UnhealthyLimit(view.vm, *snapshot.policy, IsPendingReplacement(view, snapshot));
  return limit.has_value() && view.unhealthy_for >= *limit &&
         MayBeUnhealthy(view, snapshot.observation()) && IsUnhealthyNode(view, node);
}

bool IsUnhealthy(const VmView& view, const PoolSnapshot& snapshot) {
  return IsUnhealthy(view, LinkedNode(view, snapshot), snapshot);
}

bool IsPoolMember(const VmView& view, const PoolSnapshot& snapshot) {
  return view.member && view.vm->ns == snapshot.key.ns && view.vm->pool == snapshot.key.pool;
}

bool StaysBeside(const VmView& old, const VmView& successor) {
  const std::optional<harvester::CancelledRemoval>& undone = old.vm->removal_undone;
  if (old.vm->has_mark || harvester::IsTerminating(old.vm)) return false;
  return (undone.has_value() && undone->at >= successor.vm->created_at) || old.stays_unrecorded;
}

bool IsPendingReplacement(const VmView& view, const PoolSnapshot& snapshot) {
  if (!view.vm->replaces.has_value()) return false;
  const VmView* const pending = snapshot.seen->ReplacementOf(view.vm->replaces->uid);
  return pending != nullptr && pending->vm->uid == view.vm->uid;
}

bool Counts(const VmView& view, const PoolSnapshot& snapshot) {
  return IsPoolMember(view, snapshot) && !view.vm->has_mark && !harvester::IsTerminating(view.vm) &&
         !IsBroken(view, snapshot) && !IsPendingReplacement(view, snapshot);
}

std::int64_t CountOf(const PoolSnapshot& snapshot) {
  return std::count_if(snapshot.vms().begin(), snapshot.vms().end(),
                       [&](const VmView* view) { return Counts(*view, snapshot); });
}

namespace {

absl::Status OfOtherCluster(const std::string& what, const Observation& observation) {
  return base::Unavailable(what +
                           " to another Nomad cluster than the one that answers, by the keys in "
                           "the annotation " +
                           harvester::kNomadClusterAnnotation +
                           (observation.nomad_cluster->empty()
                                ? "; this one does not tell its keys: let "
                                  "/.well-known/jwks.json through, or check nomad_address"
                                : "; check nomad_address, or, if Nomad was rebuilt, run "
                                  "nomad-harvester adopt"));
}

absl::Status CannotRead(const absl::Status& why) {
  return base::Unavailable("Nomad cannot be read: " + base::Message(why));
}

}  // namespace

bool IsOtherClusterByLease(const PoolSnapshot& snapshot) {
  return IsOtherCluster(snapshot.lease_cluster, snapshot.observation()) &&
         !CheckCluster(snapshot).ok();
}

std::string NewKeysForLease(const PoolSnapshot& snapshot) {
  const Observation& observation = snapshot.observation();
  const std::string& recorded = snapshot.lease_cluster;
  if (recorded.empty() || !observation.nomad_cluster.ok()) return "";
  const bool is_same = IsSameCluster(recorded, *observation.nomad_cluster);
  return is_same && LacksKey(recorded, *observation.nomad_cluster) ? *observation.nomad_cluster
                                                                   : "";
}

absl::Status CheckNomad(const PoolSnapshot& snapshot) {
  const absl::Status& nomad = snapshot.observation().nomad;
  return nomad.ok() ? CheckCluster(snapshot) : CannotRead(nomad);
}

absl::Status CheckCluster(const PoolSnapshot& snapshot) {
  const Observation& observation = snapshot.observation();
  if (!observation.nomad.ok()) return absl::OkStatus();
  const bool others_by_lease = IsOtherCluster(snapshot.lease_cluster, observation);
  bool has_record = false;
  std::int64_t others = 0;
  std::string first;
  for (const VmView* view : snapshot.vms()) {
    if (!IsPoolMember(*view, snapshot) || view->vm->nomad_cluster.empty()) continue;
    has_record = true;
    if (IsOtherCluster(view->vm, observation)) {
      if (others++ == 0) first = view->vm->name;
    } else if (!others_by_lease && !IsOtherNomad(view->vm, observation)) {
      // This Nomad is the right one; the VMs of the other are left alone and hold up nothing.
      return absl::OkStatus();
    }
  }
  // There are VMs of both clusters and a Lease of the other one: an adoption was interrupted before
  // it wrote the Lease.
  if (others > 0) {
    return OfOtherCluster(
        std::to_string(others) + " VMs of the pool, such as " + first + ", belong", observation);
  }
  // The Lease's record decides only if no VM of the pool has one.
  if (snapshot.lease_cluster.empty() || has_record) return absl::OkStatus();
  if (!observation.nomad_cluster.ok()) return CannotRead(observation.nomad_cluster.status());
  return others_by_lease ? OfOtherCluster("by its Lease the pool belongs", observation)
                         : absl::OkStatus();
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
