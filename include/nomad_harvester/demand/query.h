// SPDX-License-Identifier: Apache-2.0
// The query of the APM: what is asked, and of which pool.
#ifndef NOMAD_HARVESTER_DEMAND_QUERY_H_
#define NOMAD_HARVESTER_DEMAND_QUERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/nodepool/identity.h"

#include "absl/status/statusor.h"

namespace nomad_harvester::demand {

// Room that stays free for work that may come: `count` units of this size.
struct Headroom {
  std::int64_t count = 0;
  Resources unit{};
};
// "3x(cpu=500,memory=1024)"
std::string ToString(const Headroom& headroom);

enum class Subject {
  kNodesNeeded,  // how many nodes the work needs
  kOverflow,     // likewise, without the work for which a pool on Harvester has a place
  kRoom,         // for how many more VMs of a pool Harvester's hosts have room
};

// A pool of VMs on Harvester.
struct HomePool {
  std::string ns{};
  std::string pool{};
  std::int64_t max = 0;  // of its policy
};

// "nodes-needed node_class=batch datacenter=dc1 headroom=2x(cpu=500,memory=1024) idle_for=10m
//  node=(cpu=8000,memory=16384)"
// "overflow node_class=cloud namespace=nomad pool=batch max=10"
// "room namespace=nomad pool=batch"
struct Query {
  Subject subject = Subject::kNodesNeeded;
  HomePool home{};  // not of kNodesNeeded; `max` only of kOverflow
  std::optional<std::string> node_class{};
  std::optional<std::string> datacenter{};
  std::optional<std::string> node_pool{};
  std::vector<Headroom> headroom{};
  // A pool shrinks to the highest count of this time.
  base::Duration idle_for = std::chrono::minutes(10);
  // What a new node holds, for a pool of which no node is known: kUnlimited of what is not named,
  // and no device that is not.
  std::optional<Resources> node{};

  // Views into this object. Of kRoom it is empty.
  nodepool::PoolIdentity Identity() const;
};
// "namespace/pool", as in metrics.
std::string ToString(const HomePool& home);

// The keys: docs/demand.md. INVALID_ARGUMENT has one line for each mistake: the key, its value, the
// wrong part of a size, and the valid form.
absl::StatusOr<Query> ParseQuery(std::string_view text);
// The query that is read as this one, without an idle_for that is the default.
std::string ToString(const Query& query);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_QUERY_H_
