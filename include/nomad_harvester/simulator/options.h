// SPDX-License-Identifier: Apache-2.0
// Options and initial contents of a simulated Harvester and Nomad; specs of nodes and jobs.
#ifndef NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_
#define NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::simulator {

// The id of Nomad's initial key.
inline constexpr char kFirstNomadKey[] = "3c6ef372-fe94-f82b-e73a-3c6ef372fe94";

// A VirtualMachineImage. Other objects refer to it by resource name or display name.
struct ImageSpec {
  std::string ns = "default";
  std::string name = "image-rx7kp";
  std::string display_name = "ubuntu-24.04";
  std::string storage_class = "lh-2f0c8d6e";
  std::int64_t virtual_size = std::int64_t{3} * 1024 * 1024 * 1024;
  // "cdi": CDI makes the claims, without the labels and annotations of their template.
  std::string backend = "backingimage";
};

// What Nomad's servers require from a client that registers for the first time. kNone: they are
// older than 1.11 and have no tokens.
enum class Introduction { kNone, kWarn, kStrict };

// A physical host of Harvester.
struct HostSpec {
  std::string name = "harvester-1";
  std::string zone{};  // label topology.kubernetes.io/zone; empty: none
  // What pods may request of it together, such as "8" and "32Gi"; empty: anything.
  std::string cpu{};
  std::string memory{};
  std::map<std::string, std::int64_t> devices{};  // by resource, such as nvidia.com/GA102GL_A10
  std::map<std::string, std::string> labels{};    // further ones
};

// For events that never happen and states that never end.
inline constexpr base::Duration kForever = base::Duration::max();

// The state of a task driver as seen by its client. kAbsent: no fingerprint has arrived yet.
enum class DriverHealth { kHealthy, kUnhealthy, kUndetected, kAbsent };
struct DriverSpec {
  DriverHealth at_first = DriverHealth::kHealthy;
  base::Duration healthy_after = kForever;  // after the client's start; if not healthy at first
  std::string trouble{};                    // HealthDescription until then
};

// How a Nomad client behaves from its first registration on.
struct ClientBehaviour {
  base::Duration initializing_for{};    // before it is ready; kForever: it never is
  base::Duration ready_for = kForever;  // then it is initializing again
  bool starts_ineligible = false;       // client.default_ineligible, of Nomad 2.0.3
  std::map<std::string, DriverSpec> drivers = {{"docker", {}}, {"exec", {}}};
};

struct Options {
  // Machines.
  base::Duration boot_time = std::chrono::seconds(5);      // VM created → VMI Running
  base::Duration join_time = std::chrono::seconds(3);      // VMI Running → Nomad node registered
  base::Duration shutdown_time = std::chrono::seconds(3);  // VM deleted → gone
  // How long Kubernetes' and Harvester's controllers, and Nomad's drainer, take to react.
  base::Duration reaction_time = std::chrono::milliseconds(100);

  // Nomad.
  ClientBehaviour client{};  // of those that are told nothing else
  base::Duration heartbeat_timeout = std::chrono::seconds(10);  // last heartbeat → node down
  base::Duration start_time = std::chrono::milliseconds(500);   // allocation placed → running
  base::Duration stop_time = std::chrono::seconds(4);           // desired status "stop" → stopped
  Introduction introduction = Introduction::kNone;
  base::Duration longest_token = std::chrono::minutes(30);  // max_identity_ttl
  std::string nomad_version{};  // of the servers; empty: one that fits `introduction`
  std::string nomad_token{};    // enables ACLs: it may write nodes and read jobs
  std::string kube_token{};     // empty: any token is accepted
  // A request without a token is accepted, too: kubectl sends none over plain HTTP.
  bool admits_anonymous = false;

  // The time until a request is applied.
  base::Duration request_latency{};

  // Harvester's initial objects, in addition to the namespaces default, nomad and harvester-public,
  // the storage classes of the images and harvester-longhorn, and Kubernetes' own priority classes.
  std::vector<ImageSpec> images = {ImageSpec{}};
  std::vector<std::string> networks = {"default/vlan100"};
  std::vector<HostSpec> hosts = {HostSpec{}};
};

// A Nomad client that is not a VM of this Harvester.
struct NodeSpec {
  std::string name{};
  std::string node_class{};
  std::string datacenter = "dc1";
  std::string node_pool = "default";
  std::map<std::string, std::string> attributes{};  // unique.hostname is the name unless given
  std::map<std::string, std::string> meta{};
  // Name → ID of a dynamic host volume; a static one has no ID.
  std::map<std::string, std::string> host_volumes{};
  std::string nomad{};      // its Nomad cluster; empty: the first
  std::int64_t cpu = 4000;  // MHz
  std::int64_t memory_mb = 4096;
};

struct JobSpec {
  std::string id{};
  std::string type = "service";   // "service", "batch", "system"
  int count = 1;                  // ignored by a system job, which runs on each node
  base::Duration poststop{};      // duration of its poststop task; zero: it has none
  base::Duration run_for{};       // duration of a batch job; zero: until it is stopped
  bool never_stops = false;       // its tasks ignore every request to stop
  std::string driver = "docker";  // empty: it runs without one
  // disconnect.lost_after, with replace = false; zero: its work is lost when the node is down or
  // disconnected.
  base::Duration lost_after{};
  std::string node_name{};   // the only node it may run on; empty: any
  std::string node_class{};  // likewise the class
  std::string datacenter{};
  std::string node_pool{};
  std::string group = "group";
  std::string ns = "default";
  std::int64_t cpu = 100;
  std::int64_t memory_mb = 128;
  std::string nomad{};  // the Nomad cluster that runs it; empty: the first
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_
