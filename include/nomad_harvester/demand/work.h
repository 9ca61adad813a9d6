// SPDX-License-Identifier: Apache-2.0
// Nomad's nodes and work, as far as they decide how many nodes a pool needs. Plain data, and how it
// is made of what Nomad's client reads. Pure.
#ifndef NOMAD_HARVESTER_DEMAND_WORK_H_
#define NOMAD_HARVESTER_DEMAND_WORK_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::demand {

using nomad::Constraint;
using DeviceNeed = nomad::DeviceRequest;

// A capacity that is not limited: more than any machine has, and small enough for sums.
inline constexpr std::int64_t kUnlimited = std::int64_t{1} << 40;
// Of cores: their product with the MHz of a core, kUnlimited at most, does not overflow.
inline constexpr std::int64_t kMaxCores = 1 << 20;

// An amount of what Nomad's scheduler counts on a node.
struct Resources {
  std::int64_t cpu = 0;        // MHz ("cpu shares")
  std::int64_t cores = 0;      // reserved cores
  std::int64_t memory_mb = 0;  // memory_max is not counted
  std::int64_t disk_mb = 0;
  // Instances by "vendor/type/name"; of a group's need see Group::devices.
  std::map<std::string, std::int64_t> devices{};
};
// All but the devices.
inline constexpr std::int64_t Resources::*kEachAmount[] = {
    &Resources::cpu, &Resources::cores, &Resources::memory_mb, &Resources::disk_mb};

// The property of distinct_hosts.
inline constexpr std::string_view kEveryHost = "${node.unique.id}";

// distinct_hosts, or distinct_property: at most `limit` allocations on nodes with the same value.
struct Distinct {
  std::string property{};
  std::int64_t limit = 1;
  bool whole_job = false;  // counts the allocations of all the job's groups
};

struct VolumeNeed {
  std::string name{};
  bool read_only = false;
};

// A task group, and what each of its allocations needs.
struct Group {
  std::string ns{};
  std::string job{};
  std::string name{};
  std::string job_type{};  // "service", "batch"
  std::int64_t priority = 50;
  std::vector<std::string> datacenters{};  // with Nomad's wildcards, such as "dc*"
  std::string node_pool{};                 // "all", or empty (Nomad before 1.6): every pool
  // Of all tasks, by the rules of Nomad's lifecycle; no devices. The share of the cores is not in
  // `cpu`: it depends on the node.
  Resources need{};
  std::vector<DeviceNeed> devices{};
  std::set<std::uint16_t> static_ports{};
  std::string network_mode{};  // empty: it has no network
  std::set<std::string> drivers{};
  // Of the job, the group and its tasks, without duplicates and without those of `distinct`.
  std::vector<Constraint> constraints{};
  std::vector<Distinct> distinct{};
  std::vector<VolumeNeed> host_volumes{};
  // Volumes of which nodes tell nothing: CSI, and host volumes with one name per allocation.
  bool csi_volumes = false;
  bool host_networks = false;  // ports on named networks of the host, of which nodes tell nothing
  bool runnable = true;        // false: stopped or paused
  // The quota that refused it when Nomad last recorded a try; empty: none. Nomad records no try
  // that places nothing (hashicorp/nomad:nomad/worker.go, ReblockEval).
  std::string quota{};
};

// From then on, an evaluation that is still blocked has been tried on the nodes that are there.
inline constexpr base::Duration kOverdueAfter = std::chrono::seconds(30);

// Work of a group for which Nomad has found no place.
struct Pending {
  std::shared_ptr<const Group> group;
  std::int64_t count = 0;
  // Of its blocked evaluation: of one priority, Nomad places the oldest first.
  std::uint64_t create_index = 0;
  // Nomad has tried it for kOverdueAfter. Room on a node that has been there as long then proves
  // nothing: Nomad would have used it, and knows a reason that this does not.
  bool overdue = false;
};

// An allocation that occupies a node: its client status is pending, running or unknown.
struct Placed {
  std::string ns{};
  std::string job{};
  std::string group{};
  std::string job_type{};
  Resources uses{};                 // `cpu` with the share of its cores
  std::set<std::uint16_t> ports{};  // static and dynamic
  bool leaves = false;              // Nomad wants it on another node (DesiredTransition.Migrate)
  bool stops = false;               // Nomad wants it to end, and not to run elsewhere
};

struct PoolNode {
  std::shared_ptr<const nomad::Node> node;  // with attributes and meta, if it was read in full
  Resources capacity{};  // what Nomad may use: the node's resources less what its client reserves
  std::int64_t cpu_per_core = 0;  // MHz that a reserved core takes of `capacity.cpu`
  std::vector<Placed> work{};
};

// What was read of Nomad at one moment.
struct World {
  base::WallTime at{};
  // Of the pool, in any state, and those besides that lose work (Reader::WorldOf).
  std::vector<PoolNode> nodes{};
  bool is_whole = true;  // false: not all nodes of the pool were read
  // A node of the pool that was seen earlier, for a pool that has none now; null: none.
  std::shared_ptr<const PoolNode> last_seen{};
  std::vector<Pending> pending{};  // of every pool
  // Of system and sysbatch jobs, which Nomad will place on each new node that they match.
  std::vector<std::shared_ptr<const Group>> system{};
  // By namespace, job and name, those of the work on nodes that are to be emptied
  // (Reader::WorldOf).
  std::map<std::tuple<std::string, std::string, std::string>, std::shared_ptr<const Group>>
      groups{};
};

// From what Nomad's client read.
Group MakeGroup(const nomad::Job& job, const nomad::TaskGroup& group);
PoolNode MakePoolNode(std::shared_ptr<const nomad::Node> node);  // without work
Placed MakePlaced(const nomad::Placement& placement);
// How many allocations of a group wait that an evaluation could not place. `queued`: the group's
// number of the list of jobs, read after the evaluations; nullopt: it has none.
std::int64_t CountPending(const nomad::PlacementFailure& failure,
                          std::optional<std::int64_t> queued);

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_DEMAND_WORK_H_
