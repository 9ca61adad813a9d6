// SPDX-License-Identifier: Apache-2.0
// Plans a Scale: a pure function of the observed state.
#ifndef NOMAD_HARVESTER_SCALING_PLAN_H_
#define NOMAD_HARVESTER_SCALING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

enum class Direction { kNone, kOut, kIn };

// A VM to create. `name`: left over from an earlier action; empty: use a new name.
struct PlannedCreation {
  std::string name{};
  std::string action_id{};
  std::string zone{};  // empty: any zone of the policy
  std::optional<harvester::Replaces> replaces{};
};
struct PlannedRemoval {
  std::string vm;
  std::string node_id;  // empty: no node
  std::string reason;   // "least_busy (12 %)", "stopped", …
};
struct SkippedVm {
  std::string vm;
  std::string reason;
};

struct ScalePlan {
  Direction direction = Direction::kNone;
  std::int64_t from = 0;
  std::int64_t desired = 0;  // requested by the action
  std::int64_t to = 0;       // after max_scale_out / max_scale_in
  bool capped = false;
  std::vector<std::string> cancel_removals;  // marked VMs to unmark before anything is created
  std::vector<PlannedCreation> create;
  std::vector<PlannedRemoval> remove;  // in order
  // The next candidates, in order, for a victim that a fresh read shows unsuitable (rule L5).
  std::vector<PlannedRemoval> reserve;
  std::vector<SkippedVm> passed_over;
  // Besides, for the missing victims, because there are too many (rule C19).
  std::size_t not_looked_at = 0;
  // VMs of `remove` whose work may have no other place, and which work (rule C19).
  std::vector<SkippedVm> would_wait;
  // New VMs that count by themselves from now on, instead of replacing another one (rule R4).
  std::set<std::string> newly_counted;
  // The number of requested victims that could not be found. The Scale removes the others and
  // reports this (as the SDK does).
  std::int64_t missing_victims = 0;
};

// A VM whose removal was refused, rolled back or cancelled comes last in the order for this long,
// so that the same VMs are not drained over and over (rule C8).
inline constexpr base::Duration kVictimCooldown = std::chrono::hours(1);
// Why the removal of a VM was undone that a growth needs, in its annotation.
inline constexpr char kNeededByGrowth[] = "a scale-out needs it: its removal is cancelled";
// True if the VM's annotation says that its removal was rolled back within that time.
inline bool WasRecentlyRolledBack(const harvester::VirtualMachine& vm, base::WallTime now) {
  return vm.removal_undone.has_value() && IsWithin(vm.removal_undone->at, kVictimCooldown, now);
}
// How long a zone in which a VM could not start gets no new VMs, if other zones can. Longer than
// the longest back-off, so that one zone without room never stops the pool.
inline constexpr base::Duration kZoneAvoidedFor = std::chrono::hours(2);

struct PlanInputs {
  // For a selection by load. A node that is missing has none.
  std::map<std::string, Allocations> allocations{};
  // Marked VMs whose roll-back is refused or fails (rule C14), by name, and why. They count as
  // running, and the plan leaves them out.
  std::map<std::string, std::string> left_out{};
  // How often each VM's removal was refused within kVictimCooldown, by name; VMs with fewer
  // refusals go first.
  std::map<std::string, int> refusals{};
  // Cordoned Harvester hosts. Their VMs come before those that only the strategy ranks (rule C8).
  std::set<std::string> cordoned_hosts{};
  // Identifies the VMs that have drifted. Empty: drift does not influence the order.
  CurrentTemplate current_template{};
  // Zones in which a VM recently could not start; new VMs go to the others.
  std::set<std::string> failing_zones{};
  // For how many more VMs a zone has room now; one that is missing has room for any number.
  std::map<std::string, std::size_t> zone_room{};
  // How many of the counted VMs were replacements until this Scale (rule R4). Its limits are those
  // of the pool without them.
  std::int64_t newly_counted = 0;
  // Remove only one VM: a removal of the last action was refused (rule C12).
  bool one_removal = false;
};

// True if that VM is one of `remove`.
bool IsRemoved(const ScalePlan& plan, std::string_view vm);

// True for a marked VM that counts as running. `left_out`: as in PlanInputs.
bool IsLeftOut(const VmView& view, const PoolSnapshot& snapshot,
               const std::map<std::string, std::string>& left_out);

// The count from which PlanScale plans.
std::int64_t CountToPlanFrom(const PoolSnapshot& snapshot,
                             const std::map<std::string, std::string>& left_out);

// INVALID_ARGUMENT: negative count, or more new VMs than the Lease can name. FAILED_PRECONDITION:
// growth while there is a broken VM that is not being removed (rule S1), or while a VM's node has
// joined the wrong pool (rule C15). The caller checks for mass loss. If the policy's strategy needs
// allocations, the inputs must hold those of every pool node.
absl::StatusOr<ScalePlan> PlanScale(const PoolSnapshot& snapshot, std::int64_t desired,
                                    const PlanInputs& inputs);

// Keeps of `remove` and `reserve`, in their order, the VMs whose work has another place. `waits`
// says of each which work has none (empty: all has one); a VM that is missing there was not looked
// at and leaves the reserve. FAILED_PRECONDITION: too few are left to lower the count.
absl::Status KeepThoseThatFit(const std::map<std::string, std::string>& waits,
                              std::int64_t newly_counted, ScalePlan* plan);

// Fails if no VM may be added now: a broken VM is kept, or a node joined the wrong pool.
absl::Status CheckGrowth(const PoolSnapshot& snapshot);

// Returns the VMs to create. Names that an earlier action recorded without creating their VMs are
// used first.
std::vector<PlannedCreation> PlanCreations(const PoolSnapshot& snapshot, std::int64_t wanted);

// Says why a counted VM must not be removed by a scale-in or a replacement; unset if it may (rule
// C7). `node` is null if it has none.
std::optional<std::string> ObjectionToRemoval(const VmView& view, const nomad::Node* node,
                                              const PoolSnapshot& snapshot);

// True if the node holds a dynamic host volume, and the policy keeps such nodes (rule C7).
bool HoldsKeptVolume(const nomad::Node& node, const PoolSnapshot& snapshot);

// "node <id> is node_class=…, expected …": for a node that does not belong to the pool.
std::string WrongPool(const nomad::Node& node, const PoolSnapshot& snapshot);

// One line for the log: "scale in 5 → 3: remove web-abc (node 1f2e…): least_busy (3 %), …".
std::string Describe(const ScalePlan& plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PLAN_H_
