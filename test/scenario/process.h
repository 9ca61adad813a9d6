// SPDX-License-Identifier: Apache-2.0
// One process of the plugin: everything that ends with it, is frozen with it, or uses its clock.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/metrics/sink.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "acts_executor.h"
#include "support/fake_clock.h"
#include "support/forwarding_clock.h"
#include "support/manual_executor.h"

namespace nomad_harvester::scenario {

// A policy of a pool in kNamespace whose nodes have its name as their class.
scaling::StringMap PolicyFor(const std::string& pool);

// A process' clock: its wall clock may be set wrong, and no timer fires while the process is
// frozen.
class ProcessClock final : public support::ForwardingClock {
 public:
  using ForwardingClock::ForwardingClock;
  base::WallTime WallNow() const override { return ForwardingClock::WallNow() + skew; }
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override {
    return ForwardingClock::Every(interval, [this, callback = std::move(callback)] {
      if (!frozen) callback();
    });
  }

  base::Duration skew{};
  bool frozen = false;
};

struct ProcessOptions {
  scaling::StringMap config{};  // keys of the plugin block, besides those that it needs
  scaling::StringMap environment{};
  std::string nomad{};  // the Nomad cluster that it uses; empty: the first
  std::shared_ptr<metrics::Sink> metrics_sink{};  // null: metrics_address is unset
  Interleaving interleaving{};  // how those acts run that one step runs in parallel
};

class Process {
 public:
  Process(support::FakeClock& clock, simulator::Cluster& cluster, int number,
          std::shared_ptr<log::Sink> sink, ProcessOptions options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The agent reloads: the same configuration again. Throws if it is refused.
  void Configure();
  absl::StatusOr<scaling::TargetStatus> Status(const scaling::StringMap& policy);
  absl::Status Scale(std::int64_t count, const scaling::StringMap& policy,
                     const std::string& meta_json = "",
                     std::optional<scaling::RemovalConsent> consent = {});
  // Runs the resumption that Status started until it has finished.
  void RunBackground();

  // The value of RequestInfo::client in its requests.
  const std::string& name() const { return name_; }
  // SIGKILL: every wait ends, and the cluster rejects all its further requests.
  void Die();
  bool IsDead() const { return root_.context().Done(); }
  // SIGSTOP while one of its requests is open: its timers stop.
  void Freeze() { clock_.frozen = true; }
  void Thaw() { clock_.frozen = false; }
  void SkewWallClock(base::Duration skew) { clock_.skew = skew; }
  // The client of the open Scale disconnects.
  void CancelScale();
  void Stop();

 private:
  ProcessClock clock_;
  simulator::Cluster& cluster_;
  const std::string name_;
  const ProcessOptions options_;
  runtime::CancelSource root_;
  runtime::CancelSource scale_;
  ActsExecutor foreground_;
  support::ManualExecutor background_;
  std::unique_ptr<scaling::TargetService> service_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_
