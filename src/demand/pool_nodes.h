// SPDX-License-Identifier: Apache-2.0
// What each node of the pool is to the count (its status and eligibility in Nomad):
//
//   node                      with work   without   takes work
//   ready, eligible           busy        idle      yes
//   initializing              busy        idle      yes: it is booting, and will be what others are
//   ready, not eligible       busy        gone      no: an operator's, its work stays
//   draining                  gone        gone      no: its work is packed elsewhere, batch jobs'
//                                                   once Nomad migrates it
//   disconnected, unknown     busy        gone      no: it may come back with its work
//   down                      gone        gone      no: Nomad has replaced its work, or waits to
//
// Busy nodes count, idle ones if they are used, and those that are gone do not. A node that no
// scale-in may take (protected, or with a dynamic host volume) counts unless it is
// down. Work that Nomad stops keeps its room, and its node busy, until it has ended.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_POOL_NODES_H_
#define NOMAD_HARVESTER_SRC_DEMAND_POOL_NODES_H_

#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/demand/work.h"

namespace nomad_harvester::demand {

// Work of service and batch jobs.
bool IsWork(const Placed& placed);
// Work that Nomad places anew when its node is drained, that of batch jobs at the deadline.
bool Moves(const Placed& placed);
bool IsBusy(const PoolNode& node);
bool IsKept(const PoolNode& node, base::WallTime now);
bool TakesWork(const PoolNode& node);
// All its work moves, or is about to: at the deadline Nomad ends a drain before it has placed
// anything (hashicorp/nomad:nomad/drainer/drainer.go, handleDeadlinedNodes).
bool IsEmptied(const PoolNode& node);
// True if Nomad may not have tried overdue work on it yet, because its status is new. A node that
// boots may take its time; then it is taken to be broken. Nomad's clock counts.
bool IsFresh(const PoolNode& node, base::WallTime now);
// The target still counts its VM: the plugin's own drain does not remove it (rule S1).
bool HasVmThatCounts(const PoolNode& node);
// Work that is still on its node, and that Nomad will place anew.
bool Leaves(const PoolNode& node, const Placed& placed);

// By their IDs. They point into `world`.
std::vector<const PoolNode*> NodesWith(const World& world, bool (*has)(const PoolNode&));
// The nodes that show what a new one is: those that are ready; else the one that was seen last;
// else those that are silent; else those that boot, whose drivers are not known yet.
std::vector<const PoolNode*> KnownNodes(const World& world);
// Of these, those that do not boot.
std::vector<const nomad::Node*> Informed(const std::vector<const PoolNode*>& known);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_POOL_NODES_H_
