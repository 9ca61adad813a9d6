// SPDX-License-Identifier: Apache-2.0
//
// Harvester or Nomad is unreachable for a while, starting at any request of an action: no VM is
// removed because of that (C15), and afterwards the pool converges.

#include "sweep.h"

namespace nomad_harvester::scenario {
namespace {

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
  // The agent keeps calling in the meantime.
  if (h.clock.Now() < back) h.Tick(back - h.clock.Now());
  ComeToRest(scenario, h, kBackOffBudget);
}

class PartitionSweep : public Sweep {};

TEST_P(PartitionSweep, C15_an_outage_of_one_system_removes_no_vm) {
  const Scenario& scenario = GetParam();
  const int requests = Measure(scenario, Points::Of::kRequests);
  std::size_t visited = 0;
  std::size_t shift = 0;
  for (const base::Duration duration : {minutes(1), minutes(6), minutes(25)}) {
    for (const System system : {System::kHarvester, System::kNomad}) {
      // A sample takes one system for each duration, in turn, and the other one in other scenarios.
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
