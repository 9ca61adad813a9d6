// SPDX-License-Identifier: Apache-2.0
// A pool on a simulated Harvester, "web" in namespace nomad, and the APM that knows it. A node has
// 4000 MHz and 4096 MiB, a VM asks for 3 GiB and a little more of its host.
#ifndef NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_
#define NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "nomad_harvester/base/time.h"
#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/harvester/metadata.h"
#include "nomad_harvester/metrics/registry.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/simulator/cluster.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/fake_clock.h"
#include "support/hosts.h"
#include "support/inline_executor.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::demand {

class TwoPools : public testing::Test {
 protected:
  explicit TwoPools(const std::string& memory_of_host = "12Gi") {
    simulator::Options options;
    options.hosts = {{.name = "h1", .memory = memory_of_host}};
    cluster_ = std::make_unique<simulator::Cluster>(clock_, *random_, options);
    Start(/*with_harvester=*/true);
  }

  // A new process.
  void Start(bool with_harvester) {
    DemandServiceOptions options;
    options.clock = &clock_;
    options.random = support::MakeSeededRandom(2);
    options.logger = log::Logger(log_, log::Level::kInfo);
    options.transports = [this](const config::PluginConfig& config) {
      http::RawTransports made{.nomad = cluster_->NomadTransport("apm")};
      if (config.harvester.has_server()) made.harvester = cluster_->HarvesterTransport("apm");
      return made;
    };
    options.executor = &executor_;
    options.metrics_for = [this](const std::string&) { return metrics_; };
    service_ = MakeDemandService(std::move(options));
    config::StringMap settings = {{"nomad_address", "http://nomad:4646"}};
    if (with_harvester) settings["harvester_url"] = "https://harvester:6443";
    EXPECT_THAT(service_->SetConfig(settings), support::IsOk());
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
    EXPECT_TRUE(cluster_->PutObject(
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
    EXPECT_TRUE(cluster_->EditAnnotation(vm, harvester::kNodeIdAnnotation, node));
    EXPECT_TRUE(cluster_->EditAnnotation(vm, harvester::kJoinedAtAnnotation,
                                         base::FormatRfc3339(clock_.WallNow())));
  }
  void RemoveVm(const std::string& name) {
    const auto remove = [&](const char* version, const char* kind) {
      EXPECT_TRUE(cluster_->DeleteObject({{"apiVersion", version},
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
    EXPECT_TRUE(cluster_->PutObject({{"apiVersion", "v1"},
                                     {"kind", "Pod"},
                                     {"metadata", {{"namespace", "nomad"}, {"name", name}}},
                                     {"spec", {{"nodeName", "h1"}, {"containers", containers}}},
                                     {"status", {{"phase", "Running"}}}}));
  }
  std::string AddNode(const std::string& name, const std::string& node_class) {
    simulator::NodeSpec node;
    node.name = name;
    node.node_class = node_class;
    return cluster_->AddForeignNode(node);
  }

  // Four of its allocations fill a node.
  static simulator::JobSpec Job(const std::string& id, int count) {
    simulator::JobSpec job;
    job.id = id;
    job.count = count;
    job.cpu = 1000;
    job.memory_mb = 1024;
    return job;
  }
  void Wait(base::Duration duration) {
    clock_.Advance(duration);
    cluster_->ApplyDue();
  }
  // Later than the last reading is kept.
  absl::StatusOr<Answer> Ask(const std::string& query) {
    Wait(std::chrono::seconds(10));
    return service_->Query(runtime::Context::Background(clock_), query);
  }
  std::int64_t Count(const std::string& query) {
    const auto answer = Ask(query);
    EXPECT_THAT(answer, support::IsOk()) << query;
    return answer.ok() ? answer->count : -1;
  }

  support::FakeClock clock_;
  const std::unique_ptr<runtime::Random> random_ = support::MakeSeededRandom(1);
  std::unique_ptr<simulator::Cluster> cluster_;
  support::InlineExecutor executor_;
  std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  std::shared_ptr<metrics::Registry> metrics_ =
      metrics::MakeRegistry({.version = "1", .commit = "c"});
  std::unique_ptr<DemandService> service_;
  std::int64_t made_ = 0;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_TEST_DEMAND_TWO_POOLS_H_
