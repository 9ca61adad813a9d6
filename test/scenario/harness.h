// SPDX-License-Identifier: Apache-2.0
// The whole plugin below gRPC against the simulated cluster, in one thread and on a fake clock: a
// scenario of minutes runs in milliseconds, and the same way every time.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/target_service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "invariants.h"
#include "process.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"

namespace nomad_harvester::scenario {

class Harness {
 public:
  explicit Harness(simulator::Options options = {});
  ~Harness();

  support::FakeClock clock;
  std::unique_ptr<runtime::Random> random;
  simulator::Cluster cluster;
  std::shared_ptr<support::RecordingSink> log;
  scaling::StringMap policy;
  Invariants invariants;

  // The one that the methods below speak to unless another is named.
  Process& process() { return *processes_.back(); }
  // Another process beside those that there are; process() from now on.
  Process& Start();
  // Every process is gone, another one starts.
  void Restart();
  // The newest process, which Start made, is gone; process() is the one before it.
  void EndNewest();

  absl::StatusOr<scaling::TargetStatus> Status() { return process().Status(policy); }
  // As the agent would call it, with the invariants' budget set to what it may do.
  absl::Status Scale(std::int64_t count, const std::string& meta_json = "");
  // Ticks as the agent does: Status, background work, ten seconds. Until Status is ready, and then
  // Scale if the count is not `count` yet. Fails the test if it does not come to rest.
  void Converge(std::int64_t count);
  // Status and background work until ready; nothing else.
  void WaitUntilReady();
  // Status and background work, every ten seconds, for so long.
  void Tick(base::Duration duration);

  std::vector<std::string> VmNames() const;
  std::string NodeOf(const std::string& vm) const;
  // The journal and the plugin's log: what a failing test prints.
  std::string Transcript() const;
  void CheckAtRest(std::int64_t count);
  void CheckAtRest(const Invariants::Rest& rest);

 private:
  int started_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
