// SPDX-License-Identifier: Apache-2.0
// The facts about one VM that the rules use: predicates, and the nodes that they concern. They are
// computed once per look. Pure.
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

// Nomad may place work on a node while its drain begins. Once the drain has been complete for this
// long, an allocation that is to run there was placed after it, and only another drain stops it.
inline constexpr base::Duration kPlacedLate = std::chrono::seconds(10);

// If a client still has an allocation that Nomad gave up as lost, it reports the allocation, which
// is then not lost any more (hashicorp/nomad:nomad/state/state_store.go,
// nestedUpdateAllocFromClient). If the allocation is still lost when the drain has been complete
// for this long, the client has lost it, too, and the states of its tasks are stale.
inline constexpr base::Duration kStaleLost = std::chrono::minutes(5);

// KubeVirt and Harvester remove the finalizers of a VM within seconds of the end of its guest.
// After this time its run strategy may be the cause (rule C4); Halted does no harm to a VM that is
// being deleted.
inline constexpr base::Duration kHaltAfter = std::chrono::seconds(60);

// About the pool as a whole. O(VMs).
struct PoolFacts {
  explicit PoolFacts(const PoolSnapshot& snapshot);

  // The unhealthy VMs, by uid, that max_unhealthy allows to replace: the first ones by name.
  std::set<std::string> may_replace;
};

// A pointer that is null means "none". Pointers refer to the overlay, which must outlive the facts.
struct Facts {
  const Overlay* seen = nullptr;      // for the texts; null for a node whose VM is gone
  const nomad::Node* node = nullptr;  // the linked node; of a VM that is gone: its node

  // Nomad, as the look found it.
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
  // It has been terminating for kHaltAfter, and is not Halted (rule C4). Its status may still name
  // an instance: the quota denies writes of the status, too.
  bool may_be_held_by_quota = false;
  bool member = false;
  bool joined = false;     // its node has registered
  bool was_ready = false;  // … and was ready at some time
  bool is_ready = false;   // its node is ready by rule C17
  bool recovered = false;  // likewise; without a policy, drivers are ignored
  bool is_protected = false;
  bool has_deadline = false;  // it has a deadline to be ready
  bool broken = false;
  bool start_fails = false;
  bool ran = false;         // wait_for = "running", and its instance has run
  bool token_ends = false;  // it has not booted; its introduction token may end before it does
  bool unhealthy = false;
  // Its node is disconnected, and an allocation on it is within the time that its group gives it.
  bool may_come_back = false;
  // Its node is disconnected, and the token is not proved to read the allocations of every
  // namespace.
  bool unproven = false;
  // Its node is disconnected, and neither may_come_back nor unproven is true, as far as its
  // allocations were read.
  bool cut_off = false;
  // Its node drains for another reason than its removal.
  bool maintained = false;
  // The drain of its removal was cancelled within the last hour.
  bool canceled_lately = false;
  // One of maintained, canceled_lately, may_come_back and unproven is true: the VM is kept for now.
  bool kept = false;
  // The policy removes broken VMs like this one, or unhealthy ones; never in a dry run, nor while
  // the VM is kept.
  bool may_remove_broken = false;
  bool may_replace = false;
  bool dry_run = false;
  // It is unhealthy, and the new VM that is to take its place does not exist yet (rule R1).
  bool awaits_replacement = false;
  // A new VM that takes its place; what follows is about the two.
  const VmView* successor = nullptr;
  // The new VM's node is ready and eligible, and nothing keeps this VM.
  bool gives_way = false;
  // The new VM was ready, and this one stays nevertheless: why.
  std::string stays_because{};
  // It is Halted until the VM is gone whose place it takes (rule R8), and what follows is about
  // that one.
  bool waits_to_start = false;
  bool may_start = false;        // that one is gone, or no longer in the pool
  bool started_by_hand = false;  // an operator has started it before
  bool not_needed = false;       // that one stays
  // The record of its Nomad cluster lacks a key that the cluster has by now.
  bool record_cluster = false;
  // Its node is ready, and the metadata that the policy asks for differs from what was published.
  bool publish = false;
  // Its node is ready, metadata was published, and the policy asks for none.
  bool unpublish = false;

  // Its link.
  bool two_ready = false;
  bool contradicted = false;
  bool no_node = false;  // no node has its name
  const nomad::Node* candidate = nullptr;

  // Nodes drained for it, linked or not.
  const nomad::Node* draining = nullptr;
  bool draining_was_ineligible = false;
  const nomad::Node* drained = nullptr;  // complete, still ineligible because of us, not recorded
  const nomad::Node* undone = nullptr;   // its own node: the drain is undone, not recorded yet

  // Its mark.
  bool marked = false;
  bool mark_readable = false;
  bool of_another = false;  // it names another uid: the VM was restored, or replaced by a copy
  bool for_unhealthy = false;
  bool for_broken = false;
  bool named = false;  // by the Lease's action, or need not be
  bool node_gone = false;
  bool taken_back = false;  // the Lease's action takes it back (rule L6)
  // A removal for scale-in whose drain or deletion has been refused for 60 s, and whose mark can be
  // removed (rule L3).
  bool removal_refused = false;
  // Past the drain's deadline and grace by the API server's clock, and, if the drain runs, by this
  // process' own, too. A removal for another reason than scale-in is not late while its drain can
  // still be posted (rule L3).
  bool late = false;
  // For scale-in, past a timed deadline by 10 s, and no drain of ours was ever posted (rule C9).
  bool never_begun = false;
  bool force = false;
  // Until when a VM that may be deleted otherwise is held (rule C18); unset: nothing holds it.
  std::optional<base::WallTime> held_until{};

  // The mark's node.
  bool foreign_drain = false;
  bool ours = false;      // its last drain is the mark's
  bool canceled = false;  // … and was cancelled
  bool complete = false;  // … and is complete by Nomad's word
  bool down_for_good = false;
  // Disconnected for kDownForGood, or while its instance does not run, and no allocation on it is
  // within the time that its group gives it.
  bool cut_off_for_good = false;
  bool idle = false;
  bool placed_late = false;  // its drain is complete, and an allocation is to run there
  // It is initializing, was never seen ready, and has no allocation.
  bool never_used = false;
  bool ineligible_by_others = false;  // for another reason than a standing drain of ours
};

// `pool` may be null: the facts about the pool are then computed if they are needed, which they are
// only for an unhealthy VM.
Facts FactsOf(const Overlay& seen, const PoolFacts* pool);
// The facts about a node whose last drain names a VM that no longer exists.
Facts FactsOfGoneVm(const NodeOfGoneVm& gone, const PoolSnapshot& snapshot);
// True if the node of a VM of the pool, which is gone, is to be purged once its drain is complete
// and it is down.
bool AwaitsPurge(const NodeOfGoneVm& gone, const PoolSnapshot& snapshot);

// Whether a drain that is posted now has an effect: the client hears of it, or has nothing to stop.
bool CanDrain(const nomad::Node& node);

// Past drain_deadline + grace.
bool IsLate(const harvester::Mark& mark, base::WallTime now);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_FACTS_H_
