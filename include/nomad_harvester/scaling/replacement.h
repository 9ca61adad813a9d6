// SPDX-License-Identifier: Apache-2.0
// Replacement: a new VM takes the place of another one, without a change of the pool's count (rules
// R1 to R8). Pure functions.
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

// How long the pool is not ready while two ready nodes share one place (rule R3).
inline constexpr base::Duration kSwapLimit = std::chrono::seconds(60);
// A younger VM has not drifted: two agents with different policies must not replace each other's
// VMs all the time.
inline constexpr base::Duration kYoungestToReplace = std::chrono::minutes(10);

// Replaceable::reason of an unhealthy VM.
inline constexpr char kUnhealthy[] = "unhealthy";

// Why a VM is to be replaced: the most urgent reason first. What waits for replacement_window comes
// last.
enum class Urgency {
  kUnhealthy,  // it is of no use, so that the pool need not be at rest
  kRequested,
  kHost,
  kDrifted,
  kExpired,
};

struct Replaceable {
  // Why this VM waits, whatever the pool does.
  enum class Hold {
    kNone,
    kWindow,  // replacement_window is closed
    kFlips,   // its place changes between two VM specs (rule R1)
  };
  const VmView* vm = nullptr;
  // "unhealthy", "requested: …", "host rack1-a is cordoned", "drifted: image, tags", "expired"
  std::string reason;
  Urgency urgency = Urgency::kExpired;
  Hold hold = Hold::kNone;

  bool is_unhealthy() const { return urgency == Urgency::kUnhealthy; }
};

// The VMs that the policy or an operator wants to be replaced, in order: unhealthy ones, requested
// ones, those that are to leave their hosts, drifted ones, expired ones, the oldest first, and
// those that are held at the end. VMs that must not be removed are left out (rule C7). Empty
// without a policy.
std::vector<Replaceable> VmsToReplace(const PoolSnapshot& snapshot, const CurrentTemplate& current);

// Why the replacement of `next`, the first of VmsToReplace, does not begin now, for people; empty
// if it may (rule R2). It speaks for all of them: unhealthy ones come first, and held ones last.
std::string WhyReplacementRests(const Replaceable& next, const PoolSnapshot& snapshot,
                                const PoolRecord& record, const CurrentTemplate& current);

// The unhealthy VMs, by uid, that are marked as soon as another takes their place, or after
// kReplacementWait.
std::set<std::string> AwaitingReplacement(const Decisions& decisions);

// What waits to be replaced, as the commands and the metrics show it.
struct ReplacementQueue {
  std::vector<Replaceable> vms;
  std::string rests;  // WhyReplacementRests of the first one; empty without any
};
ReplacementQueue QueueOfReplacements(const PoolSnapshot& snapshot, const PoolRecord& record,
                                     const CurrentTemplate& current);

// For how long replacement_window stays closed; nullopt: no VM waits for it.
std::optional<base::Duration> UntilWindowOpens(const PoolSnapshot& snapshot,
                                               const CurrentTemplate& current);

// True if a new VM of the same template was not ready in time (rule R5).
bool HasStopped(const PoolRecord& record, const CurrentTemplate& current);
// Why, and what ends it, for people.
std::string WhyItStopped(const harvester::StoppedReplacement& stopped);

// True if an old VM is removed before the new one starts (rule R8).
bool OldGoesFirst(const config::PoolPolicy& policy);
// How many VMs may be replaced at a time.
std::int64_t MostAtATime(const config::PoolPolicy& policy);
// The uids of the new VMs that are not ready yet, or whose old VM is still there. Empty: none.
std::string OpenReplacements(const PoolSnapshot& snapshot);

// The annotation of a new VM, made of `current`, that takes the place of `old`.
harvester::Replaces ReplacesOf(const Replaceable& old, const CurrentTemplate& current,
                               base::WallTime now);

// Whether the policy may ask for a replacement, so that what new VMs are made of must be known.
bool ReplacesDrifted(const config::PoolPolicy& policy);
// The same, so that it must be known which hosts are to be left.
bool EvacuatesHosts(const config::PoolPolicy& policy);
// Why a VM that cannot migrate is to leave a host that is cordoned: VmView::why_to_leave_host.
std::string WhyToLeave(const std::string& host);
// Whether the policy asks for replacements at all, without an operator.
bool ReplacesByItself(const config::PoolPolicy& policy);

// Which VM is taking the place of which, while the nodes of both take work: the metrics of the
// nodes then show more capacity than the count says (rule R3). Empty: none.
std::string DescribeSwap(const PoolSnapshot& snapshot);

// Those of PendingReplacements that a Scale to that count lets count by itself (rule R4): of a
// growth, as many as it needs, the ready ones first; of a scale-in all of them.
std::vector<const VmView*> ReplacementsToCount(const PoolSnapshot& snapshot, std::int64_t desired);
// The snapshot in which those VMs replace no other one.
PoolSnapshot WithoutReplacements(const PoolSnapshot& snapshot,
                                 const std::vector<const VmView*>& pending);
// The VMs whose annotation `replaces` keeps them from being counted.
std::vector<const VmView*> PendingReplacements(const PoolSnapshot& snapshot);

}  // namespace nomad_harvester::scaling

#endif  // NOMAD_HARVESTER_SCALING_REPLACEMENT_H_
