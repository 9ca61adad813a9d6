// SPDX-License-Identifier: Apache-2.0
// distinct_hosts and distinct_property: how many more allocations of a group a node may have
// (hashicorp/nomad:scheduler/propertyset.go; feasible.go, satisfiesDistinctHosts).
#ifndef NOMAD_HARVESTER_SRC_DEMAND_DISTINCT_H_
#define NOMAD_HARVESTER_SRC_DEMAND_DISTINCT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/demand/work.h"

#include "constraints.h"

namespace nomad_harvester::demand {

// A node that is there, or the number of a new one.
struct Spot {
  const PoolNode* node = nullptr;  // null: new
  std::size_t number = 0;
};

// Where allocations of one job are. Those on nodes of other pools are not known: a value that they
// use up counts as free, which orders a node too many rather than too few.
struct OfJob {
  Spot spot{};
  std::string group{};
  std::int64_t count = 1;
  // Its values are free. A host is used until its client has ended the work
  // (hashicorp/nomad:scheduler/context.go, ProposedAllocs).
  bool leaves = false;
};

// Remembers where the work of jobs is that ask for it.
class JobsWithDistinct {
 public:
  // Call it for all groups before Add.
  void Expect(const Group& group) {
    if (!group.distinct.empty()) jobs_.try_emplace({group.ns, group.job});
  }
  void Add(const Placed& placed, const PoolNode& node) {
    if (jobs_.empty()) return;
    const auto found = jobs_.find({placed.ns, placed.job});
    if (found != jobs_.end()) found->second.push_back({{&node, 0}, placed.group});
  }
  // Null if no group of the job asks for distinct nodes.
  std::vector<OfJob>* Of(const Group& group) {
    const auto found = jobs_.find({group.ns, group.job});
    return found == jobs_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<OfJob>> jobs_;
};

// For one group while it is packed. All arguments must outlive it.
class DistinctCounts {
 public:
  DistinctCounts(const Group& group, std::vector<OfJob>* of_job, const NewNode& new_node);

  // How many of `wanted` may go there.
  std::int64_t Limit(const Spot& spot, std::int64_t wanted);
  // How many already count for the constraint of this number.
  std::int64_t Used(std::size_t constraint, const std::string& value) {
    return used_[constraint][value];
  }
  // Remembers them for this group and for the others of the job.
  void Add(const Spot& spot, std::int64_t count);
  // Of the constraint that refused a new node last: whether a value was not known, and its text.
  bool CannotTell() const { return cannot_tell_; }
  std::string Why() const { return why_; }

 private:
  // The value of a property; nullopt: none, or it is not known.
  std::optional<std::string> ValueAt(const Spot& spot, const std::string& property);

  const Group& group_;
  std::vector<OfJob>* const of_job_;
  const NewNode& new_node_;
  std::vector<std::map<std::string, std::int64_t>> used_;  // for each of group.distinct, by value
  bool cannot_tell_ = false;
  std::string why_{};
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_SRC_DEMAND_DISTINCT_H_
