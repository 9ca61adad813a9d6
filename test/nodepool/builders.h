// SPDX-License-Identifier: Apache-2.0
// Builders of nodes and allocations.
#ifndef NOMAD_HARVESTER_TEST_NODEPOOL_BUILDERS_H_
#define NOMAD_HARVESTER_TEST_NODEPOOL_BUILDERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nomad_harvester/nomad/types.h"

namespace nomad_harvester::nodepool {

// A ready, eligible stub; each method changes one thing.
class NodeBuilder {
 public:
  explicit NodeBuilder(std::string id) {
    node_.id = std::move(id);
    node_.status = nomad::NodeStatus::kReady;
    node_.eligible = true;
  }
  NodeBuilder& Name(std::string name) {
    return Do([&] { node_.name = std::move(name); });
  }
  NodeBuilder& Address(std::string a) {
    return Do([&] { node_.address = std::move(a); });
  }
  NodeBuilder& Class(std::string c) {
    return Do([&] { node_.node_class = std::move(c); });
  }
  NodeBuilder& Datacenter(std::string d) {
    return Do([&] { node_.datacenter = std::move(d); });
  }
  NodeBuilder& Pool(std::string p) {
    return Do([&] { node_.node_pool = std::move(p); });
  }
  NodeBuilder& Status(nomad::NodeStatus s) {
    return Do([&] { node_.status = s; });
  }
  NodeBuilder& Ineligible() {
    return Do([&] { node_.eligible = false; });
  }
  NodeBuilder& Draining() {
    return Do([&] {
      node_.draining = true;
      node_.eligible = false;
    });
  }
  NodeBuilder& CreateIndex(std::uint64_t i) {
    return Do([&] { node_.create_index = i; });
  }
  NodeBuilder& ModifyIndex(std::uint64_t i) {
    return Do([&] { node_.modify_index = i; });
  }
  NodeBuilder& Resources(std::int64_t cpu, std::int64_t memory) {
    return Do([&] { node_.resources = nomad::NodeResources{cpu, memory}; });
  }
  NodeBuilder& Reserved(std::int64_t cpu, std::int64_t memory) {
    return Do([&] { node_.reserved = {cpu, memory}; });
  }
  // Also makes it a full node.
  NodeBuilder& Attribute(const std::string& key, std::string value) {
    return Do([&] {
      node_.full = true;
      node_.attributes[key] = std::move(value);
    });
  }
  NodeBuilder& Meta(const std::string& key, std::string value) {
    return Do([&] {
      node_.full = true;
      node_.meta[key] = std::move(value);
    });
  }
  NodeBuilder& HostName(std::string name) { return Attribute("unique.hostname", std::move(name)); }
  NodeBuilder& Drained(std::map<std::string, std::string> meta, std::string started_at = "") {
    return Do([&] {
      node_.last_drain = nomad::LastDrain{};
      node_.last_drain->meta = std::move(meta);
      node_.last_drain->started_at = std::move(started_at);
    });
  }
  operator nomad::Node() const { return node_; }  // NOLINT: reads as the node it builds

 private:
  template <typename F>
  NodeBuilder& Do(F change) {
    change();
    return *this;
  }
  nomad::Node node_;
};

inline nomad::Allocation Alloc(nomad::ClientStatus status, std::string job_type = "service",
                               std::int64_t cpu = 0, std::int64_t memory = 0) {
  nomad::Allocation allocation;
  allocation.id = "a";
  allocation.job_type = std::move(job_type);
  allocation.desired_status = "run";
  allocation.client_status = status;
  allocation.cpu_shares = cpu;
  allocation.memory_mb = memory;
  return allocation;
}

}  // namespace nomad_harvester::nodepool

#endif  // NOMAD_HARVESTER_TEST_NODEPOOL_BUILDERS_H_
