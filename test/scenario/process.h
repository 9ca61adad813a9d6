// SPDX-License-Identifier: Apache-2.0
// One process of the plugin: everything that dies with it, stands still with it, or has its time.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "support/fake_clock.h"
#include "support/manual_executor.h"

namespace nomad_harvester::scenario {

// A process' view of time: a wall clock that an operator may have set wrongly, and nothing that
// falls due while the process is stopped.
class ProcessClock final : public runtime::Clock {
 public:
  explicit ProcessClock(support::FakeClock& clock) : clock_(clock) {}

  base::MonoTime Now() const override { return clock_.Now(); }
  base::WallTime WallNow() const override { return clock_.WallNow() + skew; }
  bool SleepUntil(base::MonoTime until, std::stop_token stop) override {
    return clock_.SleepUntil(until, std::move(stop));
  }
  [[nodiscard]] std::unique_ptr<runtime::PeriodicTask> Every(
      base::Duration interval, std::function<void()> callback) override {
    return clock_.Every(interval, [this, callback = std::move(callback)] {
      if (!frozen) callback();
    });
  }

  base::Duration skew{};
  bool frozen = false;

 private:
  support::FakeClock& clock_;
};

class Process {
 public:
  Process(support::FakeClock& clock, simulator::Cluster& cluster, int number,
          std::shared_ptr<log::Sink> sink, const scaling::StringMap& config = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  absl::StatusOr<scaling::TargetStatus> Status(const scaling::StringMap& policy);
  absl::Status Scale(std::int64_t count, const scaling::StringMap& policy,
                     const std::string& meta_json = "");
  // Resumption that Status started, to its end.
  void RunBackground();

  // What its requests carry as RequestInfo::client.
  const std::string& name() const { return name_; }
  // SIGKILL: every wait ends, and the cluster lets nothing through any more.
  void Die();
  // SIGSTOP, while one of its requests is under way: its timers stand still.
  void Freeze() { clock_.frozen = true; }
  void Thaw() { clock_.frozen = false; }
  void SkewWallClock(base::Duration skew) { clock_.skew = skew; }
  // The client of the Scale that is open goes away.
  void CancelScale();
  void Stop();

 private:
  ProcessClock clock_;
  simulator::Cluster& cluster_;
  const std::string name_;
  runtime::CancelSource root_;
  runtime::CancelSource scale_;
  runtime::InlineExecutor foreground_;
  support::ManualExecutor background_;
  std::unique_ptr<scaling::TargetService> service_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_PROCESS_H_
