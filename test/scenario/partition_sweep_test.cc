// SPDX-License-Identifier: Apache-2.0
// Harvester or Nomad cannot be reached for a while, from any request of an action on: nothing is
// removed for that (C15), and afterwards everything comes right.

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

using simulator::Fault;
using simulator::RequestInfo;
using simulator::System;
using std::chrono::minutes;

void SetReachable(Harness& h, System system, bool reachable) {
  if (system == System::kHarvester) {
    h.cluster.SetHarvesterReachable(reachable);
  } else {
    h.cluster.SetNomadReachable(reachable);
  }
}

void CutAt(const Scenario& scenario, int request_number, System system, base::Duration duration) {
  SCOPED_TRACE(std::string(simulator::SystemName(system)) + " is away for " +
               base::FormatGoDuration(duration) + " from request " +
               std::to_string(request_number));
  Harness h;
  scenario.prepare(h);
  Points points(h.process().name(), Points::Of::kRequests);
  base::MonoTime back{};
  h.cluster.SetFaultHook([&](const RequestInfo& request) {
    if (points.Number(request) != request_number) return Fault::None();
    SetReachable(h, system, false);
    back = h.clock.Now() + duration;
    h.clock.At(back, [&] { SetReachable(h, system, true); });
    return Fault::None();
  });
  h.Scale(scenario.count).IgnoreError();
  h.cluster.SetFaultHook(nullptr);
  ASSERT_NE(back, base::MonoTime{});
  // The agent goes on calling, meanwhile.
  if (h.clock.Now() < back) h.Tick(back - h.clock.Now());
  ComeToRest(scenario, h);
}

class PartitionSweep : public Sweep {};

TEST_P(PartitionSweep, C15_a_system_that_is_away_for_a_while_costs_no_vm) {
  const Scenario& scenario = GetParam();
  const int requests = Measure(scenario, Points::Of::kRequests);
  std::size_t visited = 0;
  std::size_t shift = 0;
  for (const base::Duration duration : {minutes(1), minutes(6), minutes(25)}) {
    for (const System system : {System::kHarvester, System::kNomad}) {
      // A sample takes one system for each duration, in turn, the other one in other scenarios.
      const int limit = static_cast<int>((shift + shift / 2 + scenario.name.size()) % 2);
      for (const int request : Choose(requests, limit, static_cast<int>(shift))) {
        CutAt(scenario, request, system, duration);
        ++visited;
        if (HasFailure()) return;
      }
      ++shift;
    }
  }
  ReportVisits("partition", scenario, visited, 6 * requests);
}

NOMAD_HARVESTER_INSTANTIATE_SWEEP(PartitionSweep);

}  // namespace
}  // namespace nomad_harvester::scenario
