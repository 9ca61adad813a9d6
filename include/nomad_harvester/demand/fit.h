// SPDX-License-Identifier: Apache-2.0
// Whether the work of nodes that are to be drained has another place. Pure.
#ifndef NOMAD_HARVESTER_DEMAND_FIT_H_
#define NOMAD_HARVESTER_DEMAND_FIT_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nomad_harvester/demand/work.h"

namespace nomad_harvester::demand {

// Work of one group that may have no place once a node is drained.
struct WaitingWork {
  std::shared_ptr<const Group> group;
  std::int64_t moving = 0;  // allocations that need a place, those of nodes drained before included
  // How many of them have none, wherever Nomad puts the others. 0: it depends on that.
  std::int64_t waiting = 0;
  std::string cannot_tell{};  // why nothing is known; empty: it is known
};
// "default/web.server: 2 of 3 allocations (500 MHz, 256 MiB each)", and what is uncertain.
std::string ToString(const WaitingWork& work);

struct NodeFit {
  std::vector<WaitingWork> waits{};  // by namespace, job and group
  bool fits() const { return waits.empty(); }
};
// "a; b"; empty if it fits.
std::string ToString(const NodeFit& fit);
struct Fit {
  std::vector<NodeFit> nodes{};  // in the order of the nodes that are asked for
  // What moves or waits besides had a place before the first of them is drained.
  bool others_fit = false;
};

enum class Misfit {
  kPassedOver,  // a node whose work does not fit stays
  kDrained,     // it is drained nevertheless
};

// Whether each node can be drained after those before it, in the order of `nodes`, with the room,
// constraints and limits of ComputeDemand. Its work fits if it finds a place wherever Nomad puts
// the rest of what moves or waits: Nomad takes the best one of a few nodes, each allocation by
// itself, and packs worse than is possible. What had a place without this drain must keep one.
//
// Places are on those ready nodes of `world` that take work and are not drained. `leaving`: nodes
// that are being drained, although `world` may not show it yet. What ComputeDemand does not model
// counts as not known. Of batch jobs, work counts as moving, too: Nomad moves it at the deadline. A
// node that is not in `world` has no work. `world` must have been made with all these nodes as
// `emptied` (Reader::WorldOf).
//
// At most nodes × groups that move × nodes of the pool comparisons.
Fit CheckFit(const World& world, const std::set<std::string>& leaving,
             const std::vector<std::string>& nodes, Misfit misfit);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_FIT_H_
