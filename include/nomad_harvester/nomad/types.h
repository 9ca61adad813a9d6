// SPDX-License-Identifier: Apache-2.0
// The members of Nomad's objects that the plugin uses. Plain data.
#ifndef NOMAD_HARVESTER_NOMAD_TYPES_H_
#define NOMAD_HARVESTER_NOMAD_TYPES_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::nomad {

enum class NodeStatus { kInitializing, kReady, kDown, kDisconnected, kUnknown };
inline constexpr std::array<std::string_view, 4> kNodeStatusNames = {"initializing", "ready",
                                                                     "down", "disconnected"};
enum class DrainStatus { kDraining, kComplete, kCanceled, kUnknown };

// hashicorp/nomad:nomad/structs/structs.go, DrainMetadata.
struct LastDrain {
  DrainStatus status = DrainStatus::kUnknown;
  // As written by Nomad: part of a marker that is compared byte by byte.
  std::string started_at{};
  std::optional<base::WallTime> updated_at{};
  std::map<std::string, std::string> meta{};
};

struct NodeResources {
  std::int64_t cpu_shares = 0;
  std::int64_t memory_mb = 0;
};

// A client's report about one of its task drivers (hashicorp/nomad:api/nodes.go, DriverInfo).
struct Driver {
  std::string name{};
  bool detected = false;
  bool healthy = false;
  std::string description{};  // HealthDescription, such as "Failed to connect to docker daemon"
};

// A node from GET /v1/nodes (stub) or GET /v1/node/:id (full). Attributes and meta, which only the
// full form has, are empty in a stub.
struct Node {
  std::string id{};
  std::string name{};
  std::string address{};  // stub: Address; full: host of HTTPAddr
  std::string datacenter{};
  std::string node_class{};
  std::string node_pool{};
  NodeStatus status = NodeStatus::kUnknown;
  bool eligible = false;  // SchedulingEligibility == "eligible"
  bool draining = false;  // Drain, or DrainStrategy is set
  std::optional<LastDrain> last_drain{};
  std::optional<NodeResources> resources{};
  NodeResources reserved{};
  // Names of the host volumes created through Nomad's API (since 1.10), in order; their data is on
  // the node's disk. They are the entries of HostVolumes with an ID
  // (hashicorp/nomad:nomad/structs/volumes.go, ClientHostVolumeConfig); volumes declared in the
  // client's configuration have no ID.
  std::vector<std::string> dynamic_host_volumes{};
  // The drivers that are detected, or for which the client says why they are not.
  std::vector<Driver> drivers{};
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
  bool full = false;
  std::map<std::string, std::string> attributes{};
  std::map<std::string, std::string> meta{};
};

enum class ClientStatus { kPending, kRunning, kComplete, kFailed, kLost, kUnknown };

struct Allocation {
  std::string id{};
  std::string ns{};
  std::string node_id{};
  std::string job_type{};        // "service", "batch", "system", "sysbatch"; empty if not reported
  std::string desired_status{};  // "run", "stop", "evict"
  ClientStatus client_status = ClientStatus::kUnknown;
  std::int64_t cpu_shares = 0;
  std::int64_t memory_mb = 0;
  // Every task's state is "dead". Also true when no task state is known.
  bool all_tasks_dead = true;
  // What runs, for people: "job web (server, proxy)". Only in the list of one node's allocations.
  std::string work{};
  std::uint64_t create_index = 0;
};

struct DrainSpec {
  base::Duration deadline{};  // >0 from now, 0 none, <0 stop all allocations now
  bool ignore_system_jobs = false;
  std::map<std::string, std::string> meta{};
};

// A list and the Raft index at which it was read.
template <typename T>
struct Indexed {
  T value;
  std::uint64_t index = 0;
};

}  // namespace nomad_harvester::nomad

#endif  // NOMAD_HARVESTER_NOMAD_TYPES_H_
