// SPDX-License-Identifier: Apache-2.0
// What a Scale must do: a pure function of what was observed.
#ifndef NOMAD_HARVESTER_SCALING_PLAN_H_
#define NOMAD_HARVESTER_SCALING_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/snapshot.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::scaling {

enum class Direction { kNone, kOut, kIn };

// A VM to create. `name`: left over from an earlier action; empty: a new name.
struct PlannedCreation {
  std::string name{};
  std::string action_id{};
  std::string zone{};  // empty: any of the policy's
  std::optional<harvester::Replaces> replaces{};
};
struct PlannedRemoval {
  std::string vm;
  std::string node_id;  // empty: no node
  std::string reason;   // "least_busy (12 %)", "stopped", …
};
struct PassedOver {
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
  std::vector<PassedOver> passed_over;
  // How many of the requested victims could not be found. The Scale removes the others and reports
  // it (as the SDK does).
  std::int64_t missing_victims = 0;
};

// VMs whose removal was refused, rolled back or cancelled are last in the order for this long, so
// that the same ones are not drained over and over (rule C8).
inline constexpr base::Duration kGoesLastFor = std::chrono::hours(1);
// Whether a removal of the VM was rolled back within that time, by its annotation.
inline bool IsUndoneLately(const harvester::VirtualMachine& vm, base::WallTime now) {
  return vm.removal_undone.has_value() && now - vm.removal_undone->at < kGoesLastFor;
}
// For how long a zone in which a VM could not start gets no new VMs, if other zones can. Longer
// than the longest back-off, so that one zone without room never stops the pool.
inline constexpr base::Duration kZoneAvoidedFor = std::chrono::hours(2);

struct PlanInputs {
  // For a selection by load. A node that is missing has none.
  std::map<std::string, Allocations> allocations{};
  // Marked VMs whose roll-back is refused or fails (rule C14), by name: they count as standing, and
  // the plan leaves them out.
  std::map<std::string, std::string> left_out{};
  // How often the removal of a VM was refused within kGoesLastFor, by name: others go first.
  std::map<std::string, int> refusals{};
  // Harvester hosts that are cordoned: their VMs go before those that only the strategy ranks (rule
  // C8).
  std::set<std::string> cordoned_hosts{};
  // By which the VMs that have drifted are known. Empty: they go like all others.
  CurrentTemplate current_template{};
  // Zones in which a VM could not start lately: others get the new VMs.
  std::set<std::string> failing_zones{};
  // Of the VMs that count, those that take the place of others until this Scale (rule R4): its
  // limits are those of the pool without them.
  std::int64_t newly_counted = 0;
  // Every removal of an earlier action was refused: one VM alone is removed until one succeeds
  // (rule C12).
  bool one_removal = false;
};

// INVALID_ARGUMENT: negative count, or more new VMs than the Lease can name.
// FAILED_PRECONDITION: growth while a broken VM exists that is not removed (rule S1) or while a
// node of a VM joined the wrong pool (rule C15). The mass-loss guard is checked by the caller.
// The inputs must hold the allocations of every pool node if the policy's strategy needs them.
absl::StatusOr<ScalePlan> PlanScale(const PoolSnapshot& snapshot, std::int64_t desired,
                                    const PlanInputs& inputs);

// Why no VM may be added now: a broken VM that is kept, or a node that joined the wrong pool.
absl::Status CheckGrowth(const PoolSnapshot& snapshot);

// VMs to create. Names that an earlier action stored, and whose VM was never created, are used
// first.
std::vector<PlannedCreation> PlanCreations(const PoolSnapshot& snapshot, std::int64_t wanted);

// Why a VM that counts must not be removed; empty if it may (rule C7). Its node is null if it has
// none.
std::string ObjectionTo(const VmView& view, const nomad::Node* node, const PoolSnapshot& snapshot);

// True if the node holds a dynamic host volume, and the policy keeps such nodes (rule C7).
bool HoldsKeptVolume(const nomad::Node& node, const PoolSnapshot& snapshot);

// Whether the node is a member of the pool according to the policy or the VM's own record.
bool BelongsToPool(const nomad::Node& node, const VmView& view, const PoolSnapshot& snapshot);
// "node <id> is node_class=…, expected …": for a node that does not belong to the pool.
std::string WrongPool(const nomad::Node& node, const PoolSnapshot& snapshot);

// One line for the log: "scale in 5 → 3: remove web-abc (node 1f2e…): least_busy (3 %), …".
std::string Describe(const ScalePlan& plan);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_PLAN_H_
