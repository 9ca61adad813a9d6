// SPDX-License-Identifier: Apache-2.0
// The known state of a namespace's VMs and of Nomad's nodes at one moment.
//
// An Observation is the data that was read, plain. A Snapshot is an Observation with its indexes,
// immutable and shared by pointer, so that no VM, act or pool copies it. A PoolSnapshot adds the
// state of one pool. An Overlay is one of its VMs, with the objects that an act has read again.
#ifndef NOMAD_HARVESTER_SCALING_SNAPSHOT_H_
#define NOMAD_HARVESTER_SCALING_SNAPSHOT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/nomad/types.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

struct PoolKey {
  std::string ns;
  std::string pool;
  // "default/web": in logs, errors and the Meta of our drains.
  std::string ToString() const { return ns + "/" + pool; }
  // NOLINTNEXTLINE(modernize-use-nullptr): LLVM 14 takes the generated comparison with 0 for one.
  friend auto operator<=>(const PoolKey&, const PoolKey&) = default;
};

// A VM as read. Copies share the object, and an Observation shares the list that a Status holds,
// because a thousand VMs take 4 MiB. Cheap to copy; thread-safe to read.
class SharedVm {
 public:
  SharedVm();
  // NOLINTNEXTLINE(google-explicit-constructor): a VM that was read alone is one, too.
  SharedVm(harvester::VirtualMachine vm);
  // Not null.
  explicit SharedVm(std::shared_ptr<const harvester::VirtualMachine> vm) : vm_(std::move(vm)) {}

  const harvester::VirtualMachine& operator*() const { return *vm_; }
  const harvester::VirtualMachine* operator->() const { return vm_.get(); }
  // NOLINTNEXTLINE(google-explicit-constructor): functions about a VM take it as it is.
  operator const harvester::VirtualMachine&() const { return *vm_; }
  // Returns a private copy that may be changed until the next call, or until this object is copied.
  harvester::VirtualMachine& Change();

 private:
  std::shared_ptr<const harvester::VirtualMachine> vm_;
};

// A pool's policy, or none. Copies share it, because every tick, Observation and pool has one.
// Thread-safe to read.
class SharedPolicy {
 public:
  SharedPolicy() = default;
  // NOLINTBEGIN(google-explicit-constructor): what knows a policy, or may, has it in one of these.
  SharedPolicy(config::PoolPolicy policy)
      : policy_(std::make_shared<const config::PoolPolicy>(std::move(policy))) {}
  SharedPolicy(const std::optional<config::PoolPolicy>& policy) {
    if (policy.has_value()) *this = SharedPolicy(*policy);
  }
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const { return policy_ != nullptr; }
  const config::PoolPolicy& operator*() const { return *policy_; }
  const config::PoolPolicy* operator->() const { return policy_.get(); }

 private:
  std::shared_ptr<const config::PoolPolicy> policy_;
};

