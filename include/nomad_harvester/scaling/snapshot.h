// SPDX-License-Identifier: Apache-2.0
// One observation of a pool: everything that a decision may use, as plain data.
#ifndef NOMAD_HARVESTER_SCALING_SNAPSHOT_H_
#define NOMAD_HARVESTER_SCALING_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/config/pool_policy.h"
#include "nomad_harvester/harvester/virtual_machine.h"
#include "nomad_harvester/nodepool/drain.h"
#include "nomad_harvester/nodepool/identity.h"
#include "nomad_harvester/nodepool/link.h"
#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::scaling {

struct PoolKey {
  std::string ns;
  std::string pool;
  // "default/web": in logs, errors and the Meta of our drains.
  std::string ToString() const { return ns + "/" + pool; }
  // NOLINTNEXTLINE(modernize-use-nullptr): LLVM 14 takes the generated comparison with 0 for one.
  friend auto operator<=>(const PoolKey&, const PoolKey&) = default;
};

// A VM of the observed namespace and what is known about it besides its object.
struct VmView {
  harvester::VirtualMachine vm;
  bool member = false;
  nodepool::Link link;
  // GET by ID of the mark's node answered 404 without `stale`.
  bool node_gone = false;
  // For how long this process has observed the linked node down, without interruption. Measured
  // here, because the clocks of Nomad and Harvester need not agree; after a restart the wait starts
  // again.
  base::Duration node_down_for{};
  // Whether KubeVirt runs an instance of it, and its addresses; unknown if the instances were not
  // read.
  std::optional<bool> instance_runs;
  std::vector<std::string> addresses;
  // For how long this process has observed LooksUnhealthy, without interruption.
  base::Duration unhealthy_for{};
  // Set once the failing status has lasted for 60 s, or immediately for a halt by quota (rule C3).
  std::optional<harvester::StartFailure> start_failure;
};

struct PoolSnapshot {
  PoolKey key;
  // The API server's clock when the VMs were read.
  base::WallTime now{};
  // All VMs of the namespace that were read, including those of other pools than `key.pool`.
  std::vector<VmView> vms;

  bool nomad_readable = false;
  std::string nomad_problem;  // why it is not readable
  std::string region;         // the configured one; empty: none
  std::uint64_t nomad_index = 0;
  std::vector<nomad::Node> nodes;    // every node, not only the pool's
  std::vector<bool> node_is_linked;  // per node: some VM of the namespace has it
  // By node ID; a node that was queried and has none has an empty entry.
  std::map<std::string, std::vector<nomad::Allocation>> allocations;
  // The token cannot read allocations of every namespace: an empty list proves nothing (rule C9).
  bool allocations_incomplete = false;

  // The Lease's action, if a Lease is used. Without one (pool_lease = "false", or forbidden) the
  // row about its names is skipped.
  bool lease_used = false;
  std::optional<harvester::LeaseAction> action;

  // Time for which this process found Nomad unreadable, by VM name: it does not count towards the
  // join deadline (rule C15).
  std::map<std::string, base::Duration> nomad_unreadable_for;

  // The policy of the pool, if the process knows one.
  std::optional<config::PoolPolicy> policy;
};

// The identity that the VM's own `nodes` record names, else the policy's.
nodepool::PoolIdentity IdentityOf(const harvester::NodesRecord& nodes);
nodepool::PoolIdentity IdentityOf(const config::PoolPolicy& policy);

// Whether the VM's node is in another Nomad region than the configured one. An unset region
// equals every region.
bool IsOtherRegion(const harvester::VirtualMachine& vm, const std::string& region);

// The time by which the VM must have joined; nothing: it has no deadline (rule C15).
std::optional<base::WallTime> JoinDeadline(const VmView& view, const PoolSnapshot& snapshot);
// Never joined, no node links to it, and it is past its join deadline or its start fails. Never
// while Nomad is unreadable, or in another region.
bool IsBroken(const VmView& view, const PoolSnapshot& snapshot);
// A member that is neither marked nor terminating nor broken: counted by Status (rule S1).
bool Counts(const VmView& view, const PoolSnapshot& snapshot);
// A terminating VM whose guest's grace period has passed by more than ten minutes: an operator must
// check it, because its finalizers are Harvester's to remove (rule S2).
bool IsStuckInDeletion(const harvester::VirtualMachine& vm, base::WallTime now);
// How long a VM may be terminating before it is stuck.
base::Duration DeletionTimeout(const harvester::VirtualMachine& vm);
// A member that has joined, whose node is down or no longer exists and whose VM does not run, in
// this observation. Never while Nomad is unreadable, or in another region.
bool LooksUnhealthy(const VmView& view, const PoolSnapshot& snapshot);
// LooksUnhealthy for at least replace_unhealthy_after.
bool IsUnhealthy(const VmView& view, const PoolSnapshot& snapshot);
// A member, and of the observed pool.
bool IsPoolMember(const VmView& view, const PoolSnapshot& snapshot);

// The node that the VM links to; null unless the link is unambiguous.
const nomad::Node* LinkedNode(const VmView& view, const PoolSnapshot& snapshot);
// A ready node of the pool that is linked to no VM of the namespace and is younger than this VM: it
// could be the VM under another name. Null if there is none.
const nomad::Node* UnlinkedCandidate(const VmView& view, const PoolSnapshot& snapshot);
// Every node, linked or not, whose last drain was for this VM.
std::vector<const nomad::Node*> NodesDrainedFor(const VmView& view, const PoolSnapshot& snapshot);
// A node whose last drain was ours, for a VM of any pool that is not in the snapshot.
struct NodeOfGoneVm {
  const nomad::Node* node = nullptr;
  nodepool::DrainMark mark;
};
std::vector<NodeOfGoneVm> NodesOfGoneVms(const PoolSnapshot& snapshot);
// Nodes of the policy's pool that are linked to no VM of the namespace.
std::vector<const nomad::Node*> UnlinkedNodes(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_SNAPSHOT_H_
