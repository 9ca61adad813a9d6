// SPDX-License-Identifier: Apache-2.0
// What Status answers: a pure function of what was observed (rules S1, S2 and S4).
#ifndef NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_
#define NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_

#include <optional>
#include <string>
#include <string_view>

#include "nomad_harvester/scaling/plan.h"
#include "nomad_harvester/scaling/snapshot.h"
#include "nomad_harvester/scaling/target_service.h"

namespace nomad_harvester::scaling {

// What the process remembers about a pool and a snapshot cannot tell.
struct StatusInputs {
  bool scale_open = false;
  // For how long more joined VMs than rule C15 allows have been without a node.
  base::Duration mass_loss_for{};
  std::optional<base::WallTime> last_event;
  // The template hash that the last preflight computed; empty: none yet.
  std::string template_hash;
};

struct StatusReport {
  TargetStatus status;
  // Why it is not ready; empty if it is.
  std::string reason;
  // The reason is what the agent itself asked for: a Scale is open, or its VMs are still to join.
  bool expected = false;
  // Worth a WARN although the pool may be ready: "2 stopped: web-a, web-b".
  std::string warning;
};

// The snapshot must have a policy.
StatusReport ReportStatus(const PoolSnapshot& snapshot, const StatusInputs& inputs);

// Something in this pool that resumption has to do: a mark, a drain of ours without one, an overdue
// join, a join to record, a node to purge or to read in full, a name on the Lease whose VM has
// come.
bool NeedsResumption(const PoolSnapshot& snapshot);

// What a VM of the pool counts as, in the order in which ReportStatus decides.
enum class VmState {
  kUnmanaged,
  kDeleting,
  kStuck,     // being deleted for longer than its grace period and ten minutes
  kDraining,  // marked
  kBroken,
  kPending,  // it is still to join
  kStopped,
  kLost,  // it has joined, and has no live node
  kJoined,
  kCreated,  // it has no join deadline and has not joined
};
VmState StateOf(const VmView& view, const PoolSnapshot& snapshot);
// "unmanaged", "deleting", …
std::string_view VmStateName(VmState state);

inline constexpr base::Duration kMassLossTimeout = std::chrono::minutes(10);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_STATUS_REPORT_H_
