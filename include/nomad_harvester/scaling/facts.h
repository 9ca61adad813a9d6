// SPDX-License-Identifier: Apache-2.0
// The facts about one VM on which the rules decide: predicates, and the nodes they refer to.
// Computed once per Look. Pure.
#ifndef NOMAD_HARVESTER_SCALING_FACTS_H_
#define NOMAD_HARVESTER_SCALING_FACTS_H_

#include <optional>
#include <set>
#include <string>

#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// A node that has been down for this long, or whose instance does not run, is down for good: its
// work is lost (rule C5).
inline constexpr base::Duration kDownForGood = std::chrono::minutes(2);

// Nomad may still place work on a node while its drain begins. An allocation that wants to run
// there when the drain has been complete for this long was placed after it; only another drain
// stops it.
inline constexpr base::Duration kPlacedLate = std::chrono::seconds(10);

// If a client still runs an allocation that Nomad gave up as lost, it reports the allocation, which
// then is no longer lost (hashicorp/nomad:nomad/state/state_store.go, nestedUpdateAllocFromClient).
// If the allocation is still lost when the drain has been complete for this long, the client has
// lost it as well, and its task states are stale.
inline constexpr base::Duration kStaleLost = std::chrono::minutes(5);

// KubeVirt and Harvester remove a VM's finalizers within seconds after its guest has ended. If they
// have not done so after this time, the run strategy may be the cause (rule C4). Setting it to
// Halted does no harm to a VM that is being deleted.
inline constexpr base::Duration kHaltAfter = std::chrono::seconds(60);

// Facts about the pool as a whole. O(VMs).
struct PoolFacts {
  explicit PoolFacts(const PoolSnapshot& snapshot);

  // The unhealthy VMs, by uid, that max_unhealthy allows to replace: the first ones by name.
  std::set<std::string> may_replace;
};

// A null pointer means "none". Pointers refer to the Overlay, which must outlive the facts.
struct Facts {
  const Overlay* seen = nullptr;      // for the texts; null for a node whose VM is gone
  const nomad::Node* node = nullptr;  // the linked node; if the VM is gone, the VM's former node

  // Nomad, as the Look found it.
  bool nomad_readable = false;
  bool other_nomad = false;
  const std::string* nomad_problem = nullptr;

  // The facts are about a node whose last drain names a VM that no longer exists.
  bool vm_gone = false;
  // That drain is complete and asks for the purge, and the node is down. A node that is
  // disconnected or initializing may come back, and a cancelled drain removed nothing.
  bool purge_wanted = false;

  // The VM.
  bool terminating = false;
  // It has been terminating for kHaltAfter and is not Halted (rule C4). Its status may still name
  // an instance, because the quota also denies status updates.
  bool may_be_held_by_quota = false;
  bool member = false;
  bool joined = false;     // its node has registered
  bool was_ready = false;  // … and was ready at some time
  bool is_ready = false;   // its node is ready by rule C17
  bool recovered = false;  // likewise; drivers are ignored if there is no policy
  bool is_protected = false;
  bool has_deadline = false;  // it must be ready by a deadline
  bool broken = false;
  bool start_fails = false;
  bool ran = false;         // wait_for = "running", and its instance has run
  bool token_ends = false;  // not booted; its introduction token may expire before it does
  bool unhealthy = false;
  // Its node is disconnected, and an allocation on it is still within the time that its group
  // allows.
  bool may_come_back = false;
  // Its node is disconnected, and it is not proved that the token can read the allocations of every
  // namespace.
  bool unproven = false;
  // Its node is disconnected, and neither may_come_back nor unproven holds, judging by the
  // allocations that were read.
  bool cut_off = false;
  // Its node is draining for a reason other than its removal.
  bool maintained = false;
  // The drain for its removal was cancelled within the last hour.
  bool canceled_lately = false;
  // One of maintained, canceled_lately, may_come_back and unproven is true: the VM is kept for now.
  bool kept = false;
  // The policy removes broken VMs like this one, or unhealthy ones. Never true in a dry run or
  // while the VM is kept.
  bool may_remove_broken = false;
  bool may_replace = false;
  bool dry_run = false;
  // It is unhealthy, and its replacement does not exist yet (rule R1).
  bool awaits_replacement = false;
  // The VM that replaces it; the next fields are about the two.
  const VmView* successor = nullptr;
  // The successor's node is ready and eligible, and nothing keeps this VM.
  bool gives_way = false;
  // Why this VM stays although its successor was ready.
  std::string stays_because{};
  // It stays Halted until the VM that it replaces is gone (rule R8); the next fields are about that
  // old VM.
  bool waits_to_start = false;
  bool may_start = false;        // the old VM is gone, or no longer in the pool
  bool started_by_hand = false;  // an operator has started it before
  bool not_needed = false;       // the old VM stays
  // Its record of the Nomad cluster lacks a key that the cluster has meanwhile added.
  bool record_cluster = false;
  bool record_node = false;  // it has joined as another node
  // Its node is ready, and the metadata that the policy asks for differs from the published
  // metadata.
  bool publish = false;
  // Its node is ready and has published metadata, but the policy asks for none.
  bool unpublish = false;