// A VM of the observed namespace, and further knowledge about it.
struct VmView {
  SharedVm vm;
  bool member = false;
  nodepool::Link link;
  // True if GET by ID of the mark's node, without `stale`, returned 404.
  bool node_gone = false;
  // Set if the VM has no node and a node that could be its node could not be read in full: says
  // which one, and why. See IsReadable.
  std::string unread_node;
  // The node as which it joined has been down for kDownForGood, while its guest ran: its client may
  // have registered anew (rule C6).
  bool node_is_lost = false;
  // Whether KubeVirt runs an instance of the VM, and its addresses; unset if the instances were not
  // read.
  std::optional<bool> instance_runs;
  std::vector<std::string> addresses;
  // The instance of a VM that has not joined, if the instances were read and there is one.
  std::optional<harvester::VirtualMachineInstance> instance;
  // The Harvester host on which its guest runs (empty: unknown), and that host's zone (empty: none;
  // unset: unknown).
  std::string host{};
  std::optional<std::string> host_zone{};
  // The cordoned host that the VM must leave (rule R7). Empty: it may stay.
  std::string host_to_leave{};
  // For how long this process has observed, without interruption:
  base::Duration known_for{};             // the VM
  base::Duration nomad_unreadable_for{};  // of that, that Nomad could not be read (rule C15)
  base::Duration node_down_for{};         // its node down or disconnected
  base::Duration drain_known_for{};       // the drain of its mark, whether it runs or is complete
  base::Duration node_drained_for{};      // that drain complete
  base::Duration unhealthy_for{};         // LooksUnhealthy
  base::Duration awaited_for{};  // that it is unhealthy and waits only for its replacement (C17)
  base::Duration held_for{};     // that only its holds keep it from being deleted (C18)
  // Likewise that it is in deletion; of one that was in deletion before: for ever.
  base::Duration deleting_for = base::Duration::max();
  // This process has also observed the namespace before the VM existed.
  bool seen_new = false;
  // What holds the drain of its mark, once it is slow: "job web (server)". Empty: not known.
  std::string drain_held_by{};
  // How long until the introduction token of a VM that has not booted must be renewed or checked
  // (kRenewToken); unset: unknown to this process.
  std::optional<base::Duration> token_check_in;
  // Set once the failing status counts (rule C3).
  std::optional<harvester::StartFailure> start_failure;
  // The scheduler's current message about its pod, while KubeVirt calls it unschedulable.
  std::string pod_message{};
  // The last warning of Kubernetes or CDI about one of its volumes while its guest does not start.
  std::string volume_warning{};
  // For how long this process remembers refusals (rule L3; zero: none) of:
  base::Duration removal_refused_for{};     // its drain or deletion
  base::Duration giving_way_refused_for{};  // its mark in favour of its replacement (rule R6)
  base::Duration token_refused_for{};       // its new token
  // The last refusal of its start after its predecessor's end, once it has lasted (rule R8).
  absl::Status start_refusal{};
  bool unmarking_refused = false;
  // It stays beside its replacement, and recording that has also been refused for a minute.
  bool stays_unrecorded = false;
};

using Allocations = std::vector<nomad::Allocation>;

struct AllocationList {
  // By node ID; a missing node has none.
  std::map<std::string, Allocations> by_node;
  // True if the token cannot read the allocations of every namespace: an empty list then proves
  // nothing (rule C9).
  bool incomplete = false;
};

// A list of Nomad's nodes, shared between observations.
using NodeList = std::shared_ptr<const std::vector<nomad::Node>>;

struct Observation {
  // The API server's clock when the VMs were read, corrected by ObserverMemory::Apply, and this
  // machine's clock.
  base::WallTime now{};
  base::WallTime own_now = base::WallTime::max();
  // The uid of the namespace, which identifies the Harvester cluster. Empty: unknown, for example
  // without the right to read it.
  std::string harvester;
  // True if the uid could not be read yet, so that the nodes this cluster may purge are unknown
  // (rule C4).
  bool harvester_unread = false;
  // All VMs of the namespace that were read, of any pool.
  std::vector<VmView> vms;
  // The observed pool. Empty: all pools.
  std::string pool;
  // The caller's, which also links a VM that has no record of its own.
  SharedPolicy policy;

  // The node on which the autoscaler itself runs; empty: none, or not known.
  std::string own_node_id;
  absl::Status own_node_problem{};  // why it was not read, and may be another one
  // The token is proved to read the allocations of every namespace. Checked only when a decision
  // depends on it.
  bool allocations_complete = false;

  // OK if Nomad was read; otherwise why nothing is known of its nodes.
  absl::Status nomad = base::Unavailable("not read");
  std::string region;  // the configured one; empty: none
  // Nomad's keys (nomad::NomadClient::ReadClusterKeys).
  absl::StatusOr<std::string> nomad_cluster = base::Unavailable("not read");
  std::uint64_t nomad_index = 0;
  NodeList node_list;  // every node, not only the pool's; null: none
  // Of the nodes that must be idle, by node ID. A node without allocations has an empty entry.
  std::map<std::string, Allocations> allocations;

  // How long this process has observed nodes initializing, by node ID.
  std::map<std::string, base::Duration> initializing_for;

  // Set by Link.
  std::optional<nodepool::Linker> linker;
  std::vector<bool> node_is_linked;  // per node: some VM of the namespace has it

  const std::vector<nomad::Node>& nodes() const;
  void SetNodes(std::vector<nomad::Node> nodes) {
    node_list = std::make_shared<const std::vector<nomad::Node>>(std::move(nodes));
  }
};

