// SPDX-License-Identifier: Apache-2.0
// The demonstration: a pool grows and shrinks, and every step is checked.
#ifndef NOMAD_HARVESTER_SIMULATOR_DEMO_SHOW_H_
#define NOMAD_HARVESTER_SIMULATOR_DEMO_SHOW_H_

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "nomad_harvester/simulator/cluster.h"

#include "absl/status/status.h"
#include "child.h"
#include "plugin_client.h"
#include "screen.h"

namespace nomad_harvester::demo {

class Show {
 public:
  // `signals` are blocked in every thread; one of them ends the show.
  Show(simulator::Cluster& cluster, Child& child, PluginClient& plugin, const sigset_t& signals);

  // Runs all steps and gives the terminal back. Returns the problems found, one sentence each.
  std::vector<std::string> Run();
  // One line per step: requested count, result, seconds.
  const std::vector<std::string>& summary() const { return summary_; }
  bool interrupted() const { return interrupted_; }

 private:
  struct Step {
    std::string title;
    std::int64_t from = 0;
    std::int64_t count = 0;
    bool dry_run = false;
    std::int64_t result = 0;  // number of VMs afterwards
  };
  // After a signal or a failure no further step begins.
  bool Over() const { return interrupted_ || !problems_.empty(); }
  std::vector<std::string> RunSteps();
  void RunJobs();
  void RunStep(const Step& step);
  // Calls Scale in another thread and redraws the table until it returns.
  absl::Status ScaleAndWatch(const Step& step);
  // Asks for the state, as the agent does, until the pool is as it should be, or for a while.
  void AwaitRest(const Step& step);
  void Check(const Step& step, const absl::Status& scaled, int effects, double seconds);
  // Shows the present state, then waits a moment. False: a signal arrived.
  bool Tick();
  void Linger();

  simulator::Cluster& cluster_;
  Child& child_;
  PluginClient& plugin_;
  const sigset_t signals_;
  Screen screen_;
  std::vector<std::string> problems_;
  std::vector<std::string> summary_;
  bool interrupted_ = false;
};

}  // namespace nomad_harvester::demo

#endif  // NOMAD_HARVESTER_SIMULATOR_DEMO_SHOW_H_
