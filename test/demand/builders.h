// SPDX-License-Identifier: Apache-2.0
// Nodes and work for tests of the demand. A node has 4000 MHz, 8192 MiB and 10000 MiB of disk.
#ifndef NOMAD_HARVESTER_TEST_DEMAND_BUILDERS_H_
#define NOMAD_HARVESTER_TEST_DEMAND_BUILDERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/demand/packing.h"
#include "nomad_harvester/demand/query.h"
#include "nomad_harvester/demand/work.h"
#include "nomad_harvester/nodepool/drain.h"

namespace nomad_harvester::demand {

inline Query BatchQuery() {
  Query query;
  query.node_class = "batch";
  return query;
}

inline PoolNode MakeNode(const std::string& id,
                         Resources capacity = {
                             .cpu = 4000, .cores = 4, .memory_mb = 8192, .disk_mb = 10000}) {
  nomad::Node stub;
  stub.id = id;
  stub.name = "vm-" + id;
  stub.datacenter = "dc1";
  stub.node_class = "batch";
  stub.node_pool = "default";
  stub.status = nomad::NodeStatus::kReady;
  stub.eligible = true;
  stub.full = true;
  stub.attributes = {
      {"kernel.name", "linux"}, {"driver.docker", "1"}, {"unique.hostname", "vm-" + id}};
  stub.drivers = {{.name = "docker", .detected = true, .healthy = true}};
  PoolNode node;
  node.node = std::make_shared<const nomad::Node>(std::move(stub));
  node.capacity = std::move(capacity);
  node.cpu_per_core = 1000;
  return node;
}

// For changes: a copy of its own.
inline nomad::Node& Edit(PoolNode& node) {
  auto copy = std::make_shared<nomad::Node>(*node.node);
  node.node = copy;
  return *copy;
}

inline Demand Of(const World& world) { return ComputeDemand(BatchQuery(), world); }

// Work of group "g" that may run anywhere.
inline Group MakeWork(const std::string& job, std::int64_t cpu, std::int64_t memory_mb) {
  Group group;
  group.ns = "default";
  group.job = job;
  group.name = "g";
  group.job_type = "service";
  group.datacenters = {"*"};
  group.node_pool = "default";
  group.drivers = {"docker"};
  group.need = {.cpu = cpu, .memory_mb = memory_mb};
  return group;
}

// The node is drained by the plugin, so that its VM counts no more.
inline void DrainByTarget(PoolNode& node) {
  Edit(node).draining = true;
  Edit(node).eligible = false;
  Edit(node).last_drain = nomad::LastDrain{
      .status = nomad::DrainStatus::kDraining,
      .meta = nodepool::ToMeta({.action = "scale-in", .vm = "vm", .vm_uid = "uid"})};
}

inline Pending Waiting(Group group, std::int64_t count, bool overdue = false) {
  return {
      .group = std::make_shared<const Group>(std::move(group)), .count = count, .overdue = overdue};
}

inline Placed Running(const Group& group) {
  Placed placed{.ns = group.ns, .job = group.job, .group = group.name, .job_type = group.job_type};
  placed.uses = group.need;
  placed.ports = group.static_ports;
  return placed;
}

inline PoolNode With(PoolNode node, const Group& group, int count = 1) {
  for (int i = 0; i < count; ++i) node.work.push_back(Running(group));
  return node;
}

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_TEST_DEMAND_BUILDERS_H_
