// SPDX-License-Identifier: Apache-2.0
// A pool on a simulated Harvester, "web" in namespace nomad, and the APM that knows it. A node has
// 4000 MHz and 4096 MiB, a VM asks for 3 GiB and a little more of its host.
#ifndef NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_
#define NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_

#include <cstdint>
#include <string>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/harvester/metadata.h"

#include "demand/apm_fixture.h"
#include "nlohmann/json.hpp"
#include "support/hosts.h"

namespace nomad_harvester::demand {

class TwoPools : public ApmFixture {
 protected:
  explicit TwoPools(const std::string& memory_of_host = "12Gi")
      : ApmFixture({.hosts = {{.name = "h1", .memory = memory_of_host}}}) {
    Start({{"harvester_url", "https://harvester:6443"}});
  }

  // A VM of the pool whose pod is on the host, with or without a node in Nomad. Pod and node are
  // the test's, not the simulator's, which starts no VM that is Halted.
  void PutVm(const std::string& name, bool joined = true, const std::string& memory = "3Gi") {
    const std::string uuid = "0b0a7d4e-4c3e-4f0c-9d5d-" + std::to_string(100'000'000'000 + ++made_);
    harvester::NodesRecord nodes;
    nodes.node_class = "web";
    nlohmann::json annotations = {{harvester::kSelfAnnotation, name + "/" + uuid},
                                  {harvester::kJoinTimeoutAnnotation, "10m"},
                                  {harvester::kNodesAnnotation, harvester::ToAnnotation(nodes)}};
    if (joined) {
      annotations[harvester::kJoinedAtAnnotation] = base::FormatRfc3339(clock_.WallNow());
      annotations[harvester::kNodeIdAnnotation] = AddNode(name, "web");
    }
    const nlohmann::json labels = {{harvester::kPoolLabel, "web"},
                                   {harvester::kManagedByLabel, harvester::kManagedByValue}};
    const nlohmann::json domain = {
        {"cpu", {{"cores", 2}}},
        {"firmware", {{"uuid", uuid}}},
        {"resources", {{"requests", {{"cpu", "100m"}, {"memory", memory}}}}}};
    EXPECT_TRUE(cluster_.PutObject(
        {{"apiVersion", "kubevirt.io/v1"},
         {"kind", "VirtualMachine"},
         {"metadata",
          {{"namespace", "nomad"},
           {"name", name},
           {"labels", labels},
           {"annotations", annotations}}},
         {"spec",
          {{"runStrategy", "Halted"},
           {"template", {{"metadata", {{"labels", labels}}}, {"spec", {{"domain", domain}}}}}}}}));
    PutPod(name, "3600Mi");
  }
  void Join(const std::string& vm) {
    const std::string node = AddNode(vm, "web");
    EXPECT_TRUE(cluster_.EditAnnotation(vm, harvester::kNodeIdAnnotation, node));
    EXPECT_TRUE(cluster_.EditAnnotation(vm, harvester::kJoinedAtAnnotation,
                                        base::FormatRfc3339(clock_.WallNow())));
  }
  void RemoveVm(const std::string& name) {
    const auto remove = [&](const char* version, const char* kind) {
      EXPECT_TRUE(cluster_.DeleteObject({{"apiVersion", version},
                                         {"kind", kind},
                                         {"metadata", {{"namespace", "nomad"}, {"name", name}}}}))
          << kind;
    };
    remove("kubevirt.io/v1", "VirtualMachine");
    remove("v1", "Pod");
  }
  void PutPod(const std::string& name, const std::string& memory) {
    const nlohmann::json containers = nlohmann::json::array(
        {{{"name", "main"}, {"resources", {{"requests", {{"memory", memory}}}}}}});
    EXPECT_TRUE(cluster_.PutObject({{"apiVersion", "v1"},
                                    {"kind", "Pod"},
                                    {"metadata", {{"namespace", "nomad"}, {"name", name}}},
                                    {"spec", {{"nodeName", "h1"}, {"containers", containers}}},
                                    {"status", {{"phase", "Running"}}}}));
  }
  std::string AddNode(const std::string& name, const std::string& node_class) {
    simulator::NodeSpec node;
    node.name = name;
    node.node_class = node_class;
    return cluster_.AddForeignNode(node);
  }

  std::int64_t made_ = 0;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_