// Returns an empty Observation at a pool for a caller with this region and policy.
Observation EmptyObservation(const std::string& region, const std::string& pool,
                             const SharedPolicy& policy);
// Replaces the VMs of an Observation by those of a list, and keeps the list. Not null.
using VmList = std::shared_ptr<const std::vector<harvester::VirtualMachine>>;
void SetVms(const VmList& vms, Observation* observation);

// Links the VMs and nodes of an Observation: sets every `link`, `linker` and `node_is_linked`. Call
// it again after completing a node. O(VMs + nodes).
void Link(Observation* observation);

// The node that the VM links to; null unless the link is unambiguous.
const nomad::Node* LinkedNode(const VmView& view, const Observation& observation);
// True if that drain was for a VM of this Harvester cluster, as far as is known; another cluster
// may have a pool of the same name.
bool IsOfThisHarvester(const nodepool::DrainMark& drain, const Observation& observation);
// True if the Observation shows whether the VM has a node: Nomad was readable, and so was every
// node that could be the VM's. Otherwise the VM counts as neither broken nor unhealthy nor lost.
bool IsReadable(const VmView& view, const Observation& observation);
// IsReadable, and not IsOtherNomad.
bool IsNodeKnown(const VmView& view, const Observation& observation);
// True if two results of ReadClusterKeys belong to one cluster: they share a key, or both are
// empty.
bool IsSameCluster(std::string_view a, std::string_view b);
// True if `record` shares no key with the Nomad cluster that was read. False without a record, and
// while the keys are unknown.
bool IsOtherCluster(std::string_view record, const Observation& observation);
// The same for a VM's record. False for a VM of another region, which has its own keys.
bool IsOtherCluster(const harvester::VirtualMachine& vm, const Observation& observation);
// True if the cluster's keys must be recorded in the VM: its record lacks one, and its node or a
// shared key proves that it belongs to this cluster.
bool ShouldRecordCluster(const harvester::VirtualMachine& vm, bool has_node,
                         const Observation& observation);
// IsOtherCluster, or its node is in another Nomad region than the configured one. An unset region
// equals every region.
bool IsOtherNomad(const harvester::VirtualMachine& vm, const Observation& observation);
// True if KubeVirt has an instance of the VM, according to the VM's status or, if it was read, the
// instance.
bool MayHaveInstance(const VmView& view);
// The time by which the VM must be ready; nothing: it has no deadline (rule C15).
std::optional<base::WallTime> JoinDeadline(const VmView& view);
// The clocks of API servers may differ by this much.
inline constexpr base::Duration kUsualSkew = std::chrono::minutes(1);
// True if `at` is less than `limit` ago. A wrong clock wrote what is further in the future.
inline bool IsWithin(base::WallTime at, base::Duration limit, base::WallTime now) {
  return now - at < limit && at - now <= kUsualSkew;
}
// When a time-out ends by two clocks (rule C9): not before `end` by the API server's clock, of
// which `now` is the present time, and not before this process has observed it for `limit`.
base::WallTime EndByTwoClocks(base::WallTime end, base::Duration limit, base::Duration observed_for,
                              base::WallTime now);
// True if `end` has passed by the API server's clock, and by this machine's or because this process
// has known the VM for `limit`. For what may have begun before this process (rule C9).
bool HasPassed(base::WallTime end, base::Duration limit, const VmView& view,
               const Observation& observation);
// True if JoinDeadline has passed by two clocks (rule C15).
bool IsPastJoinDeadline(const VmView& view, const Observation& observation);
// True for a member that was ready, or that has joined and has no deadline, if its node is not
// ready now, or gone. False unless IsNodeKnown, and while its guest is paused or migrates.
bool LooksUnhealthy(const VmView& view, const Observation& observation);

// A node that we last drained, for a VM of any pool that is not in the snapshot.
struct OrphanedNode {
  const nomad::Node* node = nullptr;
  nodepool::DrainMark mark{};
};

