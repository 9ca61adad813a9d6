// SPDX-License-Identifier: Apache-2.0
// Replacement: a new VM takes the place of an old one without changing the pool's count (rules R1
// to R8). Pure functions.
#ifndef NOMAD_HARVESTER_SCALING_REPLACEMENT_H_
#define NOMAD_HARVESTER_SCALING_REPLACEMENT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/drift.h"
#include "nomad_harvester/scaling/pool_lease.h"
#include "nomad_harvester/scaling/rules.h"
#include "nomad_harvester/scaling/snapshot.h"

namespace nomad_harvester::scaling {

// How long the pool is not ready while a VM and its replacement both have ready nodes (rule R3).
inline constexpr base::Duration kSwapLimit = std::chrono::seconds(60);
// A VM younger than this is not replaced for drift (rule R1).
inline constexpr base::Duration kYoungestToReplace = std::chrono::minutes(10);

using ReplaceKind = harvester::ReplaceReason::Kind;

struct Replaceable {
  // A reason why this VM must wait, whatever the state of the pool.
  enum class Hold {
    kNone,
    kWindow,  // replacement_window is closed
    kFlips,   // it alternates between two VM specs (rule R1)
  };
  const VmView* vm = nullptr;
  harvester::ReplaceReason reason;
  Hold hold = Hold::kNone;

  // It is of no use, so that the pool need not be at rest.
  bool is_unhealthy() const { return reason.kind == ReplaceKind::kUnhealthy; }
};

// The VMs that the policy or an operator wants replaced, in order: unhealthy, requested, to be
// moved off their hosts, drifted, expired (the oldest first), and finally those on hold. VMs that
// must not be removed are left out (rule C7). Empty without a policy.
std::vector<Replaceable> VmsToReplace(const PoolSnapshot& snapshot, const CurrentTemplate& current);

// Says, for people, why the replacement of `next`, the first of VmsToReplace, does not begin now;
// unset if it may (rule R2). The answer holds for all of them, because unhealthy ones come first
// and held ones last.
std::optional<std::string> ReplacementBlockedReason(const Replaceable& next,
                                                    const PoolSnapshot& snapshot,
                                                    const PoolRecord& record,
                                                    const CurrentTemplate& current);

// The unhealthy VMs, by uid, that are marked as soon as their replacement exists, or after
// kReplacementWait.
std::set<std::string> AwaitingReplacement(const Decisions& decisions);

// The VMs that wait to be replaced, for commands and metrics.
struct ReplacementQueue {
  std::vector<Replaceable> vms;
  std::optional<std::string> blocked_reason;  // of the first VM
};
ReplacementQueue QueueOfReplacements(const PoolSnapshot& snapshot, const PoolRecord& record,
                                     const CurrentTemplate& current);

// True if replacement has stopped because a new VM of the same template was not ready in time, and
// did not lack room (rule R5).
bool HasStopped(const PoolRecord& record, const CurrentTemplate& current);
// Says, for people, why replacement stopped and how to continue it.
std::string WhyItStopped(const harvester::StoppedReplacement& stopped);

// True if an old VM is removed before the new one starts (rule R8).
bool OldGoesFirst(const config::PoolPolicy& policy);
// How many VMs may be replaced at the same time.
std::int64_t MostAtATime(const config::PoolPolicy& policy);
// The uids of the new VMs that are not ready yet or whose old VM still exists. Empty: none.
std::string OpenReplacements(const PoolSnapshot& snapshot);

// Builds the annotation of a new VM, made from `current`, that replaces `old`.
harvester::Replaces ReplacesOf(const Replaceable& old, const CurrentTemplate& current,
                               base::WallTime now);

// True if the policy may ask for a replacement, so that the template of new VMs must be known.
bool ReplacesDrifted(const config::PoolPolicy& policy);
// True if the policy may move VMs off hosts, so that the cordoned hosts must be known.
bool EvacuatesHosts(const config::PoolPolicy& policy);

// Names a VM that is being replaced while both nodes take work (rule R3). Unset: none.
std::optional<std::string> DescribeSwap(const PoolSnapshot& snapshot);

// Selects the PendingReplacements that a Scale to that count turns into counted VMs (rule R4): for
// a growth, as many as it needs, ready ones first; for a scale-in, all of them.
std::vector<const VmView*> ReplacementsToCount(const PoolSnapshot& snapshot, std::int64_t desired);
// Returns the snapshot as if those VMs replaced none.
PoolSnapshot WithoutReplacements(const PoolSnapshot& snapshot,
                                 const std::vector<const VmView*>& pending);
// The VMs that do not count because of their annotation `replaces`.
std::vector<const VmView*> PendingReplacements(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_REPLACEMENT_H_
