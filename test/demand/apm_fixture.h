// SPDX-License-Identifier: Apache-2.0
// The APM on a simulated Nomad, and on a simulated Harvester if its configuration has one.
#ifndef NOMAD_HARVESTER_TEST_DEMAND_APM_FIXTURE_H_
#define NOMAD_HARVESTER_TEST_DEMAND_APM_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nomad_harvester/demand/service.h"
#include "nomad_harvester/http/transport.h"
#include "nomad_harvester/metrics/registry.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/simulator/cluster.h"

#include "gtest/gtest.h"
#include "support/fake_clock.h"
#include "support/inline_executor.h"
#include "support/recording_sink.h"
#include "support/seeded_random.h"
#include "support/status_matchers.h"

namespace nomad_harvester::demand {

class ApmFixture : public testing::Test {
 protected:
  explicit ApmFixture(const simulator::Options& options = {})
      : cluster_(clock_, *random_, options) {}

  virtual std::shared_ptr<http::HttpTransport> Nomad() { return cluster_.NomadTransport("apm"); }

  // A new process.
  void Start(config::StringMap settings = {}) {
    DemandServiceOptions options;
    options.clock = &clock_;
    options.random = support::MakeSeededRandom(2);
    options.logger = log::Logger(log_, log::Level::kInfo);
    options.transports = [this](const config::PluginConfig& config) {
      http::RawTransports made{.nomad = Nomad()};
      if (config.harvester.has_server()) made.harvester = cluster_.HarvesterTransport("apm");
      return made;
    };
    options.executor = &executor_;
    options.metrics_for = [this](const std::string&) { return metrics_; };
    service_ = MakeDemandService(std::move(options));
    settings["nomad_address"] = "http://nomad:4646";
    EXPECT_THAT(service_->SetConfig(settings), support::IsOk());
  }

  // Four of its allocations fill a node, which has 4000 MHz and 4096 MiB.
  static simulator::JobSpec Job(const std::string& id, int count,
                                const std::string& node_class = "") {
    simulator::JobSpec job;
    job.id = id;
    job.count = count;
    job.cpu = 1000;
    job.memory_mb = 1024;
    job.node_class = node_class;
    return job;
  }
  void Wait(base::Duration duration) {
    clock_.Advance(duration);
    cluster_.ApplyDue();
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
  simulator::Cluster cluster_;
  support::InlineExecutor executor_;
  std::shared_ptr<support::RecordingSink> log_ = std::make_shared<support::RecordingSink>();
  std::shared_ptr<metrics::Registry> metrics_ =
      metrics::MakeRegistry({.version = "1", .commit = "c"});
  std::unique_ptr<DemandService> service_;
};

}  // namespace nomad_harvester::demand

#endif  // NOMAD_HARVESTER_TEST_DEMAND_APM_FIXTURE_H_
