// SPDX-License-Identifier: Apache-2.0
// The members of Nomad's objects that the plugin uses. Plain data.
#ifndef NOMAD_HARVESTER_NOMAD_TYPES_H_
#define NOMAD_HARVESTER_NOMAD_TYPES_H_

#include <algorithm>
#include <array>
#include <compare>
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
  std::int64_t disk_mb = 0;
  // The cores that tasks may reserve; of ReservedResources: those that they may not.
  std::int64_t cores = 0;
  std::int64_t total_cores = 0;  // with those that cannot be reserved
};

// Devices of one vendor, type and name (hashicorp/nomad:nomad/structs/structs.go,
// NodeDeviceResource).
struct NodeDevice {
  std::string vendor{};
  std::string type{};
  std::string name{};
  std::int64_t healthy = 0;  // instances
};

// A host volume, from the client's configuration or created through Nomad's API.
struct HostVolume {
  std::string name{};
  bool read_only = false;
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
  std::vector<NodeDevice> devices{};
  std::vector<std::string> network_modes{};  // "host", "bridge", "cni/NAME"
  std::vector<HostVolume> host_volumes{};    // all, in order
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
  std::optional<base::WallTime> status_updated_at{};  // full: whole seconds
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

// What an allocation holds on its node, as the scheduler counts it.
struct Placement {
  std::string id{};
  std::string ns{};
  std::string job{};
  std::string group{};
  std::string node_id{};
  std::string job_type{};
  std::string desired_status{};  // "run", "stop", "evict"
  ClientStatus client_status = ClientStatus::kUnknown;
  bool migrate = false;         // DesiredTransition: it leaves its node as soon as it has another
  std::int64_t cpu_shares = 0;  // with those of its cores
  std::int64_t memory_mb = 0;
  std::int64_t disk_mb = 0;
  std::int64_t cores = 0;
  std::map<std::string, std::int64_t> devices{};  // instances by "vendor/type/name"
  std::vector<std::uint16_t> ports{};             // of the node, static and dynamic
};

// A constraint of a job, a task group, a task or a device: "${attr.kernel.name}", "=", "linux".
struct Constraint {
  std::string left{};
  std::string operand{};
  std::string right{};
  friend auto operator<=>(const Constraint&, const Constraint&) = default;
};

struct DeviceRequest {
  std::string name{};  // "gpu", "nvidia/gpu", "nvidia/gpu/Tesla T4"
  std::int64_t count = 1;
  std::vector<Constraint> constraints{};
};

struct Task {
  std::string name{};
  std::string driver{};
  std::string hook{};  // of its lifecycle: "prestart", "poststart", "poststop"; empty: a main task
  bool sidecar = false;
  std::int64_t cpu_shares = 0;
  std::int64_t cores = 0;  // instead of cpu_shares, if it is not 0
  std::int64_t memory_mb = 0;
  std::vector<DeviceRequest> devices{};
  std::vector<std::uint16_t> static_ports{};
  std::vector<Constraint> constraints{};
};

// What the tasks of an allocation hold at one time, by the hooks of their lifecycles: the sidecars,
// besides the largest of what runs before, as and after the main tasks (hashicorp/nomad:nomad/
// structs/structs.go, AllocatedResources.Comparable). Nomad 1.6 forgets poststart tasks; here they
// count as main tasks, so that no allocation looks smaller than it is.
class LifecycleSum {
 public:
  void Add(std::string_view hook, bool sidecar, std::int64_t amount) {
    const bool before = hook == "prestart";
    (before && sidecar    ? sidecars_
     : before             ? before_
     : hook == "poststop" ? after_
                          : main_) += amount;
  }
  std::int64_t Total() const { return sidecars_ + std::max({before_, main_, after_}); }

 private:
  std::int64_t sidecars_ = 0;
  std::int64_t before_ = 0;
  std::int64_t main_ = 0;
  std::int64_t after_ = 0;
};

struct VolumeRequest {
  std::string type{};  // "host", "csi"
  std::string source{};
  bool read_only = false;
  bool per_alloc = false;  // the volume's name ends with the allocation's index
};

struct TaskGroup {
  std::string name{};
  std::int64_t count = 0;
  std::int64_t disk_mb = 0;    // of its ephemeral disk
  std::string network_mode{};  // of its first network; empty: it has none
  std::vector<std::uint16_t> static_ports{};
  bool host_networks = false;  // a port is on another network of the host than its default one
  std::vector<VolumeRequest> volumes{};
  std::vector<Constraint> constraints{};
  std::vector<Task> tasks{};
};

struct Job {
  std::string id{};
  std::string ns{};
  std::string type{};       // "service", "batch", "system", "sysbatch"
  std::string node_pool{};  // empty before Nomad 1.6
  std::vector<std::string> datacenters{};
  std::int64_t priority = 0;
  bool stop = false;
  std::uint64_t job_modify_index = 0;  // changes with the job, never with its status
  std::vector<Constraint> constraints{};
  std::vector<TaskGroup> groups{};
};

struct JobStub {
  std::string id{};
  std::string ns{};
  std::string type{};
  std::string status{};
  bool stop = false;
  std::uint64_t job_modify_index = 0;
  // By task group: how many allocations Nomad has not placed (JobSummary). Falls with each one that
  // is placed.
  std::map<std::string, std::int64_t> queued{};
};

// Why Nomad could not place allocations of a task group (hashicorp/nomad:nomad/structs/structs.go,
// AllocMetric). Numbers are of nodes.
struct PlacementFailure {
  // How many allocations had no place when the evaluation was made. Not lowered when the blocked
  // evaluation places some of them (scheduler/generic_sched.go, Process: ReblockEval of a copy).
  std::int64_t unplaced = 1;
  std::int64_t nodes_evaluated = 0;
  std::int64_t nodes_filtered = 0;
  std::int64_t nodes_exhausted = 0;
  std::map<std::string, std::int64_t> class_filtered{};  // by node class
  std::map<std::string, std::int64_t>
      constraint_filtered{};  // by "${attr.x} = y", "missing drivers"
  std::map<std::string, std::int64_t> dimension_exhausted{};  // by "memory", "cpu", "network: …"
  std::vector<std::string> quota_exhausted{};
};

// An evaluation of a service or batch job that waits for room, or that is not finished.
struct BlockedEvaluation {
  std::string id{};
  std::string ns{};
  std::string job{};
  std::string type{};
  std::string status{};
  std::string triggered_by{};
  std::string quota_limit_reached{};  // the quota that refuses the job; empty: none
  bool delayed = false;               // Nomad begins it later (WaitUntil, Wait)
  std::map<std::string, PlacementFailure> failures{};  // by task group
  std::uint64_t create_index = 0;
  std::uint64_t modify_index = 0;
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
