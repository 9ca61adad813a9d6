// The whole plugin below gRPC against the simulated cluster, in one thread and on a fake clock: a
// scenario of minutes runs in milliseconds, and the same way every time.
#ifndef NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
#define NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nomad_harvester/log/sinks.h"
#include "nomad_harvester/runtime/context.h"
#include "nomad_harvester/runtime/workers.h"
#include "nomad_harvester/scaling/service.h"
#include "nomad_harvester/simulator/cluster.h"

#include "invariants.h"
#include "support/fake_clock.h"
#include "support/manual_executor.h"

namespace nomad_harvester::scenario {

// One process of the plugin: everything that dies with it.
class Process {
 public:
  Process(support::FakeClock& clock, simulator::Cluster& cluster, int number,
          std::shared_ptr<log::RecordingSink> sink);
  ~Process();

  absl::StatusOr<scaling::TargetStatus> Status(const scaling::StringMap& policy);
  absl::Status Scale(std::int64_t count, const scaling::StringMap& policy,
                     const std::string& meta_json = "");
  // Resumption that Status started, to its end.
  void RunBackground();
  // What a kill looks like from inside: every wait ends. The cluster lets nothing through any more.
  void Die() { root_.Cancel(runtime::CancelReason::kShutdown); }
  void CancelCalls() { root_.Cancel(runtime::CancelReason::kClient); }
  void Stop();

 private:
  support::FakeClock& clock_;
  runtime::CancelSource root_;
  runtime::InlineExecutor foreground_;
  support::ManualExecutor background_;
  std::unique_ptr<scaling::TargetService> service_;
};

class Harness {
 public:
  explicit Harness(simulator::Options options = {});
  ~Harness();

  support::FakeClock clock;
  std::unique_ptr<runtime::Random> random;
  simulator::Cluster cluster;
  std::shared_ptr<log::RecordingSink> log;
  scaling::StringMap policy;
  Invariants invariants;

  Process& process() { return *process_; }
  // The process is gone, another one starts.
  void Restart();

  absl::StatusOr<scaling::TargetStatus> Status() { return process_->Status(policy); }
  // As the agent would call it, with the invariants' budget set to what it may do.
  absl::Status Scale(std::int64_t count, const std::string& meta_json = "");
  // Ticks as the agent does: Status, background work, ten seconds. Until Status is ready, and then
  // Scale if the count is not `count` yet. Fails the test if it does not come to rest.
  void Converge(std::int64_t count);
  // Status and background work until ready; nothing else.
  void Settle();

  std::vector<std::string> VmNames() const;
  std::string NodeOf(const std::string& vm) const;
  // The journal and the plugin's log: what a failing test prints.
  std::string Story() const;
  void CheckAtRest(std::int64_t count);

 private:
  int processes_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace nomad_harvester::scenario

#endif  // NOMAD_HARVESTER_TEST_SCENARIO_HARNESS_H_
