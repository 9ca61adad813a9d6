// SPDX-License-Identifier: Apache-2.0
// How many nodes of a pool the work needs that is there now. Pure.
#ifndef NOMAD_HARVESTER_DEMAND_PACKING_H_
#define NOMAD_HARVESTER_DEMAND_PACKING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/work.h"

namespace nomad_harvester::demand {

// What becomes of one group's pending work.
enum class Verdict {
  kFits,         // there is room on nodes that are there: Nomad will place it, or has not yet
  kNeedsNodes,   // it orders new nodes
  kOtherPool,    // its datacenters or its node pool are not this pool's
  kImpossible,   // no node of the pool could ever hold it
  kCannotTell,   // a constraint or a quota that may stand against it; orders nothing, or a probe
  kNotRunnable,  // stopped or paused
};

struct GroupDemand {
  std::shared_ptr<const Group> group;
  std::int64_t pending = 0;  // with what must leave nodes that are drained
  std::int64_t fits = 0;     // placed on nodes that are there
  std::int64_t nodes = 0;    // new nodes that were begun for it
  Verdict verdict = Verdict::kFits;
  // For people: the constraint, what lacks, which pool, or that Nomad does not use room.
  std::string why{};
};

struct Demand {
  std::int64_t needed = 0;  // the count
  // Its parts, each node once.
  std::int64_t busy = 0;       // with work of service or batch jobs
  std::int64_t kept = 0;       // protected, or with a dynamic host volume, without work
  std::int64_t used_idle = 0;  // without work, needed for pending work or headroom
  // Where new ones are needed: nodes that take no work, and whose VMs the target counts. It would
  // else take them for those that are needed.
  std::int64_t away = 0;
  std::int64_t added = 0;  // new ones
  // One for each group with pending work: of this pool first, by namespace, job and group.
  std::vector<GroupDemand> groups{};
  // Set if nothing shows what a new node holds: `added` is then 1 at most, as a probe.
  bool probe = false;
  // The node that shows it (the smallest), which `node` of a query does not override. Null: none
  // does.
  std::shared_ptr<const PoolNode> shown_by{};
};

// More new nodes are never counted, for one group and for all: no policy's `max` is that high.
inline constexpr std::int64_t kMaxAddedForGroup = 10'000;
inline constexpr std::int64_t kMaxAdded = 10 * kMaxAddedForGroup;

// The order of nodes, work and jobs in `world` changes nothing. At most as many comparisons as
// groups × (nodes + new nodes), besides one for each constraint and value. Never less than the work
// needs, except for work whose verdict orders nothing, and except that Nomad may pack worse: it
// places evaluations by priority and age, as this does, but each allocation on the better one of a
// few nodes. What then has no place is ordered by the next answer. Overdue work
// orders new nodes although there is room, which stays beside them: it gets one more try, not one
// in each answer.
Demand ComputeDemand(const Query& query, const World& world);

// The pending work for which the nodes of `world` and so many new ones at most have no place,
// whatever stands against it. A pool of which nothing shows what a new node holds has a place for
// all that a new node may hold, if it can have one.
struct Rest {
  std::vector<Pending> pending{};
  std::shared_ptr<const PoolNode> shown_by{};  // as in Demand
};
Rest RestOf(const Query& query, const World& world, std::int64_t most_added);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_PACKING_H_