  // The VM's link.
  bool ambiguous = false;
  bool contradicted = false;
  bool no_node = false;  // no node has its name
  const nomad::Node* candidate = nullptr;

  // Nodes drained for this VM, linked or not.
  const nomad::Node* draining = nullptr;
  bool draining_was_ineligible = false;
  const nomad::Node* drained = nullptr;  // complete; ineligible because of us; not recorded yet
  const nomad::Node* undone = nullptr;   // its own node: our drain was undone; not recorded yet

  // The VM's mark.
  bool marked = false;
  bool mark_readable = false;
  bool of_another = false;  // it names another uid: the VM was restored, or replaced by a copy
  bool for_unhealthy = false;
  bool for_broken = false;
  bool named = false;  // the Lease's action names it, or need not
  bool node_gone = false;
  bool taken_back = false;  // the Lease's action takes it back (rule L6)
  // A scale-in removal whose drain or deletion has been refused for 60 s, while its mark can still
  // be removed (rule L3).
  bool removal_refused = false;
  // Past the drain's deadline and grace by the API server's clock and, if the drain is running,
  // also by this process' observation. A removal for a reason other than scale-in is not late while
  // its drain can still be posted (rule L3).
  bool late = false;
  // A scale-in that is 10 s past its timed deadline although none of our drains was ever posted
  // (rule C9).
  bool never_begun = false;
  bool force = false;
  // Time until which a VM that could otherwise be deleted is held (rule C18); unset: not held.
  std::optional<base::WallTime> held_until{};

  // The node that the mark names.
  bool foreign_drain = false;
  bool ours = false;      // its last drain is the mark's
  bool canceled = false;  // … and was cancelled
  bool complete = false;  // … and is complete, according to Nomad
  bool down_for_good = false;
  // Disconnected for kDownForGood, or while its instance does not run; and no allocation on it is
  // still within the time that its group allows.
  bool cut_off_for_good = false;
  bool idle = false;
  bool placed_late = false;  // its drain is complete, and an allocation wants to run there
  // It is initializing, was never seen ready, and has no allocation.
  bool never_used = false;
  bool ineligible_by_others = false;  // ineligible for a reason other than an active drain of ours
};

// If `pool` is null, the facts about the pool are computed when they are needed, which is only for
// an unhealthy VM.
Facts FactsOf(const Overlay& seen, const PoolFacts* pool);
// The facts about a node whose last drain names a VM that no longer exists.
Facts FactsOfGoneVm(const OrphanedNode& gone, const PoolSnapshot& snapshot);
// True if the VM is gone but its node, a node of the pool, must be purged once its drain is
// complete and it is down.
bool AwaitsPurge(const OrphanedNode& gone, const PoolSnapshot& snapshot);

// True if a drain posted now would take effect: the client receives it, or has nothing to stop.
bool CanDrain(const nomad::Node& node);

// drain_deadline + grace; unset: the drain has no deadline.
std::optional<base::WallTime> LateAt(const harvester::Mark& mark);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_FACTS_H_