// Counts members that were ready and whose guest runs but that have no ready node (rule C15). A
// marked VM counts if its node has a drain of ours: drains are only posted on nodes that are up, so
// the node was lost after it. Not computed while Nomad cannot be read.
struct MassLoss {
  std::int64_t lost = 0;
  std::int64_t of = 0;
  bool alarming = false;
};

class Snapshot;

// An index over the nodes of one list. Immutable.
class NodeSet {
 public:
  // The nodes of `observation`, which are linked to the VMs of the snapshot. O(nodes), and no
  // allocation for each.
  NodeSet(const Observation& observation, const Snapshot& vms);
  NodeSet(const NodeSet&) = delete;
  NodeSet& operator=(const NodeSet&) = delete;

  const std::vector<nomad::Node>& all() const { return *nodes_; }
  const nodepool::Linker& linker() const { return linker_; }
  // Returns the index of the node; nullopt if the list has no such node. O(nodes).
  std::optional<std::size_t> Find(std::string_view id) const;
  // Every node, linked or not, that we last drained for a VM of the snapshot or for the predecessor
  // in whose place it was restored. Entries are (VM index, node index), sorted.
  using Drained = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const Drained& drained() const { return drained_; }
  // The entries of drained() for one VM.
  std::span<const Drained::value_type> DrainedFor(std::size_t vm) const;
  // In the order of the list.
  const std::vector<OrphanedNode>& orphaned_nodes() const { return orphaned_nodes_; }
  // `node` is an element of all().
  std::size_t IndexOf(const nomad::Node& node) const {
    return static_cast<std::size_t>(&node - nodes_->data());
  }
  bool IsLinked(std::size_t node) const { return is_linked_[node]; }
  // Ready nodes that are linked to no VM of the namespace.
  const std::vector<std::size_t>& unlinked_ready() const { return unlinked_ready_; }
  // True if several of them have this meta.harvester_vm_uuid.
  bool IsSharedUuid(std::string_view uuid) const;

 private:
  const NodeList nodes_;
  nodepool::Linker linker_;
  std::vector<bool> is_linked_;
  Drained drained_;
  std::vector<OrphanedNode> orphaned_nodes_;
  std::vector<std::size_t> unlinked_ready_;
  // How many of them have each meta.harvester_vm_uuid.
  absl::flat_hash_map<std::string_view, int, std::hash<std::string_view>> uuids_;
};

class Snapshot {
 public:
  // Links the Observation unless it is linked already. O(VMs + nodes).
  explicit Snapshot(Observation observation);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  const Observation& observation() const { return observation_; }
  const NodeSet& nodes() const { return *nodes_; }
  // Null if there is none.
  const VmView* FindVm(std::string_view name) const { return Find(by_name_, name); }
  const VmView* FindVmByUid(std::string_view uid) const { return Find(by_uid_, uid); }
  // `view` is an element of observation().vms.
  std::size_t IndexOf(const VmView& view) const {
    return static_cast<std::size_t>(&view - observation_.vms.data());
  }
  // The VMs that carry the pool's label, in the order of the list, members or not.
  const std::vector<const VmView*>& VmsOfPool(std::string_view pool) const {
    return PoolNamed(pool).vms;
  }
  const MassLoss& MassLossOf(std::string_view pool) const { return PoolNamed(pool).loss; }
  // The VM that replaces the one with this uid and does not count before that one is marked or gone
  // (rule R1); null: none.
  const VmView* ReplacementOf(std::string_view uid) const { return Find(by_replaced_uid_, uid); }
  // Claims that more than one VM uses.
  const std::set<std::string>& shared_claims() const { return shared_claims_; }

 private:
  template <typename Value>
  using Index = absl::flat_hash_map<std::string_view, Value, std::hash<std::string_view>>;
  struct PoolVms {
    std::vector<const VmView*> vms;
    MassLoss loss;
  };
  static const VmView* Find(const Index<const VmView*>& index, std::string_view key);
  const PoolVms& PoolNamed(std::string_view pool) const;
  void Add(const VmView& view);
  void AddReplacement(const VmView& view);

  Observation observation_;
  Index<const VmView*> by_name_;
  Index<const VmView*> by_uid_;
  Index<const VmView*> by_replaced_uid_;
  Index<PoolVms> by_pool_;
  std::set<std::string> shared_claims_;
  std::optional<NodeSet> nodes_;
};

