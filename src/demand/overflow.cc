// SPDX-License-Identifier: Apache-2.0
#include "nomad_harvester/demand/overflow.h"

#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/base/status.h"
#include "nomad_harvester/nodepool/identity.h"

#include "pool_nodes.h"

namespace nomad_harvester::demand {
namespace {

// Work that a drain moves may go to the other pool: it waits for this one only once Nomad has found
// no place for it.
void LeaveOutDrainedWork(World* world) {
  for (PoolNode& node : world->nodes) {
    if (!node.node->draining) continue;
    std::erase_if(node.work, [&](const Placed& placed) { return Leaves(node, placed); });
  }
}

}  // namespace

absl::StatusOr<Needs> NeedsOf(const runtime::Context& context, const Query& query,
                              const Reading& reading, const LastSeen& last_seen, Reader& nomad,
                              RoomReader* harvester) {
  const bool overflows = query.subject == Subject::kOverflow;
  if (overflows && harvester == nullptr) {
    return base::FailedPrecondition(std::string("overflow ") + kNeedsHarvester);
  }
  Needs needs;
  NH_ASSIGN_OR_RETURN(needs.world, nomad.WorldOf(context, reading, query.Identity()));
  needs.world.last_seen = last_seen.own;
  if (overflows) LeaveOutDrainedWork(&needs.world);
  needs.demand = ComputeDemand(query, needs.world);
  if (!overflows || query.home.max == 0 || needs.demand.added == 0) return needs;
  NH_ASSIGN_OR_RETURN(const PoolRoom room, harvester->Read(context, query.home));
  const Query of_home{.node_class = room.nodes.node_class,
                      .datacenter = room.nodes.datacenter,
                      .node_pool = room.nodes.node_pool};
  if (!nodepool::Contradict(query.Identity(), of_home.Identity())) {
    return base::FailedPrecondition(
        "the query is about nodes with " + query.Identity().ToString() + ", and pool " +
        ToString(query.home) + " has those with " + of_home.Identity().ToString() +
        ", which may be the same: name a node_class, datacenter or node_pool in which they differ");
  }
  NH_ASSIGN_OR_RETURN(World home, nomad.WorldOf(context, reading, of_home.Identity()));
  home.last_seen = last_seen.home;
  const std::int64_t to_come = NodesToCome(room, query.home.max, home);
  Rest rest = RestOf(of_home, home, to_come);
  needs.home_nodes_to_come = to_come;
  needs.home_shown_by = std::move(rest.shown_by);
  needs.world.pending = std::move(rest.pending);
  needs.demand = ComputeDemand(query, needs.world);
  return needs;
}

}  // namespace nomad_harvester::demand
