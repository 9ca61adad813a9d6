// SPDX-License-Identifier: Apache-2.0
// The whole plugin below gRPC against the simulated cluster, in one thread and on a fake clock: a
// scenario of minutes runs in milliseconds, and deterministically.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/scaling/target_service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "bystanders.h"
#include "invariants.h"
#include "nlohmann/json.hpp"
#include "process.h"
#include "support/fake_clock.h"
#include "support/recording_sink.h"

namespace nomad_harvester::scenario {

// What nearly every scenario names.
using nlohmann::json;
using simulator::Fault;
using simulator::RequestInfo;
using simulator::System;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// What it may cost to bring a pool to rest: time of the simulated clock, and requests.
struct Budget {
  base::Duration time{};
  int requests = 0;
};
// About twice what the full sweeps need: 4.3 minutes, 500 requests.
inline constexpr Budget kRestBudget{.time = minutes(15), .requests = 1000};
// After a trouble that outlived a Scale: the back-off of its cause grows up to half an hour.
inline constexpr Budget kBackOffBudget{.time = minutes(60), .requests = 3000};

// For one Scale: a drain of 15 minutes, the grace, and what slow systems add.
inline constexpr Budget kSettleBudget{.time = hours(2), .requests = 100000};

class Harness {
 public:
  explicit Harness(simulator::Options options = {}, const Interleaving& interleaving = {});
  // Fails the test if an invariant was violated or a bystander was changed.
  ~Harness();

  support::FakeClock clock;
  std::unique_ptr<runtime::Random> random;
  simulator::Cluster cluster;
  std::shared_ptr<support::RecordingSink> log;
  scaling::StringMap policy;
  scaling::StringMap config;                    // of the next process, besides what it needs
  std::shared_ptr<metrics::Sink> metrics_sink;  // likewise
  std::string neighbour;                        // a pool of another agent
  Invariants invariants;
  Bystanders bystanders;

  // The process that the methods below use unless another is named.
  Process& process() { return *processes_.back(); }
  // Starts another process in addition to the existing ones; it becomes process().
  Process& Start();
  // Kills every process and starts another one.
  void Restart();
  // Kills the newest process, which Start created; process() is the one before it.
  void EndNewest();
  // Calls Scale, which fails: process() is killed at such a request, before or right after it takes
  // effect. Start another one.
  void ScaleAndDieAt(std::int64_t count, const std::string& verb, const std::string& resource,
                     bool applied = true);
  // From now on calls it for each request, in place of the cluster's fault hook.
  void OnEachRequest(std::function<void(const RequestInfo&)> fn);
  // From now on this happens to the requests that are meant, in place of the cluster's fault hook.
  void Inject(const Fault& fault, std::function<bool(const RequestInfo&)> is_meant);

  absl::StatusOr<scaling::TargetStatus> Status() { return process().Status(policy); }
  // Calls Scale as the agent would, and sets the invariants' budget for it.
  absl::Status Accept(std::int64_t count, const std::string& meta_json = "",
                      std::optional<scaling::RemovalConsent> consent = {});
  // The same; if it is accepted, ticks until the background has no work left in the pool. Returns
  // what failed after the acceptance, as the Lease records it.
  absl::Status Scale(std::int64_t count, const std::string& meta_json = "");
  // Scale, which must succeed, and then WaitUntilReady.
  void Reach(std::int64_t count);
  // Ticks until the background has no work left in the pool but what waits for rounds, or the
  // process is dead.
  void Settle(const Budget& budget = kSettleBudget);
  // Ticks as the agent does: Status, background work, ten seconds. Once Status is ready, calls
  // Scale if the count is not `count` yet. Fails the test if it does not converge within the
  // budget.
  void Converge(std::int64_t count, const Budget& budget = kRestBudget);
  // Calls Status and runs background work until ready; nothing else.
  void WaitUntilReady(const Budget& budget = kRestBudget);
  // Calls Status and runs background work every ten seconds, for `duration`.
  void Tick(base::Duration duration);
  // The same without Status, as of an agent that does not ask.
  void TickWithoutStatus(base::Duration duration);

  // What the cluster has, without bystanders; no VM of the pool `neighbour`.
  std::vector<json> Vms() const;
  std::vector<json> Secrets() const { return bystanders.Without(cluster.Secrets()); }
  std::vector<json> Claims() const { return bystanders.Without(cluster.Claims()); }
  std::vector<json> Leases() const { return bystanders.Without(cluster.Leases()); }
  std::vector<json> Nodes() const { return bystanders.Without(cluster.Nodes()); }
  std::vector<std::string> VmNames() const;
  std::string NodeOf(const std::string& vm) const;
  // The journal and the plugin's log, printed by a failing test.
  std::string Transcript() const;
  void CheckAtRest(std::int64_t count);
  void CheckAtRest(const Invariants::Rest& rest);

  // A node is ready only with this driver, for the policy and for the invariants.
  void RequireDocker();
  // VMs are made of the template default/worker, and the policy leaves to it what it says.
  void UseTemplate();
  // A new version of it: a root disk of the image, a data disk, and what a policy would say
  // besides.
  void PutTemplate(const std::string& version, const std::string& memory,
                   const json& tolerations = json::array());
  // A service of so many allocations, which have started when this returns.
  void RunJob(int count);
  // Drains of the pool's present nodes do not end, or do again.
  void HangDrains(bool hang = true);
  // Of two VMs one is marked, and its drain does not end; returns it.
  std::string LeaveOneDraining();

 private:
  // What the Lease records as failed since `begun`.
  absl::Status FailedSince(base::WallTime begun) const;

  // Measures what a wait costs.
  class Meter;

  const Interleaving interleaving_;
  int started_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
};

// An object in kNamespace, such as a Secret, with the labels of that pool; empty: without labels.
json ObjectOf(const std::string& kind, const std::string& name, const std::string& pool = "web");
// A labelled volume of pool web, of a VM that was removed before.
json FormerClaim();

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
