// SPDX-License-Identifier: Apache-2.0
// What is packed, in which order.
#ifndef NOMAD_HARVESTER_SRC_DEMAND_ITEMS_H_
#define NOMAD_HARVESTER_SRC_DEMAND_ITEMS_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "nomad_harvester/demand/packing.h"

namespace nomad_harvester::demand {

// One group's pending work, or headroom.
struct Item {
  GroupDemand demand{};  // with its group and what is pending
  std::uint64_t create_index = 0;
  bool overdue = false;
  bool leaves_room = false;  // overdue, and there is room that Nomad does not use
  bool is_headroom = false;
  std::int64_t blocked = 0;  // of what is pending, that Nomad has tried to place
  std::int64_t left = 0;     // has found no place
  double share = 0;          // the largest that one allocation takes of a new node
};

// Pending work, and what must leave its nodes: by priority, then the oldest first, as Nomad's
// broker serves evaluations (hashicorp/nomad:nomad/eval_broker.go, ReadyEvaluations), then the
// largest first. Headroom follows. `scale`: what a new node holds.
std::vector<Item> ItemsOf(const Query& query, const World& world, const Resources& scale);

// Tells groups apart, of Group and Placed. Refers to both arguments.
template <typename T>
auto GroupKey(const T& of, const std::string& group) {
  return std::tie(of.ns, of.job, group);
}

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_ITEMS_H_
