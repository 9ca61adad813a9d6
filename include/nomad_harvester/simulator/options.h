// SPDX-License-Identifier: Apache-2.0
// What a simulated Harvester and Nomad are like, and what can be put into them.
#ifndef NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_
#define NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nomad_harvester/base/time.h"

namespace nomad_harvester::simulator {

// A VirtualMachineImage. Other objects name it by resource name or by display name.
struct ImageSpec {
  std::string ns = "default";
  std::string name = "image-rx7kp";
  std::string display_name = "ubuntu-24.04";
  std::string storage_class = "lh-2f0c8d6e";
  std::int64_t virtual_size = std::int64_t{3} * 1024 * 1024 * 1024;
};

struct Options {
  // Machines.
  base::Duration boot_time = std::chrono::seconds(5);      // VM created → VMI Running
  base::Duration join_time = std::chrono::seconds(3);      // VMI Running → Nomad node ready
  base::Duration shutdown_time = std::chrono::seconds(3);  // VM deleted → gone
  // How long Kubernetes' and Harvester's controllers, and Nomad's drainer, take to react.
  base::Duration reaction_time = std::chrono::milliseconds(100);

  // Nomad.
  base::Duration heartbeat_timeout = std::chrono::seconds(10);  // client gone → node down
  base::Duration heartbeat_interval = std::chrono::seconds(5);  // a purged live client comes back
  base::Duration start_time = std::chrono::milliseconds(500);   // allocation placed → running
  base::Duration stop_time = std::chrono::seconds(4);  // allocation told to stop → stopped
  std::string region = "global";
  std::string datacenter = "dc1";
  // ACLs on: the token (any, if nomad_token is empty) may write nodes and read jobs, unless blind.
  bool nomad_acl = false;
  bool deny_read_job = false;  // no read-job; switches ACLs on
  std::string nomad_token{};
  std::string kube_token{};  // empty: any token will do

  // How long a request takes before it is applied.
  base::Duration request_latency{};

  // What Harvester holds at first.
  std::vector<std::string> namespaces = {"default", "nomad", "harvester-public"};
  std::vector<ImageSpec> images = {ImageSpec{}};
  std::vector<std::string> networks = {"default/vlan100"};
  std::map<std::string, std::string> keypairs = {
      {"default/ops", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpsKeyOfTheSimulator ops"}};
  std::map<std::string, std::string> settings = {{"server-version", "v1.6.1"}};
};

// A Nomad client that is not a VM of this Harvester.
struct NodeSpec {
  std::string name{};
  std::string node_class{};
  std::string datacenter = "dc1";
  std::string node_pool = "default";
  std::map<std::string, std::string> attributes{};  // unique.hostname is the name unless given
  std::map<std::string, std::string> meta{};
};

struct JobSpec {
  std::string id{};
  std::string type = "service";  // "service", "batch", "system"
  int count = 1;                 // of a system job: one on each node instead
  base::Duration poststop{};     // how long its poststop task runs; zero: it has none
  base::Duration run_for{};      // a batch job's work; zero: until it is stopped
  bool never_stops = false;      // its tasks ignore every request to stop
  std::string node_name{};       // only there, if not empty
  std::string ns = "default";
  std::int64_t cpu = 100;
  std::int64_t memory_mb = 128;
};

}  // namespace nomad_harvester::simulator

#endif  // NOMAD_HARVESTER_SIMULATOR_OPTIONS_H_