// A snapshot with the state of one of its pools. Cheap to copy.
struct PoolSnapshot {
  PoolKey key;
  std::shared_ptr<const Snapshot> seen;

  // The policy of the pool, if the process knows one.
  SharedPolicy policy;
  // The Lease's action.
  std::optional<harvester::LeaseAction> action;
  // The Nomad cluster that the pool's Lease names; empty: none.
  std::string lease_cluster{};
  // An operator is collecting the pool (harvester gc), with a Nomad that may not be the pool's
  // (rule C15).
  bool collected = false;

  const Observation& observation() const { return seen->observation(); }
  base::WallTime now() const { return observation().now; }
  // The earlier of the API server's clock and this machine's: for times that people write, which
  // must have passed by both, and for those that the agent compares with this machine's clock.
  base::WallTime earlier_now() const { return std::min(observation().now, observation().own_now); }
  const std::vector<nomad::Node>& nodes() const { return seen->nodes().all(); }
  // The VMs that carry the pool's label, members or not.
  const std::vector<const VmView*>& vms() const { return seen->VmsOfPool(key.pool); }
  const MassLoss& mass_loss() const { return seen->MassLossOf(key.pool); }
  const std::vector<OrphanedNode>& orphaned_nodes() const { return seen->nodes().orphaned_nodes(); }
};

// One VM of a snapshot, with the objects that an act has read again. Refers to the snapshot, which
// must outlive it.
class Overlay {
 public:
  // `view` is an element of the snapshot.
  Overlay(const PoolSnapshot& snapshot, const VmView& view)
      : snapshot_(snapshot), base_(view), nodes_(&snapshot.seen->nodes()) {}
  Overlay(Overlay&&) = default;
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // Objects that were read again. Each replaces the earlier state.
  void SetVm(harvester::VirtualMachine vm);
  void SetInstance(bool runs);
  // Result of GET by ID of the mark's node.
  void SetMarksNodeGone(bool gone);
  // The whole list. O(nodes + VMs), because any VM may have another node by now.
  void SetNodes(NodeList nodes);
  // One node of the list; unset: it no longer exists. A node that is not in the list is ignored: it
  // registered later, and the next observation links it. O(nodes with the name of the VM).
  void SetNode(const std::string& id, std::optional<nomad::Node> node);
  void SetAllocations(const std::string& node_id, Allocations allocations);

  const PoolSnapshot& snapshot() const { return snapshot_; }
  const VmView& view() const { return vm_.has_value() ? *vm_ : base_; }
  base::WallTime now() const { return snapshot_.now(); }
  // The node that the VM links to; null unless the link is unambiguous.
  const nomad::Node* node() const;
  std::vector<const nomad::Node*> NodesDrainedForIt() const;
  // A ready node of the pool that is linked to no VM of the namespace and is younger than this VM,
  // so that it could be the VM under another name. Null if there is none, or if the VM has no
  // instance that could be a client. O(unlinked nodes).
  const nomad::Node* Candidate() const;
  // Null if they were not read.
  const Allocations* AllocationsOf(const std::string& node_id) const;

 private:
  VmView& MutableView();
  const nomad::Node* At(std::size_t index) const;  // null: it no longer exists
  bool CouldBeIt(const nomad::Node& node) const;

  const PoolSnapshot& snapshot_;
  const VmView& base_;
  std::optional<VmView> vm_;
  const NodeSet* nodes_;
  std::unique_ptr<const NodeSet> read_nodes_;
  // The VM's link according to the list alone, before a single node was read after it.
  std::optional<nodepool::Link> list_link_;
  // The node that was read on its own after the list.
  std::optional<std::size_t> replaced_;
  std::optional<nomad::Node> node_;
  std::map<std::string, Allocations> allocations_;
};

// The record of the nodes of VMs that are made of the policy. `index`: Nomad's when the VM is made.
harvester::NodesRecord NodesRecordOf(const config::PoolPolicy& policy, const std::string& region,
                                     std::uint64_t index = 0);
