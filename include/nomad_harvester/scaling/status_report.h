// SPDX-License-Identifier: Apache-2.0
// Builds the report of Status: a pure function of the observed state (rules S1, S2 and S4).
#ifndef NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_
#define NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/snapshot.h"
#include "nomad_harvester/scaling/target_service.h"

namespace nomad_harvester::scaling {

// State that the process knows about a pool and the snapshot does not contain.
struct StatusInputs {
  bool scale_open = false;
  // How long more joined VMs than rule C15 allows have been without a node.
  base::Duration mass_loss_for{};
  std::optional<base::WallTime> last_event;
  CurrentTemplate current_template{};
  base::Hold paused{};  // of the pool's Lease, as far as this process knows (rule L10)
  // VMs that are gone but not completely cleaned up (rule L4).
  std::int64_t leftovers = 0;
};

struct StatusReport {
  TargetStatus status;
  // Why it is not ready; empty if it is.
  std::string reason;
  // True if the reason follows from the agent's own request: a Scale is running, or its VMs have
  // yet to join.
  bool expected = false;
  // Logged as WARN although the pool may be ready: "stopped: web-a, web-b".
  std::string warning;
  // The VMs that differ from the policy, and their differences: "web-a (cpu, image)". Logged as
  // INFO.
  std::string drift{};
  std::int64_t drifted = 0;  // how many VMs
};

// The uids of new VMs whose nodes are ready, and that do not say so yet (rules S4, C17).
std::set<std::string> JustBecameReady(const PoolSnapshot& snapshot);

// The snapshot must have a policy.
StatusReport ReportStatus(const PoolSnapshot& snapshot, const StatusInputs& inputs);

// "the pool is paused until …", with the reason and how to resume.
std::string PausedText(const PoolKey& key, const base::Hold& paused);

// True if resumption has work in this pool (rule S5). `paused`: the pool is paused, and its upkeep
// waits (rule L10).
bool NeedsResumption(const Decisions& decisions, bool paused = false);

// A removal that needs somebody's help, or a node that a removal left drained. Excludes work that
// only needs time, such as a VM that has yet to join, and work of another Nomad cluster or region.
struct UnfinishedRemoval {
  std::string vm;
  std::string what;
  std::optional<base::WallTime> since;  // when its mark or drain began; unset: unknown
};
// The unfinished removals of the pools in the snapshot's namespace that have a VM, or a node
// drained for one. Omits the pools in `claimed` and pools without unfinished removals.
std::map<PoolKey, std::vector<UnfinishedRemoval>> UnclaimedRemovals(
    const PoolSnapshot& snapshot, const std::set<PoolKey>& claimed);
// The age at which unclaimed removals are reported (rule S5).
inline constexpr base::Duration kUnclaimedFor = std::chrono::minutes(10);

// The state under which a VM of the pool is counted, in the order in which ReportStatus decides.
enum class VmState {
  kUnmanaged,
  kDeleting,
  kStuck,     // being deleted for longer than its grace period and ten minutes
  kDraining,  // marked
  kBroken,
  kPending,     // has yet to join
  kRegistered,  // has joined, and has yet to be ready
  kStopped,
  kLost,     // has joined, and has no live node
  kUnready,  // its node is not ready; an initializing one, for kUnreadyFor
  kReady,
  kCreated,      // has no join deadline and has not joined
  kReplacement,  // will take the place of another VM; does not count before (rule R1)
  kMaintenance,  // stopped by Harvester for its host's maintenance (rule C17)
};
inline constexpr std::size_t kVmStates = 14;
VmState StateOf(const VmView& view, const PoolSnapshot& snapshot);
// "unmanaged", "deleting", …
std::string_view VmStateName(VmState state);

// How long an initializing node that was ready, or that belongs to no VM, blocks readiness.
inline constexpr base::Duration kUnreadyFor = std::chrono::minutes(5);
inline constexpr base::Duration kMassLossTimeout = std::chrono::minutes(10);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_
