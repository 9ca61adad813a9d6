// SPDX-License-Identifier: Apache-2.0
// What the rules ask about one VM: the objects, and the facts that several rows need. What only one
// row needs stands in that row. Computed once per Observation, and again on the overlay of an act.
// Pure.
#ifndef NOMAD_HARVESTER_SCALING_FACTS_H_
#define NOMAD_HARVESTER_SCALING_FACTS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/status.h"

namespace nomad_harvester::scaling {

// A node that has been down for this long, or whose instance does not run, is down for good: its
// work is lost (rule C5).
inline constexpr base::Duration kDownForGood = std::chrono::minutes(2);

// Facts about the pool as a whole. O(VMs).
struct PoolFacts {
  explicit PoolFacts(const PoolSnapshot& snapshot);

  // The unhealthy VMs, by uid, that max_unhealthy allows to replace: the first ones by name.
  std::set<std::string> may_replace;
};

// Why a VM without a mark is not removed for now, although it is broken or unhealthy. The first one
// that holds.
enum class RemovalBlock {
  kDrainedByOperator,
  kDrainCancelled,  // within the last hour
  // Its node is disconnected, and an allocation on it is within the time that its group allows.
  kWorkMayComeBack,
  // Likewise, and it is not proved that the token can read the allocations of every namespace.
  kAllocationsUnverified,
};

// A null pointer means "none". Pointers refer to what FactsOf or FactsOfGoneVm was given, which
// must outlive the facts.
struct Facts {
  const PoolSnapshot* snapshot = nullptr;
  const Overlay* seen = nullptr;       // null: the VM is gone
  const OrphanedNode* gone = nullptr;  // the former node of a VM that is gone
  const VmView* view = nullptr;        // not null; empty: the VM is gone
  const nomad::Node* node = nullptr;   // the linked node, or the former one
  const PoolFacts* pool = nullptr;     // null: to be computed when needed
  absl::Status nomad{};                // why nothing is known about the VM's node

  bool joined = false;     // its node has registered
  bool was_ready = false;  // … and was ready at some time
  bool is_protected = false;
  bool dry_run = false;
  // A ready node that could be the VM under another name, if that matters.
  const nomad::Node* candidate = nullptr;

  // Of a VM without a mark.
  bool broken = false;
  bool unhealthy = false;  // never with RemovalBlock::kWorkMayComeBack
  std::optional<RemovalBlock> removal_blocked{};
  const VmView* successor = nullptr;  // the VM that replaces it
  bool waits_to_start = false;  // it is Halted until the VM that it replaces is gone (rule R8)
  std::vector<const nomad::Node*> drained_for_it{};  // nodes drained for this VM, linked or not

  // Of a marked VM.
  bool marked = false;
  const harvester::Mark* mark = nullptr;  // null: it cannot be read
  bool ours = false;                      // its node's last drain is the mark's
  bool complete = false;                  // … and is complete, according to Nomad
  bool late = false;                      // past the drain's deadline and grace (rules C9, L3)
};

// If `pool` is null, the facts about the pool are computed when they are needed, which is only for
// an unhealthy VM.
Facts FactsOf(const Overlay& seen, const PoolFacts* pool);
// The facts about a node whose last drain names a VM that no longer exists.
Facts FactsOfGoneVm(const OrphanedNode& gone, const PoolSnapshot& snapshot);
// True if the VM is gone but its node, a node of the pool, must be purged once its drain is
// complete and it is down.
bool AwaitsPurge(const OrphanedNode& gone, const PoolSnapshot& snapshot);

// True if Nomad reports the node's drain as complete; the absence of a drain is not enough.
bool IsDrained(const nomad::Node& node);
// True if an allocation of a disconnected node may come back with the node. Nomad keeps a node
// disconnected for such allocations, but also for one that has ended, until it is collected
// (hashicorp/nomad:nomad/heartbeat.go, disconnectState).
bool IsWithinItsTime(const Allocations& allocations);

// drain_deadline + grace; unset: the drain has no deadline.
std::optional<base::WallTime> LateAt(const harvester::Mark& mark);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_FACTS_H_