// The identity that a VM's own `nodes` record names, or the policy.
nodepool::PoolIdentity IdentityOf(const harvester::NodesRecord& nodes);
nodepool::PoolIdentity IdentityOf(const config::PoolPolicy& policy);
// True if the node is a member of the pool by the VM's own record or the policy.
bool BelongsToPool(const nomad::Node& node, const VmView& view, const SharedPolicy& policy);

// A refusal that lasts this long ends the work of a call on this VM (rule L3).
inline constexpr base::Duration kRefusedForGood = std::chrono::seconds(60);

// True for a VM that was never ready and is past its join deadline or fails to start (rules C3,
// C15, C17), if it has no node, or has joined and its node is not ready. False unless IsNodeKnown,
// for a VM with other node identifiers than the policy's, and while its guest is paused or migrates
// and its node is silent. `node`: its node by now.
bool IsBroken(const VmView& view, const PoolSnapshot& snapshot);
bool IsBroken(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot);
// Says why the VM is not ready on its linked node; unset: it is ready. A VM that was ready before
// only needs a node with the status ready; a new one must meet the rest of rule C17, too.
std::optional<std::string> WhyNotReady(const VmView& view, const nomad::Node& node,
                                       const PoolSnapshot& snapshot);
// True if the VM has a linked node and is ready on it.
bool IsNodeReady(const VmView& view, const PoolSnapshot& snapshot);
// A member that is neither marked nor terminating nor broken: counted by Status (rule S1).
bool Counts(const VmView& view, const PoolSnapshot& snapshot);
// True for a VM that replaces another one which is neither marked nor gone yet.
bool IsPendingReplacement(const VmView& view, const PoolSnapshot& snapshot);
// True if `old` was to be replaced by `successor` but stays (rule R6): its annotation says so, or
// it accepts no write at all.
bool StaysBeside(const VmView& old, const VmView& successor);
// How many VMs of the pool count.
std::int64_t CountOf(const PoolSnapshot& snapshot);
// True for a terminating VM whose guest's grace period ended more than ten minutes ago (rule S2).
bool IsStuckInDeletion(const VmView& view, base::WallTime now);
// A VM that Harvester stopped for its host's maintenance does not count as unhealthy for this long.
inline constexpr base::Duration kMaintenanceLimit = std::chrono::hours(2);
// How long an unhealthy VM stays unmarked while its replacement does not exist (rule C17).
inline constexpr base::Duration kReplacementWait = std::chrono::seconds(60);
// How long a VM that was ready may be not ready: replace_unhealthy_after. One with the annotation
// `replaces` at most join_timeout, which decides until it has taken its place (rule R5). Unset:
// for ever.
std::optional<base::Duration> UnhealthyLimit(const harvester::VirtualMachine& vm,
                                             const config::PoolPolicy& policy, bool is_pending);
// LooksUnhealthy for at least UnhealthyLimit, respecting kMaintenanceLimit.
bool IsUnhealthy(const VmView& view, const PoolSnapshot& snapshot);
bool IsUnhealthy(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot);
// True for a member of the observed pool.
bool IsPoolMember(const VmView& view, const PoolSnapshot& snapshot);

inline const nomad::Node* LinkedNode(const VmView& view, const PoolSnapshot& snapshot) {
  return LinkedNode(view, snapshot.observation());
}
// True if the pool belongs to another Nomad cluster, and its Lease, as this process knows it, says
// so as well.
bool IsOtherClusterByLease(const PoolSnapshot& snapshot);
// Returns the keys to write on a Lease whose own keys lack one of them but share another. Empty:
// nothing to write. A Lease without keys gets them from a Scale.
std::string NewKeysForLease(const PoolSnapshot& snapshot);
// UNAVAILABLE if nothing can be concluded from Nomad's data about this pool: Nomad could not be
// read, or the pool belongs to another cluster.
absl::Status CheckNomad(const PoolSnapshot& snapshot);
// UNAVAILABLE if the pool belongs to another Nomad cluster by the records of its VMs and its Lease
// (rule C15), or if those of its Lease decide and Nomad's keys were not read. OK if Nomad could not
// be read.
absl::Status CheckCluster(const PoolSnapshot& snapshot);
// Nodes of the policy's pool that are linked to no VM of the namespace.
std::vector<const nomad::Node*> UnlinkedNodes(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SNAPSHOT_H_
